"""The searcher as Tune would call it, without a cluster: charges, reservations, failures, saving."""

import json
import math
import pickle

import pytest

pytest.importorskip("ray.tune")

from ray import tune
from ray.tune.search import Searcher

import pbgi
from pbgi.integrations.ray import PBGISearch, PBGIStopper
from pbgi.integrations.ray.meter import Meter

SPACE = {"x": tune.uniform(0, 1), "model": {"layers": tune.randint(1, 5)}}


def search(**arguments):
    given = {"metric": "loss", "mode": "min", "cost": "dollars", "seed": 0, "n_startup_trials": 2}
    return PBGISearch(**{"space": SPACE, **given, **arguments})


def loss(config):
    return (config["x"] - 0.3) ** 2 + 0.1 * config["model"]["layers"]


def result(config, cost=1.0, **more):
    return {"loss": loss(config), "dollars": cost, **more}


def play(searcher, names, cost=1.0):
    """Run trials one after another; the last answer that was no configuration, if there was one."""
    for name in names:
        config = searcher.suggest(name)
        if not isinstance(config, dict):
            return config
        searcher.on_trial_complete(name, result(config, cost))
    return None


def unpickled(data):
    return pickle.loads(data)  # noqa: S301 (what the test has just written)


def states(searcher):
    return [trial.state.value for trial in searcher.optimizer.trials]


# Suggesting and ending ---------------------------------------------------------------------------------------------


def test_a_search_spends_its_budget_and_ends():
    searcher = search(budget=6.5)
    assert play(searcher, range(20)) == Searcher.FINISHED
    assert (searcher.spent, states(searcher)) == (6.0, ["complete"] * 6)
    assert searcher.stop_reason.rule == "BudgetSpent"


def test_it_suggests_what_the_engine_does():
    searcher = search(budget=9.0)
    engine = pbgi.Optimizer(
        {"x": pbgi.Float(0, 1), "model/layers": pbgi.Integer(1, 4)}, budget=9.0, n_startup_trials=2, seed=0
    )
    for name in "abcdef":
        config, trial = searcher.suggest(name), engine.ask()
        assert config == {"x": trial.params["x"], "model": {"layers": trial.params["model/layers"]}}
        searcher.on_trial_complete(name, result(config, 1.0 + config["x"]))
        engine.tell(trial, loss(config), cost=1.0 + config["x"])


def test_the_same_trial_is_suggested_the_same():
    searcher = search()
    assert searcher.suggest("a") == searcher.suggest("a")
    assert len(searcher.optimizer.trials) == 1


def test_larger_is_better_with_mode_max():
    searcher = search(mode="max")
    play(searcher, "abcd")
    assert searcher.optimizer.best.value == max(trial.value for trial in searcher.optimizer.trials)


def test_the_value_is_the_last_one_reported():
    searcher = search()
    searcher.suggest("a")
    searcher.on_trial_result("a", {"loss": 0.1, "dollars": 0.5})
    searcher.on_trial_complete("a", {"loss": 0.7, "dollars": 1.0})
    assert searcher.optimizer.best.value == 0.7


def test_running_trials_are_pending_and_their_cost_is_held():
    searcher = search(budget=9.9)
    play(searcher, range(6))
    points = [searcher.suggest(name) for name in "abc"]
    assert len({json.dumps(point) for point in points}) == 3
    assert 3.0 <= searcher.optimizer.reserved == sum(trial.predicted_cost for trial in searcher.optimizer.trials[6:])
    assert searcher.suggest("d") is None  # one fits only if another costs less than is held for it
    searcher.on_trial_complete("a", result(points[0], cost=0.4))
    assert isinstance(searcher.suggest("d"), dict)


def test_trials_that_began_when_no_cost_was_known_hold_what_others_have_cost():
    searcher = search(budget=3.5)
    first, _, _ = (searcher.suggest(name) for name in "abc")
    assert searcher.optimizer.reserved == 0.0
    searcher.on_trial_complete("a", result(first))
    assert searcher.suggest("d") is None


