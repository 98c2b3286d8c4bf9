"""What trials are charged, by state and by what is known of their cost."""

import logging
import time

import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial
from optuna_fixtures import UNIT, add, sqlite_in, suggested, trial_of

import pbgi
from pbgi.integrations.optuna import BudgetCallback, PBGISampler, cost_summary, fail_abandoned, ledger_of
from pbgi.study.suggestion import suggestion_of


def spent_on(*trials):
    study = optuna.create_study()
    study.add_trials(trials)
    return cost_summary(study).spent


@pytest.mark.parametrize("state", [TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL])
def test_every_finished_trial_is_charged_its_cost_else_its_seconds(state):
    assert spent_on(trial_of(7.0, state, cost=2.5)) == 2.5
    assert spent_on(trial_of(7.0, state)) == 7.0


WRONG = [float("nan"), float("inf"), -1.0, "1", True, [1.0], 10**400]


@pytest.mark.parametrize("wrong", [*WRONG, None])
def test_a_cost_that_is_none_counts_as_not_told(wrong):
    assert spent_on(trial_of(7.0, cost=wrong)) == 7.0


@pytest.mark.parametrize("wrong", WRONG)
def test_a_cost_that_is_none_is_charged_what_was_predicted_and_teaches_nothing(wrong):
    """Seconds would be a charge in another unit."""
    trials = [trial_of(7.0, system=suggested(2.0), cost=wrong), trial_of(7.0, cost=wrong), trial_of(7.0)]
    for number, trial in enumerate(trials):
        trial.number = number
    accounts = ledger_of(trials).accounts.values()
    assert [(account.charged, account.observed) for account in accounts] == [(2.0, None), (7.0, None), (7.0, 7.0)]


@pytest.mark.parametrize("wrong", ["1", -1.0, float("nan")])
@pytest.mark.parametrize("cost", [None, pbgi.UniformCost()])
def test_a_cost_that_is_none_is_said_once_with_what_is_charged(wrong, cost, warnings_of_optuna):
    def objective(trial):
        trial.set_user_attr("cost", wrong)
        return trial.suggest_float("x", 0.0, 1.0)

    study = optuna.create_study(sampler=PBGISampler(seed=0, cost=cost))
    study.optimize(objective, n_trials=3)
    instead = "its duration in seconds" if cost is None else "its price, 1,"
    rule = f"the attribute 'cost' of trial 0 must be a finite number that is not negative; got {wrong!r}; {instead}"
    assert len(warnings_of_optuna) == 1
    assert warnings_of_optuna[0].startswith(f"{rule} is charged instead")


def test_the_budget_of_another_sampler_says_so_too(warnings_of_optuna):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.add_trials([trial_of(7.0, cost="1"), trial_of(7.0, cost="2")])
    study.optimize(lambda _: 1.0, n_trials=2, callbacks=[BudgetCallback(100.0)])
    assert len(warnings_of_optuna) == 1
    assert "trial 0 must be a finite number that is not negative; got '1'; 7 is charged" in warnings_of_optuna[0]


@pytest.fixture
def warnings_of_optuna():
    """Messages that the package has logged; other tests may have asked Optuna to say less."""
    messages, verbosity = [], optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())
    logging.getLogger("optuna.pbgi").addHandler(handler)
    yield messages
    logging.getLogger("optuna.pbgi").removeHandler(handler)
    optuna.logging.set_verbosity(verbosity)


@pytest.mark.parametrize("state", [TrialState.FAIL, TrialState.PRUNED])
@pytest.mark.parametrize("seed", range(4))
def test_a_cheap_crash_says_nothing_of_what_a_success_costs(state, seed):
    """With cost 10^(3x) a crash after a microsecond made everything look free."""
    study = optuna.create_study(sampler=PBGISampler(budget=1000.0, seed=seed, search_space={"x": UNIT}))
    study.tell(study.ask(), state=state)
    following = study.ask()
    assert following.suggest_float("x", 0.0, 1.0) < 0.7
    assert suggestion_of(study.trials[1]).predicted_cost is None


