"""The record of trials against a model of plain dicts: every sequence of events, and JSON after each."""

import copy
import dataclasses
import json
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pbgi.checks import check_cost, check_value
from pbgi.errors import InvalidInputError, PbgiError, TrialStateError, UnknownTrialError
from pbgi.history import History, Trial, TrialState

finite = st.floats(allow_nan=False, allow_infinity=False)
not_finite = st.sampled_from([math.nan, math.inf, -math.inf])
# Few distinct costs, so that telling the same again happens; thirds, so that sums round.
costs = st.sampled_from([None, 1.0, 1 / 3, 1e-3, 1e16])
values = st.sampled_from([0.0, -1.5, 1e-320, 1e300]) | finite
messages = st.sampled_from([None, "out of memory", "killed"])
params = st.dictionaries(
    st.text(max_size=3), st.none() | st.booleans() | st.integers() | finite | st.text(), max_size=3
)
bad_values = [
    None,
    "1",
    "",
    [1.0],
    (1.0,),
    {},
    1j,
    True,
    False,
    np.True_,
    np.array([1.0]),
    np.complex128(1),
]
bad_costs = [0, -1, 0.0, -0.0, math.nan, math.inf, -math.inf, True, "1", [1.0], 1j, np.float64("nan"), np.array([1.0])]
FIELDS = ["number", "params", "state", "value", "cost", "predicted_cost", "external", "message", "record"]
FIELDS += ["charge", "constraints", "reports"]
BLANK = dict.fromkeys(FIELDS) | {"record": {}, "constraints": {}, "reports": []}
finite = st.floats(allow_nan=False, allow_infinity=False)
records = st.dictionaries(st.text(max_size=5), finite | st.lists(finite, max_size=3), max_size=3)


def through_json(history: History) -> History:
    return History.from_plain(json.loads(json.dumps(history.to_plain(), allow_nan=False)))


def exact_sum(numbers: list[float]) -> float:
    return float(sum(map(Fraction, numbers), Fraction(0)))


