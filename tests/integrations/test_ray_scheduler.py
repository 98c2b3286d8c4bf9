"""The scheduler as Tune would call it, without a cluster: which trials it stops, and what is recorded and charged."""

import math
import pickle
from types import SimpleNamespace

import numpy as np
import optuna
import pytest

pytest.importorskip("ray.tune")

from ray import tune
from ray.tune.schedulers import TrialScheduler

import pbgi
from pbgi import TrialState
from pbgi.errors import InvalidInputError
from pbgi.integrations.optuna import GittinsPruner
from pbgi.integrations.ray import PBGIScheduler, PBGISearch

SPACE = {"x": tune.uniform(0, 1), "y": tune.uniform(0, 1)}
STEPS = 9
CONTINUE, STOP = TrialScheduler.CONTINUE, TrialScheduler.STOP


def loss(config, epoch):
    return (config["x"] - 0.3) ** 2 + (config["y"] - 0.6) ** 2 + 2.0 * 0.5 ** (epoch / 2)


def search(**arguments):
    given = {"metric": "loss", "mode": "min", "cost": "dollars", "seed": 0, "steps": STEPS}
    return PBGISearch(SPACE, **{**given, **arguments})


def other(**arguments):
    """A scheduler for another searcher."""
    given = {"metric": "loss", "mode": "min", "cost": "dollars", "steps": STEPS}
    return PBGIScheduler(space=SPACE, **{**given, **arguments})


def report(config, epoch, /, **more):
    flat = {f"config/{name}": value for name, value in config.items()}
    return {"loss": loss(config, epoch), "dollars": float(epoch), "training_iteration": epoch, **flat, **more}


def run(scheduler, name, config, searcher=None):
    """What Tune does with one trial; how many epochs it came to."""
    trial = SimpleNamespace(trial_id=name, config=config)
    for epoch in range(1, STEPS + 1):
        result = report(config, epoch)
        if scheduler.on_trial_result(None, trial, result) == STOP:
            break
        if searcher is not None:
            searcher.on_trial_result(name, result)
    scheduler.on_trial_complete(None, trial, result)
    if searcher is not None:
        searcher.on_trial_complete(name, result)
    return epoch


def search_through(searcher, names):
    scheduler, epochs = PBGIScheduler(searcher), []
    for name in names:
        config = searcher.suggest(name)
        if not isinstance(config, dict):
            break
        epochs.append(run(scheduler, name, config, searcher))
    return epochs


def outcomes(trials):
    return [(dict(trial.params), trial.state, trial.value, trial.charged, trial.step) for trial in trials]


# With PBGISearch -----------------------------------------------------------------------------------------------------


def test_it_decides_as_the_engine_does():
    searcher = search(budget=60.0, steps=(3, STEPS))
    epochs = search_through(searcher, range(99))
    engine = pbgi.Optimizer({"x": pbgi.Float(0, 1), "y": pbgi.Float(0, 1)}, budget=60.0, steps=(3, STEPS), seed=0)
    while engine.should_stop() is None:
        trial = engine.ask()
        for epoch in range(1, STEPS):
            engine.report(trial, epoch, loss(trial.params, epoch), cost=float(epoch))
            if not engine.should_continue(trial):
                engine.stop(trial)
                break
        else:
            engine.tell(trial, loss(trial.params, STEPS), cost=float(STEPS))
    assert outcomes(searcher.optimizer.trials) == outcomes(engine.trials)
    assert searcher.spent == sum(epochs) <= 60.0
    assert {trial.state for trial in engine.trials} == {TrialState.COMPLETE, TrialState.STOPPED}
    assert len(epochs) > 60 / STEPS
    assert searcher.optimizer.best.value == min(t.value for t in engine.trials if t.state is TrialState.COMPLETE)


def test_what_a_running_trial_has_reported_is_spent_once():
    searcher = search(budget=50.0)
    scheduler, config = PBGIScheduler(searcher), searcher.suggest("a")
    trial = SimpleNamespace(trial_id="a", config=config)
    for epoch in (1, 2, 3):
        assert scheduler.on_trial_result(None, trial, report(config, epoch)) == CONTINUE
        searcher.on_trial_result("a", report(config, epoch))
        assert searcher.spent == epoch
    assert searcher.is_spent_by("a", report(config, 4, dollars=49.9)) is False
    assert searcher.is_spent_by("a", report(config, 4, dollars=50.0)) is True
    searcher.on_trial_complete("a", error=True)
    assert (searcher.spent, searcher.optimizer.trials[0].state) == (3.0, TrialState.FAILED)


def test_without_a_scheduler_trials_run_to_their_end_and_inform():
    searcher = search(budget=50.0)
    config = searcher.suggest("a")
    for epoch in range(1, STEPS + 1):
        searcher.on_trial_result("a", report(config, epoch))
    searcher.on_trial_complete("a", report(config, STEPS, done=True))
    (trial,) = searcher.optimizer.trials
    assert [(r.step, r.cost) for r in trial.reports] == [(epoch, float(epoch)) for epoch in range(1, STEPS)]
    assert (trial.state, trial.value, trial.cost) == (TrialState.COMPLETE, loss(config, STEPS), float(STEPS))


