"""What the trials of a study said on their way, as the engine sees it."""

import math

from optuna.trial import TrialState, create_trial
from optuna_fixtures import UNIT

import pbgi
from pbgi.study.reports import Lengths, lengths_of, step_costs


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


def test_steps_are_counted_from_one_up_to_the_longest_complete_trial():
    long, short = trial(0, 0.1, falls(0.2, 8)), trial(1, 0.2, falls(0.2, 6))
    lengths = lengths_of([long, short, trial(2, 0.3, falls(0.2, 12), TrialState.PRUNED)])
    assert (lengths.first, lengths.last) == (0, 8)
    assert lengths_of([trial(0, 0.3, falls(0.2, 12), TrialState.PRUNED)]) is None
    told = lengths.reports(trial(3, 0.4, [1.0, math.nan, 0.5], TrialState.PRUNED), 2.5)
    assert told == (pbgi.Report(1, 1.0, None), pbgi.Report(3, 0.5, 2.5))


def test_costs_that_were_noted_are_those_of_their_steps():
    noted = trial(0, 0.1, falls(0.2, 6), TrialState.PRUNED, cost=9.0)
    noted.user_attrs["pbgi:step_costs"] = {"1": 0.5, "4": 2.0}
    assert step_costs(noted) == {1: 0.5, 4: 2.0}
    # Steps are counted from 1 here, and what was said at step 0 is of another program.
    told = Lengths(1, 4).reports(noted, 9.0)
    assert [(report.step, report.cost) for report in told] == [(1, 0.5), (2, None), (3, None), (4, 2.0)]


def test_notes_that_are_none_say_nothing():
    for wrong in ("x", [1.0], {"one": 1.0}, {"1": "much"}, {"1": math.nan}, {"1": -1.0}):
        noted = trial(0, 0.1, falls(0.2, 3), TrialState.PRUNED)
        noted.user_attrs["pbgi:step_costs"] = wrong
        assert step_costs(noted) == {}