class AgainstDicts(RuleBasedStateMachine):
    """The model is a list of dicts, with the fields of a trial, changed by the rules written out here."""

    @initialize()
    def start(self):
        self.history = History()
        self.model: list[dict] = []

    def number(self, data) -> int:
        return data.draw(st.integers(0, len(self.model) - 1) if self.model else st.just(0))

    def refused(self, error, method, *args):
        before = self.history.to_plain()
        with pytest.raises(error) as caught:
            method(*args)
        assert isinstance(caught.value, PbgiError)
        assert json.dumps(self.history.to_plain()) == json.dumps(before)

    @rule(params=params, predicted_cost=costs, record=records)
    def add_running(self, params, predicted_cost, record):
        trial = self.history.add_running(params, predicted_cost, record)
        changes = {"number": len(self.model), "params": params, "state": "running", "external": False}
        self.model.append(BLANK | changes | {"predicted_cost": predicted_cost, "record": record})
        assert trial is self.history.trials[-1]

    @rule(params=params, value=values | not_finite, cost=costs)
    def add_external(self, params, value, cost):
        self.history.add_external(params, value, cost)
        ok = math.isfinite(value)
        outcome = {"state": "complete" if ok else "failed", "value": value if ok else None}
        if not ok:
            outcome["message"] = f"the value of a trial must be finite; got {value!r}"
        record = {"number": len(self.model), "params": params, "cost": cost, "external": True}
        self.model.append(BLANK | record | outcome)

    def end(self, number, call, outcome):
        """Running trials end, and those without a value take one late; the others refuse anything new."""
        if number >= len(self.model):
            self.refused(UnknownTrialError, call)
            return
        record = self.model[number]
        late = record["state"] in ("failed", "interrupted") and outcome["state"] == "complete"
        if record["state"] == "running":
            record |= {"constraints": {}} | outcome
        elif late and not record["external"]:
            charged = record["predicted_cost"] if record["cost"] is None else record["cost"]
            kept = {"charge": (charged or 0.0) if outcome["cost"] is None else None}
            record |= {"constraints": {}} | outcome | {"message": None} | kept
        elif any(record[f] != outcome.get(f, {}) for f in ("state", "value", "cost", "constraints")):
            self.refused(TrialStateError, call)
            return
        assert call() is self.history.trials[number]

    @rule(data=st.data(), value=values, cost=costs)
    def complete(self, data, value, cost):
        number = self.number(data)
        outcome = {"state": "complete", "value": value, "cost": cost}
        self.end(number, lambda: self.history.complete(number, value, cost), outcome)

    @rule(data=st.data(), value=values, outcomes=st.dictionaries(st.sampled_from("ab"), st.floats(-1e9, 1e9)))
    def complete_with_outcomes(self, data, value, outcomes):
        number = self.number(data)
        outcome = {"state": "complete", "value": value, "cost": 1.0, "constraints": outcomes}
        self.end(number, lambda: self.history.complete(number, value, 1.0, constraints=outcomes), outcome)

    @rule(data=st.data(), value=not_finite, cost=costs)
    def complete_without_a_finite_value(self, data, value, cost):
        number = self.number(data)
        said = f"the value of a trial must be finite; got {value!r}"
        outcome = {"state": "failed", "value": None, "cost": cost, "message": said}
        self.end(number, lambda: self.history.complete(number, value, cost), outcome)

    @rule(data=st.data(), cost=costs, message=messages)
    def fail(self, data, cost, message):
        number = self.number(data)
        outcome = {"state": "failed", "value": None, "cost": cost, "message": message}
        self.end(number, lambda: self.history.fail(number, cost, message), outcome)

    @rule(data=st.data(), cost=costs, message=messages)
    def interrupt(self, data, cost, message):
        number = self.number(data)
        outcome = {"state": "interrupted", "value": None, "cost": cost, "message": message}
        self.end(number, lambda: self.history.interrupt(number, cost, message), outcome)

    @rule(data=st.data())
    def tell_the_same_again(self, data):
        ended = [record for record in self.model if record["state"] != "running"]
        if not ended:
            return
        record = data.draw(st.sampled_from(ended))
        before = self.history.trials
        if record["state"] == "complete":
            told = record["constraints"]
            trial = self.history.complete(record["number"], record["value"], record["cost"], constraints=told)
        else:
            again = self.history.fail if record["state"] == "failed" else self.history.interrupt
            trial = again(record["number"], record["cost"], "told again")
        assert trial is before[record["number"]]
        assert self.history.trials == before

    @rule(data=st.data(), value=st.sampled_from(bad_values), cost=st.sampled_from(bad_costs))
    def tell_nonsense(self, data, value, cost):
        number = self.number(data)
        error = InvalidInputError if self.model else UnknownTrialError
        self.refused(error, self.history.complete, number, value, 1.0)
        self.refused(error, self.history.complete, number, 1.0, cost)
        self.refused(error, self.history.complete, number, math.nan, cost)
        self.refused(error, self.history.complete, number, 1.0, 1.0, None, {"a": math.inf})
        self.refused(error, self.history.complete, number, 1.0, 1.0, None, {"a": "fast"})
        self.refused(error, self.history.fail, number, cost)
        self.refused(error, self.history.fail, number, None, 3)
        self.refused(InvalidInputError, self.history.add_running, {}, cost)
        self.refused(InvalidInputError, self.history.add_running, {"x": [1]}, 1.0)
        self.refused(InvalidInputError, self.history.add_running, {}, 1.0, {"index": math.nan})
        self.refused(InvalidInputError, self.history.add_running, {}, 1.0, {"index": "high"})
        self.refused(InvalidInputError, self.history.add_external, {}, value, 1.0)
        self.refused(InvalidInputError, self.history.add_external, {}, 1.0, cost)

    @rule(number=st.sampled_from([-1, 10**6, 10**30, True, None, "0", 0.0, 1.5]))
    def tell_an_unknown_trial(self, number):
        self.refused(UnknownTrialError, self.history.complete, number, 1.0)
        self.refused(UnknownTrialError, self.history.fail, number)

    @rule()
    def go_on_from_json(self):
        self.history = through_json(self.history)

    @invariant()
    def trials_are_those_of_the_model(self):
        assert json.dumps(self.history.to_plain()) == json.dumps({"trials": self.model})
        for state, trials in (
            ("running", self.history.running),
            ("complete", self.history.completed),
            ("failed", self.history.failed),
            ("interrupted", self.history.interrupted),
        ):
            assert [t.number for t in trials] == [r["number"] for r in self.model if r["state"] == state]
        assert [t.number for t in self.history.trials] == list(range(len(self.history)))

    @invariant()
    def costs_are_those_of_the_model(self):
        charged = [r for r in self.model if r["state"] != "running" and not r["external"]]
        known = [(r["charge"], r["cost"], r["predicted_cost"]) for r in charged]
        spent = [next((amount for amount in amounts if amount is not None), None) for amounts in known]
        running = [r["predicted_cost"] for r in self.model if r["state"] == "running"]
        assert self.history.spent == exact_sum([c for c in spent if c is not None])
        assert self.history.reserved == exact_sum([c for c in running if c is not None])

    @invariant()
    def json_holds_all_of_it(self):
        back = through_json(self.history)
        assert back == self.history
        assert repr(list(map(dataclasses.asdict, back.trials))) == repr(
            list(map(dataclasses.asdict, self.history.trials))
        )
        assert (back.spent, back.reserved) == (self.history.spent, self.history.reserved)


