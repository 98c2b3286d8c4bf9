"""Candidates are cross-validated, stage by stage if there are stages, and the optimizer is told what came out.

scikit-learn adds a row to its results for each evaluation. In the end each candidate has one row: of its last stage.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pbgi.cost import KnownCost, UniformCost
from pbgi.errors import InvalidInputError, NothingLeftError
from pbgi.history import Trial, TrialState
from pbgi.integrations.sklearn.failures import Complaints, Failure, error_of_fits, put_failures
from pbgi.integrations.sklearn.folds import GrowingFolds, Splitter, n_folds, same_folds
from pbgi.integrations.sklearn.resources import Resource
from pbgi.integrations.sklearn.rows import keep_rows, put_ranks
from pbgi.integrations.sklearn.spaces import SearchSpace
from pbgi.optimizer import Optimizer
from pbgi.run import LEAST_SECONDS

# When so many candidates have failed and none has succeeded, it is not the candidates: data or estimator are at fault.
MOST_FAILURES = 10


class Evaluation:
    """One search under way: what scikit-learn has found so far, and what it has no row for.

    Args:
        search: The `GittinsSearchCV`.
        space: What is searched.
        resource: The stages of a candidate; None if there is but one.
        optimizer: Whom to tell.
        evaluate_candidates: scikit-learn's cross-validation of candidates.
    """

    def __init__(
        self,
        search: Any,
        space: SearchSpace,
        resource: Resource | None,
        optimizer: Optimizer,
        evaluate_candidates: Callable[..., dict[str, Any]],
    ) -> None:
        self._search, self._space, self._resource, self._optimizer = search, space, resource, optimizer
        self._evaluate_candidates = evaluate_candidates
        self._same = same_folds(search.cv)
        self._growing = GrowingFolds(search.cv, search.estimator, optimizer.settings.seed)
        self._has_own_unit = isinstance(search.cost, KnownCost | UniformCost)
        self._results: dict[str, Any] | None = None
        self._rows: dict[int, int] = {}  # by trial, the last one
        self._stages: dict[int, int] = {}
        self._failures: dict[int, Failure] = {}
        self._complaints, self._last_error = Complaints(), ValueError()

    def evaluate(self, trials: Sequence[Trial]) -> None:
        """Cross-validate, and tell the optimizer what came out; as many stages as are worth it."""
        waiting = {trial: self._stage_of(trial) for trial in trials}
        while waiting:
            stage = min(waiting.values())
            now = [trial for trial, own in waiting.items() if own == stage]
            for trial in now:
                del waiting[trial]
            self._evaluate_stage(now, stage)
            told = [self._optimizer.trials[trial.number] for trial in now]
            waiting |= {trial: stage + 1 for trial in told if self._goes_on(trial)}

    def close(self) -> None:
        """Complete `cv_results_`, which is the last that scikit-learn returned."""
        trials = self._optimizer.trials
        if not trials:
            raise NothingLeftError(f"no candidate was evaluated: {self._search.stop_reason_}")
        if self._results is None:
            raise self._last_error
        keep_rows(self._results, [self._rows[number] for number in sorted(self._rows)])
        put_failures(self._results, self._failures, self._search.error_score)
        stopped = np.array([trial.state is TrialState.STOPPED for trial in trials])
        if self._resource is not None:
            reached = [self._resource.amounts[self._stages[trial.number]] for trial in trials]
            self._results |= {"n_resources": np.array(reached), "stopped": stopped}
        if self._failures or stopped.any():
            put_ranks(self._results, stopped)
        self._complaints.sum_up(len(trials))

    # One stage -------------------------------------------------------------------------------------------------------

    def _stage_of(self, trial: Trial) -> int:
        return 0 if self._resource is None else self._resource.stage_of(trial)

    def _folds(self, stage: int) -> Splitter | None:
        """What to split with; None where scikit-learn does it."""
        return self._same if self._resource is None else self._growing.of(self._resource.share(stage))

    def _candidate(self, trial: Trial, stage: int) -> dict[str, Any]:
        candidate = self._space.candidate(trial.params)
        return candidate if self._resource is None else self._resource.given(candidate, stage)

    def _evaluate_stage(self, trials: Sequence[Trial], stage: int) -> None:
        candidates, begun = [self._candidate(trial, stage) for trial in trials], time.perf_counter()
        self._stages |= {trial.number: stage for trial in trials}
        try:
            self._results = self._evaluate_candidates(candidates, cv=self._folds(stage))
        except ValueError as error:
            why = error_of_fits(error)
            if self._search.error_score == "raise" or why is None:
                raise
            self._last_error = error
            self._note_failures(trials, candidates, (time.perf_counter() - begun) / len(trials), why)
            if self._results is None and len(self._failures) >= MOST_FAILURES:
                raise
        else:
            self._note_results(trials, self._results)

    def _note_results(self, trials: Sequence[Trial], results: dict[str, Any]) -> None:
        first = len(results["params"]) - len(trials)
        latest = slice(first, None)
        seconds = (results["mean_fit_time"] + results["mean_score_time"])[latest] * n_folds(results)
        scores = results[f"mean_test_{_metric(results, self._search.refit)}"][latest]
        for row, (trial, score, cost) in enumerate(zip(trials, scores, seconds, strict=True), start=first):
            self._rows[trial.number] = row
            self._tell(trial, float(score), float(cost))

    def _note_failures(
        self, trials: Sequence[Trial], candidates: Sequence[dict[str, Any]], seconds: float, error: str
    ) -> None:
        for trial, candidate in zip(trials, candidates, strict=True):
            self._rows.pop(trial.number, None)
            self._failures[trial.number] = Failure(candidate, seconds)
            self._tell(trial, self._search.error_score, seconds, error)

    def _tell(self, trial: Trial, score: float, seconds: float, error: str | None = None) -> None:
        """The score, or that there is none."""
        stage, resource = self._stages[trial.number], self._resource
        cost = self._cost_so_far(trial, stage, seconds)
        if not np.isfinite(score):
            self._optimizer.fail(trial, cost=cost, message=error or f"the score must be finite; got {score}")
        elif resource is None:
            self._optimizer.tell(trial, score, cost=cost)
        else:
            self._optimizer.report(trial, resource.steps.stages[stage], score, cost=cost)
        if error is not None or not np.isfinite(score):
            self._complaints.heard(error)

    def _cost_so_far(self, trial: Trial, stage: int, seconds: float) -> float | None:
        """What a trial has cost, all its stages together; None leaves it to a price that is known beforehand."""
        if not self._has_own_unit:
            return trial.used + max(seconds, LEAST_SECONDS)
        if self._resource is None or trial.predicted_cost is None:
            return None
        return trial.predicted_cost * self._resource.steps.stages[stage] / self._resource.steps.last

    def _goes_on(self, trial: Trial) -> bool:
        """Whether a trial has another stage; one that is not worth it, or does not fit the budget, is stopped."""
        if self._resource is None or trial.state is not TrialState.RUNNING:
            return False
        if self._optimizer.should_continue(trial) and self._resource.fits(self._optimizer, trial):
            return True
        self._optimizer.stop(trial)
        return False


def _metric(results: Mapping[str, Any], refit: Any) -> str:
    """What is maximized, as `cv_results_` calls it."""
    if "mean_test_score" in results:
        return "score"
    require_name(refit)
    if f"mean_test_{refit}" not in results:
        names = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
        raise InvalidInputError(f"refit must name one of the metrics, {names}; got {refit!r}")
    return str(refit)


def require_name(refit: Any) -> None:
    """Of several metrics one is maximized."""
    if not isinstance(refit, str):
        rule = "with several metrics refit must be the name of the one to maximize"
        raise InvalidInputError(f"{rule}; got {refit!r}")
