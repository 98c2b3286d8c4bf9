"""The search space of a study whose program says nothing of it beforehand: what its completed trials have shown.

A parameter takes the widest range that trials had it in: one that has been widened, from one trial to the next and for
good, is the wider one, in which all trials lie. Of a range that comes and goes shares are known (`moving.py`). Which
parameters are there under which values of others is learned by `tree.py`.
"""

from collections.abc import Mapping, Sequence

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from pbgi.study.moving import Share, is_moving
from pbgi.study.spaces import SearchSpace, holds_all_of
from pbgi.study.tree import Seen, learn_tree


class LearnedSpace:
    """The search space of one study, always the one that all of its completed trials show.

    It is learned anew when there are more of them, unless they have the parameters that all had before them.
    """

    def __init__(self) -> None:
        self._start("")

    def _start(self, study_name: str) -> None:
        self._study_name, self._seen, self._last = study_name, set[int](), -1
        self._everywhere: dict[str, BaseDistribution] | None = None  # if all trials have the same parameters
        self._search_space = SearchSpace({})

    def search_space(self, study_name: str, trials: Sequence[FrozenTrial]) -> SearchSpace:
        """What these trials of this study show."""
        done = [t for t in trials if t.state == TrialState.COMPLETE]
        if study_name != self._study_name or self._last >= len(trials):
            self._start(study_name)
        new = [t for t in done if t.number not in self._seen]
        if not all(_is_like(self._everywhere, t) for t in new):
            self._learn(done)
        self._seen |= {t.number for t in new}
        self._last = max(self._seen, default=-1)
        return self._search_space

    def _learn(self, done: Sequence[FrozenTrial]) -> None:
        tree = learn_tree([Seen(t.params, t.distributions) for t in done], usable_in(done))
        distributions = {name: branch.distribution for name, branch in tree.items()}
        conditions = {name: branch.when for name, branch in tree.items() if branch.when}
        whole = all(name in tree for t in done for name in t.params)
        self._search_space = SearchSpace.of(distributions, conditions, whole)
        self._everywhere = distributions if whole and not conditions else None


def _is_like(everywhere: Mapping[str, BaseDistribution] | None, trial: FrozenTrial) -> bool:
    """Whether a trial has the parameters, in the ranges, that all trials have."""
    return everywhere is not None and trial.distributions == everywhere


def usable_in(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The range of each parameter in which all of its trials lie, or shares; none where it changes its kind."""
    last: dict[str, BaseDistribution] = {}
    grows, moves = dict[str, bool](), dict[str, bool]()
    for trial in sorted(trials, key=lambda t: t.number):
        for name, now in trial.distributions.items():
            before = last.get(name, now)
            grows[name] = grows.get(name, True) and holds_all_of(now, before)
            moves[name] = moves.get(name, True) and is_moving(now, before)
            last[name] = now
    return {n: last[n] if grows[n] else Share() for n in last if grows[n] or moves[n]}
