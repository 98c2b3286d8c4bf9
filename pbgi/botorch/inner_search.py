"""The search that all policies on BoTorch share: BoTorch's own, shut off from the rest of the process."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import BotorchError
from botorch.optim.initializers import gen_batch_initial_conditions
from botorch.optim.optimize import optimize_acqf
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor

from pbgi.arrays import Floats
from pbgi.botorch.bridge import as_tensor

# So many points, or sets of points, are evaluated at a time: arrays stay within tens of megabytes.
BATCH_SIZE = 128
# What BoTorch raises where numbers fail it: a matrix that is not definite, a value or a gradient that is not a number.
NUMERICAL_ERRORS = (BotorchError, NanError, NotPSDError, torch.linalg.LinAlgError)  # type: ignore[attr-defined]

Starts = Callable[[int], Floats]
"""Of a number n: sets of points (n, q, d) from which the best are climbed from."""


class Climbs(NamedTuple):
    """Where the climbs ended: sets of points (r, q, d), of which the first is the one to try, and their values (r,)."""

    X: Floats
    values: Floats


def climb(
    acquisition: AcquisitionFunction,
    d: int,
    n_points: int,
    starts: Starts | None,
    *,
    n_raw_samples: int,
    n_restarts: int,
    n_iterations: int,
) -> Climbs:
    """BoTorch's search on the unit cube.

    Args:
        acquisition: What is maximized.
        d: Dimension.
        n_points: How many points are looked at together; those that BoTorch itself adds do not count.
        starts: What is chosen from to climb; None for Sobol points.
        n_raw_samples: How many sets of points are evaluated to choose from.
        n_restarts: Climbs.
        n_iterations: Of each climb, at most.
    """
    generator = dict[str, Any]()
    if starts is not None:
        generator = {"ic_generator": gen_batch_initial_conditions, "generator": _as_generator(starts)}
    # Values are always returned: the alternative in BoTorch's type is for callers who do not want them.
    X, values = optimize_acqf(
        acquisition,
        bounds=as_tensor([[0.0] * d, [1.0] * d]),
        q=n_points,
        num_restarts=n_restarts,
        raw_samples=n_raw_samples,
        options={"maxiter": n_iterations, "batch_limit": BATCH_SIZE, "init_batch_limit": BATCH_SIZE},
        return_best_only=False,
        # One climb that broke off is no reason to do all of them again.
        retry_on_optimization_warning=False,
        **generator,
    )
    return Climbs(X.detach().numpy(), cast(Tensor, values).detach().reshape(-1).numpy())


@contextmanager
def isolated(rng: np.random.Generator) -> Iterator[None]:
    """Torch's generator is seeded from `rng` inside and as it was outside; warnings of BoTorch stay inside."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings(), torch.enable_grad():
        warnings.simplefilter("ignore")
        torch.default_generator.manual_seed(int(rng.integers(2**63)))
        yield


def _as_generator(starts: Starts) -> Callable[[int, int, int | None], Tensor]:
    def generate(n: int, _q: int, _seed: int | None) -> Tensor:
        return as_tensor(starts(n))

    return generate
