"""One call from start to end: results, costs, failures, workers, interruption."""

import math
import threading
import time
from concurrent.futures import ProcessPoolExecutor

import pytest

import pbgi
from pbgi import Float, InvalidInputError, MaxTrials, minimize
from pbgi.history import TrialState

LINE = {"x": Float(0, 1)}


def parabola(params):
    return (params["x"] - 0.3) ** 2, 1.0 + params["x"]


def test_result_has_the_shape_of_scipys():
    result = minimize(parabola, LINE, budget=20, seed=0)
    assert result.success
    assert result.fun == pytest.approx(parabola(result.params)[0])
    assert result.fun < 1e-3
    assert result.nfev == len(result.trials)
    assert result.spent == pytest.approx(sum(1.0 + t.params["x"] for t in result.trials))
    assert result.spent <= 21
    assert result.stop_reason.rule == "BudgetSpent"
    assert result.message == result.stop_reason.message


@pytest.mark.parametrize(
    "fun",
    [
        parabola,
        lambda p: {"value": parabola(p)[0], "cost": parabola(p)[1]},
        lambda p: {"cost": parabola(p)[1], "value": parabola(p)[0]},
    ],
)
def test_values_and_costs_can_come_together(fun):
    result = minimize(fun, LINE, budget=12, seed=3)
    assert [t.cost for t in result.trials] == [parabola(t.params)[1] for t in result.trials]


def test_seconds_are_measured_where_no_cost_is_reported():
    def slow(params):
        time.sleep(0.02 + 0.03 * params["x"])
        return params["x"]

    result = minimize(slow, LINE, budget=0.5, seed=0)
    for trial in result.trials:
        assert 0.02 + 0.03 * trial.params["x"] <= trial.cost < 0.5
    assert result.spent < 1.0


def test_known_costs_are_not_measured():
    result = minimize(lambda p: p["x"], LINE, budget=8, cost=pbgi.UniformCost(), seed=0)
    assert result.nfev == 8
    assert result.spent == 8
    priced = minimize(lambda p: p["x"], LINE, budget=8, cost=pbgi.KnownCost(lambda p: 1 + p["x"]), seed=0)
    assert priced.spent == pytest.approx(sum(1 + t.params["x"] for t in priced.trials))


def test_maximize():
    result = minimize(lambda p: -parabola(p)[0], LINE, direction="maximize", stop=MaxTrials(15), seed=0)
    assert result.params["x"] == pytest.approx(0.3, abs=0.05)


def test_exceptions_fail_the_trial_and_the_search_goes_on():
    def touchy(params):
        if params["x"] > 0.6:
            raise ValueError("too far")
        return parabola(params)

    with pytest.warns(RuntimeWarning, match="trial .* failed and is charged: ValueError: too far") as caught:
        result = minimize(touchy, LINE, stop=MaxTrials(20), seed=0)
    assert len(caught) == 1
    failed = [t for t in result.trials if t.state is TrialState.FAILED]
    assert failed
    assert all(t.message == "ValueError: too far" for t in failed)
    assert all(t.charged > 0 for t in failed)
    assert result.fun < 1e-2


@pytest.mark.parametrize("returned", [None, "good", [1.0], True, (1.0, 2.0, 3.0), {"loss": 1.0}, (1.0, -2.0)])
def test_nonsense_returned_fails_the_trial(returned):
    with pytest.warns(RuntimeWarning):
        result = minimize(lambda _: returned, LINE, stop=MaxTrials(3), seed=0)
    assert not result.success
    assert result.params is None
    assert "no trial succeeded, the last error was" in result.message
    assert all(t.state is TrialState.FAILED for t in result.trials)


def test_nan_is_never_the_best():
    result = minimize(lambda p: math.nan if p["x"] < 0.5 else p["x"], LINE, stop=MaxTrials(12), seed=0)
    assert result.fun >= 0.5


def test_a_search_must_end():
    with pytest.raises(InvalidInputError, match="a search must end: give budget"):
        minimize(parabola, LINE)
    finite = minimize(lambda p: p["k"], {"k": pbgi.Integer(1, 4)})
    assert finite.nfev == 4
    assert finite.stop_reason.rule == "SpaceExhausted"


