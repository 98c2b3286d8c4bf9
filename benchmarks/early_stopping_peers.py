"""ASHA of Ray Tune and HalvingRandomSearchCV of scikit-learn on curves that are known, for `quality_early_stopping.py`.

Both are the packages' own code with its defaults. Ray's scheduler is handed the results of one trial after the other,
as a cluster with one worker would hand them; points are drawn at random, as Ray does by default. scikit-learn's search
fits an estimator that looks its score up and pays what training from the beginning would cost, as it pays in earnest.
When it is through, it begins again with other points, until the budget is spent. Its last round counts as the end of a
trial, though with 100 steps and a factor of three it has 81.
"""

from collections.abc import Mapping
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from course import Course
from curve_families import Problem

import pbgi


def draw(problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
    """A point at random."""
    return {
        name: int(rng.integers(p.low, p.high + 1)) if isinstance(p, pbgi.Integer) else float(rng.uniform(p.low, p.high))
        for name, p in problem.space.items()
    }


def asha(problem: Problem, seed: int, course: Course) -> None:
    """Ray Tune's ASHAScheduler with random points."""
    from ray.tune.schedulers import ASHAScheduler, TrialScheduler

    scheduler = ASHAScheduler(time_attr="step", metric="loss", mode="min", max_t=problem.steps)
    rng, nobody = np.random.default_rng([seed, 1]), cast("Any", None)
    while course.spent < course.budget:
        losses, costs = problem.curve(draw(problem, rng), seed)
        trial = cast("Any", SimpleNamespace(trial_id=str(course.n_trials)))
        scheduler.on_trial_add(nobody, trial)
        course.n_trials += 1
        for step in range(1, problem.steps + 1):
            course.paid(float(costs[step - 1] - (costs[step - 2] if step > 1 else 0.0)))
            result = {"step": step, "loss": float(losses[step - 1])}
            if step < problem.steps and scheduler.on_trial_result(nobody, trial, result) == TrialScheduler.STOP:
                break
        else:
            scheduler.on_trial_complete(nobody, trial, result)
            if course.spent <= course.budget:
                course.ended(float(losses[-1]))


class _SpentError(Exception):
    """The budget is spent."""


def halving(problem: Problem, seed: int, course: Course) -> None:
    """HalvingRandomSearchCV, again and again."""
    from scipy import stats
    from sklearn.base import BaseEstimator
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingRandomSearchCV

    last_round = 3 ** int(np.log(problem.steps + 0.5) / np.log(3.0))

    class Known(BaseEstimator):  # type: ignore[misc]
        """Scores are looked up."""

        def __init__(self, point: Mapping[str, float] | None = None, steps: int = 1) -> None:
            self.point, self.steps = point, steps

        def fit(self, X: Any, y: Any) -> "Known":  # noqa: ARG002 - scikit-learn's names
            losses, costs = problem.curve(self.point or {}, seed)
            course.paid(float(costs[self.steps - 1]))
            if course.spent > course.budget:
                raise _SpentError
            self.loss_ = float(losses[self.steps - 1])
            if self.steps == last_round:
                course.ended(self.loss_)
            return self

        def score(self, X: Any, y: Any) -> float:  # noqa: ARG002
            return -self.loss_

    class Points(stats.rv_discrete):  # type: ignore[misc]
        """A distribution of whole points."""

        def rvs(self, random_state: Any = None, **_: Any) -> dict[str, Any]:
            return draw(problem, np.random.default_rng(random_state.randint(2**31)))

    nothing = np.zeros((2, 1))
    try:
        for again in count():
            search = HalvingRandomSearchCV(
                Known(),
                {"point": Points()},
                resource="steps",
                max_resources=problem.steps,
                cv=[(np.array([0]), np.array([1]))],
                refit=False,
                error_score="raise",
                random_state=1000 * seed + again,
            )
            search.fit(nothing, np.zeros(2))
            course.n_trials += int(search.n_candidates_[0])
    except _SpentError:
        pass
