"""An Optuna study as the subject of a report.

What trials are charged is counted in `pbgi.study.ledger`, once for the whole package. The model is that
of an optimizer that knows its trials, with the settings of its `PBGISampler`, with those that `pbgi tune` keeps in the
study, or, for any other study, with the usual ones.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as StudyState

from pbgi.display.wording import text
from pbgi.errors import InvalidInputError
from pbgi.history import Trial
from pbgi.integrations.optuna import PBGISampler
from pbgi.optimizer import Optimizer
from pbgi.parameter import Categorical, Float, Parameter
from pbgi.report.subject import Curve, Subject
from pbgi.serialization import Value, plain_value
from pbgi.settings import Settings
from pbgi.stopping import BudgetSpent, NothingLeft, Situation, StopReason
from pbgi.study import attributes
from pbgi.study.engine import StudyEngine, trial_of_account
from pbgi.study.learned import LearnedSpace
from pbgi.study.ledger import Account, Ledger, ledger_of
from pbgi.study.moving import params_with_shares
from pbgi.study.reports import Lengths
from pbgi.study.settings import StudySettings
from pbgi.study.spaces import Axis, SearchSpace
from pbgi.study.storage import trials_of

# Fitting a model to more trials than this, for a study that has none yet, would take minutes.
MOST_FITTED = 600
USUAL = Settings(seed=0)


@dataclass(frozen=True, eq=False)
class _Told:
    """What is known of a study besides its trials."""

    settings: Settings
    unit: str = ""
    value_name: str = "value"

    @property
    def lengths(self) -> Lengths | None:
        """How long a trial is, where trials may stop early."""
        return None if self.settings.steps is None else Lengths(1, self.settings.steps.last)


def subject_of_study(study: Study, *, unit: str = "", name: str = "") -> Subject:
    """The study; what can be shown of it depends on what its trials say.

    Raises:
        InvalidInputError: It has several objectives.
    """
    if len(study.directions) > 1:
        rule = "a report must be on a study of one objective"
        raise InvalidInputError(f"{rule}; got {len(study.directions)} directions")
    told, trials, direction = _told(study), trials_of(study), study.direction.name.lower()
    sampler = study.sampler if isinstance(study.sampler, PBGISampler) else None
    ledger = _without_refused(ledger_of(trials) if sampler is None else sampler.ledger(study, trials))
    search_space = _search_space(study.study_name, trials)
    words = {axis_name: _words(axis) for axis_name, axis in search_space.axes.items()}
    optimizer, numbers = _optimizer(told.settings, search_space, direction, ledger)
    in_words, kept = partial(_in_words, words), _kept_reason(study)
    return Subject(
        name=name or study.study_name,
        direction=direction,
        parameters={axis_name: in_axis.parameter for axis_name, in_axis in words.items()},
        trials=tuple(_trial(account, search_space, in_words, told.lengths) for account in ledger.accounts.values()),
        budget=told.settings.budget if kept is None else kept.numbers.get("budget", told.settings.budget),
        unit=unit or told.unit or ("" if _tells_costs(trials) else "s"),
        value_name=told.value_name,
        optimizer=optimizer,
        numbers=numbers,
        in_words=in_words,
        known_reason=kept,
        ask_reason=partial(_stop_reason, told.settings, ledger, optimizer),
        # Where it is known how long a trial is, one that has reported was stopped.
        pruned=frozenset() if told.lengths else frozenset(t.number for t in trials if t.state == StudyState.PRUNED),
        curves={trial.number: curve for trial in trials if (curve := _curve(trial))},
    )


# What is known of the study ------------------------------------------------------------------------------------------


def _told(study: Study) -> _Told:
    if isinstance(study.sampler, PBGISampler):
        return _Told(study.sampler.settings)
    kept = study.user_attrs.get(attributes.SETTINGS)
    return _Told(USUAL) if not isinstance(kept, Mapping) else _told_by_command_line(kept)


def _told_by_command_line(kept: Mapping[str, Any]) -> _Told:
    """The settings of `pbgi tune`."""
    settings = StudySettings.from_plain(kept)
    unit, value_name = settings.cost, settings.objective
    return _Told(settings.engine, "s" if unit == "seconds" else unit, value_name)


def _tells_costs(trials: Sequence[FrozenTrial]) -> bool:
    return any(attributes.COST in trial.user_attrs for trial in trials) or not trials


def _search_space(name: str, trials: list[FrozenTrial]) -> SearchSpace:
    """What the completed trials show; where there are none, what all have that were begun."""
    if any(trial.state == StudyState.COMPLETE for trial in trials):
        return LearnedSpace().search_space(name, trials)
    begun = [trial.distributions for trial in trials if trial.distributions]
    both = {key: d for key, d in begun[0].items() if all(other.get(key) == d for other in begun)} if begun else {}
    return SearchSpace.of(both)


def _without_refused(ledger: Ledger) -> Ledger:
    """The ledger without the trials that never began: the sampler had nothing for them."""
    accounts = ledger.accounts.items()
    return Ledger({n: a for n, a in accounts if a.suggestion is None or a.suggestion.refused is None})


def _kept_reason(study: Study) -> StopReason | None:
    """Why a callback has stopped the study."""
    kept = study.user_attrs.get(attributes.STOP)
    if not isinstance(kept, Mapping) or not isinstance(kept.get("message"), str):
        return None
    numbers = kept.get("numbers")
    finite = {k: float(v) for k, v in numbers.items() if _is_finite(v)} if isinstance(numbers, Mapping) else {}
    return StopReason(str(kept.get("rule")), kept["message"], finite)


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _stop_reason(settings: Settings, ledger: Ledger, optimizer: Optimizer | None) -> StopReason | None:
    """What the rules of the study say now."""
    situation = Situation((), settings.budget, ledger.spent, ledger.reserved, 1.0, {})
    reason = BudgetSpent().reason(situation)
    if reason is not None or optimizer is None or settings is USUAL or not ledger.accounts:
        return reason
    reason = optimizer.should_stop()
    # The optimizer does not see trials without a point, so its numbers are not those of the study.
    ours = reason is not None and reason.rule == "BudgetSpent"
    return BudgetSpent().reason(replace(situation, nothing_left=NothingLeft.UNAFFORDABLE)) if ours else reason


# The model -----------------------------------------------------------------------------------------------------------


def _optimizer(
    settings: Settings, search_space: SearchSpace, direction: str, ledger: Ledger
) -> tuple[Optimizer | None, tuple[int, ...]]:
    """The optimizer that a sampler would ask, and the numbers of its trials: not all where a fit would take long."""
    if not search_space.axes:
        return None, ()
    engine = StudyEngine(settings)
    optimizer = engine.optimizer(search_space, direction, _fewer(ledger, direction))
    return optimizer, engine.numbers


def _fewer(ledger: Ledger, direction: str) -> Ledger:
    """All accounts if a model was fitted on the way; else at most MOST_FITTED: the best quarter, and every k-th."""
    accounts = ledger.accounts
    if len(accounts) <= MOST_FITTED or any(a.suggestion is not None for a in accounts.values()):
        return ledger
    sign = 1.0 if direction == "minimize" else -1.0
    done = [
        n for n, a in accounts.items() if a.trial.state == StudyState.COMPLETE and math.isfinite(a.trial.value or 0)
    ]
    best = sorted(done, key=lambda n: sign * (accounts[n].trial.value or 0.0))[: MOST_FITTED // 4]
    every = list(accounts)[:: math.ceil(len(accounts) / (MOST_FITTED - len(best)))]
    return Ledger({n: a for n, a in accounts.items() if n in {*best, *every}})


# Trials in the user's words ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Words:
    """A parameter as it is shown, and the value shown for each of the engine's."""

    axis: Axis
    parameter: Parameter
    choices: tuple[Value, ...] = ()

    def of(self, engine_value: Any) -> Any:
        return self.choices[engine_value] if self.choices else self.axis.from_engine(engine_value)


