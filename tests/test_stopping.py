"""Stop rules: one suite that all of them pass, and what each of them promises, against brute force on dense grids."""

import dataclasses
import json
import math

import numpy as np
import pytest
from engine_fixtures import (
    FINITE,
    LINE,
    SQUARE,
    add_trial,
    build_snapshot,
    expected_improvement,
    index_by_bisection,
    one_thread,  # noqa: F401
)

from pbgi import InvalidInputError
from pbgi.cost import KnownCost, LearnedCost
from pbgi.history import History
from pbgi.serialization import from_plain, to_plain
from pbgi.stopping import (
    STOP_RULES,
    AnyOf,
    BudgetSpent,
    GittinsStop,
    MaxTrials,
    NothingLeft,
    Situation,
    StopReason,
    rules_of,
)

RULES = [
    MaxTrials(7),
    BudgetSpent(),
    BudgetSpent(overshoot=True),
    GittinsStop(0.25),
    GittinsStop(1e-3, patience=1),
    AnyOf(()),
    MaxTrials(7) | BudgetSpent(),
    AnyOf((MaxTrials(3), AnyOf((BudgetSpent(True), AnyOf((GittinsStop(2.0),)))))),
]
every_rule = pytest.mark.parametrize("rule", RULES, ids=repr)
DENSE = np.linspace(0.0, 1.0, 4_001)[:, None]


def situation(history=None, **fields):
    history = history or History()
    known = {"budget": None, "spent": history.spent, "reserved": history.reserved, "sign": 1.0, "note": {}}
    return Situation(trials=history.trials, **(known | fields))


def rng(seed=0):
    return np.random.default_rng([23, seed])


def typical(seed=0, n=6, space=LINE, **fields):
    X = space.snap(np.random.default_rng(seed).random((n, space.dimension)))
    fields = {"cost": LearnedCost(), "costs": np.exp(2 * X[:, 0])} | fields
    return build_snapshot(space, X, np.sin(7 * X[:, 0]), **fields)


# All rules ------------------------------------------------------------------------------------------------------------


@every_rule
def test_frozen_hashable_and_survives_json(rule):
    copy = from_plain("stop", json.loads(json.dumps(to_plain(rule))), STOP_RULES)
    assert copy == rule
    assert hash(copy) == hash(rule)
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
        rule.n = 3


def test_every_rule_is_in_the_suite():
    assert {type(rule) for rule in RULES} == set(STOP_RULES)


@every_rule
@pytest.mark.parametrize("space", [LINE, SQUARE, FINITE], ids=["line", "square", "finite"])
def test_notes_are_numbers_that_a_trial_can_keep(rule, space):
    snapshot = typical(space=space)
    first, second = (rule.note(snapshot, rng()) for _ in range(2))
    assert first == second
    trial = History().add_running(space.from_unit(snapshot.X[0]), 1.0, first)
    assert json.loads(json.dumps(dict(trial.record))) == first


@every_rule
def test_nothing_stops_a_run_that_has_not_begun(rule):
    assert rule.reason(situation(budget=10.0)) is None
    assert rule.reason(situation()) is None


@every_rule
def test_no_global_random_state(rule):
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    rule.note(typical(), rng())
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


# Combination ----------------------------------------------------------------------------------------------------------


def test_either_of_two_is_flat():
    a, b, c = MaxTrials(3), BudgetSpent(), GittinsStop(1.0)
    assert (a | b).rules == (a, b)
    assert ((a | b) | c).rules == (a, b, c)
    assert (a | (b | c)).rules == (a, b, c)
    assert (AnyOf(()) | a).rules == (a,)
    assert (AnyOf((AnyOf((a, AnyOf((b,)))),)) | c).rules == (a, b, c)


def test_rules_inside_a_combination_are_seen_however_nested():
    """The optimizer looks among them for the one that keeps the budget."""
    a, b, c = MaxTrials(3), BudgetSpent(), GittinsStop(1.0)
    assert rules_of(AnyOf((a, AnyOf((AnyOf((b,)), c))))) == (a, b, c)
    assert rules_of(a) == (a,)


def test_the_first_reason_is_given():
    history = History()
    for _ in range(3):
        add_trial(history, {"x": 0.5}, 1.0, cost=4.0)
    now = situation(history, budget=10.0)
    assert (MaxTrials(3) | BudgetSpent()).reason(now).rule == "MaxTrials"
    assert (BudgetSpent() | MaxTrials(3)).reason(now).rule == "BudgetSpent"
    assert (MaxTrials(4) | BudgetSpent()).reason(now).rule == "BudgetSpent"
    assert (MaxTrials(4) | GittinsStop(1.0)).reason(now) is None
    assert AnyOf(()).reason(now) is None


