"""Time of the index as a BoTorch acquisition function, beside BoTorch's own log expected improvement.

The model is the same, so most of the time is too: that of its posterior. Contestants take turns on one thread, and what
counts is the ratio of medians. Times are the processor's: a job that takes longer than a time slice would otherwise be
charged for what else the machine does, and ratios would look better than they are. A third contestant finds the index
by bisection, as the paper's code does.

    python benchmarks/bench_botorch.py
"""

import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim.optimize import optimize_acqf
from botorch.utils.transforms import t_batch_mode_transform
from gpytorch.mlls import ExactMarginalLogLikelihood
from threadpoolctl import threadpool_limits
from timing import report
from torch import Tensor

from pbgi.botorch import PandorasBoxGittinsIndex

D, N = 8, 64
COST_SCALE = 1e-3
N_RESTARTS, N_RAW = 20, 512
BATCHES = (1, N_RESTARTS, N_RAW)
BISECTION_STEPS = 100
TARGET = 1.15  # times the time of log expected improvement
REPEATS = 101
SEARCHES = 9
MAX_STEPS = 20


class Bisected(torch.autograd.Function):
    """The g with EI(g) = price, by halving a bracket; its derivatives by the implicit function theorem."""

    @staticmethod
    def forward(ctx: Any, mean: Tensor, std: Tensor, log_price: Tensor) -> Tensor:
        """The index."""
        price = log_price.exp()
        low, high = mean - price - 10.0 * std, mean + 10.0 * std
        for _ in range(BISECTION_STEPS):
            middle = 0.5 * (low + high)
            z = (mean - middle) / std
            above = std * (density(z) + z * torch.special.ndtr(z)) > price
            low, high = torch.where(above, middle, low), torch.where(above, high, middle)
        index = 0.5 * (low + high)
        ctx.save_for_backward((mean - index) / std, price)
        return index

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """In mean, std and log_price."""
        z, price = ctx.saved_tensors
        probability = torch.special.ndtr(z)
        return grad, grad * density(z) / probability, -grad * price / probability


def density(z: Tensor) -> Tensor:
    return torch.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


class BisectedIndex(PandorasBoxGittinsIndex):
    """The same acquisition function, solved by bisection."""

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]  # BoTorch's type asks for every acquisition function
    def forward(self, X: Tensor) -> Tensor:
        """The index."""
        mean, std, log_cost = self.beliefs(X, 1.0)
        index: Tensor = Bisected.apply(mean, std, log_cost + self.cost_scale.log())  # type: ignore[no-untyped-call]
        return index


def cost(X: Tensor) -> Tensor:
    return 1.0 + 20.0 * X.mean(dim=-1)


def contestants() -> dict[str, AcquisitionFunction]:
    X = torch.as_tensor(np.random.default_rng(0).random((N, D)))
    Y = torch.sin(3.0 * X).sum(dim=-1, keepdim=True) * torch.cos(2.0 * X[:, :1])
    model = SingleTaskGP(X, Y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return {
        "log EI": LogExpectedImprovement(model, Y.max()),
        "index": PandorasBoxGittinsIndex(model, COST_SCALE, cost),
        "index by bisection": BisectedIndex(model, COST_SCALE, cost),
    }


def evaluation(acquisition: AcquisitionFunction, X: Tensor) -> Callable[[], object]:
    return lambda: torch.autograd.grad(acquisition(X).sum(), X)


def value_only(acquisition: AcquisitionFunction, X: Tensor) -> Callable[[], object]:
    def run() -> None:
        with torch.no_grad():
            acquisition(X)

    return run


def whole_search(acquisition: AcquisitionFunction) -> Callable[[], object]:
    bounds = torch.stack([torch.zeros(D, dtype=torch.float64), torch.ones(D, dtype=torch.float64)])
    # As many steps for everyone: how long a climb goes on depends on what is climbed.
    options: dict[str, bool | float | int | str] = {"seed": 0, "maxiter": MAX_STEPS, "ftol": 0.0, "gtol": 0.0}
    return lambda: optimize_acqf(acquisition, bounds, 1, N_RESTARTS, N_RAW, options=options)


def median_seconds(jobs: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median processor time of each job; they take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    with threadpool_limits(limits=1):
        for _ in range(repeats + 1):
            for name, run in jobs.items():
                start = time.process_time()
                run()
                seconds[name].append(time.process_time() - start)
    return {name: statistics.median(times[1:]) for name, times in seconds.items()}  # the first warms caches


def count(acquisition: AcquisitionFunction, run: Callable[[], object]) -> int:
    """How often the run evaluates the acquisition function: a line search takes what it needs."""
    seen: list[int] = []
    hook = acquisition.register_forward_hook(lambda *_: seen.append(1))
    run()
    hook.remove()
    return len(seen)


def compare(what: str, seconds: dict[str, float]) -> float:
    """Print the row; return the ratio that counts."""
    ratios = {name: spent / seconds["log EI"] for name, spent in seconds.items()}
    print(f"{what:34}" + "".join(f"{1e3 * seconds[name]:10.2f} ms ({ratios[name]:5.2f})" for name in seconds))
    return ratios["index"]


def main() -> int:
    acquisitions = contestants()
    rng = np.random.default_rng(1)
    print(
        f"d = {D}, n = {N}, one thread; in brackets: times log EI\n{'':34}" + "".join(f"{n:>21}" for n in acquisitions)
    )
    met = []
    for b in BATCHES:
        X = torch.as_tensor(rng.random((b, 1, D))).requires_grad_()
        kinds = {"value and gradient": evaluation} if b < N_RAW else {"value": value_only}
        for kind, job in kinds.items():
            jobs = {name: job(acquisition, X) for name, acquisition in acquisitions.items()}
            met.append(compare(f"{kind}, {b} points", median_seconds(jobs, REPEATS)))
    jobs = {name: whole_search(acquisition) for name, acquisition in acquisitions.items()}
    seconds = median_seconds(jobs, SEARCHES)
    n_evaluations = {name: count(acquisition, jobs[name]) for name, acquisition in acquisitions.items()}
    met.append(compare(f"optimize_acqf, {MAX_STEPS} steps", seconds))
    compare("the same per evaluation", {name: spent / n_evaluations[name] for name, spent in seconds.items()})
    ok = report("largest ratio", max(met), TARGET, "times log EI")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