def test_costs_of_failures_are_charged_and_not_learned():
    def predicted_after(*states):
        study = optuna.create_study(
            sampler=PBGISampler(budget=1000.0, seed=0, charge_existing=True, search_space={"x": UNIT})
        )
        for x in (0.2, 0.5, 0.8):
            add(study, {"x": x}, x, cost=100.0)
        for state in states:
            add(study, {"x": 0.4}, None, state, cost=1e-3)
        study.ask().suggest_float("x", 0.0, 1.0)
        return suggestion_of(study.trials[-1]).predicted_cost, cost_summary(study).spent

    assert predicted_after()[0] == pytest.approx(100.0)
    cost, spent = predicted_after(TrialState.FAIL, TrialState.PRUNED)
    assert cost == pytest.approx(100.0)
    assert spent == pytest.approx(300.002)


def test_a_trial_that_was_ended_says_nothing_of_its_point():
    """`pbgi tune` ends trials when a budget is used up; the sampler may go on with a larger one."""
    study = optuna.create_study(
        sampler=PBGISampler(budget=1000.0, seed=0, charge_existing=True, search_space={"k": IntDistribution(1, 2)})
    )
    for k, state, value, note in (
        (1, TrialState.FAIL, None, {"pbgi:overrun": True}),
        (2, TrialState.COMPLETE, 0.0, {}),
    ):
        attributes = {"cost": 1.0, **note}
        made = create_trial(
            state=state, value=value, params={"k": k}, distributions={"k": IntDistribution(1, 2)}, user_attrs=attributes
        )
        study.add_trial(made)
    assert study.ask().suggest_int("k", 1, 2) == 1
    assert cost_summary(study).spent == 2.0


@pytest.mark.parametrize(("observed", "predicted"), [(0.0, 10.0), (10.0, 10.0)])
def test_what_a_success_was_seen_to_cost_may_differ_from_what_is_charged(observed, predicted):
    study = optuna.create_study(
        sampler=PBGISampler(budget=1000.0, seed=0, charge_existing=True, search_space={"x": UNIT})
    )
    for x in (0.2, 0.5, 0.8):
        add(study, {"x": x}, x, cost=10.0)
    add(study, {"x": 0.4}, 0.4, cost=300.0, **{"pbgi:observed": observed})
    study.ask().suggest_float("x", 0.0, 1.0)
    assert suggestion_of(study.trials[-1]).predicted_cost == pytest.approx(predicted)
    assert cost_summary(study).spent == 330.0


def test_a_cost_of_zero_is_free():
    assert spent_on(trial_of(7.0, cost=0.0), trial_of(3.0, cost=1)) == 1.0


def test_a_failure_among_told_costs_is_charged_what_was_predicted():
    """Seconds would not be in the unit of the costs."""
    failed = trial_of(3600.0, TrialState.FAIL, system=suggested(0.5) | {"pbgi:ended": True})
    assert spent_on(trial_of(60.0, cost=0.4), failed) == pytest.approx(0.9)


def test_a_worker_that_vanished_is_charged_what_was_predicted():
    """The trial was failed when somebody noticed, which may have been days later."""
    assert spent_on(trial_of(9e5, TrialState.FAIL, system=suggested(20.0))) == 20.0
    assert spent_on(trial_of(30.0, TrialState.FAIL, system=suggested(20.0) | {"pbgi:ended": True})) == 30.0


def test_a_known_price_counts_instead_of_seconds():
    assert spent_on(trial_of(100.0, system=suggested(3.0, priced=True))) == 3.0
    assert spent_on(trial_of(100.0, system={"pbgi:price": 4.0})) == 4.0
    assert spent_on(trial_of(100.0, system=suggested(3.0, priced=True), cost=5.0)) == 5.0


def test_running_trials_hold_what_was_predicted_else_the_usual():
    study = optuna.create_study()
    study.add_trials([trial_of(1.0, cost=2.0), trial_of(1.0, cost=4.0)])
    study.add_trials([trial_of(0, TrialState.RUNNING, system=suggested(7.0)), trial_of(0, TrialState.RUNNING)])
    assert cost_summary(study).reserved == 7.0 + 3.0


