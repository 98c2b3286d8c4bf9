"""One worker chooses at a time, by marks on trials: checked step by step, with a clockwork instead of other workers."""

import contextlib

import optuna
import pytest
from optuna_fixtures import MIXED, Clockwork, asked, marks, suggest_mixed

import pbgi
from pbgi.integrations.optuna import PBGISampler
from pbgi.study import attributes
from pbgi.study.storage import is_choosing, keep, trials_of
from pbgi.study.turn import Turns


def test_a_turn_alone_takes_no_mark():
    study = optuna.create_study()
    for _ in range(2):
        study.tell(study.ask(), 1.0)
    own = asked(study, 1)[-1]
    turns = Turns(sleep=Clockwork())
    with turns.taken(study, own, turns.alone(study, own)) as turn:
        assert [t.number for t in turn.trials] == [0, 1, 2]
        assert marks(study) == []
        assert not turns.was_overtaken(study, own, turn)


def test_a_trial_that_appears_while_one_chooses_alone_is_noticed():
    study = optuna.create_study()
    own = asked(study, 1)[0]
    turns = Turns(sleep=Clockwork())
    with turns.taken(study, own, turns.alone(study, own)) as turn:
        study.ask()
        keep(study, own, "pbgi:trial", {"params": {"x": 0.5}})
        assert turns.was_overtaken(study, own, turn)
    turns.take_back(study, own)
    with turns.taken(study, own) as again:
        assert marks(study) == [0]
        assert is_choosing(again.trials[0])
        assert not turns.was_overtaken(study, own, again)  # in turn, nobody can have overlooked it


def test_a_choice_made_alone_is_made_again_when_another_worker_was_faster():
    """The other one appears, and takes the point that was about to be suggested, between choosing and storing it."""
    first = PBGISampler(seed=0, search_space=MIXED)
    study = optuna.create_study(sampler=first)
    reference = optuna.create_study(sampler=PBGISampler(seed=0, search_space=MIXED))
    point = suggest_mixed(reference.ask())

    class Slow(Turns):
        @contextlib.contextmanager
        def taken(self, study, trial, alone=None):
            if alone is not None:
                study.enqueue_trial(point)
                suggest_mixed(study.ask())
            with super().taken(study, trial, alone) as turn:
                yield turn

    first._turns = Slow()
    assert suggest_mixed(study.ask()) != point


def test_a_turn_beside_idle_trials_does_not_wait():
    """Those that were asked for, and for which nobody chooses yet, do not matter."""
    study = optuna.create_study()
    earlier, own, _ = asked(study, 3)
    turns = Turns(sleep=Clockwork())
    keep(study, earlier, attributes.CHOOSING, False)
    assert turns.alone(study, own) is None
    with turns.taken(study, own) as turn:
        assert [t.number for t in turn.trials] == [0, 1, 2]
        assert marks(study) == [1]


def test_the_earlier_trial_keeps_its_mark_and_waits():
    study = optuna.create_study()
    own, later = asked(study, 2)
    seen = []

    def later_withdraws():
        seen.append(marks(study))
        keep(study, later, attributes.CHOOSING, False)

    keep(study, later, attributes.CHOOSING, True)
    with Turns(sleep=Clockwork(later_withdraws)).taken(study, own):
        assert seen == [[0, 1]]
        assert marks(study) == [0]


def test_the_later_trial_withdraws_and_begins_again():
    study = optuna.create_study()
    earlier, own = asked(study, 2)
    seen = []

    def earlier_goes_on():
        seen.append(marks(study))

    def earlier_is_done():
        seen.append(marks(study))
        keep(study, earlier, "pbgi:trial", {"params": {"x": 0.5}})

    keep(study, earlier, attributes.CHOOSING, True)
    with Turns(sleep=Clockwork(earlier_goes_on, earlier_is_done)).taken(study, own) as turn:
        assert seen == [[0], [0]]
        assert marks(study) == [0, 1]
        assert turn.trials[0].system_attrs["pbgi:trial"] == {"params": {"x": 0.5}}  # what was chosen meanwhile


def test_a_worker_that_was_killed_is_waited_for_once():
    """Where the storage has no lock: its mark is taken away, so that the next process need not wait again."""
    study = optuna.create_study(sampler=PBGISampler(seed=0))
    dead, own, later = asked(study, 3)
    keep(study, dead, attributes.CHOOSING, True)
    with Turns(patience=0.05).taken(study, own) as turn:
        assert not is_choosing(turn.trials[0])
    keep(study, own, "pbgi:trial", {"params": {}})
    with Turns(sleep=Clockwork()).taken(study, later) as turn:  # a fresh process: it would fail if it had to wait
        assert len(turn.trials) == 3


def test_a_worker_that_was_only_slow_chooses_again():
    """Another has lost patience, taken its mark away, and chosen without knowing of its point."""
    sampler = PBGISampler(seed=0, search_space=MIXED)
    study = optuna.create_study(sampler=sampler)
    study.ask()  # so that nobody is alone
    points = []

    class Slow(Turns):
        def was_overtaken(self, study, trial, turn):
            if not points:  # stored, and not yet looked whether the mark is there
                points.append(trials_of(study)[trial.number].system_attrs["pbgi:trial"]["params"])
                keep(study, trial, attributes.CHOOSING, False)
                other = study.ask()
                keep(study, trials_of(study)[other.number], "pbgi:trial", {"params": points[0]})
            return super().was_overtaken(study, trial, turn)

    sampler._turns = Slow()
    number = (trial := study.ask()).number
    suggest_mixed(trial)
    assert len(points) == 1
    assert trials_of(study)[number].system_attrs["pbgi:trial"]["params"] != points[0]


def test_an_error_while_choosing_ends_the_turn():
    def price(_params):
        raise ZeroDivisionError

    study = optuna.create_study(sampler=PBGISampler(seed=0, cost=pbgi.KnownCost(price), search_space=MIXED))
    study.ask()  # not alone
    with pytest.raises(ZeroDivisionError):
        suggest_mixed(study.ask())
    assert marks(study) == []
