"""The sampler: Optuna asks it for a trial, it asks the engine, and stores with the trial what must be remembered.

For each trial it takes its turn (`pbgi.study.turn`), which brings the trials of the study, makes an optimizer of them
(`pbgi.study.engine`), asks that for a point, and stores the point with the trial (`pbgi.study.storage`). A single
worker writes once per trial, one of several twice, whatever the number of trials.
"""

import contextlib
import math
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from optuna import TrialPruned
from optuna.distributions import BaseDistribution
from optuna.logging import get_logger
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from pbgi.checks import refuse_unknown_arguments, require_count
from pbgi.cost import Cost, KnownCost, UniformCost
from pbgi.errors import BrokenFunctionError, InvalidInputError, NothingLeftError
from pbgi.gp.config import GPConfig
from pbgi.history import Trial
from pbgi.model import ModelKind
from pbgi.policy import Policy
from pbgi.settings import Settings
from pbgi.stopping import BudgetSpent, NothingLeft, Situation, StopReason, StopRule
from pbgi.study import attributes
from pbgi.study.broken import why_broken
from pbgi.study.engine import StudyEngine
from pbgi.study.learned import LearnedSpace
from pbgi.study.ledger import AccountBook, Ledger, misstated, misstates_cost, remaining, told_cost
from pbgi.study.moving import Range, value_at
from pbgi.study.outcomes import checked_excesses
from pbgi.study.spaces import NotThereError, SearchSpace
from pbgi.study.storage import keep, keep_stop, keep_suggestion, patiently, trials_of
from pbgi.study.suggestion import Suggestion, suggestion_of
from pbgi.study.turn import Turns

# Trials chosen at random while some of the parameters that trials have are not explained.
RANDOM_TRIALS = 10
ABOUT_POINTS = ("GittinsStop", "SpaceExhausted")  # stop rules that say that no point is worth trying

_LOGGER = get_logger("optuna.pbgi")  # below Optuna's own, so that its handlers and its verbosity apply


class NoTrialLeftError(NothingLeftError, TrialPruned):
    """No trial is expected to fit what is left of the budget; `study.optimize` prunes the trial, free of charge."""


ConstraintsFunction: TypeAlias = Callable[[FrozenTrial], Sequence[float]]
"""What a finished trial gave besides its value: numbers that must not be above 0."""


