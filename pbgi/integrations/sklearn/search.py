"""`GittinsSearchCV`: hyperparameters of a scikit-learn estimator within a budget of seconds.

`fit` is that of scikit-learn's own searches. It calls `_run_search` with a function that cross-validates candidates;
what is here asks a `pbgi.Optimizer` for the next one, and tells it the score and the seconds (`evaluation.py`), until
that says stop.
Row i of `cv_results_` is trial i of the optimizer.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

# The base class that scikit-learn's documentation of `_run_search` asks authors of searches to derive from. It has no
# public address; this one has been the same since there is a module of that name.
from sklearn.model_selection._search import BaseSearchCV

from pbgi.checks import refuse_unknown_arguments, require_count
from pbgi.cost import Cost
from pbgi.errors import InvalidInputError
from pbgi.gp.config import GPConfig
from pbgi.history import Trial
from pbgi.integrations.sklearn.evaluation import Evaluation, require_name
from pbgi.integrations.sklearn.resources import Resource
from pbgi.integrations.sklearn.spaces import SearchSpace
from pbgi.model import ModelKind
from pbgi.optimizer import Optimizer
from pbgi.policy import Policy
from pbgi.run.progress import describe
from pbgi.stopping import MaxTrials, Situation, StopReason, StopRule


class GittinsSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Searches hyperparameters by cross-validation, knowing what candidates cost.

    Used like `RandomizedSearchCV`. The cost of a candidate is the seconds of fitting and scoring, summed over its
    folds; it is learned along the way, and the search spends its budget where it pays.

    Args:
        estimator: What is tuned; it needs `score`, or `scoring` says how it is scored.
        search_space: Names of parameters to `pbgi.Float`, `pbgi.Integer`, `pbgi.Categorical`, lists of choices, ranges
            or frozen `uniform`, `loguniform` and `randint` of scipy.stats. Choices may be any objects. Parameters may
            depend on others (`when`), and a list of such mappings is searched as one space.
        param_distributions: The same by the name that it has in `RandomizedSearchCV`; one of them is to be given.
        budget: Seconds of fitting and scoring, all folds added up, also if they run at the same time; with a `cost`
            that says what a candidate costs, in its unit. A candidate that is not expected to fit is not started.
        n_iter: The most candidates to try; None: as many as the budget pays for.
        scoring: As in scikit-learn; of several metrics the one that `refit` names is maximized.
        cv: As in scikit-learn. All candidates see the same folds, also if the splitter shuffles.
        n_jobs: How many folds run at the same time; see `batch_size`.
        refit: As in scikit-learn.
        random_state: Of the search: None, a whole number or a `RandomState`.
        error_score: As in scikit-learn. With NaN a candidate with a failing fit has failed; it is charged, and the
            search goes on and avoids its neighborhood.
        verbose: From 1 on what is spent, the best score and how many candidates are expected to fit; more as in
            scikit-learn.
        pre_dispatch: As in scikit-learn.
        return_train_score: As in scikit-learn; the seconds that this takes are not measured there.
        policy: How candidates are chosen; see `pbgi.Optimizer`. `pbgi.PBGI(cost_scale=...)` stops when no candidate is
            worth its seconds.
        stop: When to stop, besides; see `pbgi.Optimizer`.
        cost: `pbgi.UniformCost()` or `pbgi.KnownCost(fn)` instead of measured seconds, or
            `pbgi.LearnedCost(known_factor=fn)` where part of the seconds is known. Functions take candidates.
        model: What is assumed of the scores; see `pbgi.Optimizer`.
        n_startup_trials: Candidates before the model takes over; see `pbgi.Optimizer`.
        batch_size: How many candidates are chosen and evaluated at a time. More than one is for `n_jobs` larger than
            the number of folds; each knows less than it would have one after the other.
        resource: "n_samples" or a parameter of the estimator that is a whole number, "n_estimators", say: candidates
            get little of it at first, and more in stages while they are worth it. Each stage trains anew and is
            charged. Only a candidate that came to the last stage can be the best.
        max_resources: What the last stage has; by default all samples, or what the estimator has of the parameter.
        min_resources: What the first stage has at least; by default a ninth of the last, and ten samples per class.
        factor: By how much each stage has more than the one before.

    Attributes:
        best_estimator_, best_params_, best_score_, best_index_, cv_results_, ...: As in scikit-learn.
        spent_: What was charged.
        stop_reason_: Why the search ended, a `pbgi.StopReason`; `str` of it is a sentence.
        optimizer_: The `pbgi.Optimizer`, with every trial. Choices that JSON cannot hold are their positions there.
        n_resources_: What each stage has, if there is a `resource`; `cv_results_` then has for each candidate the
            last stage it came to, with columns `n_resources` and `stopped`.
    """

    @refuse_unknown_arguments
    def __init__(
        self,
        estimator: Any,
        search_space: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        *,
        param_distributions: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        budget: float | None = None,
        n_iter: int | None = None,
        scoring: Any = None,
        cv: Any = None,
        n_jobs: int | None = None,
        refit: bool | str | Callable[[dict[str, Any]], int] = True,
        random_state: int | np.random.RandomState | None = None,
        error_score: float | str = np.nan,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        return_train_score: bool = False,
        policy: Policy | None = None,
        stop: StopRule | None = None,
        cost: Cost | None = None,
        model: GPConfig | ModelKind | None = None,
        n_startup_trials: int | None = None,
        batch_size: int = 1,
        resource: str | None = None,
        max_resources: int | str = "auto",
        min_resources: int | str = "auto",
        factor: float = 3,
    ) -> None:
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        # Kept as they are, and checked by `fit`: what scikit-learn asks of estimators, so that they can be cloned.
        self.search_space, self.budget, self.n_iter, self.random_state = search_space, budget, n_iter, random_state
        self.param_distributions = param_distributions
        self.policy, self.stop, self.cost, self.model = policy, stop, cost, model
        self.n_startup_trials, self.batch_size = n_startup_trials, batch_size
        self.resource, self.factor = resource, factor
        self.max_resources, self.min_resources = max_resources, min_resources

    def fit(self, X: Any, y: Any = None, **params: Any) -> "GittinsSearchCV":
        """Search, and fit the best candidate to all data.

        Args:
            X: Samples, as the estimator takes them.
            y: What is to be predicted.
            params: As in scikit-learn: passed on to `fit` of the estimator, to the scorer and to the splitter.

        Returns:
            The search.
        """
        self._resource = Resource.of(self, X, y)
        super().fit(X, y, **params)
        return self

    def _run_search(self, evaluate_candidates: Callable[..., dict[str, Any]]) -> None:
        """Called by `fit`: candidates, until there is a reason to stop."""
        _require_named_metric(self.scoring, self.refit)
        n_iter = None if self.n_iter is None else MaxTrials(require_count("n_iter", self.n_iter))
        batch_size, space = require_count("batch_size", self.batch_size), SearchSpace.of(self._given_space())
        if self._resource is not None:
            self._resource.require_not_searched(space)
            self.n_resources_ = list(self._resource.amounts)
        self.optimizer_ = self._new_optimizer(space)
        run = Evaluation(self, space, self._resource, self.optimizer_, evaluate_candidates)
        with warnings.catch_warnings():
            while (reason := _why_stop(self.optimizer_, n_iter)) is None:
                run.evaluate(_batch(self.optimizer_, n_iter, batch_size))
                if self.verbose > 0:
                    print(describe(self.optimizer_))
        self.spent_, self.stop_reason_ = self.optimizer_.spent, reason
        run.close()

    def _given_space(self) -> Any:
        """What is searched, by whichever name it was given."""
        given = [space for space in (self.search_space, self.param_distributions) if space is not None]
        if len(given) != 1:
            rule = "search_space must be given, or param_distributions instead"
            raise InvalidInputError(f"{rule}; got {len(given)} of them")
        return given[0]

    def _new_optimizer(self, space: SearchSpace) -> Optimizer:
        optimizer = Optimizer(
            space.engine,
            direction="maximize",  # of two scores of scikit-learn the larger is better
            cost=space.cost(self.cost),
            budget=self.budget,
            policy=self.policy,
            stop=self.stop,
            model=self.model,
            n_startup_trials=self.n_startup_trials,
            seed=_seed(self.random_state),
            max_failures=None,  # a search has a rule of its own
            steps=None if self._resource is None else self._resource.steps,
        )
        if optimizer.endless and self.n_iter is None:
            ways = "budget=..., n_iter=..., stop=... or policy=PBGI(cost_scale=...)"
            raise InvalidInputError(f"a search must end: give {ways}; got none of them")
        return optimizer


def _why_stop(optimizer: Optimizer, n_iter: MaxTrials | None) -> StopReason | None:
    """The number of candidates is asked first: the optimizer would look for another one to answer."""
    enough = None if n_iter is None else n_iter.reason(Situation(optimizer.trials, None, 0.0, 0.0, 1.0, {}))
    return enough or optimizer.should_stop()


def _batch(optimizer: Optimizer, n_iter: MaxTrials | None, size: int) -> list[Trial]:
    """The next trials, at least one: that there is no reason to stop before it was asked already."""
    trials: list[Trial] = [optimizer.ask()]
    while len(trials) < size and _why_stop(optimizer, n_iter) is None:
        trials.append(optimizer.ask())
    return trials


def _seed(random_state: Any) -> Any:
    """A whole number drawn from a `RandomState`; anything else is for the optimizer to check."""
    return random_state.randint(2**31) if isinstance(random_state, np.random.RandomState) else random_state


def _require_named_metric(scoring: Any, refit: Any) -> None:
    """Of several metrics one is maximized. What a callable returns is not known yet."""
    if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
        require_name(refit)