def _words(axis: Axis) -> _Words:
    distribution = axis.distribution
    if isinstance(distribution, CategoricalDistribution):
        choices = tuple(_plain(choice) for choice in distribution.choices)
        offered = [choices[position] for position in getattr(axis.parameter, "choices", ())]
        if len(set(offered)) < len(offered):  # such as inf and "inf"
            choices = tuple(f"{choice} ({i})" for i, choice in enumerate(choices))
            offered = [choices[position] for position in getattr(axis.parameter, "choices", ())]
        return _Words(axis, Categorical(offered), choices)
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        return _Words(axis, Float(distribution.low, distribution.high))
    return _Words(axis, replace(axis.parameter, when=None))  # parents are shown by other values than the engine's


def _in_words(words: Mapping[str, _Words], point: Mapping[str, Value]) -> dict[str, Any]:
    return {name: words[name].of(value) for name, value in point.items()}


def _plain(value: object) -> Value:
    try:
        return plain_value("choice", value)
    except InvalidInputError:
        return text(value)


def _curve(trial: FrozenTrial) -> Curve:
    """What it said on its way, at Optuna's steps."""
    return tuple((step, value) for step, value in sorted(trial.intermediate_values.items()) if math.isfinite(value))


def _trial(account: Account, search_space: SearchSpace, in_words: Any, lengths: Lengths | None) -> Trial:
    """The trial, charged as the ledger says."""
    trial, suggestion = account.trial, account.suggestion
    point = search_space.to_engine(params_with_shares(trial, search_space.distributions))
    params = {name: _plain(value) for name, value in trial.params.items()}
    shown = params if point is None else params | in_words(point)
    return trial_of_account(account, shown, {} if suggestion is None else suggestion.record, lengths)
