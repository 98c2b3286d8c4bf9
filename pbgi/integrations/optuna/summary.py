"""What a study has spent, on what, and what is left; and the end of trials whose workers are gone."""

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from pbgi.checks import check_cost, require_positive
from pbgi.constraints.constraint import Constraints
from pbgi.integrations.optuna.sampler import PBGISampler
from pbgi.study import attributes
from pbgi.study.ledger import Account, Ledger, ledger_of, remaining
from pbgi.study.outcomes import constraints_of, keeps_all
from pbgi.study.storage import keep, trials_of


@dataclass(frozen=True)
class CostSummary:
    """What a study has spent.

    Attributes:
        n_trials: Number of trials.
        spent: Charged for finished trials.
        reserved: Held for running trials.
        budget: What may be spent; None if there is no budget.
        remaining: What is left of it after reservations; None without a budget.
        counts: Number of trials by state, in lower case.
        costs: What they cost, charged or reserved, by state.
        best_number: The trial with the best value that keeps all conditions on outcomes; None if there is none, or
            if there are several objectives.
        best_value: Its value.
        best_cost: What it was charged.
        spent_until_best: Charged for it and the trials before it.
        stopped: Why the study was stopped, if it was.
    """

    n_trials: int
    spent: float
    reserved: float
    budget: float | None
    remaining: float | None
    counts: Mapping[str, int] = field(hash=False)
    costs: Mapping[str, float] = field(hash=False)
    best_number: int | None
    best_value: float | None
    best_cost: float | None
    spent_until_best: float | None
    stopped: str | None

    def __str__(self) -> str:
        lines = [f"{self.n_trials} trials, {self.spent:g} spent" + self._of_budget()]
        for state, count in self.counts.items():
            lines.append(f"  {count:5d} {state:<9} {self.costs[state]:g}" + " reserved" * (state == "running"))
        if self.best_number is not None:
            until = f"{self.spent_until_best:g} had been spent by then"
            lines.append(f"best: {self.best_value:g}, trial {self.best_number}, which cost {self.best_cost:g}; {until}")
        return "\n".join(lines + ([f"stopped: {self.stopped}"] if self.stopped else []))

    def _of_budget(self) -> str:
        held = f", {self.reserved:g} reserved" if self.reserved else ""
        return held if self.budget is None else f" of {self.budget:g}{held}, {self.remaining:g} left"


def cost_summary(study: Study, *, budget: float | None = None) -> CostSummary:
    """What a study has spent, over all workers and restarts.

    Args:
        study: Any study; costs are counted as `PBGISampler` counts them.
        budget: What may be spent; by default that of its `PBGISampler`.
    """
    sampler = study.sampler if isinstance(study.sampler, PBGISampler) else None
    trials = trials_of(study)
    ledger = ledger_of(trials) if sampler is None else sampler.ledger(study, trials)
    of_sampler = None if sampler is None else sampler.budget
    budget = of_sampler if budget is None else require_positive("budget", budget)
    best = _best(study, ledger)
    until = None if best is None else [a for a in ledger.accounts.values() if a.trial.number <= best.trial.number]
    stopped = study.user_attrs.get(attributes.STOP) or {}
    return CostSummary(
        n_trials=len(trials),
        spent=ledger.spent,
        reserved=ledger.reserved,
        budget=budget,
        remaining=remaining(budget, ledger),
        counts={name: sum(t.state == state for t in trials) for name, state in _states(trials).items()},
        costs={name: _cost_in(ledger, state) for name, state in _states(trials).items()},
        best_number=None if best is None else best.trial.number,
        best_value=None if best is None else best.trial.value,
        best_cost=None if best is None else best.charged,
        spent_until_best=None if until is None else math.fsum(account.charged for account in until),
        stopped=stopped.get("message"),
    )


def _states(trials: list[FrozenTrial]) -> dict[str, TrialState]:
    present = {trial.state for trial in trials}
    return {state.name.lower(): state for state in TrialState if state in present}


def _cost_in(ledger: Ledger, state: TrialState) -> float:
    accounts = [account for account in ledger.accounts.values() if account.trial.state == state]
    return math.fsum(account.expected for account in accounts)


def best_trial(
    trials: Iterable[FrozenTrial], direction: str, constraints: Constraints | None = None
) -> FrozenTrial | None:
    """The completed trial with the best finite value, "minimize" or "maximize"; the first of equals.

    It keeps all conditions, those given or those that the trials of Optuna speak of.
    """
    sign, known = 1.0 if direction == "minimize" else -1.0, list(trials)
    done = [t for t in known if t.state == TrialState.COMPLETE and t.value is not None and math.isfinite(t.value)]
    conditions = constraints_of(constraints, known)
    done = [t for t in done if keeps_all(t, conditions)]
    return min(done, key=lambda t: (sign * (t.value or 0.0), t.number), default=None)


def _best(study: Study, ledger: Ledger) -> Account | None:
    if len(study.directions) > 1:
        return None
    best = best_trial((account.trial for account in ledger.accounts.values()), study.direction.name.lower())
    return None if best is None else ledger.accounts[best.number]


def fail_abandoned(study: Study, *, older_than: float, cost: float | None = None) -> tuple[int, ...]:
    """Fail the trials that have been running for too long: those of workers that were killed.

    What was held for such a trial is charged, since nobody knows how long it worked, and what it had been given to try
    is open again. Call it before workers start. Storages with a heartbeat do the same by themselves. A worker that was
    only slow may still tell its result, by `tell_result`.

    Args:
        study: The study.
        older_than: Seconds since the start of a trial; longer than any trial can take.
        cost: What each is charged; by default what was held for it.

    Returns:
        The numbers of the trials that were failed.
    """
    limit, cost = require_positive("older_than", older_than), check_cost(cost)
    now = dt.datetime.now()  # Optuna's times are local ones
    sampler = study.sampler if isinstance(study.sampler, PBGISampler) else None
    trials = trials_of(study)
    ledger = ledger_of(trials) if sampler is None else sampler.ledger(study, trials)
    failed = []
    for account in ledger.accounts.values():
        trial, start = account.trial, account.trial.datetime_start
        if trial.state == TrialState.RUNNING and start is not None and (now - start).total_seconds() > limit:
            keep(study, trial, attributes.PRICE, account.expected if cost is None else cost)
            keep(study, trial, attributes.ABANDONED, True)
            study.tell(trial.number, state=TrialState.FAIL)
            failed.append(trial.number)
    return tuple(failed)