def test_a_trial_that_costs_more_than_was_held_holds_what_it_has_cost():
    searcher = search(budget=5.5)
    play(searcher, ["first", "second"])
    config = searcher.suggest("a")
    searcher.on_trial_result("a", result(config, cost=3.0))
    assert searcher.suggest("b") is None
    assert searcher.spent == 5.0
    searcher.on_trial_complete("a", result(config, cost=3.0))
    assert searcher.suggest("b") == Searcher.FINISHED


def test_a_search_ends_when_nothing_is_worth_its_price():
    searcher = search(policy=pbgi.PBGI(cost_scale=10.0))
    assert play(searcher, range(30)) == Searcher.FINISHED
    assert searcher.stop_reason.rule == "GittinsStop"
    assert len(searcher.optimizer.trials) < 30


def test_an_exhausted_space_ends_the_search():
    searcher = search(space={"x": tune.choice([0.0, 1.0]), "model": {"layers": 1}})
    first, second = searcher.suggest("a"), searcher.suggest("b")
    assert {first["x"], second["x"]} == {0.0, 1.0}
    assert first["model"] == {"layers": 1}  # a constant of its own space
    assert searcher.suggest("c") is None
    searcher.on_trial_complete("a", result(first))
    searcher.on_trial_complete("b", result(second))
    assert searcher.suggest("c") == Searcher.FINISHED
    assert searcher.stop_reason.rule == "SpaceExhausted"


def test_points_to_evaluate_come_first():
    points = [{"x": 0.25, "model": {"layers": 2}}, {"x": 0.5, "model": {"layers": 3}}]
    searcher = search(points_to_evaluate=points)
    assert [searcher.suggest("a"), searcher.suggest("b")] == points


def test_points_from_elsewhere_inform_and_are_free():
    searcher = search(budget=3.5)
    searcher.add_evaluated_point({"x": 0.25, "model": {"layers": 2}}, 0.2, cost=1.0)
    searcher.add_evaluated_point({"x": 0.75, "model": {"layers": 2}}, 0.2, error=True)
    assert states(searcher) == ["complete", "failed"]
    assert searcher.spent == 0.0
    assert play(searcher, range(9)) == Searcher.FINISHED
    assert searcher.spent == 3.0


# What trials cost, and how they fail -------------------------------------------------------------------------------


def test_a_failed_trial_is_charged_what_it_had_cost():
    searcher = search(budget=10.0)
    config = searcher.suggest("a")
    searcher.on_trial_result("a", result(config, cost=0.25))
    searcher.on_trial_result("a", result(config, cost=0.75))
    searcher.on_trial_complete("a", error=True)
    assert (states(searcher), searcher.spent) == (["failed"], 0.75)
    assert searcher.optimizer.best is None


