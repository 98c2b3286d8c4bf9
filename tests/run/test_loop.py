"""One call from start to end: results, costs, failures, workers, interruption."""

import asyncio
import functools
import math
import re
import signal
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext

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


@pytest.mark.parametrize("returned", ["good", [1.0], True, (1.0, 2.0, 3.0), {"loss": 1.0}, (1.0, -2.0)])
def test_nonsense_returned_fails_the_trial(returned):
    with pytest.warns(RuntimeWarning):
        result = minimize(lambda _: returned, LINE, stop=MaxTrials(3), seed=0)
    assert not result.success
    assert result.params is None
    assert "no trial succeeded, the last error was" in result.message
    assert all(t.state is TrialState.FAILED for t in result.trials)


@pytest.mark.parametrize("max_failures", [5, None])
@pytest.mark.parametrize("returned", [None, (None, 1.0), {"value": None, "cost": 1.0}])
def test_a_function_without_a_value_is_an_error_at_once(returned, max_failures):
    calls = []
    with (
        pytest.warns(RuntimeWarning, match="trial 0 failed"),
        pytest.raises(InvalidInputError, match=r"must return a value.*the value is missing"),
    ):
        minimize(lambda p: calls.append(p) or returned, LINE, budget=100, seed=0, max_failures=max_failures)
    assert len(calls) == 1


def test_a_value_that_is_missing_once_fails_that_trial():
    def forgetful(params):
        calls.append(params)
        return (None, 2.0) if len(calls) == 3 else (params["x"], 1.0)

    calls = []
    with pytest.warns(RuntimeWarning, match="trial 2 failed and is charged: .* the value is missing"):
        result = minimize(forgetful, LINE, budget=8, seed=0)
    assert result.trials[2].state is TrialState.FAILED
    assert result.trials[2].charged == 2.0
    assert result.spent == 8.0


@pytest.mark.parametrize("fun", [None, 3, "f", {"x": 1}])
def test_what_cannot_be_called_is_refused(fun):
    with pytest.raises(InvalidInputError, match="fun must be callable"):
        minimize(fun, LINE, budget=3)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"executor": 3}, "executor must be None or a concurrent.futures.Executor; got 3"),
        ({"executor": ProcessPoolExecutor}, "executor must be None or a concurrent.futures.Executor"),
    ],
)
def test_arguments_are_checked_before_anything_is_evaluated(argument, message):
    calls = []
    with pytest.raises(InvalidInputError, match=message):
        minimize(lambda p: calls.append(p) or parabola(p), LINE, stop=MaxTrials(2), **argument)
    assert not calls


class Unspeakable(Exception):  # noqa: N818
    def __str__(self):
        raise ValueError("nothing to say")


@pytest.mark.parametrize("n_workers", [1, 2])
def test_an_error_that_cannot_be_shown_fails_its_trial_alone(n_workers):
    def touchy(params):
        if params["x"] > 0.6:
            raise Unspeakable
        return parabola(params)

    with pytest.warns(RuntimeWarning, match="Unspeakable, which cannot be shown as text"):
        result = minimize(touchy, LINE, stop=MaxTrials(12), seed=0, n_workers=n_workers)
    assert result.nfev == 12
    assert TrialState.FAILED in {t.state for t in result.trials}


@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_cancellation_keeps_what_there_is(n_workers):
    """`asyncio.CancelledError` is no Exception."""

    def cancelled(params):
        calls.append(params)
        if len(calls) > 4:
            raise asyncio.CancelledError
        return parabola(params)

    calls = []
    with pytest.warns(RuntimeWarning, match="CancelledError") if n_workers == 1 else nullcontext():
        result = minimize(cancelled, LINE, stop=MaxTrials(12), seed=0, n_workers=n_workers)
    assert "CancelledError" in result.message
    assert sum(t.state is TrialState.COMPLETE for t in result.trials) == 4
    assert not any(t.state is TrialState.RUNNING for t in result.trials)


async def asynchronous(params):
    return params["x"]


def generator(params):
    yield params["x"]


class Caller:
    async def __call__(self, params):
        return params["x"]


