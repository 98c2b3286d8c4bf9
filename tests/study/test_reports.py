"""What the trials of a study said on their way, as the engine sees it."""

import math

from optuna.trial import TrialState, create_trial
from optuna_fixtures import UNIT

import pbgi
from pbgi.settings import Settings
from pbgi.study.engine import StudyEngine
from pbgi.study.ledger import ledger_of
from pbgi.study.reports import lengths_of
from pbgi.study.spaces import SearchSpace

LINE = SearchSpace.of({"x": UNIT})


def trial(number, x, values, state=TrialState.COMPLETE, cost=None):
    made = create_trial(
        state=state,
        value=values[-1] if state == TrialState.COMPLETE else None,
        params={"x": x},
        distributions={"x": UNIT},
        intermediate_values=dict(enumerate(values)),
        user_attrs={} if cost is None else {"cost": cost},
    )
    made.number = number
    return made


def falls(last, n):
    return [last + 0.5**step for step in range(n)]


def optimizer_of(*trials):
    return StudyEngine(Settings(seed=0, budget=100.0)).optimizer(LINE, "minimize", ledger_of(trials))


def test_steps_are_counted_from_one_up_to_the_longest_complete_trial():
    long, short = trial(0, 0.1, falls(0.2, 8)), trial(1, 0.2, falls(0.2, 6))
    lengths = lengths_of([long, short, trial(2, 0.3, falls(0.2, 12), TrialState.PRUNED)])
    assert (lengths.first, lengths.last) == (0, 8)
    assert lengths_of([trial(0, 0.3, falls(0.2, 12), TrialState.PRUNED)]) is None
    told = lengths.reports(trial(3, 0.4, [1.0, math.nan, 0.5], TrialState.PRUNED), 2.5)
    assert told == (pbgi.Report(1, 1.0, None), pbgi.Report(3, 0.5, 2.5))


def test_a_pruned_trial_is_no_failure_and_what_it_said_counts():
    """Of two pruned trials the one whose curve lay lower is believed to end lower, though neither has a value."""
    lasts = {0.1: 0.5, 0.45: 0.8, 0.6: 0.6, 0.9: 0.9}
    whole = [trial(i, x, falls(last, 8), cost=8.0) for i, (x, last) in enumerate(lasts.items())]
    high = trial(4, 0.3, falls(2.0, 3), TrialState.PRUNED, cost=3.0)
    low = trial(5, 0.75, falls(0.1, 3), TrialState.PRUNED, cost=3.0)
    optimizer = optimizer_of(*whole, high, low)
    assert [t.state for t in optimizer.trials[4:]] == [pbgi.TrialState.STOPPED] * 2
    assert optimizer.spent == 38.0
    believed = optimizer.predict([{"x": 0.3}, {"x": 0.75}]).median
    assert believed[0] > 1.2
    assert believed[1] < 0.4


def test_a_study_without_pruned_trials_is_what_it_was():
    whole = [trial(i, x, falls(0.5, 8), cost=8.0) for i, x in enumerate((0.1, 0.45))]
    optimizer = optimizer_of(*whole)
    assert optimizer.settings.steps is None
    assert not any(t.reports for t in optimizer.trials)
