"""The best point of every run: pools, starts and climbs of `pbgi.search` for many runs at once."""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from paper.batched.acquisition import Acquisition
from paper.batched.climb import climb
from pbgi.search import build_pool
from pbgi.search.maximize import SOBOL_BITS, SPACING

# Starts are chosen among so many rows of the pool, the best ones, or four times as many as are wanted.
AT_LEAST = 1024


@lru_cache(maxsize=4)
def _digits(dimension: int, n: int, device: torch.device) -> Tensor:
    """The Sobol points before their shift, as whole numbers."""
    shift = _shift(np.random.default_rng(0), dimension)
    pool = build_pool(dimension, np.random.default_rng(0), n_sobol=n)
    return torch.as_tensor((pool * 2.0**SOBOL_BITS).astype(np.int64) ^ shift, device=device)


def _shift(rng: np.random.Generator, dimension: int) -> np.ndarray:
    return rng.integers(0, 1 << SOBOL_BITS, size=dimension)


def pools(seeds: list[int], n_told: int, dimension: int, n: int, device: torch.device) -> Tensor:
    """The Sobol points (b, n, d) that the engine would look at in each run, given its seed and number of trials."""
    shifts = [_shift(np.random.default_rng([seed, n_told]), dimension) for seed in seeds]
    digits = _digits(dimension, n, device) ^ torch.as_tensor(np.stack(shifts), device=device)[:, None, :]
    return digits.to(torch.float64) / 2.0**SOBOL_BITS


def best_points(acquisition: Acquisition, pool: Tensor, n_climbs: int, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The best point (b, d) of each run, and its value (b,)."""
    values = acquisition.value(pool)
    values = torch.where(torch.isfinite(values), values, -torch.inf)
    rows = chosen(values, pool, n_climbs)
    starts = torch.gather(pool, 1, rows[..., None].expand(-1, -1, pool.shape[-1]))
    tops, heights = climb(acquisition, starts, scale=_spread(values), lengths=lengths)
    top = heights.argmax(1, keepdim=True)
    found = torch.gather(tops, 1, top[..., None].expand(-1, -1, pool.shape[-1]))[:, 0]
    return found, torch.gather(heights, 1, top)[:, 0]


def chosen(values: Tensor, pool: Tensor, n: int) -> Tensor:
    """Positions (b, n) of the starts: the best of each pool first, then the best of those far from all before."""
    b, m, d = pool.shape
    order = values.argsort(dim=1, descending=True)[:, : min(m, max(AT_LEAST, 4 * n))]
    points = torch.gather(pool, 1, order[..., None].expand(-1, -1, d))
    norms = points.square().sum(-1)
    distance = torch.full_like(norms, torch.inf)
    spacing = torch.full((b, 1), SPACING**2 * d, dtype=pool.dtype, device=pool.device)
    picked = torch.zeros((b, n), dtype=torch.int64, device=pool.device)
    count = torch.zeros((b, 1), dtype=torch.int64, device=pool.device)
    while True:
        for _ in range(n):
            far = distance >= spacing
            row = far.to(torch.int8).argmax(1, keepdim=True)
            found = torch.gather(far, 1, row) & (count < n)
            place = count.clamp(max=n - 1)
            picked.scatter_(1, place, torch.where(found, row, torch.gather(picked, 1, place)))
            point = torch.gather(points, 1, row[..., None].expand(-1, -1, d))
            apart = norms - 2.0 * (points @ point.mT)[..., 0] + torch.gather(norms, 1, row)
            apart.scatter_(1, row, -1.0)
            distance = torch.where(found, torch.minimum(distance, apart), distance)
            spacing = torch.where(found | (count >= n), spacing, torch.where(spacing > 1e-8, spacing / 4.0, -0.5))
            count += found
        if bool((count >= n).all()):
            return torch.gather(order, 1, picked)


def _spread(values: Tensor) -> Tensor:
    """From the upper quartile to the top."""
    ascending = values.sort(1).values
    m = values.shape[1]
    top = ascending[:, -1]
    spread = top - ascending[:, 3 * m // 4]
    whole = top - ascending[:, 0]
    spread = torch.where(spread > 0.0, spread, whole)
    return torch.where((spread > 0.0) & torch.isfinite(spread), spread, 1.0)