def test_a_trial_that_failed_in_silence_is_charged_its_time(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("pbgi.integrations.ray.experiment.now", lambda: clock[0])
    searcher = search(cost="time_total_s", budget=50.0)
    searcher.suggest("a")
    clock[0] += 7.0
    searcher.on_trial_complete("a", error=True)
    assert searcher.spent == 7.0


def test_but_no_more_than_was_expected(monkeypatch):
    """The clock also counts the wait for a processor."""
    clock = [100.0]
    monkeypatch.setattr("pbgi.integrations.ray.experiment.now", lambda: clock[0])
    searcher = search(cost="time_total_s", budget=50.0)
    config = searcher.suggest("a")
    searcher.on_trial_complete("a", {"loss": loss(config), "time_total_s": 2.0})
    for name, seconds in (("b", 0.5), ("c", 90.0)):
        searcher.suggest(name)
        clock[0] += seconds
        searcher.on_trial_complete(name, error=True)
    predicted = searcher.optimizer.trials[2].predicted_cost
    assert searcher.spent == pytest.approx(2.0 + 0.5 + predicted)


def test_a_trial_that_failed_in_silence_is_charged_what_was_predicted():
    searcher = search(budget=50.0)
    play(searcher, ["a"], cost=2.0)
    searcher.suggest("b")
    predicted = searcher.optimizer.trials[1].predicted_cost
    searcher.on_trial_complete("b", error=True)
    assert searcher.spent == 2.0 + predicted


def test_a_trial_that_never_began_is_free():
    searcher = search(budget=50.0)
    searcher.suggest("a")
    searcher.on_trial_complete("a")
    assert searcher.spent == pytest.approx(0.0, abs=1e-6)
    assert states(searcher) == ["failed"]


def test_a_trial_stopped_while_paused_keeps_its_last_value():
    searcher = search()
    config = searcher.suggest("a")
    searcher.on_trial_result("a", result(config, cost=0.5))
    searcher.on_trial_complete("a")
    assert (searcher.optimizer.best.value, searcher.spent) == (loss(config), 0.5)


@pytest.mark.parametrize("value", [math.nan, math.inf, None, "bad"])
def test_a_value_that_is_none_fails_the_trial(value):
    searcher = search(budget=10.0)
    play(searcher, ["a"])
    config = searcher.suggest("b")
    searcher.on_trial_result("b", {**result(config), "loss": value})
    searcher.on_trial_complete("b", {**result(config), "loss": value})
    assert states(searcher) == ["complete", "failed"]
    assert searcher.spent == 2.0
    assert isinstance(searcher.suggest("c"), dict)


@pytest.mark.parametrize("cost", [math.nan, -1.0, 0.0, None])
def test_a_cost_that_is_none_is_taken_to_be_as_predicted(cost):
    searcher = search(budget=10.0)
    play(searcher, ["a"], cost=2.0)
    config = searcher.suggest("b")
    predicted = searcher.optimizer.trials[1].predicted_cost
    searcher.on_trial_complete("b", result(config, cost=cost))
    assert searcher.spent == pytest.approx(2.0 + predicted)
    told = searcher.optimizer.trials[1]
    assert (told.cost, told.charged) == (None, predicted)  # charged, and no observation


def test_a_cost_that_no_trial_reports_is_a_mistake():
    searcher = search(budget=10.0, cost="euro")
    config = searcher.suggest("a")
    with pytest.raises(pbgi.InvalidInputError, match="must report what they cost as 'euro'; got dollars, loss"):
        searcher.on_trial_result("a", result(config))


def test_a_known_price_is_charged():
    price = pbgi.KnownCost(lambda config: config["model"]["layers"] * config["euro"])
    searcher = search(space={**SPACE, "euro": 2.0}, budget=30.0, cost=price)
    assert play(searcher, range(99)) == Searcher.FINISHED
    layers = [trial.params["model/layers"] for trial in searcher.optimizer.trials]
    assert searcher.spent == sum(2.0 * n for n in layers)
    assert 30.0 - 2.0 < searcher.spent <= 30.0


def test_with_a_uniform_cost_the_budget_is_a_number_of_trials():
    searcher = search(budget=5, cost=pbgi.UniformCost())
    assert play(searcher, range(99), cost=77.0) == Searcher.FINISHED
    assert len(searcher.optimizer.trials) == 5


SECOND_ATTEMPT = {
    "from nothing": ({"time_since_restore": 5.0, "time_total_s": 5.0}, 6.0 + 5.0),
    "from a checkpoint": ({"time_since_restore": 5.0, "time_total_s": 8.0}, 3.0 + 8.0),
    "paused, nothing lost": ({"time_since_restore": 5.0, "time_total_s": 11.0}, 11.0),
}


@pytest.mark.parametrize("how", SECOND_ATTEMPT)
def test_seconds_of_lost_attempts_count(how):
    report, total = SECOND_ATTEMPT[how]
    meter = Meter().read(
        {"time_total_s": 3.0, "iterations_since_restore": 1, "time_since_restore": 3.0}, "time_total_s"
    )
    meter = meter.read({"time_total_s": 6.0, "iterations_since_restore": 2, "time_since_restore": 6.0}, "time_total_s")
    assert meter.total == 6.0
    meter = meter.read({**report, "iterations_since_restore": 1}, "time_total_s")
    assert meter.total == pytest.approx(total)
    assert meter.read({**report, "iterations_since_restore": 1}, "time_total_s") == meter  # Ray may say it twice


@pytest.mark.parametrize(
    ("fresh", "cost", "total"), [(2.0, 0.5, 1.5), (2.0, 2.0, 3.0), (1.0, 0.8, 1.0 - 0.4 + 0.8), (1.0, 2.0, 2.0)]
)
def test_metrics_of_lost_attempts_count(fresh, cost, total):
    """Seen at 1.0; then from nothing (2 of 2 seconds are fresh), or from a checkpoint half of the way."""
    meter = Meter().read({"dollars": 1.0, "time_total_s": 1.0, "iterations_since_restore": 1}, "dollars")
    again = {"time_total_s": 2.0, "time_since_restore": fresh, "iterations_since_restore": 1, "dollars": cost}
    assert meter.read(again, "dollars").total == pytest.approx(total)


# Trials that Ray runs again ----------------------------------------------------------------------------------------


def test_a_failed_trial_that_is_resumed_is_charged_the_rest():
    searcher = search(budget=10.0)
    config = searcher.suggest("a")
    searcher.on_trial_result("a", result(config, cost=0.75, time_total_s=3.0))
    searcher.on_trial_complete("a", error=True)
    searcher.on_trial_complete("a", error=True)  # said twice
    resumed = {"time_total_s": 4.0, "time_since_restore": 1.0, "iterations_since_restore": 1}
    searcher.on_trial_result("a", result(config, cost=1.0, **resumed))
    assert states(searcher) == ["failed", "running"]
    searcher.on_trial_complete("a", result(config, cost=1.0, **resumed))
    assert (states(searcher), searcher.spent) == (["failed", "complete"], 1.0)


def test_a_trial_under_another_id_is_taken_up_by_its_configuration():
    searcher = search(budget=10.0)
    searcher.suggest("a")
    report = {"loss": 0.5, "dollars": 1.0, "config/x": 0.5, "config/model/layers": 2}
    searcher.on_trial_complete("restarted", report)
    assert searcher.optimizer.best.params == {"x": 0.5, "model/layers": 2}
    assert searcher.spent == 1.0
    searcher.on_trial_complete("stranger", {"loss": 0.0, "config/x": 7.0})
    searcher.on_trial_complete("stranger", error=True)
    assert states(searcher) == ["running", "complete"]


# Saving ------------------------------------------------------------------------------------------------------------


def in_the_middle():
    """A search with a trial of each kind, the points to try first among them."""
    searcher = search(budget=20.0, points_to_evaluate=[{"x": 0.1 * i, "model": {"layers": 1}} for i in range(1, 7)])
    play(searcher, "abcd")
    searcher.suggest("failed")
    searcher.on_trial_complete("failed", error=True)
    config = searcher.suggest("running")
    searcher.on_trial_result("running", result(config, cost=2.5, time_total_s=1.0))
    searcher.add_evaluated_point({"x": 0.5, "model": {"layers": 2}}, 0.3)
    return searcher


def test_a_restored_search_goes_on_the_same(tmp_path):
    searcher = in_the_middle()
    searcher.save_to_dir(str(tmp_path), "1")
    assert [path.name for path in tmp_path.iterdir()] == ["searcher-state-1.json"]
    again = search(budget=20.0, seed=99)
    again.restore_from_dir(str(tmp_path))
    assert again.spent == searcher.spent
    for name in "efgh":
        config = searcher.suggest(name)
        assert again.suggest(name) == config
        for one in (searcher, again):
            one.on_trial_complete(name, result(config))
    assert again.optimizer.trials == searcher.optimizer.trials
    for one in (searcher, again):
        one.on_trial_complete("running", result({"x": 0.6, "model": {"layers": 1}}, cost=3.0, time_total_s=2.0))
    assert again.spent == searcher.spent


def test_a_restored_search_knows_its_space_metric_and_mode(tmp_path):
    searcher = PBGISearch(budget=5.0, cost="dollars", seed=0)
    config = {**SPACE, "q": tune.quniform(0, 1, 0.5), "constant": object()}
    assert searcher.set_search_properties("loss", "max", config, num_samples=-1)
    play(searcher, "abc")
    searcher.save(str(tmp_path / "saved"))
    again = PBGISearch(budget=5.0, cost="dollars")
    again.restore(str(tmp_path / "saved"))
    assert (again.metric, again.mode) == ("loss", "max")
    assert again.suggest("d") == searcher.suggest("d")


def test_a_pickled_search_goes_on_the_same():
    searcher = in_the_middle()
    again = unpickled(pickle.dumps(searcher))
    assert again.suggest("e") == searcher.suggest("e")
    assert again.identity == searcher.identity


def test_pickles_hold_the_history_as_text():
    searcher = in_the_middle()
    assert type(searcher.__getstate__()["saved"]) is str
    names = {type(value).__name__ for value in searcher.__getstate__().values()}
    assert names == {"tuple", "SearchSpace", "str"}
    assert b"pbgi.history" not in pickle.dumps(searcher)


def test_a_search_may_go_on_with_a_larger_budget(tmp_path):
    searcher = search(budget=3.5)
    assert play(searcher, range(9)) == Searcher.FINISHED
    searcher.save(str(tmp_path / "saved"))
    more = search(budget=6.5)
    more.restore(str(tmp_path / "saved"))
    assert play(more, range(10, 20)) == Searcher.FINISHED
    assert more.spent == 6.0


def test_a_new_experiment_ends_what_an_earlier_one_left_running(tmp_path):
    searcher = in_the_middle()
    searcher.save(str(tmp_path / "saved"))
    again = PBGISearch(budget=20.0, cost="dollars")
    again.restore(str(tmp_path / "saved"))
    assert again.set_search_properties("loss", "min", SPACE)
    assert "running" not in states(again)
    assert again.spent == searcher.spent  # what it had reported


def test_a_trial_that_ray_has_forgotten_is_given_up(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("pbgi.integrations.ray.experiment.now", lambda: clock[0])
    searcher = search(budget=3.2)
    play(searcher, "ab")
    config = searcher.suggest("lost")
    searcher.on_trial_result("lost", result(config, cost=0.1))
    searcher.save(str(tmp_path / "saved"))
    searcher.restore(str(tmp_path / "saved"))
    assert searcher.suggest("c") is None
    clock[0] += 601.0
    assert searcher.suggest("c") is None
    assert isinstance(searcher.suggest("c"), dict)
    assert states(searcher) == ["complete", "complete", "failed", "running"]
    searcher.on_trial_result("lost", result(config, cost=0.6))  # it was not forgotten after all
    assert states(searcher) == ["complete", "complete", "failed", "running", "running"]
    assert searcher.spent == pytest.approx(2.6)


def test_a_known_price_is_given_again(tmp_path):
    def with_price():
        return search(cost=pbgi.KnownCost(lambda config: 1.0 + config["x"]), budget=9.0)

    searcher, again = with_price(), with_price()
    play(searcher, "abc")
    searcher.save(str(tmp_path / "saved"))
    again.restore(str(tmp_path / "saved"))
    assert again.suggest("d") == searcher.suggest("d")
    assert again.optimizer.reserved == searcher.optimizer.reserved


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: "no json", "a saved search must be JSON"),
        (lambda _: json.dumps([1]), "a saved search must be a mapping"),
        (lambda saved: json.dumps(saved | {"format": 2}), "format of a saved search must be 1; got 2"),
        (lambda saved: json.dumps(saved | {"mode": "up"}), "mode must be 'min' or 'max'"),
        (lambda saved: json.dumps(saved | {"space": []}), "space must be a list of 2 parameters"),
        (lambda saved: json.dumps(saved | {"experiment": {}}), "experiment must have exactly"),
        (
            lambda saved: json.dumps(
                saved
                | {
                    "experiment": saved["experiment"]
                    | {"trials": {"a": saved["experiment"]["trials"]["a"] | {"number": 99}}}
                }
            ),
            "number of trial 'a' must be one of the 7 trials; got 99",
        ),
    ],
)
def test_what_was_not_saved_by_a_search_is_refused(tmp_path, change, message):
    searcher = in_the_middle()
    searcher.save(str(tmp_path / "saved"))
    (tmp_path / "saved").write_text(change(json.loads((tmp_path / "saved").read_text())))
    before = searcher.optimizer
    with pytest.raises(pbgi.InvalidInputError, match=message):
        searcher.restore(str(tmp_path / "saved"))
    assert searcher.optimizer is before