AgainstDicts.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestAgainstDicts = AgainstDicts.TestCase


# Rules -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (3, 3.0),
        (-0.5, -0.5),
        (np.float32(0.5), 0.5),
        (np.int64(-7), -7.0),
        (np.uint8(7), 7.0),
        (np.longdouble(0.25), 0.25),
        (np.array(1.5), 1.5),
        (np.array(2), 2.0),
        (Fraction(1, 4), 0.25),
        (Decimal("0.25"), 0.25),
        (Decimal("1e400"), math.inf),
        (math.inf, math.inf),
        (10**400, math.inf),
        (-(10**400), -math.inf),
    ],
)
def test_numbers_that_are_values(given, expected):
    value = check_value(given)
    assert type(value) is float
    assert value == expected


def test_nan_is_a_value_that_fails_the_trial():
    assert math.isnan(check_value(math.nan))
    assert math.isnan(check_value(np.array(np.nan, dtype=np.float32)))
    history = History()
    history.add_running({"x": 1.0}, 2.0)
    trial = history.complete(0, math.nan, 3.0)
    assert (trial.state, trial.value, trial.cost) == (TrialState.FAILED, None, 3.0)
    assert trial.message == "the value of a trial must be finite; got nan"
    assert history.spent == 3.0
    assert history.complete(0, math.nan, 3.0) is trial


@pytest.mark.parametrize("value", [*bad_values, np.ma.masked, np.datetime64("2020-01-01"), np.array("1")], ids=repr)
def test_what_is_no_value(value):
    with pytest.raises(InvalidInputError) as caught:
        check_value(value)
    assert f"value must be a real number; got {value!r}; use fail()" in str(caught.value)


@pytest.mark.parametrize("cost", [*bad_costs, 10**400, Fraction(1, 10**400), np.ma.masked], ids=lambda c: repr(c)[:20])
def test_what_is_no_cost(cost):
    with pytest.raises(InvalidInputError) as caught:
        check_cost(cost)
    assert f"cost must be a positive, finite number; got {cost!r}" in str(caught.value)


def test_what_is_a_cost():
    assert check_cost(None) is None
    assert check_cost(5e-324) == 5e-324
    for cost in (2, np.float32(2), np.int8(2), np.array(2.0), Fraction(2)):
        assert type(check_cost(cost)) is float
        assert check_cost(cost) == 2.0


