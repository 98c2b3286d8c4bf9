"""One worker chooses at a time, so that each sees the points and the reservations of the others.

Workers share nothing but the storage, which has no lock. Each marks its trial while it chooses and looks for the marks
of others *after* it has set its own: of two that choose at once, the later to mark sees the other. Where it does,

    the others are later trials      it keeps its mark and waits for them to finish or to withdraw
    one of them is an earlier trial  it withdraws its mark, waits for the earlier ones, and begins again

which is the one-bit algorithm of Burns and Lamport: safe with nothing but registers, and without a deadlock. A mark
whose worker was killed is passed over after PATIENCE seconds.

Most studies have one worker, which should not pay for a mark. When all trials before its own are finished, and so will
not change any more, a worker chooses without one, and asks afterwards whether a newer trial has appeared meanwhile. If
so, that one may have been chosen for without knowing: the worker takes its choice back and chooses again, now in turn.
A worker that appears later still sees the choice.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, repeat, takewhile

from optuna.study import Study
from optuna.trial import FrozenTrial

from pbgi.integrations.optuna.kept import CHOOSING_KEY, exists, is_choosing, keep, keep_suggestion, trial_of, trials_of

PATIENCE = 60.0
# Looking costs the storage a query and this machine some milliseconds: those who wait look less and less often.
PAUSES = (0.02, 0.04, 0.08, 0.15, 0.25)


@dataclass(frozen=True)
class Turn:
    """The trials as they were read when a turn began, and whether it began alone, without a mark."""

    trials: list[FrozenTrial]
    alone: bool


class Turns:
    """The turns of one worker; it remembers which marks it has waited for long enough."""

    def __init__(self, patience: float = PATIENCE, sleep: Callable[[float], None] = time.sleep) -> None:
        self._patience, self._sleep = patience, sleep
        self._first_seen: dict[tuple[str, int], float] = {}
        self._study_name, self._finished = "", list[FrozenTrial]()  # the first trials, as far as all are finished

    def begin(self, study: Study, trial: FrozenTrial) -> Turn:
        """Read the trials; unless this one is alone, mark it first."""
        if self._is_latest(study, trial):
            return Turn([*self._finished, trial], alone=True)
        trials = trials_of(study)
        self._study_name, self._finished = study.study_name, list(takewhile(_is_finished, trials))
        if len(self._finished) == trial.number == len(trials) - 1:
            return Turn(trials, alone=True)
        return self._begin_marked(study, trial)

    def _is_latest(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether all trials before this one are known and finished; the last of them may have been its own."""
        n_known = len(self._finished)
        if study.study_name != self._study_name or n_known not in (trial.number, trial.number - 1):
            return False
        if n_known == trial.number - 1 and (last := trial_of(study, n_known)).state.is_finished():
            self._finished.append(last)
        return len(self._finished) == trial.number

    def begin_again(self, study: Study, trial: FrozenTrial) -> Turn:
        """Take the choice back and mark the trial: it was not alone after all."""
        keep_suggestion(study, trial, None)
        return self._begin_marked(study, trial)

    def _begin_marked(self, study: Study, trial: FrozenTrial) -> Turn:
        keep(study, trial, CHOOSING_KEY, True)
        return Turn(trials_of(study), alone=False)

    def was_overtaken(self, study: Study, trial: FrozenTrial, turn: Turn) -> bool:
        """Whether a choice that was made alone, and stored, may have been unknown to another worker."""
        return turn.alone and exists(study, trial.number + 1)

    def wait(self, study: Study, trial: FrozenTrial, turn: Turn) -> list[FrozenTrial]:
        """Wait until no other worker chooses, and read the trials as they are then."""
        trials, pauses = turn.trials, chain(PAUSES, repeat(PAUSES[-1]))
        while others := self._others(study, trial, trials):
            if min(others) < trial.number:
                self.end(study, trial, turn)
                while any(number < trial.number for number in others):
                    self._sleep(next(pauses))
                    others = self._others(study, trial, trials_of(study))
                trials = self._begin_marked(study, trial).trials
            else:
                self._sleep(next(pauses))
                trials = trials_of(study)
        return trials

    def end(self, study: Study, trial: FrozenTrial, turn: Turn | None) -> None:
        """Withdraw the mark; storing a suggestion does the same."""
        if turn is not None and not turn.alone:
            keep(study, trial, CHOOSING_KEY, False)

    def _others(self, study: Study, trial: FrozenTrial, trials: list[FrozenTrial]) -> list[int]:
        """Numbers of the trials that others are choosing for, less those of which nothing was heard for too long."""
        now = time.monotonic()
        marked = [t.number for t in trials if t.number != trial.number and is_choosing(t)]
        keys = {(study.study_name, number): number for number in marked}
        self._first_seen = {key: self._first_seen.get(key, now) for key in keys}
        return [number for key, number in keys.items() if now - self._first_seen[key] < self._patience]


def _is_finished(trial: FrozenTrial) -> bool:
    return trial.state.is_finished()