class PBGISampler(BaseSampler):
    """Suggests points for an Optuna study, knowing what trials cost.

    The cost of a trial is its user attribute `cost`, else its duration in seconds. Running trials hold their predicted
    cost, failed and pruned ones are charged.

    Args:
        budget: What the study may spend, over all workers and restarts, in the unit of the costs. A trial that is not
            expected to fit is not started: the study is stopped.
        policy: How points are chosen; by default `pbgi.PBGID()`.
        cost: `pbgi.UniformCost()`, `pbgi.KnownCost(fn)` or `pbgi.LearnedCost()`, whose functions see the values of the
            parameters that are chosen together; by default learned.
        n_startup_trials: Points before the model takes over; see `pbgi.Optimizer`.
        independent_sampler: For parameters of which it is not known when they exist; by default uniformly at random.
        seed: Random seed. Workers may share it. Drawn from the operating system if not given.
        stop: When `GittinsStopCallback` stops the study; by default the policy's own rule, see `pbgi.Optimizer`.
        model: What is assumed of the objective; see `pbgi.Optimizer`.
        search_space: Names to distributions of the parameters to choose together. If not given, they are learned from
            completed trials, with the conditions under which they exist, so the first trial of a study is random. While
            trials have parameters that nothing explains yet, so are the first RANDOM_TRIALS.
        constraints_func: Conditions on outcomes, as Optuna's samplers take them: a function of a finished trial that
            returns numbers, none of which is above 0 where the trial is feasible. `trial.set_constraint` of Optuna 5
            does as well.
        charge_existing: Whether trials count in the budget that were not suggested by a `PBGISampler` in this study:
            those added by `study.add_trials`, and those of a sampler that the study had before. By default they inform
            and are free.
        warn_independent_sampling: Whether to say, once per parameter, that trials had it before and that it is still
            left to the independent sampler where the model chooses the others.
        max_failures: After so many failures, while no trial of the study has given a value, the next one is refused by
            a `BrokenFunctionError`; None to go on whatever happens.
    """

    @refuse_unknown_arguments
    def __init__(
        self,
        *,
        budget: float | None = None,
        policy: Policy | None = None,
        cost: Cost | None = None,
        n_startup_trials: int | None = None,
        independent_sampler: BaseSampler | None = None,
        seed: int | None = None,
        stop: StopRule | None = None,
        model: GPConfig | ModelKind | None = None,
        search_space: Mapping[str, BaseDistribution] | None = None,
        constraints_func: ConstraintsFunction | None = None,
        charge_existing: bool = False,
        warn_independent_sampling: bool = True,
        max_failures: int | None = 5,
    ) -> None:
        self._settings = Settings(
            budget=budget,
            policy=policy,  # type: ignore[arg-type]  # defaults are filled in
            cost=cost,
            stop=stop,  # type: ignore[arg-type]
            model=model,  # type: ignore[arg-type]
            n_startup_trials=n_startup_trials,
            seed=seed,  # type: ignore[arg-type]
        )
        self._given_space = None if search_space is None else _checked_space(search_space)
        if independent_sampler is not None and not isinstance(independent_sampler, BaseSampler):
            raise InvalidInputError(f"independent_sampler must be a sampler of Optuna; got {independent_sampler!r}")
        self._independent = independent_sampler
        if constraints_func is not None and not callable(constraints_func):
            raise InvalidInputError(f"constraints_func must be a function of a trial; got {constraints_func!r}")
        self._constraints_func = constraints_func
        self._charge_existing = _switch("charge_existing", charge_existing)
        self._warns_of_independent = _switch("warn_independent_sampling", warn_independent_sampling)
        self._most_failures = None if max_failures is None else require_count("max_failures", max_failures)
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._lock, self._engine, self._turns = threading.RLock(), StudyEngine(self._settings), Turns()
        self._begun: dict[tuple[str, int], tuple[list[FrozenTrial] | None, SearchSpace, float]] = {}
        self._learned, self._accounts, self._warned = LearnedSpace(), AccountBook(), False
        self._warned_of_missing, self._warned_of, self._failing = False, set[str](), set[str]()

    def __getstate__(self) -> dict[str, Any]:
        """The settings: all else is in the study."""
        kept = ("_settings", "_given_space", "_independent", "_constraints_func", "_charge_existing")
        return {name: getattr(self, name) for name in (*kept, "_warns_of_independent", "_most_failures")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start_afresh()

    @property
    def settings(self) -> Settings:
        """What it was told besides the space."""
        return self._settings

    @property
    def budget(self) -> float | None:
        """What the study may spend."""
        return self._settings.budget

    @property
    def weighs_worth(self) -> bool:
        """Whether its stop rule asks if trials are worth their price."""
        return self._settings.weighs_worth

    # What Optuna asks ------------------------------------------------------------------------------------------------

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters that are chosen together; this begins the trial's turn, so that the study is read once."""
        _require_one_objective(study)
        if trial.state.is_finished():  # asked for out of interest
            return self._search_space(study).fixed
        begun = time.perf_counter()
        alone = self._turns.alone(study, trial)
        search_space = self._search_space(study, alone)
        self._begun[study.study_name, trial.number] = alone, search_space, time.perf_counter() - begun
        return search_space.fixed

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Values of the parameters that are chosen together."""
        _require_one_objective(study)
        since = time.perf_counter()
        alone, known, before = self._begun.pop((study.study_name, trial.number), (None, SearchSpace({}), 0.0))
        since -= before
        same = search_space == known.fixed
        wanted = known if same else replace(SearchSpace.of(search_space), constants=known.constants)
        suggestion, params, overtaken = self._choose_in_turn(study, trial, wanted, since, alone)
        if overtaken:  # once: of workers that take longer to choose than others wait, one must come to an end
            self._turns.take_back(study, trial)
            suggestion, params, _ = self._choose_in_turn(study, trial, wanted, since)
        if suggestion.refused is not None:
            try:
                study.stop()  # and `study.optimize` prunes the trial
            except RuntimeError:
                _prune(study, trial)  # one that was asked for outside of it must not be left running
            raise NoTrialLeftError(suggestion.refused)
        return params

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """The value of another parameter: by its share if one was chosen, else random, given seed, trial and name."""
        _require_one_objective(study)
        suggestion = suggestion_of(trial)
        if suggestion is not None and param_name in suggestion.shares and isinstance(param_distribution, Range):
            return value_at(suggestion.shares[param_name], param_distribution)
        sampler = self._independent
        if sampler is None:
            entropy = [self._settings.seed, trial.number, zlib.crc32(param_name.encode())]
            sampler = RandomSampler(seed=int(np.random.SeedSequence(entropy).generate_state(1)[0]))
        if self._warns_of_independent and param_name not in self._warned_of:
            self._say_independent(study, trial, param_name, sampler)
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def _say_independent(self, study: Study, trial: FrozenTrial, name: str, sampler: BaseSampler) -> None:
        suggestion = suggestion_of(trial)
        if suggestion is None or name in suggestion.params or not (suggestion.params or suggestion.shares):
            return  # all of the trial is random, or the range has moved for the first time, which is learned now
        given = self._given_space is not None
        if given or any(name in t.params for t in trials_of(study) if t.state == TrialState.COMPLETE):
            why = (
                "search_space leaves it out"
                if given
                else "trials do not show when it exists, or its values are too many or change their kind"
            )
            _LOGGER.warning(
                "Parameter %r of trial %d is not chosen with the others but drawn by %s: %s. If that is meant, give "
                "PBGISampler(warn_independent_sampling=False). (said once per parameter)",
                *(name, trial.number, type(sampler).__name__, why),
            )
            self._warned_of.add(name)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Refuse a trial of a study that is broken; then the same of the independent sampler."""
        # Not where the last one has failed: Optuna cannot bear an error there.
        if study.study_name in self._failing:
            self._failing.remove(study.study_name)
            why = why_broken(study, self._most_failures)
            if why is not None:
                keep_suggestion(study, trial, Suggestion(refused=why))
                _prune(study, trial)
                raise BrokenFunctionError(why)
        if self._independent is not None:
            self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Note outcomes, what the trial is charged where that is known already, and that a failed one was heard of."""
        if self._constraints_func is not None and state in (TrialState.COMPLETE, TrialState.PRUNED):
            keep(study, trial, attributes.CONSTRAINTS, checked_excesses(self._constraints_func(trial)))
        if suggestion_of(trial) is None:  # it was enqueued with all of its parameters: it is this study's all the same
            keep_suggestion(study, trial, Suggestion())
        if state == TrialState.FAIL and attributes.ABANDONED not in trial.system_attrs:
            keep(study, trial, attributes.ENDED, True)
        if told_cost(trial) is None:
            self._settle(study, trial)
        if self._independent is not None:
            self._independent.after_trial(study, trial, state, values)
        if state == TrialState.FAIL:
            self._failing.add(study.study_name)

    def _settle(self, study: Study, trial: FrozenTrial) -> None:
        """Note the price of a trial whose cost was not told, unless what was suggested says it already."""
        suggestion = suggestion_of(trial)
        if attributes.PRICE in trial.system_attrs or (suggestion is not None and suggestion.refused is not None):
            return
        price, predicted = self._price(trial), None if suggestion is None else suggestion.predicted_cost
        if misstates_cost(trial) and not self._warned:
            _LOGGER.warning("%s (said once)", misstated(trial, _instead(price, predicted)))
            self._warned = True
        if price is not None and (predicted is None or not math.isclose(price, predicted, rel_tol=1e-9)):
            keep(study, trial, attributes.PRICE, price)

    def reseed_rng(self) -> None:
        """Nothing of its own: randomness is a function of the seed and the study."""
        if self._independent is not None:
            self._independent.reseed_rng()

    # What the callbacks ask ------------------------------------------------------------------------------------------

    def should_stop(self, study: Study) -> StopReason | None:
        """Why to stop the study now, or None: what `pbgi.Optimizer.should_stop` says of its trials."""
        _require_one_objective(study)
        trials = trials_of(study)
        ledger, search_space = self.ledger(study, trials), self._search_space(study, trials)
        reason = self._budget_spent(ledger)
        if reason is not None or not search_space.axes:
            return reason
        with self._lock, contextlib.suppress(NotThereError):
            reason = self._engine.optimizer(search_space, study.direction.name.lower(), ledger).should_stop()
        if not search_space.whole and reason is not None and reason.rule in ABOUT_POINTS:
            return None  # a point in this space is not all there is to a trial
        return self._of_study(reason, ledger)

    def ledger(self, study: Study, trials: Sequence[FrozenTrial]) -> Ledger:
        """What the trials of a study cost; prices that this sampler knows are held for running ones."""
        with self._lock:
            return self._accounts.ledger(trials, self._price, None if self._charge_existing else study.study_name)

    # Choosing --------------------------------------------------------------------------------------------------------

    def _search_space(self, study: Study, trials: list[FrozenTrial] | None = None) -> SearchSpace:
        """What is chosen together: as given, or as these trials show, by default all."""
        if self._given_space is not None:
            return self._given_space
        trials = trials_of(study) if trials is None else trials
        with self._lock:
            return self._learned.search_space(study.study_name, trials)

    def _choose_in_turn(
        self,
        study: Study,
        trial: FrozenTrial,
        search_space: SearchSpace,
        since: float,
        alone: list[FrozenTrial] | None = None,
    ) -> tuple[Suggestion, dict[str, Any], bool]:
        """What to suggest for a trial, stored with it, and whether others may have chosen without knowing of it."""
        with self._turns.taken(study, trial, alone) as turn:
            chosen, params = self._choose(study, trial, turn.trials, search_space)
            suggestion = replace(chosen, seconds=time.perf_counter() - since)
            keep_suggestion(study, trial, suggestion)
            return suggestion, params, self._turns.was_overtaken(study, trial, turn)

    def _choose(
        self, study: Study, trial: FrozenTrial, trials: list[FrozenTrial], search_space: SearchSpace
    ) -> tuple[Suggestion, dict[str, Any]]:
        """What to suggest for a trial, given all others that have been chosen for, or will not be after it."""
        ledger = self.ledger(study, [other for other in trials if not _comes_after(other, trial)])
        spent = self._budget_spent(ledger) or self._too_little_left(ledger)
        if spent is not None:
            return _refusal(study, spent), {}
        if not search_space.axes or self._must_be_random(search_space, trials):
            return Suggestion(), {}
        with self._lock:
            optimizer = self._engine.optimizer(search_space, study.direction.name.lower(), ledger)
            try:
                asked: Trial = optimizer.ask()
            except NotThereError as error:
                self._say_missing(error)
                return Suggestion(), {}
            except NothingLeftError:
                reason = self._of_study(optimizer.should_stop(), ledger)
                return self._nothing_left(study, trial, search_space, reason)
        chosen = search_space.from_engine(asked.params)
        params = {name: value for name, value in chosen.items() if name in search_space.fixed}
        suggestion = Suggestion(
            params=search_space.internal(params),
            shares={name: share for name, share in chosen.items() if name not in params},
            predicted_cost=asked.predicted_cost,
            priced=isinstance(self._settings.cost, KnownCost | UniformCost),
            record=dict(asked.record),
        )
        return suggestion, params

    def _say_missing(self, error: NotThereError) -> None:
        if not self._warned_of_missing:
            _LOGGER.warning(
                "The function of the cost asks for the parameter %s of a point that has none; points are random until "
                "trials show when it exists, or the function does without it (said once)",
                error,
            )
            self._warned_of_missing = True

    def _must_be_random(self, search_space: SearchSpace, trials: list[FrozenTrial]) -> bool:
        """Whether too little is known of the parameters: the best of a few branches, each tried once, is luck."""
        chosen = self._settings.n_startup_trials
        n_random = RANDOM_TRIALS if chosen is None else chosen
        return not search_space.whole and sum(t.state == TrialState.COMPLETE for t in trials) < n_random

    def _nothing_left(
        self, study: Study, trial: FrozenTrial, search_space: SearchSpace, reason: StopReason | None
    ) -> tuple[Suggestion, dict[str, Any]]:
        """A refusal; without a budget, when every point has been tried, another go at random."""
        if reason is not None and self.budget is not None:
            return _refusal(study, reason), {}
        again = {
            name: self.sample_independent(study, trial, name, distribution)
            for name, distribution in search_space.fixed.items()
        }
        return Suggestion(search_space.internal(again)), again

    def _budget_spent(self, ledger: Ledger) -> StopReason | None:
        return BudgetSpent().reason(_situation(self.budget, ledger))

    def _too_little_left(self, ledger: Ledger) -> StopReason | None:
        """Why no trial may begin while only pruned ones say what trials cost."""
        left = remaining(self.budget, ledger)
        priced = isinstance(self._settings.cost, KnownCost | UniformCost)
        if left is None or priced or not self._settings.budget_holds or left >= ledger.needed_in_the_dark:
            return None
        return BudgetSpent().reason(_situation(self.budget, ledger, NothingLeft.UNAFFORDABLE))

    def _of_study(self, reason: StopReason | None, ledger: Ledger) -> StopReason | None:
        """The reason with the numbers of the study: the engine does not see trials without a point."""
        if reason is None or reason.rule != "BudgetSpent":
            return reason
        return BudgetSpent().reason(_situation(self.budget, ledger, NothingLeft.UNAFFORDABLE))

    def _price(self, trial: FrozenTrial) -> float | None:
        """What a trial costs, if that is known beforehand of all its parameters."""
        cost = self._settings.cost
        if isinstance(cost, UniformCost):
            return 1.0
        if not isinstance(cost, KnownCost):
            return None
        columns = _Columns({name: np.array([value]) for name, value in trial.params.items()})
        params = columns if cost.vectorized else trial.params
        try:
            return float(np.ravel(cost.price(params))[0])
        except KeyError:  # a parameter that was not suggested
            return None


class _Columns(dict[str, Any]):
    """The parameters of one trial as columns; a parameter that it does not have is NaN, as in a space."""

    def __missing__(self, name: str) -> Any:
        return np.array([math.nan])


def _checked_space(search_space: Any) -> SearchSpace:
    distributions = search_space.values() if isinstance(search_space, Mapping) else [None]
    if not all(isinstance(distribution, BaseDistribution) for distribution in distributions):
        rule = "search_space must map names to distributions of Optuna"
        raise InvalidInputError(f"{rule}; got {search_space!r}; write {{'x': FloatDistribution(0.0, 1.0)}}")
    return SearchSpace.of(search_space)


def _comes_after(other: FrozenTrial, trial: FrozenTrial) -> bool:
    """Whether it is the trial itself, or a later one that was only asked for: that one will know of this choice."""
    if other.number <= trial.number:
        return other.number == trial.number
    return other.state == TrialState.RUNNING and not other.params and suggestion_of(other) is None


def _prune(study: Study, trial: FrozenTrial) -> None:
    patiently(lambda: study.tell(trial.number, state=TrialState.PRUNED, skip_if_finished=True))


def _switch(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInputError(f"{name} must be True or False; got {value!r}")
    return value


def _require_one_objective(study: Study) -> None:
    if len(study.directions) > 1:
        rule = "PBGISampler is for studies of one objective"
        raise InvalidInputError(f"{rule}; got {len(study.directions)} directions; combine them into one value")


def _instead(price: float | None, predicted: float | None) -> str:
    """What a trial is charged whose cost is none."""
    if price is not None:
        return f"its price, {price:g},"
    return "its duration in seconds" if predicted is None else f"what was predicted for it, {predicted:g},"


def _situation(budget: float | None, ledger: Ledger, nothing_left: NothingLeft | None = None) -> Situation:
    return Situation((), budget, ledger.spent, ledger.reserved, 1.0, {}, nothing_left)


def _refusal(study: Study, reason: StopReason) -> Suggestion:
    keep_stop(study, reason)
    return Suggestion(refused=reason.message)
