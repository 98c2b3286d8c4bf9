"""A run in a file, from which it goes on: written before and after every trial, whole or not at all.

The file has the optimizer as JSON, with its settings and all trials, the points that are still to be tried first, and
whether costs are in a unit of their own. A run may go on with another budget or stop rule, which say when it ends; all
else that was given must be the same.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pbgi.errors import InvalidInputError
from pbgi.history import Trial, TrialState
from pbgi.optimizer import Optimizer
from pbgi.run.log import LOG
from pbgi.serialization import Value, parsed_json, require_fields

FORMAT = 1
FIELDS = ("format", "x0", "points", "has_own_unit", "optimizer")
# What may differ between the file and a call: where the run stands, and when it ends.
MAY_CHANGE = ("history", "budget", "stop")
# Filled in where they are not given: the file then says which they are.
FILLED_IN = ("n_startup_trials", "seed")
KILLED = "the program ended while the trial ran"


@dataclass(frozen=True)
class Checkpoint:
    """The file of a run, and the points it began with.

    Attributes:
        path: The file.
        x0: The points that were given to begin with, as JSON.
    """

    path: Path
    x0: Sequence[Any]

    def save(self, optimizer: Optimizer, points: Sequence[Mapping[str, Value]], has_own_unit: bool) -> None:
        """Write where the run stands, so that it is there after a power cut."""
        fields = (FORMAT, list(self.x0), list(points), has_own_unit, _plain(optimizer))
        _write_whole(self.path, json.dumps(dict(zip(FIELDS, fields, strict=True)), allow_nan=False).encode() + b"\n")

    def load(self, fresh: Optimizer, given: Sequence[str]) -> "Beginning | None":
        """The run in the file, with trials that were running when it was killed interrupted; None without a file.

        Args:
            fresh: An optimizer with the settings of this call.
            given: Which of `n_startup_trials` and `seed` the user has given; the others are those of the file.

        Raises:
            InvalidInputError: The file is of another run, or of something else.
        """
        if not self.path.exists():
            return None
        data = self._read()
        mine, theirs = _plain(fresh), data["optimizer"]
        self._require_same("x0", data["x0"], list(self.x0))
        for name in mine:
            if name in given or name not in (*MAY_CHANGE, *FILLED_IN):
                self._require_same(name, theirs.get(name), mine[name])
        try:
            saved = Optimizer.from_json(json.dumps(theirs), **fresh.settings.unwritten)
            taken = {name: getattr(saved.settings, name) for name in FILLED_IN}
            optimizer = Optimizer.of(fresh.space, fresh.direction, replace(fresh.settings, **taken), saved.trials)
            points = [optimizer.space.check(point) for point in data["points"]]
        except InvalidInputError as error:
            raise InvalidInputError(f"{self._rule}; got {str(self.path)!r}, in which {error}") from None
        again = interrupt_running(optimizer)
        LOG.info("resuming %s: %d trials, %g spent", self.path, len(optimizer.trials), optimizer.spent)
        return Beginning(optimizer, points, bool(data["has_own_unit"]), again)

    @property
    def _rule(self) -> str:
        return "resume must be a file that a run like this one has written, or one that does not exist yet"

    def _read(self) -> dict[str, Any]:
        try:
            data = parsed_json(self.path.read_bytes())
            require_fields("the run", data, FIELDS)
        except ValueError as error:
            raise InvalidInputError(f"{self._rule}; got {str(self.path)!r}: {error}") from None
        lists = all(isinstance(data[name], list) for name in ("x0", "points"))
        if data["format"] != FORMAT or not lists or not isinstance(data["optimizer"], Mapping):
            raise InvalidInputError(f"{self._rule}; got {str(self.path)!r}, which another version has written")
        return dict(data)

    def _require_same(self, name: str, theirs: object, mine: object) -> None:
        if theirs != mine:
            raise InvalidInputError(
                f"resume must be the file of a run with the same {name}; {str(self.path)!r} has {_shown(theirs)}, got "
                f"{_shown(mine)}; give another file to begin anew"
            )


@dataclass(frozen=True)
class Beginning:
    """Where a run begins, or goes on.

    Attributes:
        optimizer: Chooses the points; with all trials so far.
        points: Points that are still to be tried first.
        has_own_unit: Whether costs are in another unit than measured seconds.
        again: Interrupted trials whose points are to be tried again.
    """

    optimizer: Optimizer
    points: list[dict[str, Value]]
    has_own_unit: bool
    again: list[Trial]


def interrupt_running(optimizer: Optimizer) -> list[Trial]:
    """Charge what was expected to trials that were running when their program ended; return which to try again.

    These are all that were interrupted and not tried since. A point at which the program has ended twice has failed:
    it may be what ended it, by taking all of the memory, say.
    """
    for trial in optimizer.trials:
        if trial.state is TrialState.RUNNING:
            ended_before = any(_key(other) == _key(trial) and other.message == KILLED for other in optimizer.trials)
            _end(optimizer.fail if ended_before else optimizer.interrupt, trial)
    last = {_key(trial): trial for trial in optimizer.trials}
    return [trial for trial in last.values() if trial.state is TrialState.INTERRUPTED]


def _end(end: Callable[..., Trial], trial: Trial) -> None:
    try:
        end(trial, message=KILLED)
    except InvalidInputError:  # nothing is known of costs yet
        end(trial, charge=0.0, message=KILLED)


def _key(trial: Trial) -> str:
    return json.dumps(trial.params)


def _plain(optimizer: Optimizer) -> dict[str, Any]:
    """The optimizer as JSON values."""
    try:
        return dict(json.loads(optimizer.to_json()))
    except TypeError:
        rules = optimizer.settings.stop
        raise InvalidInputError(
            f"resume must be None with a stop rule of your own, which a file cannot hold; got stop={rules!r}; raise "
            "pbgi.StopRun in a callback instead"
        ) from None


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _write_whole(path: Path, content: bytes) -> None:
    """Write beside it first, then put it in its place in one step; both are on the disk before this returns."""
    draft = path.with_name(path.name + ".draft")
    draft.unlink(missing_ok=True)
    with draft.open("xb") as file:  # a new one: a link that somebody has put there is not followed
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    if os.name == "posix":  # the folder holds the name
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
