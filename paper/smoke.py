"""A small version of experiments: does everything still run?"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from paper.specification import ProblemSpec, Run
from pbgi.botorch.searched_policy import SearchedPolicy

N_START, N_EVALUATIONS = 3, 2
LARGEST_DRAW = 4  # dimension; the search for the highest value of a draw takes long in large ones


def smoke(runs: Iterable[Run]) -> list[Run]:
    """Of each experiment, problem and cost the first of the smallest panels, its first seed, cut to a few evaluations.

    The results are other specifications, so that they are never taken for those of the experiment.
    """
    first = [run for run in runs if run.specification.seed == 0]
    smallest: dict[tuple[str, ...], Run] = {}
    for run in first:
        if run.dim < smallest.setdefault(_kind(run), run).dim:
            smallest[_kind(run)] = run
    panels = {(kind, run.panel) for kind, run in smallest.items()}
    return [_cut(run) for run in first if (_kind(run), run.panel) in panels]


def _kind(run: Run) -> tuple[str, ...]:
    return run.specification.experiment, run.specification.problem.function, run.cost


def _cut(run: Run) -> Run:
    spec = run.specification
    n_start = N_START if spec.start is None else None
    small = _small(spec.problem)
    dim = int(dict(small.arguments).get("dimension") or run.dim)
    return replace(
        run,
        dim=dim,
        specification=replace(
            spec, problem=small, policy=_quick(spec.policy), n_start=n_start, n_evaluations=N_EVALUATIONS
        ),
    )


def _quick(policy: Any) -> Any:
    """The same with the least search, if it is BoTorch's."""
    if not isinstance(policy, SearchedPolicy):
        return policy
    return replace(policy, n_raw_samples_per_dimension=1, n_restarts_per_dimension=1, n_iterations=1)


def _small(problem: ProblemSpec) -> ProblemSpec:
    """The same with arguments that make it quick."""
    arguments = dict(problem.arguments)
    if problem.function == "gp_draw":
        arguments["dimension"] = LARGEST_DRAW
    if problem.function == "lunar_lander":
        arguments["n_flights"] = 1
    return replace(problem, arguments=tuple(arguments.items()))