def test_failed_and_pruned_trials_are_charged_and_the_budget_stops_the_study():
    def objective(trial):
        trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr("cost", 1.0)
        if trial.number % 3 == 1:
            raise ArithmeticError
        if trial.number % 3 == 2:
            raise optuna.TrialPruned
        return float(trial.number)

    study = optuna.create_study(sampler=PBGISampler(budget=9.0, cost=pbgi.UniformCost(), seed=0))
    study.optimize(objective, n_trials=50, catch=(ArithmeticError,))
    summary = cost_summary(study)
    assert summary.spent == 9.0
    assert summary.costs == {"complete": 3.0, "pruned": 3.0, "fail": 3.0}
    assert summary.counts == {"complete": 3, "pruned": 4, "fail": 3}  # the last found nothing left, and was free
    assert "the budget of 9 is spent" in study.user_attrs["pbgi:stop"]["message"]


def study_of_pruned(seed, space, budget=60.0):
    """Trials of ten steps, a unit each at most, that are all pruned after the second until little is left."""

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr("cost", 2.0 * 3.0 ** (x - 1.0))
        trial.report(x, 1)
        if cost_summary(study, budget=budget).spent < 0.9 * budget:
            raise optuna.TrialPruned
        trial.set_user_attr("cost", 10.0 * 3.0 ** (x - 1.0))
        return x

    study = optuna.create_study(sampler=PBGISampler(budget=budget, seed=seed, search_space=space))
    study.optimize(objective, n_trials=100)
    return study


@pytest.mark.parametrize("space", [None, {"x": FloatDistribution(0.0, 1.0)}])
@pytest.mark.parametrize("seed", range(3))
def test_pruned_trials_say_what_a_whole_one_costs_at_least(seed, space):
    """While nothing else is known, a trial begins only where one that costs five times as much would fit."""
    study = study_of_pruned(seed, space)
    spent = cost_summary(study).spent
    assert 50.0 <= spent <= 60.0  # it ends when less than 10 are left
    assert "no trial is expected to fit" in study.user_attrs["pbgi:stop"]["message"]


def test_a_pruned_trial_that_cost_a_fifth_of_what_is_left_is_the_last_one():
    def objective(trial):
        trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr("cost", 2.0)
        trial.report(1.0, 1)
        raise optuna.TrialPruned

    for budget, expected in ((12.0, 2), (11.9, 1)):  # 10 and 9.9 are left after the first
        study = optuna.create_study(sampler=PBGISampler(budget=budget, seed=0))
        study.optimize(objective, n_trials=20)
        assert cost_summary(study).spent == 2.0 * expected


