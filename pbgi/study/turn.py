"""One worker chooses at a time, so that each sees the points and the reservations of the others.

Workers share nothing but the storage, which has no lock. Each marks its trial while it chooses and looks for the marks
of others *after* it has set its own: of two that choose at once, the later to mark sees the other. Where it does,

    the others are later trials      it keeps its mark and waits for them to finish or to withdraw
    one of them is an earlier trial  it withdraws its mark, waits for the earlier ones, and begins again

which is the one-bit algorithm of Burns and Lamport: safe with nothing but registers, and without a deadlock. Where the
storage has a lock (`lock.py`), workers queue for it before they mark their trials, and find no marks but those of
workers that were killed, or that have no lock.

A mark whose worker is gone is taken away: at once, where it was set under the same lock that is now held; else after
PATIENCE seconds. The worker may only have been slow. So one that has stored its choice looks whether its mark is still
there. If not, somebody may have chosen without knowing of it, and it chooses again. Whoever takes a mark away reads the
trials afterwards: of the two, at least one sees what the other did.

Most studies have one worker, which should not pay for a mark. When all trials before its own are finished, and so will
not change any more, a worker chooses without one, and asks afterwards whether a newer trial has appeared meanwhile. If
so, that one may have been chosen for without knowing: the worker takes its choice back and chooses again, now in turn.
A worker that appears later still sees the choice.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat, takewhile

from optuna.study import Study
from optuna.trial import FrozenTrial

from pbgi.study import attributes
from pbgi.study.lock import StudyLock
from pbgi.study.storage import clear_mark, exists, has_mark, is_choosing, keep, keep_suggestion, trial_of, trials_of

PATIENCE = 60.0
# Looking costs the storage a query and this machine some milliseconds: those who wait look less and less often.
PAUSES = (0.02, 0.04, 0.08, 0.15, 0.25)


@dataclass(frozen=True)
class Turn:
    """The trials as they were read when a turn began.

    Attributes:
        trials: The trials.
        mark: What the worker's own trial is marked with; None if it began alone, without a mark.
    """

    trials: list[FrozenTrial]
    mark: str | bool | None

    @property
    def alone(self) -> bool:
        """Whether it began alone."""
        return self.mark is None


class Turns:
    """The turns of one worker; it remembers since when it has seen which marks."""

    def __init__(self, patience: float = PATIENCE, sleep: Callable[[float], None] = time.sleep) -> None:
        self._patience, self._sleep, self._lock = patience, sleep, StudyLock(patience)
        self._first_seen: dict[tuple[str, int], float] = {}
        self._study_name, self._finished = "", list[FrozenTrial]()  # the first trials, as far as all are finished

    def alone(self, study: Study, trial: FrozenTrial) -> list[FrozenTrial] | None:
        """All trials, if this one is alone: those before it are finished, and there is none after it; else None."""
        if self._is_latest(study, trial):
            return [*self._finished, trial]
        if trial.number and not trial_of(study, trial.number - 1).state.is_finished():
            return None  # found out without reading all of them
        trials = trials_of(study)
        self._study_name, self._finished = study.study_name, list(takewhile(_is_finished, trials))
        return trials if len(self._finished) == trial.number == len(trials) - 1 else None

    def _is_latest(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether all trials before this one are known and finished; the last of them may have been its own."""
        n_known = len(self._finished)
        if study.study_name != self._study_name or n_known not in (trial.number, trial.number - 1):
            return False
        if n_known == trial.number - 1 and (last := trial_of(study, n_known)).state.is_finished():
            self._finished.append(last)
        return len(self._finished) == trial.number

    @contextlib.contextmanager
    def taken(self, study: Study, trial: FrozenTrial, alone: list[FrozenTrial] | None = None) -> Iterator[Turn]:
        """Wait until no other worker chooses; whoever comes now waits until this block ends, or a choice is stored.

        Args:
            study: The study.
            trial: The trial to choose for.
            alone: The trials, if this one is alone: then there is nobody to wait for.
        """
        if alone is not None:
            yield Turn(alone, None)
            return
        with self._lock.held(study) as shared_by:
            try:
                yield self._wait(study, trial, shared_by or True)
            except BaseException:
                clear_mark(study, trial)
                raise

    def was_overtaken(self, study: Study, trial: FrozenTrial, turn: Turn) -> bool:
        """Whether a choice, now stored, may have been unknown to another worker that has chosen meanwhile."""
        return exists(study, trial.number + 1) if turn.alone else not has_mark(study, trial, turn.mark)

    def take_back(self, study: Study, trial: FrozenTrial) -> None:
        """Forget what was chosen for a trial."""
        keep_suggestion(study, trial, None)

    # Marks -----------------------------------------------------------------------------------------------------------

    def _wait(self, study: Study, trial: FrozenTrial, mark: str | bool) -> Turn:
        """Mark the trial, wait until no other has a mark, and read the trials as they are then."""
        pauses = chain(PAUSES, repeat(PAUSES[-1]))
        keep(study, trial, attributes.CHOOSING, mark)
        trials, others = self._look(study, trial, mark)
        while others:
            if min(others) < trial.number:
                clear_mark(study, trial)
                while any(number < trial.number for number in others):
                    self._sleep(next(pauses))
                    trials, others = self._look(study, trial, mark)
                keep(study, trial, attributes.CHOOSING, mark)
            else:
                self._sleep(next(pauses))
            trials, others = self._look(study, trial, mark)
        return Turn(trials, mark)

    def _look(self, study: Study, trial: FrozenTrial, mark: str | bool) -> tuple[list[FrozenTrial], list[int]]:
        """The trials, and the numbers of those that others choose for; marks of workers that are gone are cleared."""
        while True:
            trials = trials_of(study)
            marked = [t for t in trials if t.number != trial.number and is_choosing(t)]
            gone = self._gone(study, marked, mark)
            if not gone:
                return trials, [t.number for t in marked]
            for other in gone:
                clear_mark(study, other)

    def _gone(self, study: Study, marked: list[FrozenTrial], mark: str | bool) -> list[FrozenTrial]:
        """Those whose worker has held the lock that is ours now, or of which nothing was heard for too long."""
        now = time.monotonic()
        seen = {(study.study_name, t.number): t for t in marked}
        self._first_seen = {key: self._first_seen.get(key, now) for key in seen}
        return [
            t
            for key, t in seen.items()
            if (mark is not True and t.system_attrs[attributes.CHOOSING] == mark)
            or now - self._first_seen[key] >= self._patience
        ]


def _is_finished(trial: FrozenTrial) -> bool:
    return trial.state.is_finished()
