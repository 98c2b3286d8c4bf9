"""Runs of one shape, from their start until their budgets are spent, one step of all of them after another."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from paper.batched.acquisition import Acquisition
from paper.batched.fit import fitted
from paper.batched.posterior import Posterior, Scales, fresh_inverse, grown_inverse
from paper.batched.rules import Rule
from paper.batched.search import best_points, pools
from paper.curves import SIGNS
from paper.execution import NOISE, start_points
from paper.specification import FittedModel, Run, TrueModel
from pbgi.arrays import Floats
from pbgi.gp.config import GPConfig
from pbgi.problems import Problem
from pbgi.problems.gp_prior import GPDraw
from pbgi.problems.unit_cube import PricedFunction

FRESH_EVERY = 64  # steps after which grown factors are computed anew, so that rounding errors do not add up


class Shape(NamedTuple):
    """What runs must have in common to be done together."""

    dim: int
    kernel: str
    is_fitted: bool
    standardize: bool
    n_points: int
    n_climbs: int


@dataclass
class State:
    """One run under way.

    Attributes:
        best: The best value so far (larger is better).
        spent: Of the budget.
    """

    run: Run
    problem: Problem
    rule: Rule
    values: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    n_start: int = 0
    best: float = -math.inf
    spent: float = 0.0

    def begin(self) -> Floats:
        """Evaluate the start; its points (n, d) in the unit cube."""
        space = self.problem.space
        points = space.to_unit_many(start_points(self.run.specification, self.problem))
        for x in points:
            self._evaluate(x)
        self.n_start, self.spent = len(self.values), 0.0
        return points

    def tell(self, x: Floats, index: float) -> None:
        """Evaluate a point, whose acquisition value was `index`."""
        before = self.best
        self._evaluate(x)
        self.rule.tell(index, before, self.best)

    def _evaluate(self, x: Floats) -> None:
        evaluate = self.problem.evaluate
        if isinstance(evaluate, PricedFunction):  # without the checks of users' parameters
            value, cost = float(evaluate.function(x)), 1.0 + self.rule.price_slope * float(x.sum())
        else:
            value, cost = evaluate(self.problem.space.from_unit(x))
        self.values.append(value)
        self.costs.append(cost)
        self.best = max(self.best, self.sign * value)
        self.spent += cost

    @property
    def draw(self) -> GPDraw | None:
        """The function drawn from a prior that is optimized, whose highest value its problem does not know."""
        function = getattr(self.problem.evaluate, "function", None)
        return function if isinstance(function, GPDraw) else None

    @property
    def sign(self) -> float:
        """What values are multiplied by so that larger is better."""
        return SIGNS[self.problem.direction]

    @property
    def is_over(self) -> bool:
        """Whether nothing of the budget is left."""
        most = self.run.specification.n_evaluations
        n_done = len(self.values) - self.n_start
        return self.spent >= self.problem.budget or (most is not None and n_done >= most)

    def record(self, wall_seconds: float) -> dict[str, Any]:
        """As `paper.execution` makes it, but for the seconds of suggestions, which are made many at a time."""
        run, problem = self.run, self.problem
        return {
            "key": run.key,
            **run.labels,
            "engine": "torch",
            "experiment": run.specification.experiment,
            "seed": run.specification.seed,
            "budget": problem.budget,
            "n_start": self.n_start,
            "values": self.values,
            "costs": self.costs,
            "optimum": problem.optimum,
            "unit": problem.unit,
            "direction": problem.direction,
            "lowered": self.rule.fired_at,
            "suggest_seconds": [],
            "wall_seconds": wall_seconds,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }


class Campaign:
    """Runs of one shape on a device.

    Args:
        shape: What they have in common.
        states: The runs.
        device: Where to compute.
    """

    def __init__(self, shape: Shape, states: list[State], device: torch.device) -> None:
        self._shape, self._device = shape, device
        self._states = sorted(states, key=lambda state: state.rule.form)
        self._config = GPConfig(kernel=shape.kernel, noise=NOISE)
        self._scales: Scales | None = None if shape.is_fitted else self._known()
        self._inverse: Tensor | None = None
        self._n_steps = 0
        self._X = self._numbers([state.begin() for state in self._states])
        self._y = self._numbers([np.multiply(state.sign, state.values) for state in self._states])

    def ended(self, deadline: float) -> Iterator[tuple[State, dict[str, Any]]]:
        """Runs as they end, with their records.

        Those that are not over by the deadline, on the clock of `time.monotonic`, are given up.
        """
        begin, n_runs = time.monotonic(), len(self._states)
        while self._states and time.monotonic() < deadline:
            over = [state for state in self._states if state.is_over]
            for state in over:
                yield state, state.record((time.monotonic() - begin) / n_runs)
            if over:
                self._keep([k for k, state in enumerate(self._states) if not state.is_over])
            if self._states:
                self._step()

    @torch.no_grad()
    def _step(self) -> None:
        states, shape = self._states, self._shape
        posterior = self._posterior()
        numbers = self._numbers
        acquisition = Acquisition(
            posterior,
            torch.tensor([state.rule.form for state in states]),
            numbers([state.rule.parameter(state.spent, state.problem.budget, shape.dim) for state in states]),
            numbers([state.best for state in states]),
            numbers([state.rule.price_slope for state in states]),
        )
        seeds = [state.run.specification.seed for state in states]
        pool = pools(seeds, len(states[0].values), shape.dim, shape.n_points, self._device)
        found, heights = best_points(acquisition, pool, shape.n_climbs, posterior.scales.length_scales)
        for state, x, height in zip(states, found.cpu().numpy(), heights.tolist(), strict=True):
            state.tell(x, height)
        self._X = torch.cat([self._X, found[:, None]], dim=1)
        values = self._numbers([state.sign * state.values[-1] for state in states])
        self._y = torch.cat([self._y, values[:, None]], dim=1)
        self._n_steps += 1

    def _posterior(self) -> Posterior:
        shape, X, y = self._shape, self._X, self._y
        one = torch.ones_like(y[:, 0])
        center, scale = torch.zeros_like(one), one
        if shape.standardize:
            center, spread = y.mean(1), y.std(1)
            scale = torch.where(spread > 0.0, spread, one)
            y = (y - center[:, None]) / scale[:, None]
        known = self._scales
        scales = fitted(self._config, X, y, known) if shape.is_fitted or known is None else known
        if shape.is_fitted or self._inverse is None or self._n_steps % FRESH_EVERY == 0:
            self._inverse = fresh_inverse(shape.kernel, X, scales)
        else:
            self._inverse = grown_inverse(shape.kernel, X, self._inverse, scales)
        self._scales = scales
        return Posterior.of(shape.kernel, X, y, self._inverse, scales, scale, center)

    def _known(self) -> Scales:
        models = [state.run.specification.model for state in self._states]
        scales = [model.length_scale for model in models if isinstance(model, TrueModel)]
        lengths = self._numbers(scales)[:, None].expand(-1, self._shape.dim).contiguous()
        return Scales(lengths, torch.ones_like(lengths[:, 0]), NOISE)

    def _keep(self, rows: list[int]) -> None:
        self._states = [self._states[k] for k in rows]
        kept = torch.tensor(rows, dtype=torch.int64, device=self._device)
        self._scales = None if self._scales is None else self._scales.take(kept)
        self._inverse = None if self._inverse is None else self._inverse[kept]
        self._X, self._y = self._X[kept], self._y[kept]

    def _numbers(self, x: Any) -> Tensor:
        return torch.as_tensor(np.array(x, dtype=np.float64), device=self._device)


def shape_of(run: Run, rule_search: tuple[int, int]) -> Shape:
    """The shape of a run whose search looks at so many points per dimension and climbs."""
    model = run.specification.model
    n_points, n_climbs = rule_search
    kernel = model.kernel if isinstance(model, FittedModel | TrueModel) else ""
    is_fitted = isinstance(model, FittedModel)
    standardize = isinstance(model, FittedModel) and model.standardize
    return Shape(run.dim, kernel, is_fitted, standardize, n_points * run.dim, n_climbs * run.dim)
