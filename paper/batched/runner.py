"""Which runs can be done many at a time, in which groups, and where the results go: `python -m paper batch`.

A result has the key of its run, whichever engine made it, and says which one did. Problems are made in other processes
meanwhile, since the highest value of a draw takes seconds to find.
"""

import multiprocessing
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any, TypeAlias

import torch

from paper.batched.acquisition import price_slope
from paper.batched.campaign import Campaign, Shape, State, shape_of
from paper.batched.rules import Rule, is_closed_form
from paper.execution import build_problem
from paper.policies import SearchedFromSobol
from paper.results import ENGINES, Store
from paper.specification import FittedModel, Run, TrueModel
from pbgi.problems.gp_prior import highest_value

Ended: TypeAlias = tuple[State, dict[str, Any]]

PRICED = ("gp_draw", "ackley", "levy", "rosenbrock")  # problems whose price is known to `price_slope`
UNPRICED = (*PRICED, "robot_pushing")  # those of real coordinates


def can_be_batched(run: Run) -> bool:
    """Whether a run has a closed-form policy, climbs from Sobol points, and a price that is known.

    Runs that are there to compare the engines are left to the other one.
    """
    spec = run.specification
    problems = UNPRICED if run.cost == "uniform" else PRICED
    searched = isinstance(spec.policy, SearchedFromSobol) and is_closed_form(spec.policy.policy)
    models = isinstance(spec.model, FittedModel | TrueModel)
    return (
        spec.experiment != ENGINES and searched and models and spec.start is None and spec.problem.function in problems
    )


def by_shape(runs: Iterable[Run], most: int) -> Iterator[tuple[Shape, list[Run]]]:
    """Groups of runs that are done together, of so many runs at most, all seeds of a curve in one if they fit."""
    groups: dict[Shape, list[Run]] = {}
    for run in runs:
        policy = run.specification.policy
        groups.setdefault(shape_of(run, (policy.n_points_per_dimension, policy.n_climbs_per_dimension)), []).append(run)
    for shape, members in groups.items():
        for begin in range(0, len(members), most):
            yield shape, members[begin : begin + most]


def run_batched(
    runs: list[Run], store: Store, *, device: str, n_jobs: int, max_seconds: float | None = None, most: int = 1024
) -> int:
    """Do the runs that have no result yet; how many were finished."""
    deadline = time.monotonic() + (float("inf") if max_seconds is None else max_seconds)
    finished = {record["key"] for record in store.load(dict.fromkeys(run.specification.experiment for run in runs))}
    left = [run for run in runs if run.key not in finished and can_be_batched(run)]
    groups = [(shape, [_begun(run) for run in group]) for shape, group in by_shape(left, most)]
    n_done = 0
    with ProcessPoolExecutor(n_jobs, multiprocessing.get_context("spawn")) as pool:
        draws = {state.draw for _, group in groups for state in group if state.draw is not None}
        highest = {draw: pool.submit(highest_value, draw) for draw in sorted(draws, key=lambda d: d.dimension)}
        for shape, group in groups:
            n_group, begin = 0, time.monotonic()
            for records in _whole_curves(Campaign(shape, group, torch.device(device)), group, deadline):
                for state, record in records:
                    optimum = record["optimum"] if state.draw is None else highest[state.draw].result()
                    store.append(record | {"optimum": optimum})
                n_group += len(records)
            seconds = time.monotonic() - begin
            print(f"{shape}: {n_group} of {len(group)} runs, {seconds:.0f} s", file=sys.stderr, flush=True)
            n_done += n_group
            if time.monotonic() > deadline:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    return n_done


def _whole_curves(campaign: Campaign, group: list[State], deadline: float) -> Iterator[list[Ended]]:
    """The runs of a curve once all of them have ended.

    Where costs vary the first to end are those that went to dear points: alone they would not speak for the curve.
    """
    missing = Counter(_curve(state) for state in group)
    waiting: dict[tuple[str, str, str], list[Ended]] = defaultdict(list)
    for state, record in campaign.ended(deadline):
        curve = _curve(state)
        waiting[curve].append((state, record))
        if len(waiting[curve]) == missing[curve]:
            yield waiting.pop(curve)


def _curve(state: State) -> tuple[str, str, str]:
    return state.run.panel, state.run.curve, state.run.variant


def _begun(run: Run) -> State:
    spec = run.specification.problem
    if spec.function == "gp_draw":
        spec = replace(spec, arguments=(*spec.arguments, ("find_optimum", False)))
    slope = price_slope("uniform" if run.cost == "uniform" else spec.price, run.dim)
    return State(run, build_problem(spec), Rule(run.specification.policy.policy, slope))
