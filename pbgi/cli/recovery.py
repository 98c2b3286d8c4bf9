"""Trials whose worker died: found, charged and failed; or taken over, where their command never began.

A trial in flight when its process was killed is recognized by that process being gone, which only processes of the same
machine, boot and PID namespace can see, or by the machine having been booted since. Its command is killed if it still
runs. If it had ended and left its result, the trial gets it; otherwise the trial fails and is charged what is
known to have been spent: until its guard killed it, or until now if it ran on, or until the last sign of life.
"""

import json
import math
import os
import time
from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from pbgi.cli.command import priced
from pbgi.cli.job import Job
from pbgi.cli.outcome import LEAST_COST, Outcome
from pbgi.cli.private import tail
from pbgi.cli.processes import NOTE, identity, is_alive, is_here, is_of_earlier_boot, kill_orphan, kill_strays
from pbgi.cli.sound import is_amount
from pbgi.cli.study import StudyBook, predicted_cost
from pbgi.study import attributes
from pbgi.study.ledger import total

RESULT = "outcome.json"
# A worker of another machine that gave no sign for so long may be reclaimed, if the user says so.
SILENCE = 600.0
# A worker of an earlier boot is gone if it gave no sign for so long, twice what may lie between two.
SILENCE_AFTER_BOOT = 60.0


def folder_of(job: Job, trial: FrozenTrial) -> Path:
    """The folder of a trial; its token tells it from trials of other studies."""
    return job.trials_folder / f"{trial.number}-{trial.user_attrs.get(attributes.TOKEN, 'x')}"


def recover(
    job: Job, book: StudyBook, *, reclaim: bool, under_way: Collection[int] = ()
) -> tuple[list[FrozenTrial], list[FrozenTrial]]:
    """Deal with the trials of dead workers.

    Args:
        job: The job.
        book: Its study.
        reclaim: Also fail trials of other machines that have been silent for `SILENCE` seconds.
        under_way: Numbers of the trials that this process knows to be its own.

    Returns:
        The trials that were finished, and those that are now this process's to run.
    """

    def look() -> tuple[list[FrozenTrial], list[FrozenTrial]]:
        finished, taken_over = [], []
        own = identity(os.getpid())
        for trial in book.trials():
            has_begun = attributes.COMMAND in trial.user_attrs
            if _is_forgotten(trial, own, under_way):
                taken_over.append(trial)
            elif not _is_abandoned(trial, reclaim):
                continue
            elif has_begun or not _is_dead(trial):
                finished.append(book.finish(trial.number, _outcome(job, trial)))
            else:
                book.set_note(trial.number, attributes.WORKER, own)
                taken_over.append(trial)
        return finished, taken_over

    return book.exclusively(look)


def _is_forgotten(trial: FrozenTrial, own: Mapping[str, Any], under_way: Collection[int]) -> bool:
    """Whether a trial was given to this process by a transaction that was kept, though its connection broke."""
    waits = trial.state is TrialState.RUNNING and attributes.COMMAND not in trial.user_attrs
    return waits and trial.user_attrs.get(attributes.WORKER) == own and trial.number not in under_way


def _is_abandoned(trial: FrozenTrial, reclaim: bool) -> bool:
    worker = trial.user_attrs.get(attributes.WORKER)
    if trial.state is not TrialState.RUNNING or not isinstance(worker, Mapping):
        return False  # handed out by `ask`: only `tell` ends it
    if is_here(worker):
        return not is_alive(worker)
    return _is_dead(trial) or (reclaim and time.time() - _last_sign(trial) > SILENCE)


def _is_dead(trial: FrozenTrial) -> bool:
    """Whether the worker of a trial is known to be gone."""
    worker, last_sign = trial.user_attrs[attributes.WORKER], _last_sign(trial)
    if is_here(worker):
        return not is_alive(worker)
    return time.time() - last_sign > SILENCE_AFTER_BOOT and is_of_earlier_boot(worker, last_sign)


def _last_sign(trial: FrozenTrial) -> float:
    """When the worker of a trial was last known to be there."""
    began = trial.datetime_start.timestamp() if trial.datetime_start else 0.0
    return max(_number(trial, attributes.BEAT, "time"), _number(trial, attributes.COMMAND, "time"), began)


def _outcome(job: Job, trial: FrozenTrial) -> Outcome:
    folder = folder_of(job, trial)
    command = trial.user_attrs.get(attributes.COMMAND, {})
    was_running = kill_orphan(command)
    kill_strays(str(folder))
    saved = _saved(folder, trial)
    if saved is not None:
        return saved
    seconds = max(_seconds(folder, trial, was_running), LEAST_COST)
    paid = earlier(trial)
    known = priced(job, seconds)
    cost = known if known is not None else predicted_cost(trial) or LEAST_COST
    message = "the process that ran this trial ended without finishing it"
    return Outcome(None, total([paid.cost_or_zero, cost]), paid.seconds + seconds, message, abandoned=True)


def _seconds(folder: Path, trial: FrozenTrial, was_running: bool) -> float:
    """How long the last attempt is known to have run."""
    command = trial.user_attrs.get(attributes.COMMAND, {})
    began = command.get("time")
    until: list[float] = [_number(trial, attributes.BEAT, "seconds")]
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


def _is_ours(saved: Mapping[str, Any]) -> bool:
    """Whether its fields are what we write: the command may write to its folder too."""
    value, message = saved["value"], saved.get("message")
    good = value is None or (type(value) in (int, float) and math.isfinite(value))
    amounts = [saved.get(name) for name in ("cost", "seconds", "observed")]
    return good and all(x is None or is_amount(x) for x in amounts) and isinstance(message, str | None)


def read_json(path: Path) -> dict[str, Any]:
    """A small JSON object of ours; empty if there is none."""
    try:
        found = json.loads(tail(path, 2**16))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


class Earlier:
    """What the earlier attempts of a trial took and cost."""

    def __init__(self, attempts: Any) -> None:
        self.attempts: list[dict[str, Any]] = list(attempts or [])
        self.seconds = float(sum(attempt["seconds"] for attempt in self.attempts))
        self.cost_or_zero = total(attempt["cost"] for attempt in self.attempts)


def earlier(trial: FrozenTrial) -> Earlier:
    """The earlier attempts of a trial."""
    return Earlier(trial.user_attrs.get(attributes.ATTEMPTS))
