"""From the ledger of a study to an optimizer: which trials it knows, what they cost there, what is kept."""

import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial
from optuna_fixtures import UNIT, suggested, trial_of

import pbgi
from pbgi.integrations.optuna import PBGISampler
from pbgi.settings import Settings
from pbgi.study.engine import StudyEngine, engine_trial
from pbgi.study.ledger import ledger_of
from pbgi.study.spaces import NamedSpace, SearchSpace

LINE = SearchSpace.of({"x": UNIT})


def numbered(*trials):
    for number, trial in enumerate(trials):
        trial.number = number
    return list(trials)


def optimizer_of(*trials, space=LINE, **settings):
    engine = StudyEngine(Settings(seed=0, **settings))
    return engine.optimizer(space, "minimize", ledger_of(numbered(*trials))), engine


def elsewhere(cost):
    """A failed trial of another branch, which has no point in the space."""
    return create_trial(state=TrialState.FAIL, params={}, distributions={}, user_attrs={"cost": cost})


def test_a_running_trial_without_a_prediction_holds_the_usual_cost():
    """The mean of the completed ones; a failed one says nothing of it."""
    done = trial_of(1.0, cost=2.0), trial_of(1.0, cost=4.0), trial_of(1.0, TrialState.FAIL, cost=50.0)
    optimizer, _ = optimizer_of(*done, trial_of(0, TrialState.RUNNING), budget=100.0)
    assert (optimizer.spent, optimizer.reserved, optimizer.remaining) == (56.0, 3.0, 41.0)


def test_a_running_trial_holds_what_was_predicted():
    running = trial_of(0, TrialState.RUNNING, system=suggested(7.0))
    optimizer, _ = optimizer_of(trial_of(1.0, cost=2.0), running, budget=100.0)
    assert optimizer.reserved == 7.0


@pytest.mark.parametrize("state", [TrialState.COMPLETE, TrialState.FAIL])
def test_a_trial_that_was_charged_nothing_is_an_observation_from_elsewhere(state):
    """`pbgi tell --cost 0`: it informs, and the policy goes on as if it had not handed it out."""
    noted = suggested(7.0, record={"index": 1.0})
    account = ledger_of(numbered(trial_of(5.0, state, system=noted, cost=0.0))).accounts[0]
    trial = engine_trial(NamedSpace(pbgi.Space({"x": pbgi.Float(0.0, 1.0)})), account)
    assert trial.external
    assert (trial.charged, trial.cost, trial.predicted_cost, trial.record) == (0.0, None, None, {})
    assert trial.value == (1.0 if state == TrialState.COMPLETE else None)


def test_what_trials_without_a_point_cost_is_taken_off_the_budget():
    optimizer, engine = optimizer_of(elsewhere(30.0), trial_of(1.0, cost=4.0), budget=100.0)
    assert (optimizer.budget, optimizer.spent, optimizer.remaining) == (70.0, 4.0, 66.0)
    assert engine.numbers == (1,)
    assert [trial.number for trial in optimizer.trials] == [0]


def test_a_budget_that_trials_without_a_point_have_used_up_is_next_to_nothing():
    optimizer, _ = optimizer_of(elsewhere(100.0), trial_of(1.0, cost=4.0), budget=100.0)
    assert 0.0 < optimizer.budget < 1e-200
    assert optimizer.should_stop().rule == "BudgetSpent"


def test_parameters_outside_the_space_make_values_noisy():
    """Two trials of one point may differ by what the space does not have."""
    other = create_trial(params={"x": 0.5, "y": 0.1}, distributions={"x": UNIT, "y": UNIT}, value=1.0)
    exact = pbgi.GPConfig(noisy=False)
    assert not optimizer_of(trial_of(1.0), model=exact)[0].settings.model.noisy
    assert optimizer_of(trial_of(1.0), other, model=exact)[0].settings.model.noisy


def test_notes_hold_for_their_own_point_and_range():
    """A user may have set another value than the suggested one, or trials of a narrower range may go on in a wider."""
    noted = suggested(2.0, record={"index": 1.0})
    moved = {"pbgi:trial": {"params": {"x": 0.25}, "predicted_cost": 2.0, "record": {"index": 1.0}}}
    kept, other = optimizer_of(trial_of(1.0, system=noted), trial_of(1.0, system=moved))[0].trials
    assert (kept.record, other.record) == ({"index": 1.0}, {})
    wider = SearchSpace.of({"x": FloatDistribution(0.0, 2.0)})
    assert optimizer_of(trial_of(1.0, system=noted), space=wider)[0].trials[0].record == {}


