"""Callbacks for `study.optimize` that stop a study, store why with it, and say so once."""

from typing import Any

from optuna.logging import get_logger
from optuna.study import Study
from optuna.trial import FrozenTrial

from pbgi.checks import refuse_unknown_arguments, require_count, require_positive
from pbgi.cost import Cost
from pbgi.errors import InvalidInputError
from pbgi.integrations.optuna.sampler import PBGISampler
from pbgi.policy import PBGI
from pbgi.stopping import BudgetSpent, GittinsStop, Situation, StopReason
from pbgi.study import attributes
from pbgi.study.ledger import Ledger, ledger_of, misstated, misstates_cost
from pbgi.study.storage import keep_stop, trials_of

_LOGGER = get_logger("optuna.pbgi")  # below Optuna's own, so that its handlers and its verbosity apply


class _StopCallback:
    """Stops the study when there is a reason."""

    def __init__(self) -> None:
        self._called = False

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """What Optuna calls after each trial."""
        reason = self.reason(study)
        if reason is not None:
            keep_stop(study, reason)
            _LOGGER.info("Study stopped after trial %d: %s", trial.number, reason.message)
            study.stop()
        elif not self._called and study.user_attrs.get(attributes.STOP) is not None:
            keep_stop(study, None)  # a study that was stopped before goes on, with more budget, say
        self._called = True

    def reason(self, study: Study) -> StopReason | None:
        """Why to stop the study now, or None."""
        raise NotImplementedError


class GittinsStopCallback(_StopCallback):
    """Stops a study when no further trial is worth its price.

    With a `PBGISampler` that has the rule already, by `policy=pbgi.PBGI(cost_scale)` or by
    `stop=pbgi.GittinsStop(cost_scale)`, it needs no arguments and hardly any time of its own: the sampler notes with
    each trial what the rule must remember. All rules that the sampler has stop the study then. With any other sampler
    give it the exchange rate; it then keeps a model of its own, and the number of times in a row that nothing was worth
    its price in `study.user_attrs`.

    Args:
        cost_scale: How much of the objective one unit of cost is worth.
        patience: How many trials in a row must find that nothing is worth its price.
        cost: What is known of costs; see `PBGISampler`.
    """

    @refuse_unknown_arguments
    def __init__(self, cost_scale: float | None = None, *, patience: int = 3, cost: Cost | None = None) -> None:
        super().__init__()
        self._patience = require_count("patience", patience)
        self._judge: PBGISampler | None = None
        if cost_scale is not None:
            rule = GittinsStop(cost_scale, patience=1)
            self._judge = PBGISampler(policy=PBGI(cost_scale), stop=rule, cost=cost, seed=0, charge_existing=True)

    def reason(self, study: Study) -> StopReason | None:
        """Why to stop the study now, or None."""
        if self._judge is None:
            return _sampler_of(study).should_stop(study)
        reason = self._judge.should_stop(study)
        before = study.user_attrs.get(attributes.NOT_WORTH, 0)
        streak = 0 if reason is None else before + 1
        if streak != before:
            study.set_user_attr(attributes.NOT_WORTH, streak)
        return reason if streak >= self._patience else None


class BudgetCallback(_StopCallback):
    """Stops a study when its budget is spent, counted over all workers and restarts; for any sampler.

    Args:
        budget: What may be spent, in the unit of the costs. With a `PBGISampler` it may be left out: it is the
            sampler's, and the study also stops when no trial is expected to fit what is left.
    """

    @refuse_unknown_arguments
    def __init__(self, budget: float | None = None) -> None:
        super().__init__()
        self._budget = None if budget is None else require_positive("budget", budget)
        self._warned = False

    def reason(self, study: Study) -> StopReason | None:
        """Why to stop the study now, or None."""
        sampler = study.sampler if isinstance(study.sampler, PBGISampler) else None
        of_sampler = None if sampler is None else sampler.budget
        budget = of_sampler if self._budget is None else self._budget
        if budget is None:
            rule = "BudgetCallback must have a budget, of its own or of the study's PBGISampler"
            raise InvalidInputError(f"{rule}; got budget=None; write BudgetCallback(budget)")
        trials = trials_of(study)
        ledger = ledger_of(trials) if sampler is None else sampler.ledger(study, trials)
        if sampler is None:  # which says it itself
            self._warn(ledger)
        spent = BudgetSpent().reason(Situation((), budget, ledger.spent, ledger.reserved, 1.0, {}))
        if spent is not None or sampler is None or of_sampler is None:
            return spent
        reason = sampler.should_stop(study)
        return reason if reason is not None and reason.rule in ("BudgetSpent", "SpaceExhausted") else None

    def _warn(self, ledger: Ledger) -> None:
        """Say once that an attribute is no cost, and what is charged."""
        accounts = ledger.accounts.values()
        wrong = next((a for a in accounts if a.trial.state.is_finished() and misstates_cost(a.trial)), None)
        if wrong is not None and not self._warned:
            _LOGGER.warning("%s (said once)", misstated(wrong.trial, f"{wrong.charged:g}"))
            self._warned = True


def _sampler_of(study: Any) -> PBGISampler:
    sampler = study.sampler
    if not isinstance(sampler, PBGISampler) or not sampler.weighs_worth:
        rule = (
            "GittinsStopCallback must have a cost_scale, unless the study's sampler is a PBGISampler with a GittinsStop"
        )
        raise InvalidInputError(f"{rule}; got cost_scale=None and {sampler}; write GittinsStopCallback(cost_scale)")
    return sampler