def test_zero_dimensional_tensors_are_numbers():
    torch = pytest.importorskip("torch")
    assert check_value(torch.tensor(0.5, requires_grad=True)) == 0.5
    with pytest.raises(InvalidInputError):
        check_value(torch.tensor([0.5]))


# Money -------------------------------------------------------------------------------------------------------------


def test_cost_not_told_is_charged_as_predicted():
    history = History()
    for predicted in (2.0, 3.0, None, 5.0):
        history.add_running({}, predicted)
    assert (history.spent, history.reserved) == (0.0, 10.0)
    history.complete(1, 0.5)
    assert (history.spent, history.reserved) == (3.0, 7.0)
    history.fail(0)
    assert (history.spent, history.reserved) == (5.0, 5.0)
    history.complete(2, 0.5)
    assert (history.spent, history.reserved) == (5.0, 5.0)
    history.complete(3, 0.5, 1.0)
    assert (history.spent, history.reserved) == (6.0, 0.0)
    history.add_external({}, 1.0, 100.0)
    assert (history.spent, history.reserved) == (6.0, 0.0)
    assert [trial.charged for trial in history.trials] == [2.0, 3.0, 0.0, 1.0, 0.0]
    assert history.trial(3).predicted_cost == 5.0


def test_sums_do_not_depend_on_the_order_and_do_not_overflow():
    history = History()
    for i, cost in enumerate([1e16, 1.0, 1.0, 1e-3]):
        history.add_running({}, cost)
        history.complete(i, 0.0, cost)
    assert history.spent == 1e16 + 2.0
    for cost in (1.7e308, 1.7e308):
        history.add_running({}, cost)
    assert history.reserved == math.inf


# Records -----------------------------------------------------------------------------------------------------------


def test_what_is_said_when_a_trial_is_told_twice():
    history = History()
    history.add_running({}, 1.0)
    history.complete(0, 0.5, 2.0)
    with pytest.raises(TrialStateError) as caught:
        history.complete(0, 0.6, 2.0)
    assert str(caught.value).startswith("trial 0 is finished and stays as it is: complete with value=0.5, cost=2.0; ")
    assert "got complete with value=0.6, cost=2.0" in str(caught.value)
    with pytest.raises(RuntimeError, match=r"got failed with value=None, cost=2\.0"):
        history.fail(0, 2.0)
    with pytest.raises(TrialStateError, match="cost=None"):
        history.complete(0, 0.5)
    history.add_running({})
    history.fail(1, None, "first")
    assert history.fail(1, None, "second").message == "first"


@pytest.mark.parametrize("end", [History.fail, History.interrupt])
def test_a_trial_without_a_value_takes_one_late(end):
    history = History()
    history.add_running({"x": 1.0}, 2.0)
    end(history, 0, 3.0, "not heard of")
    late = history.complete(0, 0.5)
    assert (late.state, late.value, late.message) == (TrialState.COMPLETE, 0.5, None)
    assert (late.cost, late.charged) == (None, 3.0)  # what was paid stays paid, and nobody saw what a success costs
    assert history.complete(0, 0.5) is late
    with pytest.raises(TrialStateError, match="trial 0 is finished"):
        history.complete(0, 0.6)
    with pytest.raises(TrialStateError, match="trial 0 is finished"):
        end(history, 0, 3.0)


def test_a_late_value_may_bring_its_cost():
    history = History()
    history.add_running({}, 2.0)
    history.fail(0, None, "not heard of")
    late = history.complete(0, 0.5, 7.0)
    assert (late.cost, late.charged) == (7.0, 7.0)


def test_a_failure_from_elsewhere_stays_one():
    history = History()
    history.add_external({}, math.nan)
    with pytest.raises(TrialStateError, match="trial 0 is finished"):
        history.complete(0, 0.5)


