"""The two calls: maximize beside minimize, limits on the clock, callbacks that stop a run, logging."""

import inspect
import logging
import time

import numpy as np
import pytest

import pbgi
from pbgi import Float, InvalidInputError, MaxTrials, StopRun, maximize, minimize
from pbgi.history import TrialState

LINE = {"x": Float(0, 1)}


def parabola(params):
    return (params["x"] - 0.3) ** 2, 1.0 + params["x"]


def test_maximize_is_minimize_of_the_negative():
    high = maximize(lambda p: -parabola(p)[0], LINE, budget=15, seed=0, cost=pbgi.UniformCost())
    low = minimize(lambda p: parabola(p)[0], LINE, budget=15, seed=0, cost=pbgi.UniformCost())
    assert [t.params for t in high.trials] == [t.params for t in low.trials]
    assert high.fun == -low.fun


def test_maximize_takes_what_minimize_takes():
    taken = dict(inspect.signature(minimize).parameters)
    del taken["direction"]
    assert list(inspect.signature(maximize).parameters.values()) == list(taken.values())


@pytest.mark.parametrize("n_workers", [1, 2])
def test_seconds_end_a_run_and_what_runs_then_ends(n_workers):
    def slow(params):
        time.sleep(0.2)
        return params["x"]

    begun = time.perf_counter()
    result = minimize(slow, LINE, seconds=0.5, seed=0, n_workers=n_workers)
    assert 0.5 <= time.perf_counter() - begun < 10.0
    assert result.message == "Reached the limit of 0.5 seconds"
    assert result.stop_reason.numbers["seconds"] >= 0.5
    assert all(trial.state is TrialState.COMPLETE for trial in result.trials)
    with pytest.raises(InvalidInputError, match="seconds must be a positive, finite number; got 0"):
        minimize(slow, LINE, seconds=0)


@pytest.mark.parametrize("n_workers", [1, 2])
@pytest.mark.parametrize("said", [True, np.True_])
def test_a_callback_that_returns_true_stops_the_run(n_workers, said):
    result = minimize(
        parabola, LINE, budget=1000, seed=0, n_workers=n_workers, callbacks=[lambda _, t: said if t.number == 3 else 1]
    )
    assert result.stop_reason.rule == "StopRun"
    assert result.message == "Stopped by a callback or the function"
    assert result.success
    assert not any(trial.state is TrialState.RUNNING for trial in result.trials)
    if n_workers == 1:
        assert result.nfev == 4


@pytest.mark.parametrize("n_workers", [1, 2])
def test_stop_run_in_the_function_keeps_what_there_is(n_workers):
    def fun(params):
        calls.append(params)
        if len(calls) > 4:
            raise StopRun("the cluster is full")
        return parabola(params)

    calls = []
    result = minimize(fun, LINE, budget=1000, seed=0, n_workers=n_workers)
    assert result.message == "the cluster is full"
    assert sum(t.state is TrialState.COMPLETE for t in result.trials) == 4
    assert {t.message for t in result.trials if t.state is TrialState.INTERRUPTED} == {"the cluster is full"}


def test_the_log_has_every_trial_and_where_it_failed(caplog):
    def touchy(params):
        if params["x"] > 0.4:
            raise ValueError("too far")  # the line that is shown
        return parabola(params)

    with (
        caplog.at_level(logging.DEBUG, logger="pbgi"),
        pytest.warns(
            RuntimeWarning, match=r"too far \(test_entry.py, line \d+: raise ValueError.*# the line that is shown\)"
        ),
    ):
        result = minimize(touchy, LINE, stop=MaxTrials(6), seed=0)
    n_failed = sum(t.state is TrialState.FAILED for t in result.trials)
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert sum(level == "WARNING" and "ValueError: too far" in text for level, text in said) == n_failed > 0
    assert sum(level == "INFO" and text.startswith("trial ") for level, text in said) == 6
    assert sum(level == "DEBUG" and "Traceback" in text for level, text in said) == n_failed
    assert said[-1][1].startswith("the run ended: Reached the limit of 6 trials")
    assert {record.name for record in caplog.records} == {"pbgi.run"}


def test_nothing_is_printed_unless_asked_for(capfd):
    with pytest.warns(RuntimeWarning):
        minimize(lambda p: 1 / 0 if p["x"] > 0.4 else p["x"], LINE, stop=MaxTrials(5), seed=0)
    assert capfd.readouterr() == ("", "")


def test_no_start_where_points_are_known():
    """With values told the model chooses at once: it does not go where others would start."""
    known = [({"x": x}, (x - 0.3) ** 2) for x in (0.0, 0.2, 0.45, 0.7, 1.0)]
    result = minimize(
        lambda p: parabola(p)[0], LINE, stop=MaxTrials(1), cost=pbgi.UniformCost(), n_startup_trials=0, x0=known, seed=0
    )
    assert result.trials[-1].params["x"] == pytest.approx(0.3, abs=0.1)
    assert result.trials[-1].record  # noted by the policy, which a start has no need of
    alone = minimize(parabola, LINE, stop=MaxTrials(3), n_startup_trials=0, seed=0)
    assert alone.success
    with pytest.raises(InvalidInputError, match="n_startup_trials must be a whole number that is not negative; got -1"):
        minimize(parabola, LINE, budget=3, n_startup_trials=-1)


def test_conditions_on_outcomes():
    """The function returns outcomes beside the value; one that is missing is an error at once."""
    space = {"x": pbgi.Float(0.0, 1.0)}
    most = {"ms": pbgi.AtMost(0.5)}

    def fun(p):
        return {"value": p["x"], "cost": 1.0, "ms": 1.0 - p["x"]}

    result = pbgi.minimize(fun, space, budget=12, constraints=most, seed=0)
    assert result.fun == pytest.approx(0.5, abs=0.01)
    assert result.fun >= 0.5
    assert result.trials[0].constraints == {"ms": 1.0 - result.trials[0].params["x"]}
    assert result.recommended.trial.constraints["ms"] <= 0.5
    missing = "the outcome 'ms', which a condition is about, is missing"
    with pytest.warns(RuntimeWarning, match=missing), pytest.raises(pbgi.InvalidInputError, match=missing):
        pbgi.minimize(lambda p: p["x"], space, budget=5, constraints=most, seed=0)
    none = pbgi.minimize(fun, space, budget=5, constraints={"ms": pbgi.AtMost(-1.0)}, seed=0)
    assert not none.success
    assert none.params is None
    assert "no trial kept all conditions: ms: " in none.message
