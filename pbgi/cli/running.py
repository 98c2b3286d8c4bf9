"""Trials under way: in this process measured, in others known by what their workers note in the study.

A worker notes when a command began and, now and then, how long it has run. In between the command is taken to run on;
of one whose worker is silent for too long, or has another clock, that is not believed.
"""

from dataclasses import dataclass

from optuna.trial import FrozenTrial

from pbgi.cli.command import Attempt
from pbgi.cli.recovery import Earlier
from pbgi.study import attributes

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