@pytest.mark.parametrize(
    ("fun", "why"),
    [
        (asynchronous, r"is async, so a call returns none; write lambda params: asyncio.run\(fun\(params\)\)"),
        (functools.partial(asynchronous), "is async"),
        (Caller(), "is async"),
        (generator, "a generator; write return instead of yield"),
        (lambda x, y: x + y, r"one argument, a dict of parameters; got .* with \(x, y\); .*fun\(\*\*params\)"),
        (lambda **params: params["x"], r"with \(\*\*params\)"),
        (lambda: 1.0, "must take one argument"),
    ],
)
def test_what_can_give_no_value_is_refused_before_it_runs(fun, why):
    with pytest.raises(InvalidInputError, match=why):
        minimize(fun, LINE, budget=3)


def test_functions_of_all_makes_are_called():
    """What is looked at before is how it can be called, not what it wraps."""

    def unpacking(function):
        @functools.wraps(function)
        def unpacked(params):
            return function(**params)

        return unpacked

    class Task:
        def run(self, params, scale=1.0):
            return scale * params["x"]

    makes = [unpacking(lambda x: x), Task().run, functools.partial(Task().run, scale=2.0), lambda *p: p[0]["x"], len]
    assert [minimize(fun, LINE, stop=MaxTrials(1), seed=0).success for fun in makes] == [True] * 5


@pytest.mark.parametrize("callbacks", [print, None, [None], [3], "callback"])
def test_callbacks_are_checked_before_anything_runs(callbacks):
    def never(_params):
        raise AssertionError

    with pytest.raises(InvalidInputError, match=r"callbacks must be a list of .*; write callbacks=\[function\]"):
        minimize(never, LINE, budget=3, callbacks=callbacks)


def test_callbacks_may_come_from_an_iterator():
    numbers = []
    minimize(lambda p: p["x"], LINE, stop=MaxTrials(3), callbacks=iter([lambda _, t: numbers.append(t.number)]))
    assert numbers == [0, 1, 2]


@pytest.mark.parametrize("x0", [{"x": 0.5}, None, "x"])
def test_a_starting_point_without_its_list_is_refused(x0):
    with pytest.raises(InvalidInputError, match=r"x0 must be a list of points; got .*; write x0=\[\{...\}\]"):
        minimize(lambda p: p["x"], LINE, budget=3, x0=x0)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_broken_function_ends_quickly_with_its_traceback(n_workers):
    def broken(params):
        calls.append(params)
        return params["learning_rate"]  # the line that is shown

    calls = []
    with (
        # Of two that run at the same time either may be the first to fail, and only the first is warned of.
        pytest.warns(
            RuntimeWarning, match=f"trial [0-{n_workers - 1}] failed and is charged: KeyError: 'learning_rate'"
        ),
        pytest.raises(pbgi.BrokenFunctionError, match="the first 5 trials failed, and none gave a value") as caught,
    ):
        minimize(broken, LINE, budget=60.0, seed=0, n_workers=n_workers)
    assert 5 <= len(calls) <= 4 + n_workers
    assert 'return params["learning_rate"]  # the line that is shown' in str(caught.value)
    assert "max_failures=None" in str(caught.value)


@pytest.mark.filterwarnings("ignore:trial 0 failed")
@pytest.mark.parametrize("returned", ["good", math.nan])
def test_nonsense_ends_quickly_too(returned):
    with pytest.raises(pbgi.BrokenFunctionError, match="the first 2 trials failed"):
        minimize(lambda _: returned, LINE, budget=60.0, seed=0, max_failures=2)


def test_a_user_may_want_to_go_on():
    def late(params):
        calls.append(params)
        if len(calls) <= 7:
            raise ValueError("not yet")
        return params["x"]

    calls = []
    with pytest.warns(RuntimeWarning, match="not yet"):
        result = minimize(late, LINE, stop=MaxTrials(9), seed=0, max_failures=None)
    assert result.nfev == 9
    assert result.success
    with pytest.raises(InvalidInputError, match="max_failures must be a positive whole number"):
        minimize(late, LINE, stop=MaxTrials(9), max_failures=0)


def test_a_function_that_breaks_later_ends_the_run_with_what_there_is():
    """A budget of seconds would never be spent by failures that take none."""

    def breaking(params):
        calls.append(params)
        if len(calls) > 3:
            raise ConnectionError("the licence server is gone")
        return params["x"]

    calls = []
    with pytest.warns(RuntimeWarning, match="licence server"):
        result = minimize(breaking, LINE, budget=3600.0, seed=0, max_failures=1)
    assert result.stop_reason.rule == "Failures"
    assert "the last 10 trials failed" in result.message
    assert "ConnectionError: the licence server is gone" in result.message
    assert (result.nfev, result.success) == (13, True)