def test_a_charge_is_paid_and_is_no_cost():
    history = History()
    history.add_running({}, 2.0)
    ended = history.complete(0, 0.5, charge=5)
    assert (ended.cost, ended.charged, history.spent) == (None, 5.0, 5.0)
    history.add_running({}, 2.0)
    ended = history.complete(1, 0.5, 1.0, charge=0)
    assert (ended.cost, ended.charged, history.spent) == (1.0, 0.0, 5.0)
    for wrong in (-1.0, math.nan, math.inf, "1", True):
        history.add_running({}, 2.0)
        with pytest.raises(InvalidInputError, match="charge must be"):
            history.complete(len(history) - 1, 0.5, charge=wrong)


def test_what_is_said_of_an_unknown_trial():
    history = History()
    with pytest.raises(UnknownTrialError) as caught:
        history.complete(0, 1.0)
    assert str(caught.value) == "a trial must be one of this history; got number 0; there are no trials yet"
    history.add_running({})
    with pytest.raises(LookupError) as caught:
        history.fail(-1)
    assert str(caught.value) == "a trial must be one of this history; got number -1; numbers go from 0 to 0"
    assert history.complete(np.int64(0), 1.0).number == 0


def test_records_are_read_only():
    history = History()
    history.add_running(source := {"x": 1.0}, 1.0)
    source["x"] = 2.0
    snapshot = history.trials
    (trial,) = snapshot
    assert trial.params == {"x": 1.0}
    with pytest.raises(dataclasses.FrozenInstanceError):
        trial.value = 1.0
    changes = [
        lambda p: p.__setitem__("x", 2.0),
        lambda p: p.__delitem__("x"),
        lambda p: p.__ior__({"x": 2.0}),
        lambda p: p.update(x=2.0),
        lambda p: p.setdefault("y", 2.0),
        lambda p: p.pop("x"),
        lambda p: p.popitem(),
        lambda p: p.clear(),
    ]
    for change in changes:
        with pytest.raises(TypeError, match=r"read-only; change a copy: dict\(trial\.params\)"):
            change(trial.params)
    assert dict(trial.params) | {"x": 2.0} == {"x": 2.0}
    assert json.loads(json.dumps(trial.params)) == {"x": 1.0}
    history.complete(0, 1.0)
    assert snapshot == (Trial(0, {"x": 1.0}, TrialState.RUNNING, predicted_cost=1.0),)


def test_records_travel_between_processes():
    history = History()
    history.add_running({"x": 1.0, "act": None}, 1.0)
    history.add_external({"x": 2.0}, 3.0)
    for other in (pickle.loads(pickle.dumps(history)), copy.deepcopy(history)):  # noqa: S301
        assert other == history
        assert other.trials == history.trials
        other.complete(0, 1.0)
        assert other != history
    assert len({*history.trials, *copy.deepcopy(history).trials}) == 2
    with pytest.raises(TypeError):
        hash(history)


def test_repr_says_how_things_stand():
    history = History()
    history.add_running({}, 2.0)
    history.add_external({}, 1.0)
    assert repr(history) == "History(1 running, 1 complete, 0 failed, spent=0.0, reserved=2.0)"


# JSON --------------------------------------------------------------------------------------------------------------

RUNNING = {
    "number": 0,
    "params": {"x": 1.0},
    "state": "running",
    "value": None,
    "cost": None,
    "predicted_cost": 2.0,
    "external": False,
    "message": None,
    "record": {},
    "charge": None,
    "constraints": {},
    "reports": [],
}
COMPLETE = RUNNING | {"number": 1, "state": "complete", "value": 0.5, "cost": 3.0}
FAILED = RUNNING | {"number": 2, "state": "failed", "message": "killed"}


def test_json_as_written():
    history = History.from_plain({"trials": [RUNNING, COMPLETE, FAILED]})
    assert (history.spent, history.reserved) == (5.0, 2.0)
    assert history.to_plain() == {"trials": [RUNNING, COMPLETE, FAILED]}
    whole = History.from_plain({"trials": [RUNNING, COMPLETE | {"value": 1, "cost": 3}]})
    assert type(whole.trial(1).value) is type(whole.trial(1).cost) is float
    before_charges = [
        {f: trial[f] for f in FIELDS if f not in ("charge", "reports")} for trial in (RUNNING, COMPLETE, FAILED)
    ]
    assert History.from_plain({"trials": before_charges}) == history