def test_points_to_begin_with():
    known = [({"x": 0.9}, 0.36), ({"x": 0.1}, 0.04, 1.1), {"x": 0.31}]
    result = minimize(parabola, LINE, budget=10, x0=known, seed=0)
    assert [t.external for t in result.trials[:3]] == [True, True, False]
    assert result.trials[2].params["x"] == 0.31
    assert result.nfev == len(result.trials) - 2
    with pytest.raises(InvalidInputError, match="x0 must hold"):
        minimize(parabola, LINE, budget=10, x0=[3])
    with pytest.raises(InvalidInputError, match="x"):
        minimize(parabola, LINE, budget=10, x0=[{"x": 7.0}])


def test_callbacks_see_every_trial():
    seen = []
    result = minimize(parabola, LINE, stop=MaxTrials(6), callbacks=[lambda o, t: seen.append((o.spent, t))], seed=0)
    assert [t.number for _, t in seen] == list(range(6))
    assert seen[-1][0] == result.spent


def test_progress_says_where_it_stands(capsys):
    minimize(parabola, LINE, budget=10, seed=0, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "of 10 spent, best" in shown.err
    assert "left" in shown.err


# Workers --------------------------------------------------------------------------------------------------------------


def test_workers_run_at_the_same_time_and_never_wait_for_each_other():
    """The first four begin only together, and the first of them ends only after twelve others have."""
    gate, others_done, lock, begun, ended = threading.Barrier(4), threading.Event(), threading.Lock(), [], []

    def busy(params):
        with lock:
            begun.append(params)
            place = len(begun)
        if place <= 4:
            gate.wait(timeout=60.0)
        if place == 1:
            assert others_done.wait(timeout=60.0)
        with lock:
            ended.append(place)
            if len(ended) == 12:
                others_done.set()
        return parabola(params)

    result = minimize(busy, LINE, stop=MaxTrials(16), n_workers=4, seed=0)
    assert result.nfev == 16
    assert all(trial.state is TrialState.COMPLETE for trial in result.trials)  # nobody waited in vain
    assert ended.index(1) >= 12
    assert len({t.params["x"] for t in result.trials}) == 16


def test_workers_hold_the_budget():
    result = minimize(parabola, LINE, budget=20, cost=pbgi.KnownCost(lambda p: 1 + p["x"]), n_workers=3, seed=0)
    assert result.spent <= 20 + 1e-9
    assert all(t.state is TrialState.COMPLETE for t in result.trials)


def test_processes():
    with ProcessPoolExecutor(2) as executor:
        result = minimize(parabola, LINE, stop=MaxTrials(8), executor=executor, n_workers=2, seed=0)
    assert result.nfev == 8
    assert result.success


def test_interruption_returns_what_is_there():
    def impatient(params):
        if len(calls) == 5:
            raise KeyboardInterrupt
        calls.append(params)
        return parabola(params)

    calls = []
    result = minimize(impatient, LINE, budget=100, seed=0)
    assert result.message == "interrupted"
    assert result.stop_reason is None
    assert sum(t.state is TrialState.COMPLETE for t in result.trials) == 5
    assert result.success


def test_bad_n_workers():
    with pytest.raises(InvalidInputError, match="n_workers must be a positive whole number; got 0"):
        minimize(parabola, LINE, budget=3, n_workers=0)


def test_dataframe():
    pd = pytest.importorskip("pandas")
    frame = minimize(parabola, LINE, stop=MaxTrials(4), seed=0).to_dataframe()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["number"]) == [0, 1, 2, 3]
    assert {"x", "value", "cost", "state"} <= set(frame.columns)


def test_budget_holds_beside_other_rules():
    both = minimize(parabola, LINE, budget=9, stop=MaxTrials(50), seed=0)
    assert both.stop_reason.rule == "BudgetSpent"
    assert both.spent < 11
    assert minimize(parabola, LINE, budget=100, stop=MaxTrials(4), seed=0).stop_reason.rule == "MaxTrials"


def test_lost_workers_end_the_run_with_what_there_is():
    with ProcessPoolExecutor(2) as executor:
        result = minimize(lambda p: p["x"], LINE, stop=MaxTrials(8), executor=executor, n_workers=2, seed=0)
    assert result.stop_reason.rule == "WorkersLost"
    assert "pickle" in result.message
    assert not result.success


def test_a_function_much_faster_than_suggestions_is_pointed_out():
    with pytest.warns(RuntimeWarning, match="use cost=UniformCost"):
        result = minimize(lambda p: p["x"], LINE, budget=5.0, stop=MaxTrials(55), seed=0)
    assert result.nfev == 55


def test_names_of_the_package_are_what_they_say():
    assert callable(pbgi.minimize)
    assert pbgi.Result.__name__ == "Result"
    assert callable(pbgi.minimize)