def test_a_cost_that_is_missing_once_costs_what_was_expected():
    def vague(params):
        calls.append(params)
        return (params["x"], None) if len(calls) == 4 else (params["x"], 2.0)

    calls = []
    result = minimize(vague, LINE, budget=12, seed=0)
    assert [t.state for t in result.trials] == [TrialState.COMPLETE] * 6
    assert (result.trials[3].cost, result.trials[3].charged) == (None, pytest.approx(2.0))


def test_a_failure_while_others_tell_their_costs_is_charged_what_they_cost():
    """Nothing was predicted for the second trial, which fails after the first has told a cost in a unit of its own."""
    told = threading.Event()

    def pair(params):
        with lock:
            calls.append(params)
            place = len(calls)
        if place == 1:
            return params["x"], 40.0
        if place == 2:
            assert told.wait(timeout=60.0)
            raise ValueError("the second")
        return params["x"], 40.0

    calls, lock = [], threading.Lock()
    with pytest.warns(RuntimeWarning, match="the second"):
        result = minimize(
            pair, LINE, stop=MaxTrials(4), budget=1000, n_workers=2, seed=0, callbacks=[lambda *_: told.set()]
        )
    assert sorted(t.charged for t in result.trials) == pytest.approx([40.0] * 4)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_first_crash_does_not_make_everything_look_free(n_workers):
    def crashing(params):
        with lock:
            calls.append(params["x"])
            first = len(calls) == 1
        if first:
            raise MemoryError("at first")
        return (params["x"] - 0.3) ** 2, 10.0 ** (3.0 * params["x"])

    calls, lock = [], threading.Lock()
    for seed in range(4):
        calls.clear()
        with pytest.warns(RuntimeWarning, match="at first"):
            result = minimize(crashing, LINE, budget=1000, seed=seed, n_workers=n_workers, stop=MaxTrials(6))
        assert 10.0 ** (3.0 * calls[1]) < 200
        assert result.spent <= 1000


@pytest.mark.parametrize("dimension", [3, 4])
def test_one_wild_value_early_on_costs_little(dimension):
    """A value of 100 at the fourth trial, where others are below 1: at most a factor of ten at the end."""
    space = {f"x{i}": Float(0, 1) for i in range(dimension)}

    def bowl(params):
        return sum((x - 0.4) ** 2 for x in params.values())

    def reached(seed, wild):
        calls = []

        def measured(params):
            calls.append(params)
            return 100.0 if wild and len(calls) == 4 else bowl(params)

        return minimize(measured, space, stop=MaxTrials(40), cost=pbgi.UniformCost(), seed=seed).fun

    plain, disturbed = (sorted(reached(seed, wild) for seed in range(5))[2] for wild in (False, True))
    assert disturbed <= 10.0 * plain


# What ends a run early ------------------------------------------------------------------------------------------------


def test_a_bad_price_in_a_corner_keeps_what_there_is():
    """With few points the corner is not looked at; later ones are bound to."""
    asked = []

    def price(params):
        asked.append(params)
        return -1.0 if len(asked) > 20_000 else 1.0

    with pytest.warns(RuntimeWarning, match="the search ended early, with what there is"):
        result = minimize(lambda p: p["x"], LINE, budget=1000, cost=pbgi.KnownCost(price), seed=0)
    assert result.stop_reason.rule == "Error"
    assert "a known cost must be a positive, finite number" in result.message
    assert result.success
    assert result.nfev == sum(t.state is TrialState.COMPLETE for t in result.trials) > 0


def test_a_price_that_is_bad_from_the_start_is_raised():
    with pytest.raises(InvalidInputError, match="a known cost must be"):
        minimize(lambda p: p["x"], LINE, budget=10, cost=pbgi.KnownCost(lambda _: -1.0), seed=0)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_an_error_in_a_callback_keeps_what_there_is(n_workers):
    def callback(_, trial):
        if trial.number == 3:
            raise OSError("disk full")

    with pytest.warns(RuntimeWarning, match="disk full"):
        result = minimize(parabola, LINE, budget=1000, seed=0, callbacks=[callback], n_workers=n_workers)
    assert "OSError: disk full" in result.message
    assert result.trials[3].state is TrialState.COMPLETE
    assert not any(t.state is TrialState.RUNNING for t in result.trials)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_exit_in_the_function_keeps_what_there_is(n_workers):
    def exiting(params):
        with lock:
            calls.append(params)
            place = len(calls)
        if place > 4:
            sys.exit(3)
        return parabola(params)

    calls, lock = [], threading.Lock()
    with pytest.warns(RuntimeWarning, match=r"called sys.exit\(3\)"):
        result = minimize(exiting, LINE, budget=1000, seed=0, n_workers=n_workers)
    assert result.stop_reason.rule == "FunctionExited"
    assert sum(t.state is TrialState.COMPLETE for t in result.trials) == 4
    assert result.spent > sum(t.charged for t in result.trials if t.state is TrialState.COMPLETE)