def test_seconds_are_the_cost_where_none_is_told():
    """Less what choosing took, which is no work of the trial."""
    study = optuna.create_study(sampler=PBGISampler(budget=1000.0, seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=4)
    work = [t.duration.total_seconds() - t.system_attrs["pbgi:trial"]["seconds"] for t in study.trials]
    assert cost_summary(study).spent == pytest.approx(sum(max(seconds, 0.0) for seconds in work))


def test_waiting_and_choosing_are_not_charged(monkeypatch):
    """Two threads, of which one waits while the other chooses for 0.2 s, and a function that works for 0.05 s."""
    choose = PBGISampler._choose

    def slowly(*arguments):
        time.sleep(0.2)
        return choose(*arguments)

    def work(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        time.sleep(0.05)
        return x

    monkeypatch.setattr(PBGISampler, "_choose", slowly)
    study = optuna.create_study(sampler=PBGISampler(budget=1000.0, seed=0))
    study.optimize(work, n_trials=6, n_jobs=2)
    took = sum(trial.duration.total_seconds() for trial in study.trials)
    assert took > 6 * 0.25
    assert 6 * 0.05 <= cost_summary(study).spent < took - 6 * 0.2


@pytest.mark.parametrize("vectorized", [False, True])
def test_known_prices_are_charged_to_the_first_random_trial_too(vectorized):
    cost = pbgi.KnownCost(lambda params: 1.0 + params["x"], vectorized=vectorized)
    study = optuna.create_study(sampler=PBGISampler(budget=1000.0, cost=cost, seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=3)
    study.enqueue_trial({"x": 0.25})
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=1)
    assert cost_summary(study).spent == pytest.approx(sum(1.0 + trial.params["x"] for trial in study.trials))
    assert study.trials[-1].params["x"] == 0.25


def test_values_that_say_nothing_fail_the_trial_and_not_the_run():
    """NaN, nothing and infinity; only the last is complete for Optuna, and none of them is the best."""
    outcomes = {3: float("nan"), 4: None, 5: float("inf"), 6: float("-inf")}

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr("cost", 1.0)
        return outcomes.get(trial.number, x)

    study = optuna.create_study(sampler=PBGISampler(budget=12.0, seed=0))
    study.optimize(objective, n_trials=30)
    done = [trial for trial in study.trials if trial.params]
    assert len(done) == 12
    summary = cost_summary(study)
    assert summary.best_value == min(trial.value for trial in done if trial.number not in outcomes)


@pytest.mark.parametrize("charged", [False, True])
def test_trials_from_elsewhere_inform_and_are_free_unless_they_are_to_count(charged):
    study = optuna.create_study(sampler=PBGISampler(budget=100.0, seed=0, charge_existing=charged))
    for x in (0.1, 0.3, 0.5, 0.7, 0.9):
        add(study, {"x": x}, (x - 0.4) ** 2)
    assert cost_summary(study).spent == 0.0
    add(study, {"x": 0.45}, 0.05**2, cost=8.0)
    assert cost_summary(study).spent == (8.0 if charged else 0.0)
    suggestion = suggestion_of_next(study)
    assert suggestion.record["value_model"]  # a model was fitted: the start is over
    assert suggestion.predicted_cost == pytest.approx(8.0, rel=0.2)  # the only cost that is known


def paid(trial):
    trial.set_user_attr("cost", 2.0)
    return (trial.suggest_float("x", 0.0, 1.0) - 0.4) ** 2


def test_trials_of_another_study_and_of_another_sampler_are_free():
    """Copies of trials know where they were suggested. A study's own stay charged, in a copy of the study too."""
    storage = optuna.storages.InMemoryStorage()
    old = optuna.create_study(study_name="old", storage=storage, sampler=PBGISampler(budget=100.0, seed=0))
    old.optimize(paid, n_trials=4)
    assert cost_summary(old).spent == 8.0
    new = optuna.create_study(sampler=PBGISampler(budget=100.0, seed=0))
    new.add_trials(old.trials)
    assert cost_summary(new).spent == 0.0
    new.optimize(paid, n_trials=2)
    new.enqueue_trial({"x": 0.25})
    new.optimize(paid, n_trials=1)
    assert cost_summary(new).spent == 6.0
    there = optuna.storages.InMemoryStorage()
    optuna.copy_study(from_study_name="old", from_storage=storage, to_storage=there)
    copy = optuna.load_study(study_name="old", storage=there, sampler=PBGISampler(budget=100.0))
    assert cost_summary(copy).spent == 8.0


def test_trials_before_the_sampler_came_are_free():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(paid, n_trials=3)
    assert cost_summary(study).spent == 6.0
    study.sampler = PBGISampler(budget=4.0, seed=0)
    study.optimize(paid, n_trials=9)
    summary = cost_summary(study)
    assert (summary.spent, summary.counts["complete"]) == (4.0, 5)
    # Seconds of old trials are no costs beside those that are told.
    study = optuna.create_study(sampler=PBGISampler(budget=100.0, seed=0))
    study.add_trials([trial_of(50.0)] * 3)
    study.optimize(paid, n_trials=3)
    assert suggestion_of(study.trials[3]).predicted_cost == pytest.approx(50.0)
    assert suggestion_of(study.trials[5]).predicted_cost == pytest.approx(2.0, rel=0.05)
    with pytest.raises(pbgi.InvalidInputError, match="charge_existing must be True or False"):
        PBGISampler(charge_existing="yes")


def suggestion_of_next(study):
    trial = study.ask()
    trial.suggest_float("x", 0.0, 1.0)
    return suggestion_of(study.trials[trial.number])


def test_a_trial_failed_by_the_heartbeat_is_charged_what_was_held(tmp_path):
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        storage = optuna.storages.RDBStorage(sqlite_in(tmp_path), heartbeat_interval=1, grace_period=2)
    study = optuna.create_study(storage=storage, sampler=PBGISampler(budget=10.0, seed=0, charge_existing=True))
    study.add_trials([trial_of(1.0, cost=2.0), trial_of(0, TrialState.RUNNING, system=suggested(3.0))])
    dead = study.trials[1]
    storage.record_heartbeat(storage.get_trial_id_from_study_id_trial_number(1, dead.number))
    # As `fail_stale_trials` does, without its wait.
    storage.set_trial_state_values(storage.get_trial_id_from_study_id_trial_number(1, dead.number), TrialState.FAIL)
    assert cost_summary(study).spent == 5.0


def test_a_worker_that_vanished_while_it_chose_is_charged_what_was_held():
    """It left no suggestion; it is one of this study all the same, since it was charged in it, by whichever process."""
    storage, sampler = optuna.storages.InMemoryStorage(), PBGISampler(budget=10.0, seed=0)
    study = optuna.create_study(storage=storage, sampler=sampler)
    study.optimize(paid, n_trials=2)
    study.add_trial(trial_of(0, TrialState.RUNNING))
    assert fail_abandoned(optuna.load_study(study_name=study.study_name, storage=storage), older_than=1e-3) == (2,)
    assert sampler.ledger(study, study.trials).spent == cost_summary(study).spent == 6.0


# Trials that tell what their steps cost ------------------------------------------------------------------------------


def told(costs, state=TrialState.RUNNING, system=None, **notes):
    trial = trial_of(7.0, state, system=system, **{"pbgi:step_costs": costs, **notes})
    trial.intermediate_values = {int(step): 1.0 for step in costs}
    return trial


def accounts_of(*trials):
    for number, trial in enumerate(trials):
        trial.number = number
    return ledger_of(trials)


def test_a_running_trial_is_charged_what_its_steps_have_cost_and_holds_the_rest():
    ledger = accounts_of(trial_of(1.0, cost=4.0), told({"1": 1.0, "2": 3.0}, system=suggested(8.0)))
    account = ledger.accounts[1]
    assert (account.charged, account.reserved, account.expected) == (3.0, 5.0, 8.0)
    assert (ledger.spent, ledger.spent_on_finished, ledger.reserved) == (7.0, 4.0, 5.0)
    more = accounts_of(told({"2": 9.0}, system=suggested(8.0))).accounts[0]
    assert (more.charged, more.reserved, more.expected) == (9.0, 0.0, 9.0)


def test_what_earlier_runs_of_a_running_trial_have_cost_counts_too():
    """Of one that was run again from its start after it had paid 4: by its steps it has cost 3."""
    attempts = [{"seconds": 1.0, "cost": 4.0, "interrupted": True}]
    account = accounts_of(told({"2": 3.0}, system=suggested(8.0), **{"pbgi:attempts": attempts})).accounts[0]
    assert (account.charged, account.expected) == (4.0, 8.0)


def test_a_trial_that_goes_on_takes_the_place_of_the_others():
    stopped = told({"2": 3.0}, TrialState.PRUNED, cost=3.0)
    again = told({"2": 3.0, "4": 5.0}, TrialState.PRUNED, system={"pbgi:goes_on": [0]}, cost=5.0)
    last = told({"2": 3.0, "4": 5.0}, TrialState.COMPLETE, system={"pbgi:goes_on": [0, 1]}, cost=8.0)
    assert accounts_of(stopped).spent == 3.0
    assert accounts_of(stopped, again).spent == 5.0
    ledger = accounts_of(stopped, again, last)
    assert (list(ledger.accounts), ledger.spent) == ([2], 8.0)


def test_one_that_begins_again_is_charged_beside_the_one_whose_checkpoint_was_lost():
    lost = told({"2": 3.0}, TrialState.PRUNED, cost=3.0)
    ledger = accounts_of(lost, told({"8": 9.0}, TrialState.COMPLETE, system={"pbgi:begun_again": 0}, cost=9.0))
    assert ledger.spent == 12.0
    assert [account.begun_again for account in ledger.accounts.values()] == [True, False]