def test_the_search_of_another_space_is_refused(tmp_path):
    in_the_middle().save(str(tmp_path / "saved"))
    with pytest.raises(pbgi.InvalidInputError, match="space must be that of the search so far"):
        search(space={"x": tune.uniform(0, 2)}).restore(str(tmp_path / "saved"))


# Arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "minimize"}, "mode must be 'min' or 'max'; got 'minimize'"),
        ({"metric": ["a", "b"]}, "metric must be the name of one value"),
        ({"budget": -1}, "budget must be a positive, finite number; got -1"),
        ({"cost": pbgi.LearnedCost()}, "cost must be the name of what trials report"),
        ({"cost": ""}, "cost must be the name"),
        ({"cost": pbgi.KnownCost(len, vectorized=True)}, "cost must be the name"),
        ({"space": {"x": tune.grid_search([1])}}, "grid_search"),
        ({"points_to_evaluate": [{"x": 0.5}]}, "a configuration must have 'model/layers'"),
        ({"policy": 1}, "policy must be None or an object with propose"),
        ({"bugdet": 1}, "did you mean 'budget'"),
    ],
)
def test_wrong_arguments_are_refused_at_once(arguments, message):
    with pytest.raises(pbgi.PbgiError, match=message):
        search(**arguments)


def test_a_search_that_lacks_something_says_what():
    with pytest.raises(pbgi.InvalidInputError, match="space must be known before the search begins"):
        PBGISearch(mode="min").suggest("a")
    with pytest.raises(pbgi.InvalidInputError, match="mode must be known before the search begins"):
        PBGISearch(SPACE).suggest("a")