def test_exit_before_there_is_anything_exits():
    with pytest.warns(RuntimeWarning, match="sys.exit"), pytest.raises(SystemExit) as caught:
        minimize(lambda _: sys.exit(3), LINE, budget=10, seed=0)
    assert caught.value.code == 3


def test_warnings_point_at_the_line_that_called():
    with pytest.warns(RuntimeWarning) as caught:
        minimize(lambda _: "good", LINE, stop=MaxTrials(2), seed=0)
    assert caught[0].filename == __file__
    with pytest.warns(RuntimeWarning) as caught:
        minimize(lambda _: "good", LINE, stop=MaxTrials(2), seed=0, n_workers=2)
    assert caught[0].filename == __file__


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
    lines = [line.strip() for line in shown.err.split("\r")]
    assert all(len(line) < 80 for line in lines)
    whole = r"(\S+) \+ 0\.0 held \+ (\S+) left = 10\.0 \| best \S+ \(x \S+\) \| \d+ more, \d+ s"
    spent, left = map(float, re.fullmatch(whole, lines[-1]).groups())
    assert spent + left == pytest.approx(10.0)


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


def test_an_interrupted_trial_is_charged_what_it_has_used():
    """In a unit of its own what was expected of it, else its seconds."""

    def impatient(params):
        calls.append(params)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return (params["x"], 2.0) if own_unit else params["x"]

    for own_unit in (True, False):
        calls = []
        result = minimize(impatient, LINE, budget=1000, seed=0)
        ended = result.trials[-1]
        assert (ended.state, ended.message) == (TrialState.INTERRUPTED, "interrupted")
        assert ended.charged == pytest.approx(2.0) if own_unit else 0.0 < ended.charged < 60.0
        assert result.spent == pytest.approx(sum(t.charged for t in result.trials))


def test_interruption_waits_for_nobody_and_drops_nothing():
    """Ctrl-C comes while the second worker is in a call that ends only after `minimize` has returned."""
    released, blocked = threading.Event(), threading.Event()

    def slow(params):
        with lock:
            calls.append(params)
            place = len(calls)
        if place == 4:
            blocked.set()
            assert released.wait(timeout=60.0)
        if place == 6:
            assert blocked.wait(timeout=60.0)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # as Ctrl-C does
            assert released.wait(timeout=60.0)
        return parabola(params)

    calls, lock = [], threading.Lock()
    try:
        result = minimize(slow, LINE, budget=1000, n_workers=2, seed=0)
        assert not released.is_set()
    finally:
        released.set()
    assert result.message == "interrupted"
    states = [t.state for t in result.trials]
    assert states.count(TrialState.COMPLETE) == 4
    assert states.count(TrialState.INTERRUPTED) == 2
    assert all(t.charged > 0 for t in result.trials)
    assert result.spent == pytest.approx(sum(t.charged for t in result.trials))


def test_an_interrupted_executor_of_the_users_keeps_its_results():
    class Waiting(ThreadPoolExecutor):
        """One thread for two calls: the second call waits for the first."""

        def submit(self, *args):
            submitted.append(args)
            future = super().submit(*args)
            if len(submitted) == 4:
                all_submitted.set()
            return future

    def slow(params):
        calls.append(params)
        if len(calls) == 3:
            assert all_submitted.wait(timeout=60.0)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # as Ctrl-C does
            assert released.wait(timeout=60.0)
        return parabola(params)

    calls, submitted, released, all_submitted = [], [], threading.Event(), threading.Event()
    with Waiting(1) as executor:
        try:
            result = minimize(slow, LINE, budget=1000, executor=executor, n_workers=2, seed=0)
        finally:
            released.set()
    assert [t.state.value for t in result.trials] == ["complete", "complete", "interrupted", "interrupted"]
    assert result.trials[2].charged > 0.0
    assert result.trials[3].charged == 0.0  # it never began


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
