"""Climbs of many runs from many starts each: `pbgi.search.climb.maximize_batch` with one axis more.

The rules are those: a projected quasi-Newton step, Armijo's condition, a self-scaling BFGS matrix for every climb, and
a race in which climbs that fall hopelessly behind the best one of their run are given up. (There, climbs that come near
a better one are given up too, which saves time and finds nothing else.) Climbs that have ended keep their row until
half of the rows are idle.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from pbgi.search.climb import ARMIJO, CURVATURE, FIRST_STEP, GROWTH, HOPE, MAX_STRETCH, RACE_EVERY, RACE_FROM, TINY

MAX_ITERATIONS = 60  # the engine has 200, of which a climb in a hundred takes more than these; here all would wait
ValueAndGrad = Callable[[Tensor], tuple[Tensor, Tensor]]


class Function(Protocol):
    """What is maximized: one function per run."""

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Values (b, m) and gradients (b, m, d) at points (b, m, d)."""

    def take(self, runs: Tensor) -> "Function":
        """The functions of these runs."""


class _Climbs(NamedTuple):
    """Rows of climbs (b, m): where they are, what they know, and whether they are under way."""

    x: Tensor
    value: Tensor
    grad: Tensor  # in units of the scale, as gains
    H: Tensor  # (b, m, d, d) inverse Hessian of minus the function
    fresh: Tensor
    shortening: Tensor
    gain: Tensor
    going: Tensor
    place: Tensor  # (b, m) which climb of its run it is

    def take(self, runs: Tensor | None, columns: Tensor | None) -> "_Climbs":
        """Of these runs, these climbs."""
        parts = [part if runs is None else part[runs] for part in self]
        if columns is not None:
            rows = torch.arange(len(columns), device=columns.device)[:, None]
            parts = [part[rows, columns] for part in parts]
        return _Climbs(*parts)


class _Proposal(NamedTuple):
    moving: Tensor
    trial: Tensor
    step: Tensor
    promise: Tensor


def climb(
    function: Function,
    starts: Tensor,
    *,
    scale: Tensor,
    lengths: Tensor | None = None,
    tolerance: float = 1e-7,
    race: bool = True,
    max_iterations: int = MAX_ITERATIONS,
) -> tuple[Tensor, Tensor]:
    """Climb from every start to a local maximum on [0, 1]^d.

    Args:
        function: Of each run.
        starts: (b, m, d).
        scale: (b,) Differences of values that matter.
        lengths: (b, d) How far the functions go before they change.
        tolerance: A climb ends when neither its last step brought nor its next one promises more, times the scale.
        race: Only the best maximum of each run is wanted.
        max_iterations: Evaluations of one climb.

    Returns:
        Points (b, m, d) and values (b, m).
    """
    metric = _metric(starts, lengths)
    X, values = starts.clone(), torch.empty(starts.shape[:2], dtype=starts.dtype, device=starts.device)
    climbs = _begun(function, starts, scale, metric)
    values.copy_(climbs.value)
    runs = torch.arange(len(starts), device=starts.device)
    for tick in range(max_iterations):
        proposal = _propose(climbs)
        racing = race and tick >= RACE_FROM and tick % RACE_EVERY == 0
        climbs = climbs._replace(going=_going(climbs, proposal, tolerance, scale if racing else None))
        if tick % RACE_EVERY == 0:  # looking at the count makes the device wait
            _store(X, values, runs, climbs)
            kept, columns = _kept(climbs)
            if kept is not None and not len(kept):
                return X, values
            if kept is not None or columns is not None:
                climbs = climbs.take(kept, columns)
                if kept is not None:
                    runs, scale, metric, function = runs[kept], scale[kept], metric[kept], function.take(kept)
                proposal = _propose(climbs)
        climbs = _advanced(climbs, proposal, function.value_and_grad, scale, metric)
    _store(X, values, runs, climbs)
    return X, values


def _metric(starts: Tensor, lengths: Tensor | None) -> Tensor:
    """Squares (b, d) of how far each coordinate goes beside the others."""
    if lengths is None:
        return torch.ones((len(starts), starts.shape[2]), dtype=starts.dtype, device=starts.device)
    logs = lengths.log()
    return torch.exp(2.0 * (logs - logs.mean(1, keepdim=True)))


def _going(climbs: _Climbs, proposal: _Proposal, tolerance: float, scale: Tensor | None) -> Tensor:
    """Which climbs (b, m) go on; where a scale is given those that are too far behind the best of their run do not."""
    idle = (climbs.gain <= tolerance) | (climbs.shortening < 1.0)
    going = climbs.going & (proposal.promise > torch.where(idle, tolerance, 0.0))
    if scale is None:
        return going
    behind = (climbs.value.amax(1, keepdim=True) - climbs.value) / scale[:, None]
    return going & ~(behind > HOPE * torch.maximum(proposal.promise, climbs.gain))