def in_the_middle():
    """A search some of whose trials were stopped, and one that runs."""
    searcher = search()
    search_through(searcher, range(6))
    config = searcher.suggest("running")
    searcher.goes_on("running", report(config, 1))
    return searcher, config


def test_a_restored_search_decides_the_same(tmp_path):
    searcher, config = in_the_middle()
    scheduler = PBGIScheduler(searcher)
    searcher.save(str(tmp_path / "saved"))
    pickled = pickle.dumps(scheduler)
    epochs = [run(scheduler, "running", config, searcher), *search_through(searcher, "abc")]
    again = search(seed=99)
    again.restore(str(tmp_path / "saved"))
    restored = pickle.loads(pickled)  # noqa: S301 (what the test has just written)
    assert restored._search() is again  # the one that was used last
    assert [run(restored, "running", config, again), *search_through(again, "abc")] == epochs
    assert outcomes(again.optimizer.trials) == outcomes(searcher.optimizer.trials)


def test_a_trial_that_is_run_again_is_charged_twice_and_said_once():
    searcher = search(budget=100.0)
    search_through(searcher, range(3))
    before = searcher.spent
    config = searcher.suggest("a")
    for epoch in (1, 2):
        searcher.goes_on("a", report(config, epoch, iterations_since_restore=epoch, time_total_s=1.0 * epoch))
    for epoch in range(1, STEPS + 1):  # its node was lost
        result = report(
            config, epoch, iterations_since_restore=epoch, time_total_s=1.0 * epoch, time_since_restore=epoch
        )
        searcher.goes_on("a", result)
    searcher.on_trial_complete("a", result)
    trial = searcher.optimizer.trials[3]
    assert [r.step for r in trial.reports] == list(range(1, trial.step + 1))
    assert searcher.spent - before == trial.charged == 2.0 + result["dollars"]


def test_a_price_that_is_known_is_charged_by_the_share_of_steps():
    searcher = search(cost=pbgi.UniformCost(), budget=7.0, steps=(3, STEPS))
    epochs = search_through(searcher, range(99))
    assert min(epochs) < STEPS
    assert searcher.spent == pytest.approx(sum(epochs) / STEPS)
    assert searcher.spent <= 7.0


# With another searcher -----------------------------------------------------------------------------------------------


def configs(n, seed=1):
    rng = np.random.default_rng(seed)
    return [dict(zip("xy", rng.uniform(size=2).tolist(), strict=True)) for _ in range(n)]


