"""Trials under way: those whose worker died, and those whose budget of seconds is used up.

A trial in flight when its process was killed is recognized by that process being gone, which only processes of the same
machine, boot and PID namespace can see, or by the machine having been booted since. Its command is killed if it still
runs. If it had ended and left its result, the trial gets it; if it never began, or was put back since its worker was
told to end, it is taken over; otherwise the trial fails and is charged what is known to have been spent: until its
guard killed it, or until now if it ran on, or until the last sign of life.

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

import math
import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from pbgi.cli.choosing import Way
from pbgi.cli.job import Job, price_of_second
from pbgi.cli.private import tail
from pbgi.cli.processes import NOTE, identity, is_alive, is_here, is_of_earlier_boot, kill_orphan, kill_strays
from pbgi.cli.program.command import Attempt
from pbgi.cli.program.result import LEAST_COST, Outcome, priced
from pbgi.cli.study import JobStudy, folder_name, predicted_cost
from pbgi.serialization import parsed_json
from pbgi.study import attributes
from pbgi.study.ledger import Account, Ledger, ledger_of, total
from pbgi.study.reports import step_costs
from pbgi.study.sound import are_attempts, are_outcomes, is_amount

# Trials whose worker died --------------------------------------------------------------------------------------------


RESULT = "outcome.json"
# A worker of another machine that gave no sign for so long may be reclaimed, if the user says so.
SILENCE = 600.0
# A worker of an earlier boot is gone if it gave no sign for so long, twice what may lie between two.
SILENCE_AFTER_BOOT = 60.0


def folder_of(job: Job, trial: FrozenTrial) -> Path:
    """The folder of a trial."""
    return job.trials_folder / folder_name(trial)


def recover(
    job: Job, study: JobStudy, *, reclaim: bool, under_way: Collection[int] = ()
) -> tuple[list[FrozenTrial], list[FrozenTrial]]:
    """Deal with the trials of dead workers.

    Args:
        job: The job.
        study: Its study.
        reclaim: Also fail trials of other machines that have been silent for `SILENCE` seconds.
        under_way: Numbers of the trials that this process knows to be its own.

    Returns:
        The trials that were finished, and those that are now this process's to run.
    """

    def look() -> tuple[list[FrozenTrial], list[FrozenTrial]]:
        finished, taken_over = [], []
        own = identity(os.getpid())
        for trial in study.trials():
            if _is_forgotten(trial, own, under_way):
                taken_over.append(trial)
            elif not _is_abandoned(trial, reclaim):
                continue
            elif (attempts := _saved_attempts(job, trial)) is not None:
                taken_over.append(study.put_back(trial.number, attempts))
            elif _has_begun(trial) or not _is_dead(trial):
                finished.append(study.finish(trial.number, _outcome(job, trial)))
            else:
                taken_over.append(trial)
        for trial in taken_over:
            study.set_note(trial.number, attributes.WORKER, own)
        return finished, taken_over

    return study.exclusively(look)


def _is_forgotten(trial: FrozenTrial, own: Mapping[str, Any], under_way: Collection[int]) -> bool:
    """Whether a trial was given to this process by a transaction that was kept, though its connection broke."""
    waits = trial.state is TrialState.RUNNING and not _has_begun(trial)
    return waits and trial.user_attrs.get(attributes.WORKER) == own and trial.number not in under_way


def _has_begun(trial: FrozenTrial) -> bool:
    """Whether its command may run, or has run without anybody having noted how that ended."""
    return trial.user_attrs.get(attributes.COMMAND) is not None


def _is_abandoned(trial: FrozenTrial, reclaim: bool) -> bool:
    worker = trial.user_attrs.get(attributes.WORKER)
    if trial.state is not TrialState.RUNNING or not isinstance(worker, Mapping):
        return False  # handed out by `ask`: only `tell` ends it
    if worker and is_here(worker):
        return not is_alive(worker)
    return _is_dead(trial) or (reclaim and time.time() - _last_sign(trial) > SILENCE)


def _is_dead(trial: FrozenTrial) -> bool:
    """Whether the worker of a trial is known to be gone, or has put it back."""
    worker, last_sign = trial.user_attrs[attributes.WORKER], _last_sign(trial)
    if not worker:
        return True
    if is_here(worker):
        return not is_alive(worker)
    return time.time() - last_sign > SILENCE_AFTER_BOOT and is_of_earlier_boot(worker, last_sign)


def _last_sign(trial: FrozenTrial) -> float:
    """When the worker of a trial was last known to be there."""
    began = trial.datetime_start.timestamp() if trial.datetime_start else 0.0
    return max(_number(trial, attributes.BEAT, "time"), _number(trial, attributes.COMMAND, "time"), began)


def _outcome(job: Job, trial: FrozenTrial) -> Outcome:
    folder = folder_of(job, trial)
    command = trial.user_attrs.get(attributes.COMMAND) or {}
    was_running = kill_orphan(command)
    kill_strays(str(folder))
    saved = _saved(folder, trial)
    if saved is not None:
        return saved
    seconds = max(_seconds(folder, trial, was_running), LEAST_COST)
    paid = earlier(trial)
    known = priced(job, seconds)
    reported = max(step_costs(trial).values(), default=0.0) - paid.cost_or_zero
    cost = known if known is not None else reported if reported > 0.0 else predicted_cost(trial) or LEAST_COST
    message = "the process that ran this trial ended without finishing it"
    return Outcome(None, total([paid.cost_or_zero, cost]), paid.seconds + seconds, message, abandoned=True)


def _seconds(folder: Path, trial: FrozenTrial, was_running: bool) -> float:
    """How long the last attempt is known to have run."""
    command = trial.user_attrs.get(attributes.COMMAND) or {}
    began = command.get("time")
    is_older = _number(trial, attributes.BEAT, "time") < _number(trial, attributes.COMMAND, "time")
    until = [0.0 if is_older else _number(trial, attributes.BEAT, "seconds")]
    if isinstance(began, int | float):
        until += [time.time() - began] if was_running else []
        note = read_json(folder / NOTE)
        if note.get("pid") == command.get("pid") and isinstance(note.get("time"), int | float):
            until.append(note["time"] - began)
    return max(until)


def _number(trial: FrozenTrial, key: str, name: str) -> float:
    found = trial.user_attrs.get(key)
    number = found.get(name) if isinstance(found, Mapping) else None
    return float(number) if isinstance(number, int | float) else 0.0


def _saved(folder: Path, trial: FrozenTrial) -> Outcome | None:
    """The outcome that was written before the worker died, if it belongs to this trial."""
    found = read_json(folder / RESULT)
    if found.get("token") != trial.user_attrs.get(attributes.TOKEN) or "outcome" not in found:
        return None
    saved = found["outcome"]
    names = [field.name for field in fields(Outcome)]
    if not isinstance(saved, Mapping) or not {"value", "cost", "seconds"} <= saved.keys() or not _is_ours(saved):
        return None
    return Outcome(**{name: saved[name] for name in names if name in saved})  # another version may know more of them


def _saved_attempts(job: Job, trial: FrozenTrial) -> list[dict[str, Any]] | None:
    """All attempts of a trial that is to be put back, if its worker could not tell the storage of the last one."""
    found = read_json(folder_of(job, trial) / RESULT)
    attempts: Any = found.get("attempts")
    if found.get("token") != trial.user_attrs.get(attributes.TOKEN) or not are_attempts(attempts):
        return None
    return attempts if len(attempts) > len(earlier(trial).attempts) else None  # else it has heard of it


def _is_ours(saved: Mapping[str, Any]) -> bool:
    """Whether its fields are what we write: the command may write to its folder too."""
    value, message = saved["value"], saved.get("message")
    good = value is None or (type(value) in (int, float) and math.isfinite(value))
    outcomes = saved.get("outcomes")
    if outcomes is not None and not are_outcomes(outcomes):
        return False
    if type(saved.get("stopped", False)) is not bool:
        return False
    amounts = [saved.get(name) for name in ("cost", "seconds", "observed")]
    return good and all(x is None or is_amount(x) for x in amounts) and isinstance(message, str | None)


def read_json(path: Path) -> dict[str, Any]:
    """A small JSON object of ours; empty if there is none."""
    try:
        found = parsed_json(tail(path, 2**16))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class Earlier:
    """What the earlier attempts of a trial took and cost."""

    def __init__(self, attempts: Any) -> None:
        self.attempts: list[dict[str, Any]] = list(attempts or [])
        self.seconds = float(sum(attempt["seconds"] for attempt in self.attempts))
        self.cost_or_zero = total(attempt["cost"] for attempt in self.attempts)
        self.n_interrupted = sum(bool(attempt.get("interrupted")) for attempt in self.attempts)


def earlier(trial: FrozenTrial) -> Earlier:
    """The earlier attempts of a trial."""
    return Earlier(trial.user_attrs.get(attributes.ATTEMPTS))


# Signs of life -------------------------------------------------------------------------------------------------------


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
    way: Way | None = None
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
        study: Its study.
        running: The trials under way in this process, by number; it may change between two calls.
    """

    def __init__(self, job: Job, study: JobStudy, running: Mapping[int, Running]) -> None:
        self._study, self._running = study, running
        self._budget = study.settings.budget if job.ends_overrun else None
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
        ledger = ledger_of(self._study.trials())
        left, shares = self._budget - ledger.spent_on_finished, self._shares(ledger)
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
        return Share(paid.cost_or_zero + self._price * seconds, account.expected, grows)