def test_tuner_and_search_must_agree():
    with pytest.raises(pbgi.InvalidInputError, match="mode must be the same in PBGISearch and TuneConfig"):
        search().set_search_properties("loss", "max", {})
    assert not search().set_search_properties("loss", "min", {"constant": 1})
    assert PBGISearch(mode="min").metric == "_metric"  # what Ray calls a value without a name


# The stopper -------------------------------------------------------------------------------------------------------


def test_the_stopper_counts_what_runs():
    searcher = search(budget=8.5)
    stopper = PBGIStopper(searcher)
    play(searcher, range(6))
    a, b = searcher.suggest("a"), searcher.suggest("b")
    searcher.on_trial_result("a", result(a, cost=1.2))
    assert not stopper("b", result(b, cost=0.5))
    assert not stopper.stop_all()
    assert stopper("b", result(b, cost=1.3))
    searcher.on_trial_complete("b", result(b, cost=1.3))
    assert stopper.stop_all()
    assert searcher.spent == 8.5
    assert searcher.stop_reason.rule == "BudgetSpent"


def test_the_stopper_waits_for_what_runs_when_nothing_is_worth_its_price():
    searcher = search(policy=pbgi.PBGI(cost_scale=10.0))
    stopper = PBGIStopper(searcher)
    name = 0
    while (config := searcher.suggest(name)) != Searcher.FINISHED:
        assert not stopper.stop_all()
        searcher.on_trial_complete(name, result(config))
        name += 1
    assert stopper.stop_all()


def test_the_stopper_holds_across_a_restore(tmp_path):
    """Ray pickles stopper and search apart, and restores the search from its own file."""
    searcher = search(budget=3.5)
    stopped, made = pickle.dumps(PBGIStopper(searcher)), pickle.dumps(searcher)
    play(searcher, range(9))
    searcher.save(str(tmp_path / "saved"))
    del searcher
    assert not unpickled(stopped).stop_all()  # there is no such search here
    again = unpickled(made)
    assert not unpickled(stopped).stop_all()
    again.restore(str(tmp_path / "saved"))
    assert unpickled(stopped).stop_all()
    assert not PBGIStopper(search(budget=3.5)).stop_all()


def test_the_stopper_is_for_a_search_of_this_kind():
    with pytest.raises(pbgi.InvalidInputError, match="search must be the PBGISearch of the experiment"):
        PBGIStopper(Searcher())