def test_it_decides_as_the_pruner_of_optuna_does():
    """Random points: the same are stopped after the same step."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(), pruner=GittinsPruner())
    scheduler, ours, theirs = other(), [], []
    for i, config in enumerate(configs(15)):
        ours.append(run(scheduler, str(i), config))
        study.enqueue_trial(config)
        trial = study.ask({name: optuna.distributions.FloatDistribution(0, 1) for name in config})
        for epoch in range(1, STEPS + 1):
            trial.set_user_attr("cost", float(epoch))
            trial.report(loss(config, epoch), epoch)
            if epoch < STEPS and trial.should_prune():
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                break
        else:
            study.tell(trial, loss(config, STEPS))
        theirs.append(epoch)
    assert ours == theirs
    assert ours[:3] == [STEPS] * 3
    assert sum(ours) < 0.8 * 15 * STEPS


def test_it_records_how_trials_end():
    scheduler = other()
    for i, config in enumerate(configs(3)):
        run(scheduler, str(i), config)
    failed, waiting = (SimpleNamespace(trial_id=name, config=configs(5)[i]) for i, name in ((3, "f"), (4, "w")))
    for trial in (failed, waiting):
        assert scheduler.on_trial_result(None, trial, report(trial.config, 1)) in (CONTINUE, STOP)
    scheduler.on_trial_error(None, failed)
    scheduler.on_trial_remove(None, waiting)
    trials = scheduler._search().optimizer.trials
    assert [trial.state for trial in trials[:4]] == [TrialState.COMPLETE] * 3 + [TrialState.FAILED]
    assert trials[3].charged == 1.0
    assert trials[4].state is not TrialState.RUNNING
    assert "of 5 trials stopped early" in scheduler.debug_string()


def test_metric_and_mode_of_the_tuner_are_taken():
    scheduler = PBGIScheduler(space=SPACE, steps=STEPS, cost="dollars")
    assert "0 of 0 trials" in scheduler.debug_string()
    assert scheduler.set_search_properties("loss", "max", stop=None)
    config = configs(1)[0]
    assert run(scheduler, "a", config) == STEPS
    assert scheduler._search().optimizer.direction == "maximize"
    assert scheduler.metric == "loss"


def test_a_trial_outside_of_the_space_is_left_alone():
    scheduler = other()
    for i, config in enumerate([*configs(4), {"x": 7.0, "y": 0.5}]):
        epochs = run(scheduler, str(i), config)
    assert epochs == STEPS
    assert len(scheduler._search().optimizer.trials) == 4


def test_a_pickled_scheduler_goes_on_the_same():
    scheduler = other()
    for i, config in enumerate(configs(6)):
        run(scheduler, str(i), config)
    again = pickle.loads(pickle.dumps(scheduler))  # noqa: S301
    for i, config in enumerate(configs(5, seed=2)):
        assert run(again, f"later {i}", config) == run(scheduler, f"later {i}", config)


# Reports that are none -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf, "bad"])
def test_a_value_that_is_none_ends_the_trial_which_has_failed(value):
    searcher = search(budget=50.0)
    scheduler, config = PBGIScheduler(searcher), searcher.suggest("a")
    trial = SimpleNamespace(trial_id="a", config=config)
    scheduler.on_trial_result(None, trial, report(config, 1))
    assert scheduler.on_trial_result(None, trial, report(config, 2, loss=value)) == STOP
    searcher.on_trial_complete("a", report(config, 2, loss=value))
    (told,) = searcher.optimizer.trials
    assert (told.state, told.charged) == (TrialState.FAILED, 2.0)


def test_reports_again_and_out_of_order_change_nothing():
    searcher = search()
    scheduler, config = PBGIScheduler(searcher), searcher.suggest("a")
    trial = SimpleNamespace(trial_id="a", config=config)
    for epoch in (1, 4, 4, 2, 5):
        assert scheduler.on_trial_result(None, trial, report(config, epoch, dollars=float(max(epoch, 4)))) == CONTINUE
    assert [r.step for r in searcher.optimizer.trials[0].reports] == [1, 4, 5]


def test_a_report_without_the_metric_decides_nothing():
    searcher = search()
    scheduler, config = PBGIScheduler(searcher), searcher.suggest("a")
    result = {"dollars": 1.0, "training_iteration": STEPS}
    assert scheduler.on_trial_result(None, SimpleNamespace(trial_id="a", config=config), result) == CONTINUE


def test_a_trial_ends_at_its_last_step_and_has_a_value():
    searcher = search(time_attr="epoch")
    scheduler, config = PBGIScheduler(searcher), searcher.suggest("a")
    result = report(config, 1, epoch=12.0)
    assert scheduler.on_trial_result(None, SimpleNamespace(trial_id="a", config=config), result) == STOP
    searcher.on_trial_complete("a", result)
    assert searcher.optimizer.trials[0].value == result["loss"]


def test_a_trial_stays_given_up_until_ray_has_ended_it(monkeypatch):
    """Ray may first save a checkpoint, and the trial report once more."""
    searcher = search()
    search_through(searcher, range(3))
    scheduler, config = PBGIScheduler(searcher), searcher.suggest("a")
    trial = SimpleNamespace(trial_id="a", config=config)
    monkeypatch.setattr("pbgi.integrations.ray.experiment.goes_on", lambda *_a, **_k: False)
    assert scheduler.on_trial_result(None, trial, report(config, 3)) == STOP
    monkeypatch.undo()
    assert scheduler.on_trial_result(None, trial, report(config, 4)) == STOP
    searcher.on_trial_complete("a", report(config, 4))
    told = searcher.optimizer.trials[3]
    assert (told.state, told.charged, told.step) == (TrialState.STOPPED, 4.0, 4)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"training_iteration": 1.5}, "trials must report whole numbers as 'training_iteration'; got 1.5"),
        ({"training_iteration": "one"}, "trials must report whole numbers as 'training_iteration'; got 'one'"),
        ({}, "trials must report at which step they are as 'training_iteration'; got dollars, loss"),
    ],
)
def test_what_is_no_step_is_a_mistake(result, message):
    searcher = search()
    config = searcher.suggest("a")
    with pytest.raises(InvalidInputError, match=message):
        searcher.on_trial_result("a", {"loss": 1.0, "dollars": 1.0, **result})
    assert isinstance(config, dict)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PBGIScheduler(), "space and steps must be given where there is no PBGISearch"),
        (lambda: PBGIScheduler(space=SPACE), "steps must be given where there is no PBGISearch"),
        (
            lambda: PBGIScheduler(search(steps=None)),
            r"search must know how long a trial is: PBGISearch\(..., steps=n\)",
        ),
        (lambda: PBGIScheduler(search(), cost="euro"), "with a search, space, steps, .* are said there"),
        (lambda: PBGIScheduler("search"), "search must be the PBGISearch of the experiment, or None; got 'search'"),
        (lambda: search(steps=pbgi.Steps(9, resumable=True)), r"do not go on: got Steps\(resumable=True\)"),
        (lambda: search(time_attr=3), "time_attr must be the name of what trials report; got 3"),
        (lambda: search(steps=0), "steps must be a positive whole number; got 0"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()