@pytest.mark.parametrize(
    ("trials", "said"),
    [
        ([RUNNING, COMPLETE | {"number": 0}], "without gap or repetition; got number 0 at position 1"),
        ([RUNNING, FAILED], "without gap or repetition; got number 2 at position 1"),
        ([COMPLETE], "without gap or repetition; got number 1 at position 0"),
        ([RUNNING | {"number": "0"}], "got number '0' at position 0"),
        ([RUNNING | {"number": False}], "got number False at position 0"),
        ([RUNNING | {"number": 0.0}], "got number 0.0 at position 0"),
        (
            [RUNNING | {"state": "paused"}],
            "state of trial 0 must be one of running, complete, failed, interrupted, stopped; got",
        ),
        ([RUNNING | {"state": ["running"]}], "state of trial 0 must be one of"),
        ([RUNNING | {"params": [1]}], "params of trial 0 must be a mapping from names to values; got [1]"),
        ([RUNNING | {"params": {"x": [1]}}], "params of trial 0['x'] must be a str, int, float, bool or None; got [1]"),
        ([RUNNING | {"params": {"x": math.nan}}], "params of trial 0['x'] must be finite; got nan"),
        ([RUNNING, COMPLETE | {"cost": -1.0}], "cost of trial 1 must be a positive, finite number; got -1.0"),
        ([RUNNING, COMPLETE | {"cost": True}], "cost of trial 1 must be a positive, finite number; got True"),
        ([RUNNING | {"predicted_cost": 0}], "predicted_cost of trial 0 must be a positive, finite number; got 0"),
        ([RUNNING, COMPLETE | {"value": "1"}], "value of trial 1 must be a real number; got '1'"),
        ([RUNNING, COMPLETE | {"value": None}], "value of trial 1 must be a finite number if complete"),
        ([RUNNING, COMPLETE | {"value": math.nan}], "value of trial 1 must be a finite number if complete"),
        (
            [RUNNING | {"value": 1.0}],
            "value of trial 0 must be a finite number if complete, else null; got 1.0 (running)",
        ),
        (
            [RUNNING, COMPLETE, FAILED | {"value": 1.0}],
            "value of trial 2 must be a finite number if complete, else null",
        ),
        ([RUNNING | {"cost": 1.0}], "cost of trial 0 must be null while running; got 1.0"),
        ([RUNNING | {"external": True}], "external of trial 0 must be a bool, false while running; got True"),
        ([RUNNING, COMPLETE | {"external": 1}], "external of trial 1 must be a bool"),
        ([RUNNING | {"charge": 1.0}], "charge of trial 0 must be null while running; got 1.0"),
        ([RUNNING, COMPLETE | {"charge": -1.0}], "charge of trial 1 must be a positive, finite number; got -1.0"),
        ([RUNNING, COMPLETE | {"message": "x"}], "message of trial 1 must be null, or a str if it ended without a"),
        ([RUNNING, COMPLETE, FAILED | {"message": 3}], "message of trial 2 must be null, or a str if it ended without"),
        ([RUNNING | {"color": 1}], "trials[0] must have exactly 'number', 'params'"),
        ([RUNNING | {"color": 1}], "unknown: 'color'"),
        ([{f: RUNNING[f] for f in FIELDS if f != "cost"}], "missing: 'cost'"),
        ([3], "trials[0] must be a mapping"),
        ({"0": RUNNING}, "trials of a history must be a list"),
    ],
)
def test_json_is_checked(trials, said):
    with pytest.raises(InvalidInputError) as caught:
        History.from_plain({"trials": trials})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "history must be a mapping with trials; got None"),
        ({}, "history must have exactly 'trials'; missing: 'trials'"),
        ({"trials": [], "space": {}}, "unknown: 'space'"),
    ],
)
def test_json_of_something_else(data, said):
    with pytest.raises(InvalidInputError) as caught:
        History.from_plain(data)
    assert said in str(caught.value)
