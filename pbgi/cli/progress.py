"""What a person sees while `tune` runs: one line that is written over in a terminal, else one line per trial."""

import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from optuna.trial import FrozenTrial, TrialState

from pbgi.constraints.constraint import ConditionStatus, statuses
from pbgi.display.wording import number
from pbgi.integrations.optuna.summary import best_trial
from pbgi.run.progress import COLUMNS, RECENT, line_of, money_words, to_go, trials_that_fit
from pbgi.study import attributes
from pbgi.study.engine import trial_of_account
from pbgi.study.ledger import Ledger, ledger_of, remaining, total
from pbgi.study.settings import StudySettings


@dataclass(frozen=True)
class Standing:
    """Where a study stands.

    Attributes:
        budget: What may be spent, or None.
        spent: Charged so far.
        reserved: Expected cost of the running trials.
        left: What is left of the budget after reservations.
        best: The best trial, or None.
        best_cost: What it was charged.
        running: Number of running trials.
        complete: Number of trials with a value.
        failed: Number of trials without.
        stopped: Number of trials that were stopped early; None where no trial tells its steps.
        trials_left: How many trials of the latest costs fit what is left; None if that cannot be said.
        seconds_left: How long these and the running ones take, if as many run at a time and take as long as the latest;
            None if that cannot be said.
        conditions: How the conditions on outcomes stand.
    """

    budget: float | None
    spent: float
    reserved: float
    left: float | None
    best: FrozenTrial | None
    best_cost: float
    running: int
    complete: int
    failed: int
    trials_left: int | None
    seconds_left: float | None
    conditions: tuple[ConditionStatus, ...] = ()
    stopped: int | None = None


def standing(settings: StudySettings, trials: Sequence[FrozenTrial]) -> Standing:
    """Where a study stands."""
    ledger = ledger_of(trials)
    counts, stopped = Counter(trial.state for trial in trials), sum(map(was_stopped, trials))
    replaced = {before for trial in trials if (before := goes_on_with(trial)) is not None}
    best = best_trial(trials, settings.direction, settings.constraints)
    left = remaining(settings.budget, ledger)
    n_own = sum(attributes.FROM not in trial.user_attrs for trial in trials) - len(replaced)
    paid = [account.charged for account in ledger.accounts.values() if account.charged > 0.0]
    n_left = _trials_left(settings, n_own, paid[-RECENT:], left)
    running = counts[TrialState.RUNNING]
    return Standing(
        budget=settings.budget,
        spent=ledger.spent,
        reserved=ledger.reserved,
        left=left,
        best=best,
        best_cost=0.0 if best is None else ledger.accounts[best.number].charged,
        running=running,
        complete=counts[TrialState.COMPLETE],
        failed=counts[TrialState.FAIL] + counts[TrialState.PRUNED] - stopped,
        trials_left=n_left,
        seconds_left=_seconds_left(trials, n_left, running),
        conditions=_conditions(settings, ledger, best),
        stopped=stopped - len(replaced) if settings.steps is not None or stopped else None,
    )


def goes_on_with(trial: FrozenTrial) -> int | None:
    """The number of the stopped trial that a trial goes on with; None if it does not."""
    before = trial.system_attrs.get(attributes.GOES_ON)
    return int(before[-1]) if before else None


def was_stopped(trial: FrozenTrial) -> bool:
    """Whether a trial was stopped early, having reported on its way."""
    return trial.state is TrialState.PRUNED and trial.last_step is not None


def _conditions(settings: StudySettings, ledger: Ledger, best: FrozenTrial | None) -> tuple[ConditionStatus, ...]:
    if not settings.constraints:
        return ()
    trials = {number: trial_of_account(account, {}, {}) for number, account in ledger.accounts.items()}
    return statuses(settings.constraints, tuple(trials.values()), None if best is None else trials[best.number])


def _trials_left(settings: StudySettings, n: int, paid: Sequence[float], left: float | None) -> int | None:
    guesses = []
    if settings.trials is not None:
        guesses.append(max(settings.trials - n, 0))
    if left is not None and paid:
        more = trials_that_fit(left, total(paid) / len(paid))
        guesses += [] if more is None else [more]
    return min(guesses) if guesses else None


def _seconds_left(trials: Sequence[FrozenTrial], more: int | None, running: int) -> float | None:
    """How long so many more trials take beside the running ones, of which half is done on average."""
    # The time between its attempts is no part of what a trial takes.
    ran = [(t.user_attrs.get(attributes.SECONDS), t.duration) for t in trials if t.duration is not None][-RECENT:]
    took = [seconds or duration.total_seconds() for seconds, duration in ran]
    if more is None or not took:
        return None
    return total(took) / len(took) * (more + 0.5 * running) / max(running, 1)


def describe(now: Standing, columns: int = COLUMNS) -> str:
    """One line about it."""
    best = None if now.best is None else (now.best.value or 0.0, now.best.params)
    rest = to_go(now.trials_left, now.seconds_left)
    if now.budget is None:
        done = f"{now.running} running, {now.complete + now.failed + (now.stopped or 0)} done"
        return line_of(f"{number(now.spent)} spent", best, ", ".join(part for part in (done, rest) if part), columns)
    return line_of(money_words(now.spent, now.reserved, now.budget), best, rest, columns)


class Display:
    """Writes to stderr; over one line if that is a terminal."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty() and not quiet
        self._quiet, self._line = quiet, ""

    def say(self, message: str) -> None:
        """A line that stays."""
        if not self._quiet:
            self._write(self._wiped() + printable(message) + "\n" + self._line)

    def update(self, now: Standing) -> None:
        """The line that changes; nothing outside a terminal."""
        if self._live:
            wiped = self._wiped()
            self._line = describe(now, shutil.get_terminal_size((COLUMNS, 24)).columns)
            self._write(wiped + self._line)

    def close(self) -> None:
        """Leave the terminal on a fresh line."""
        if self._line:
            self._write("\n")
            self._line = ""

    def _wiped(self) -> str:
        return "\r\x1b[K" if self._line else ""

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # whoever read it is gone; the search goes on
            self._quiet, self._live = True, False


def printable(text: str) -> str:
    """The text without what would move the cursor or change the terminal: it may come from a program or a file."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
