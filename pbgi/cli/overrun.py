"""Trials under way, and a budget of seconds that holds: their commands are ended when it is used up.

Trials of this process are measured, others known by what their workers note in the study. A worker notes when a command
began and, now and then, how long it has run. In between the command is taken to run on; of one whose worker is silent
for too long, or has another clock, that is not believed.

A trial is begun if what is expected of it fits what is left, but it may take longer than expected. Then it may use what
is left of the budget, not what is held for others: it is ended once

    what was spent + what it has used + what is held for the other running trials

reaches the budget. Held for a trial is what is expected of it, or what it has used if that is more. A trial that has
used no more than was expected of it is ended only once all that is used reaches the budget, whatever is held.

All of it grows with time, so the moment is known beforehand. A timer waits for it, which no slow storage delays, and is
set anew when the study is looked at again: the sooner, the nearer the moment.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from optuna.trial import FrozenTrial, TrialState

from pbgi.cli.command import Attempt
from pbgi.cli.job import Job, price_of_second
from pbgi.cli.recovery import Earlier, earlier
from pbgi.cli.study import StudyBook
from pbgi.study import attributes
from pbgi.study.ledger import Account, Ledger, ledger_of, total

# Seconds between two signs of life: a tenth of the time run so far, within these bounds.
BEAT_SHARE, LEAST_BEAT, MOST_BEAT = 0.1, 1.0, 30.0
# A sign of life may come so many times as late as it is due before its worker is taken to be gone.
OVERDUE = 2.0


@dataclass(eq=False)
class Running:
    """A trial under way in this process."""

    trial: FrozenTrial
    attempt: Attempt
    paid: Earlier
    next_beat: float = LEAST_BEAT


def until_next_beat(seconds: float) -> float:
    """When the next sign of life is due of a command that has run for so many seconds."""
    return min(max(BEAT_SHARE * seconds, LEAST_BEAT), MOST_BEAT)


def noted_seconds(trial: FrozenTrial, now: float) -> tuple[float, bool]:
    """How long the command of a trial of another process has run at the time `now`, and whether it seems to go on."""
    command, beat = trial.user_attrs.get(attributes.COMMAND), trial.user_attrs.get(attributes.BEAT)
    if command is None:  # not begun yet, or run by a script that has asked for it
        return 0.0, False
    seconds, noted = 0.0, command["time"]
    if beat is not None and beat["time"] >= noted:  # else it is of an earlier attempt
        seconds, noted = beat["seconds"], beat["time"]
    since, most = now - noted, OVERDUE * until_next_beat(seconds)
    return seconds + min(max(since, 0.0), most), 0.0 <= since < most


# The budget ----------------------------------------------------------------------------------------------------------


# Seconds between two looks at the study: a tenth of the time that is left, within these bounds.
LOOK_SHARE, LEAST_LOOK, MOST_LOOK = 0.1, 0.25, 30.0


@dataclass(frozen=True)
class Share:
    """What a running trial takes of the budget.

    Attributes:
        used: What it has used so far.
        expected: What was expected of it; 0 if nothing was.
        grows: Whether it uses more with every second.
    """

    used: float
    expected: float
    grows: bool

    @property
    def held(self) -> float:
        """What is held for it."""
        return max(self.used, self.expected)


def seconds_left(left: float, price: float, own: Share, others: Sequence[Share]) -> float:
    """How long a trial may still run.

    Args:
        left: The budget less what was spent on finished trials.
        price: Of a second.
        own: The trial.
        others: All others that run.
    """
    used = total(share.used for share in (own, *others))
    until_used_up = (left - used) / (price * (1 + sum(share.grows for share in others)))
    until_held = (left - own.used - total(share.held for share in others)) / price
    until_expected = (own.expected - own.used) / price
    return max(min(until_used_up, max(until_held, until_expected)), 0.0)


class BudgetWatch:
    """Ends the commands of one process when the budget is used up; idle where the job lets them finish.

    Args:
        job: The job.
        book: Its study.
        running: The trials under way in this process, by number; it may change between two calls.
    """

    def __init__(self, job: Job, book: StudyBook, running: Mapping[int, Running]) -> None:
        self._book, self._running = book, running
        self._budget = book.settings.budget if job.ends_overrun else None
        self._price = price_of_second(job) or 1.0
        self._next_look = 0.0
        self._watched: frozenset[Attempt] = frozenset()

    def look(self) -> None:
        """Set the time that is left to each command, if any is new or gone, or if it is time to look again."""
        attempts = frozenset(running.attempt for running in self._running.values())
        if self._budget is None or not attempts:
            return
        if attempts == self._watched and time.monotonic() < self._next_look:
            return
        ledger = ledger_of(self._book.trials())
        left, shares = self._budget - ledger.spent, self._shares(ledger)
        own = self._running.keys() & shares.keys()  # one that somebody else has ended is no longer charged
        soonest = min((self._limit(number, left, shares) for number in own), default=MOST_LOOK)
        self._watched = attempts
        self._next_look = time.monotonic() + min(max(LOOK_SHARE * soonest, LEAST_LOOK), MOST_LOOK)

    def used(self, trials: Sequence[FrozenTrial]) -> dict[int, float]:
        """What running trials have used so far, by number; nothing where they may finish."""
        shares = {} if self._budget is None else self._shares(ledger_of(trials))
        return {number: share.used for number, share in shares.items()}

    def _limit(self, number: int, left: float, shares: Mapping[int, Share]) -> float:
        """Set the time that is left to the command of a trial; how long that is."""
        others = [share for other, share in shares.items() if other != number]
        seconds = seconds_left(left, self._price, shares[number], others)
        counted = ", with what other running trials have used or are expected to" if others else ""
        why = f"the command was ended because the budget of {self._budget:g} was used up{counted}"
        self._running[number].attempt.end_in(seconds, why)
        return seconds

    def _shares(self, ledger: Ledger) -> dict[int, Share]:
        accounts, now = ledger.accounts.items(), time.time()
        return {n: self._share(account, now) for n, account in accounts if account.trial.state is TrialState.RUNNING}

    def _share(self, account: Account, now: float) -> Share:
        own = self._running.get(account.trial.number)
        if own is None:
            paid, (seconds, grows) = earlier(account.trial), noted_seconds(account.trial, now)
        else:
            paid, seconds, grows = own.paid, own.attempt.seconds, True
        return Share(paid.cost_or_zero + self._price * seconds, account.reserved, grows)