def _begun(function: Function, starts: Tensor, scale: Tensor, metric: Tensor) -> _Climbs:
    b, m, _ = starts.shape
    value, grad = function.value_and_grad(starts)
    grad = grad / scale[:, None, None]
    going = _is_finite(value, grad)
    value = torch.where(going, value, -torch.inf)
    grad = torch.where(going[..., None], grad, 0.0)
    first = FIRST_STEP / (grad * metric[:, None, :]).abs().amax(-1).clamp(min=TINY)
    H = torch.diag_embed(first[..., None] * metric[:, None, :])
    ones = torch.ones_like(value)
    place = torch.arange(m, device=starts.device).expand(b, m)
    return _Climbs(starts, value, grad, H, going.clone(), ones, torch.zeros_like(value), going, place)


def _store(X: Tensor, values: Tensor, runs: Tensor, climbs: _Climbs) -> None:
    X[runs[:, None], climbs.place] = climbs.x
    values[runs[:, None], climbs.place] = climbs.value


def _kept(climbs: _Climbs) -> tuple[Tensor | None, Tensor | None]:
    """Runs to keep, and columns of these, where half of the rows would go; None where all stay."""
    counts = climbs.going.sum(1)
    n_runs, most = (int(number) for number in torch.stack([(counts > 0).sum(), counts.max()]).tolist())
    b, m = climbs.going.shape
    kept = columns = None
    if 2 * n_runs <= b:
        kept = torch.nonzero(counts > 0)[:, 0]
    if 2 * most <= m:
        going = climbs.going if kept is None else climbs.going[kept]
        columns = torch.argsort(going.to(torch.int8), dim=1, descending=True, stable=True)[:, : max(most, 1)]
    return kept, columns


def _propose(climbs: _Climbs) -> _Proposal:
    """The quasi-Newton step of every climb, clipped to the cube; the gradient where that leads downhill."""
    x, grad = climbs.x, climbs.grad
    moving = torch.where(grad > 0.0, x < 1.0, x > 0.0)
    slope = torch.where(moving, grad, 0.0)
    product = (climbs.H @ slope[..., None])[..., 0]
    product = torch.where(moving, product, 0.0)
    trial = (x + climbs.shortening[..., None] * product).clamp(0.0, 1.0)
    promise = (slope * (trial - x)).sum(-1)
    lost = ~(promise > 0.0)
    length = FIRST_STEP * climbs.shortening / slope.abs().amax(-1).clamp(min=TINY)
    steep = (x + length[..., None] * slope).clamp(0.0, 1.0)
    trial = torch.where(lost[..., None], steep, trial)
    step = trial - x
    return _Proposal(moving, trial, step, (slope * step).sum(-1))


def _advanced(climbs: _Climbs, proposal: _Proposal, f: ValueAndGrad, scale: Tensor, metric: Tensor) -> _Climbs:
    """Evaluate one trial point per climb; move there and learn, or shorten the step."""
    moving, trial, step, promise = proposal
    value, grad = f(trial)
    grad = grad / scale[:, None, None]
    finite = _is_finite(value, grad)
    gain = torch.where(finite, (value - climbs.value) / scale[:, None], -torch.inf)
    moved = climbs.going & finite & (gain >= ARMIJO * promise)
    share = (0.5 * promise / (promise - gain)).nan_to_num(0.1).clamp(0.1, 0.5)
    shortening = torch.where(moved, 1.0, climbs.shortening * share)
    column = moved[..., None]
    grad = torch.where(column, grad, climbs.grad)
    y = torch.where(moving & column, climbs.grad - grad, 0.0)
    s = torch.where(column, step, 0.0)
    sy = (s * y).sum(-1)
    good = moved & (sy > CURVATURE * (s.square().sum(-1) * y.square().sum(-1)).sqrt())
    H, fresh = _learned(climbs, s, y, sy, good, metric)
    H = torch.where((moved & ~good)[..., None, None], H * GROWTH, H)
    return climbs._replace(
        x=torch.where(column, trial, climbs.x),
        value=torch.where(moved, value, climbs.value),
        grad=grad,
        H=H,
        fresh=fresh,
        shortening=torch.where(climbs.going, shortening, climbs.shortening),
        gain=torch.where(moved, gain, climbs.gain),
    )


def _learned(climbs: _Climbs, s: Tensor, y: Tensor, sy: Tensor, good: Tensor, metric: Tensor) -> tuple[Tensor, Tensor]:
    """The matrices after a step s along which the gradient fell by y: BFGS, stretched where it is flatter."""
    first = climbs.fresh & good
    size = sy / (y.square() * metric[:, None, :]).sum(-1)
    H = torch.where(first[..., None, None], torch.diag_embed(size[..., None] * metric[:, None, :]), climbs.H)
    hy = (H @ y[..., None])[..., 0]
    yhy = (y * hy).sum(-1)
    stretch = (sy / yhy).nan_to_num(1.0).clamp(1.0, MAX_STRETCH)
    inverse = 1.0 / sy
    stretched = inverse * stretch
    half = 0.5 * inverse * (1.0 + stretched * yhy)
    w = half[..., None] * s - stretched[..., None] * hy
    # Rows that learn nothing have been multiplied by infinite numbers: theirs stay as they were.
    update = s[..., :, None] * w[..., None, :]
    new = stretch[..., None, None] * H + update + update.mT
    return torch.where(good[..., None, None], new, climbs.H), climbs.fresh & ~first


def _is_finite(value: Tensor, grad: Tensor) -> Tensor:
    return torch.isfinite(value + grad.sum(-1))