def test_until_something_changes_the_optimizer_is_the_same():
    engine, trials = StudyEngine(Settings(seed=0, budget=50.0)), numbered(trial_of(1.0, cost=2.0))
    first = engine.optimizer(LINE, "minimize", ledger_of(trials))
    assert engine.optimizer(LINE, "minimize", ledger_of(trials)) is first
    more = numbered(*trials, trial_of(1.0, cost=3.0))
    second = engine.optimizer(LINE, "minimize", ledger_of(more))
    assert (first.spent, second.spent) == (2.0, 5.0)
    assert second.ask() == StudyEngine(Settings(seed=0, budget=50.0)).optimizer(LINE, "minimize", ledger_of(more)).ask()


def test_another_space_is_another_optimizer():
    engine = StudyEngine(Settings(seed=0))
    trials = numbered(create_trial(params={"k": 3}, distributions={"k": IntDistribution(1, 8)}, value=1.0))
    assert engine.optimizer(LINE, "minimize", ledger_of(trials)).trials == ()
    other = engine.optimizer(SearchSpace.of({"k": IntDistribution(1, 8)}), "minimize", ledger_of(trials))
    assert [dict(trial.params) for trial in other.trials] == [{"k": 3}]


def test_an_infinite_value_is_a_failure():
    made = create_trial(params={"x": 0.5}, distributions={"x": UNIT}, value=float("inf"), user_attrs={"cost": 1.0})
    (trial,) = optimizer_of(made)[0].trials
    assert trial.state is pbgi.TrialState.FAILED
    assert trial.message == "the value of a trial must be finite; got inf"


def test_a_sampler_and_the_engine_agree_on_a_study():
    """Through Optuna, the same trials and the same next point."""
    sampler_space = {"x": UNIT}
    study = optuna.create_study(sampler=PBGISampler(seed=0, budget=50.0, search_space=sampler_space))
    for _ in range(5):
        trial = study.ask(sampler_space)
        trial.set_user_attr("cost", 1.0 + trial.params["x"])
        study.tell(trial, (trial.params["x"] - 0.3) ** 2)
    engine = StudyEngine(Settings(seed=0, budget=50.0))
    expected = engine.optimizer(LINE, "minimize", ledger_of(study.trials)).ask()
    assert study.ask(sampler_space).params == dict(expected.params)


# Trials that may stop early ------------------------------------------------------------------------------------------


def told(state, values, system=None, x=0.5, **notes):
    made = create_trial(
        state=state,
        params={"x": x},
        distributions={"x": UNIT},
        value=values[-1] if state == TrialState.COMPLETE else None,
        intermediate_values=dict(enumerate(values, start=1)),
        user_attrs={"pbgi:step_costs": {str(len(values)): float(len(values))}, **notes},
        system_attrs=system or {},
    )
    made.datetime_complete = made.datetime_start
    return made


def test_reports_reach_the_engine_with_the_states_that_it_knows():
    trials = [
        told(TrialState.COMPLETE, [4.0, 2.0, 1.0], cost=3.0),
        told(TrialState.PRUNED, [4.0, 3.0], cost=2.5),
        told(TrialState.FAIL, [4.0], cost=1.5),
        told(TrialState.FAIL, [4.0], cost=1.5, **{"pbgi:overrun": True}),
        told(TrialState.PRUNED, [4.0], cost=1.0),
        told(TrialState.RUNNING, [5.0], system={"pbgi:begun_again": 4}),
    ]
    optimizer, _ = optimizer_of(*trials, steps=pbgi.Steps(3))
    states = ["complete", "stopped", "failed", "interrupted", "interrupted", "running"]
    assert [trial.state for trial in optimizer.trials] == states
    assert optimizer.trials[1].reports == (pbgi.Report(1, 4.0, None), pbgi.Report(2, 3.0, 2.0))
    assert [trial.charged for trial in optimizer.trials] == [3.0, 2.5, 1.5, 1.5, 1.0, 1.0]
    # Without steps a pruned trial is what its reports make of it, see `pruned.py`.
    without, _ = optimizer_of(*trials)
    assert [trial.state for trial in without.trials][:2] == ["complete", "complete"]
    assert without.trials[0].reports == ()


def test_one_that_goes_on_stands_where_it_stood_before():
    """So a study has the order of a run, in which a trial that goes on is still the same one."""
    first, last = told(TrialState.PRUNED, [4.0], x=0.1), told(TrialState.COMPLETE, [3.0, 2.0, 1.0], x=0.2)
    goes_on = told(TrialState.RUNNING, [4.0], system={"pbgi:goes_on": [0]}, x=0.1)
    optimizer, engine = optimizer_of(first, last, goes_on, steps=pbgi.Steps(3))
    assert engine.numbers == (2, 1)
    assert [(trial.number, trial.params["x"], trial.state) for trial in optimizer.trials] == [
        (0, 0.1, pbgi.TrialState.RUNNING),
        (1, 0.2, pbgi.TrialState.COMPLETE),
    ]