def test_two_exchange_rates_at_once():
    """Each rule judges the trial by its own rate; the dearer one stops, whichever comes first."""
    snapshot = typical()
    dear, cheap = GittinsStop(1e6, patience=1), GittinsStop(1e-12, patience=1)
    for rule in (dear | cheap, cheap | dear):
        now = Situation(snapshot.trials, None, 6.0, 0.0, 1.0, rule.note(snapshot, rng()))
        assert rule.reason(now) is not None
        assert dear.reason(now) is not None
        assert cheap.reason(now) is None


@pytest.mark.parametrize("bad", [5, "MaxTrials", None, MaxTrials])
def test_only_rules_can_be_combined(bad):
    with pytest.raises(InvalidInputError, match=r"rules must be stop rules.*got"):
        AnyOf((MaxTrials(3), bad))
    with pytest.raises(InvalidInputError, match=r"rules must be stop rules.*got"):
        MaxTrials(3) | bad


def test_a_list_of_rules_is_kept_as_a_tuple():
    assert hash(AnyOf([MaxTrials(3)])) == hash(AnyOf((MaxTrials(3),)))


# MaxTrials ------------------------------------------------------------------------------------------------------------


def test_trials_handed_out_count_and_others_do_not():
    history, rule = History(), MaxTrials(3)
    for k in range(5):
        history.add_external({"x": 0.1 * k}, 1.0)
    assert rule.reason(situation(history)) is None
    add_trial(history, {"x": 0.5}, 1.0)
    history.fail(history.add_running({"x": 0.6}).number, 1.0)
    assert rule.reason(situation(history)) is None
    history.add_running({"x": 0.7})
    reason = rule.reason(situation(history))
    assert reason == StopReason("MaxTrials", "Reached the limit of 3 trials", {"trials": 3.0})
    assert str(reason) == reason.message


@pytest.mark.parametrize("bad", [0, -1, 2.0, True, "3", None])
def test_bad_numbers_of_trials(bad):
    with pytest.raises(InvalidInputError, match="n must be a positive whole number; got"):
        MaxTrials(bad)


# BudgetSpent ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("overshoot", [False, True])
@pytest.mark.parametrize(
    ("spent", "reserved", "stops"),
    [(0.0, 0.0, False), (9.99, 0.0, False), (10.0, 0.0, True), (12.5, 0.0, True), (6.0, 3.9, False), (6.0, 4.0, True)],
)
def test_budget_is_spent_when_nothing_is_left_after_reservations(overshoot, spent, reserved, stops):
    reason = BudgetSpent(overshoot).reason(situation(budget=10.0, spent=spent, reserved=reserved))
    assert (reason is not None) == stops
    if stops:
        left = 10.0 - spent - reserved
        assert reason.numbers == {"budget": 10.0, "spent": spent, "reserved": reserved, "left": left}
        assert f"budget of 10 is spent: {spent:g}" in str(reason)
        assert ("held for running trials" in str(reason)) == (reserved > 0)


def test_what_is_left_fits_nothing():
    now = situation(budget=10.0, spent=7.0, reserved=1.0, nothing_left=NothingLeft.UNAFFORDABLE)
    reason = BudgetSpent().reason(now)
    assert reason.rule == "BudgetSpent"
    assert reason.numbers["left"] == 2.0
    assert str(reason) == "no trial is expected to fit the 2 that is left of the budget of 10"
    assert BudgetSpent(overshoot=True).reason(now) is None  # the paper's rule: start as long as anything is left
    assert BudgetSpent().reason(dataclasses.replace(now, nothing_left=NothingLeft.EXHAUSTED)) is None


def test_without_a_budget_there_is_none_to_spend():
    assert BudgetSpent().reason(situation(spent=1e9, nothing_left=NothingLeft.UNAFFORDABLE)) is None


@pytest.mark.parametrize("bad", [None, 1, "no", 0.0])
def test_overshoot_is_yes_or_no(bad):
    with pytest.raises(InvalidInputError, match="overshoot must be True or False; got"):
        BudgetSpent(bad)


# GittinsStop: the signal ----------------------------------------------------------------------------------------------


def stops(snapshot, cost_scale, seed=0):
    rule = GittinsStop(cost_scale, patience=1)
    now = Situation(snapshot.trials, None, snapshot.spent, 0.0, snapshot.sign, rule.note(snapshot, rng(seed)))
    return rule.reason(now)


