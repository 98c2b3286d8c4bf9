"""Seconds per suggestion of the paper's baselines on BoTorch, beside LogEI and PBGI of the engine.

All of them get the same snapshot, a fitted model of 4 d random points of Ackley's function with a learned cost, and the
settings of the paper; one thread. What is timed is the choice of the point, without the fit: processor time, which a
busy machine hardly changes. The median of a few seeds is shown, then what one evaluation with its gradient takes beside
BoTorch's own for those two acquisition functions that are not BoTorch's here.

    python benchmarks/bench_baselines.py                  d = 4, 8, 16
    python benchmarks/bench_baselines.py --dimensions 4 --repeats 1
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from botorch.acquisition.analytic import ExpectedImprovement
from botorch.acquisition.knowledge_gradient import qKnowledgeGradient
from botorch.acquisition.multi_step_lookahead import make_best_f, qMultiStepLookahead
from botorch.sampling.base import MCSampler
from threadpoolctl import threadpool_limits

from pbgi.botorch.bridge import Surrogate, surrogate_of
from pbgi.botorch.knowledge_gradient import OneShotKnowledgeGradient
from pbgi.botorch.lookahead import PathImprovement
from pbgi.botorch.policies import BOTORCH_POLICIES
from pbgi.cost import LearnedCost
from pbgi.gp.config import GPConfig
from pbgi.gp.fit import fit_gp
from pbgi.parameter import Float
from pbgi.policy import PBGI, LogEI
from pbgi.snapshot import Snapshot
from pbgi.space import Space

N_FANTASIES, N_STEPS = 64, 4


def ackley(X: np.ndarray) -> np.ndarray:
    """Negated, on [-1, 1]^d."""
    Z = 2.0 * X - 1.0
    root, waves = np.sqrt((Z**2).mean(axis=1)), np.cos(2 * np.pi * Z).mean(axis=1)
    return np.asarray(20.0 * np.exp(-0.2 * root) + np.exp(waves) - 20.0 - np.e)


def snapshot(d: int) -> Snapshot:
    X = np.random.default_rng(d).random((4 * d, d))
    values, costs = ackley(X), 1.0 + 20.0 * X.mean(axis=1)
    space = Space({f"x{k}": Float(0.0, 1.0) for k in range(d)})
    return Snapshot(
        space=space,
        X=X,
        warped=values,
        model=fit_gp(X, values, GPConfig.paper()),
        cost=LearnedCost(trend=False).fit(space, X, costs, GPConfig.paper(), None),
        trials=(),
        sign=1.0,
        failed=np.empty((0, d)),
        excluded=None,
        spent=0.0,
        budget=25.0 * d,
    )


def seconds(task: Callable[[int], Any], repeats: int) -> float:
    times = []
    for seed in range(repeats):
        start = time.process_time()
        task(seed)
        times.append(time.process_time() - start)
    return statistics.median(times)


class PosteriorMean(MCSampler):
    """Imagines what is expected, once."""

    def __init__(self) -> None:
        super().__init__(sample_shape=torch.Size([1]))

    def forward(self, posterior: Any) -> torch.Tensor:
        """The mean."""
        mean: torch.Tensor = posterior.mean
        return mean.unsqueeze(0)


def acquisitions(surrogate: Surrogate) -> list[tuple[str, int, Any]]:
    """Name, number of points that are looked at together, and acquisition function."""
    tree = qMultiStepLookahead(
        surrogate.model,
        batch_sizes=[1] * (N_STEPS - 1),
        samplers=[PosteriorMean() for _ in range(N_STEPS - 1)],
        valfunc_cls=[ExpectedImprovement] * N_STEPS,
        valfunc_argfacs=[make_best_f] * N_STEPS,
    )
    return [
        ("knowledge gradient", 1 + N_FANTASIES, OneShotKnowledgeGradient(surrogate, N_FANTASIES, 0)),
        ("knowledge gradient, BoTorch", 1 + N_FANTASIES, qKnowledgeGradient(surrogate.model, N_FANTASIES)),
        ("path improvement", N_STEPS, PathImprovement(surrogate)),
        ("path improvement, BoTorch", N_STEPS, tree),
    ]


def evaluate(acquisition: Any, n_points: int, d: int) -> Callable[[int], None]:
    def once(seed: int) -> None:
        X = torch.tensor(np.random.default_rng(seed).random((1, n_points, d)), requires_grad=True)
        acquisition(X).sum().backward()

    once(0)  # fills caches
    return once


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    policies: list[Any] = [LogEI(), PBGI(1e-4), *(kind() for kind in BOTORCH_POLICIES)]
    for d in arguments.dimensions:
        state = snapshot(d)
        LogEI().propose(state, np.random.default_rng(0))  # the first call imports what it needs
        for policy in policies:

            def suggest(seed: int, policy: Any = policy, state: Snapshot = state) -> None:
                policy.propose(state, np.random.default_rng(seed))

            taken = seconds(suggest, arguments.repeats)
            print(f"d={d:<3} {type(policy).__name__:<30} {taken:8.3f} s per suggestion", flush=True)
        for name, n_points, acquisition in acquisitions(surrogate_of(state)):
            taken = seconds(evaluate(acquisition, n_points, d), 10)
            print(f"d={d:<3} {name:<30} {1e3 * taken:8.1f} ms per evaluation", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # BoTorch would rather see LogEI inside the tree
        main()