def test_a_former_maximizer_that_a_fresh_search_misses_is_looked_at_again(monkeypatch):
    """A search that has only its pool, far from the maximum, misses it; a point noted by an earlier trial does not."""
    snapshot = typical(0)
    rule, everywhere = GittinsStop(1.0), GittinsStop(1.0).note(snapshot, rng(0))
    assert snapshot.space.snap(np.array([everywhere["worth_x"]])).shape == (1, snapshot.space.dimension)

    def blind(dimension, _rng, former_maximizers=None, **_):
        far = np.zeros((1, dimension))
        return far if former_maximizers is None else np.concatenate([far, former_maximizers])

    monkeypatch.setattr("pbgi.best_point.build_pool", blind)
    monkeypatch.setattr(
        "pbgi.search.maximize.maximize_batch", lambda f, starts, **_: (starts, f(starts)[0])
    )  # no climbing
    assert rule.note(snapshot, rng(0))["worth"] < everywhere["worth"] - 1e-3
    remembering = dataclasses.replace(snapshot.trials[0], record={"worth_x": everywhere["worth_x"]})
    again = dataclasses.replace(snapshot, trials=(remembering, *snapshot.trials[1:]))
    assert rule.note(again, rng(0))["worth"] == pytest.approx(everywhere["worth"], rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_stops_where_brute_force_finds_no_point_worth_its_price(seed):
    """The threshold rate is the largest EI / E[c] on a dense grid; it is found to within a thousandth."""
    snapshot = typical(seed)
    mean, std = snapshot.model.posterior(DENSE)
    improvement = expected_improvement(mean, std, snapshot.warped.max())
    cost = np.exp(snapshot.cost.log_moment(DENSE, 1.0))
    threshold = (improvement / cost).max()
    for factor in (1e-6, 0.5, 0.999, 1.001, 2.0, 1e6):
        scale = factor * threshold
        worth_it = (improvement - scale * cost).max() > 0
        assert worth_it == (factor < 1)
        assert (stops(snapshot, scale) is None) == worth_it
        # The same by the index: no index above the best value.
        if 0.9 < factor < 1.1:
            assert (index_by_bisection(mean, std, scale * cost).max() > snapshot.warped.max()) == worth_it


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_numbers_of_the_reason(sign):
    """In the user's direction, and each from the posterior at the point most worth its price."""
    snapshot = typical(2, sign=sign)
    mean, std = snapshot.model.posterior(DENSE)
    cost = np.exp(snapshot.cost.log_moment(DENSE, 1.0))
    improvement = expected_improvement(mean, std, snapshot.warped.max())
    best = int((improvement / cost).argmax())
    scale = 3.0 * improvement[best] / cost[best]
    reason = stops(snapshot, scale)
    index = index_by_bisection(mean[best], std[best], scale * cost[best])
    assert reason.numbers["index"] == pytest.approx(sign * index, rel=1e-3)
    assert reason.numbers["best_value"] == sign * snapshot.warped.max()
    assert reason.numbers["predicted_cost"] == pytest.approx(cost[best], rel=1e-3)
    assert reason.numbers["net_gain"] == pytest.approx(improvement[best] - scale * cost[best], rel=1e-3)
    assert sign * reason.numbers["index"] < sign * reason.numbers["best_value"]
    assert f"{reason.numbers['index']:g}, which does not beat the best value, {sign * snapshot.warped.max():g}" in str(
        reason
    )
    assert f"would cost {reason.numbers['predicted_cost']:g} and lose {-reason.numbers['net_gain']:g} net" in str(
        reason
    )


def test_failures_make_what_is_around_them_dear():
    """p EI - cost_scale c for the net gain and p EI(g) = cost_scale c for the index, p the chance of success."""
    snapshot = typical(2, failed=[[0.9], [0.7], [0.5], [0.2]])
    mean, std = snapshot.model.posterior(DENSE)
    away = (np.abs(DENSE - snapshot.failed[:, 0]) >= 0.05 - 1e-9).all(axis=1)
    cost, price = (np.exp(model.log_moment(DENSE, 1.0)) for model in (snapshot.cost, snapshot.price))
    assert (price / cost).max() > 1.5
    improvement = np.where(away, expected_improvement(mean, std, snapshot.warped.max()), 0.0)
    best = int((improvement / price).argmax())
    scale = 2.0 * improvement[best] / price[best]
    assert stops(snapshot, scale / 2.01) is None
    reason = stops(snapshot, scale)
    p = cost[best] / price[best]
    assert reason.numbers["net_gain"] == pytest.approx(p * improvement[best] - scale * cost[best], rel=1e-2)
    index = index_by_bisection(mean[best], std[best], scale * price[best])
    assert reason.numbers["index"] == pytest.approx(index, rel=1e-2)


def test_in_a_finite_space_only_points_not_yet_tried_count():
    levels = np.array([[a, b] for a in FINITE.grids[0] for b in FINITE.grids[1]])
    left = [3, 10]
    tried = np.delete(levels, left, axis=0)
    snapshot = build_snapshot(FINITE, tried, np.sin(9 * tried[:, 0] + tried[:, 1]), excluded=tried)
    mean, std = snapshot.model.posterior(levels[left])
    threshold = expected_improvement(mean, std, snapshot.warped.max()).max()  # all cost one
    assert stops(snapshot, 0.999 * threshold) is None
    assert stops(snapshot, 1.001 * threshold) is not None
    everything = build_snapshot(FINITE, levels, levels[:, 0], excluded=levels)
    assert GittinsStop(1.0).note(everything, rng()) == {}


def test_what_is_not_affordable_is_not_noted():
    price = KnownCost(lambda p: 1.0 + 99.0 * p["x"])
    snapshot = typical(1, cost=price, affordable=0.5)
    assert GittinsStop(1.0).note(snapshot, rng()) == {}
    note = GittinsStop(1.0).note(typical(1, cost=price, affordable=20.0), rng())
    assert math.exp(note["worth_log_cost"]) <= 20.0 * (1 + 1e-9)


# GittinsStop: patience ------------------------------------------------------------------------------------------------

NOTE = {"worth_index": 0.0, "worth_log_cost": 0.0}


def patient(worths, patience, scale=1.0):
    """Whether the rule stops after trials with these numbers, None for a trial without; the last is the next one's."""
    history = History()
    for worth in worths[:-1]:
        add_trial(history, {"x": 0.5}, 2.0, record={} if worth is None else {**NOTE, "worth": worth})
    note = {} if worths[-1] is None else {**NOTE, "worth": worths[-1]}
    return GittinsStop(scale, patience).reason(situation(history, note=note)) is not None


@pytest.mark.parametrize(
    ("worths", "patience", "expected"),
    [
        ([None, -1.0], 1, True),
        ([None, 0.0], 1, True),  # worth exactly its price: stop
        ([None, 1e-9], 1, False),
        ([5.0, -1.0], 1, True),
        ([None, -1.0], 2, False),
        ([None, -1.0, -1.0], 2, True),
        ([-1.0, 1.0, -1.0], 2, False),
        ([-1.0, -1.0, 1.0], 2, False),
        ([1.0, -1.0, -1.0], 2, True),
        ([-1.0, -1.0], 3, False),
        ([-1.0, -1.0, -1.0], 3, True),
        ([-1.0, 0.5, -1.0, -1.0], 3, False),
        ([0.5, -1.0, -1.0, -1.0], 3, True),
        ([-1.0, -1.0, -1.0, None], 3, False),  # nothing is known of the next trial
        ([-1.0, -1.0, -1.0, 0.5], 3, False),
    ],
)
def test_patience_counts_trials_in_a_row(worths, patience, expected):
    assert patient(worths, patience) is expected


def test_patience_is_by_the_rate_of_the_rule():
    """Worth is log(EI / E[c]): what counts is whether it exceeds log(cost_scale)."""
    worths = [math.log(2.0)] * 3
    assert patient(worths, 3, scale=2.0 * (1 + 1e-12))
    assert not patient(worths, 3, scale=2.0 * (1 - 1e-12))


def test_default_patience():
    assert GittinsStop(1.0).patience == 3


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, True, "1", None])
def test_bad_rates(bad):
    with pytest.raises(InvalidInputError, match="cost_scale must be a positive, finite number; got"):
        GittinsStop(bad)


@pytest.mark.parametrize("bad", [0, -2, 1.5, True, "3", None])
def test_bad_patience(bad):
    with pytest.raises(InvalidInputError, match="patience must be a positive whole number; got"):
        GittinsStop(1.0, patience=bad)


def test_numpy_rates_survive_json():
    rule = GittinsStop(np.float32(0.5))
    assert from_plain("stop", json.loads(json.dumps(to_plain(rule))), STOP_RULES) == rule


def test_bad_json_is_refused():
    with pytest.raises(InvalidInputError, match="kind of stop must be one of"):
        from_plain("stop", {"kind": "Forever"}, STOP_RULES)
    with pytest.raises(InvalidInputError, match="n must be a positive whole number"):
        from_plain("stop", {"kind": "MaxTrials", "n": 0}, STOP_RULES)
    with pytest.raises(InvalidInputError, match="patience"):
        from_plain("stop", {"kind": "GittinsStop", "cost_scale": 1.0}, STOP_RULES)


def test_reasons_are_values():
    a, b = (StopReason("MaxTrials", "enough", {"trials": 3.0}) for _ in range(2))
    assert a == b
    assert hash(a) == hash(b)
    assert a != StopReason("MaxTrials", "enough", {"trials": 4.0})
