"""What more budget is expected to buy, against closed forms and games."""

import math

import numpy as np
import pytest
from report_runs import ordinary
from scipy import stats

from pbgi.report.beliefs import Beliefs, beliefs_of
from pbgi.report.outlook import N_BUDGETS, outlook_of


def believed(mean, std, cost, X=None):
    d = 1 if X is None else np.shape(X)[1]
    X = np.linspace(0.0, 1.0, len(mean))[:, None] if X is None else np.array(X)
    mean, end = np.array(mean), stats.norm.ppf(0.9) * np.array(std)
    alike, numbers = np.full(d, 0.1), np.zeros(d, dtype=bool)
    return Beliefs((), X, mean, mean - end, mean + end, np.array(cost), alike, numbers)


def improvement(mean, std):
    z = mean / std
    return std * (stats.norm.pdf(z) + z * stats.norm.cdf(z))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("mean", "std"), [(0.3, 1.0), (-1.0, 0.5), (2.0, 1e-3), (-1e-9, 1e-9)])
def test_one_point_gives_its_expected_improvement_in_proportion_to_the_money(sign, mean, std):
    # With less than its price the best policy opens the only box by a coin, so that the expected spend is the budget.
    found = outlook_of(believed([5.0 + sign * mean], [std], [4.0]), 5.0, sign, 4.0)
    share = np.linspace(0.0, 1.0, N_BUDGETS + 1)
    expected = 5.0 + sign * share * improvement(mean, std)
    assert found.expected == pytest.approx(expected, rel=1e-4, abs=1e-12)
    assert found.n_boxes == 1


def test_two_points_against_games_played_out():
    mean, std, cost = np.array([0.0, 0.2]), np.array([1.0, 0.5]), np.array([1.0, 1.0])
    found = outlook_of(believed(mean, std, cost), 0.0, 1.0, 2.0)
    draws = np.random.default_rng(1).normal(mean, std, (200_000, 2))
    # With money for both, both are opened unless the first is already better than the second can be hoped to be:
    # the best policy cannot do worse than opening both, nor better than that for free.
    both = np.maximum(draws.max(axis=1), 0.0).mean()
    assert found.expected[-1] == pytest.approx(both, rel=0.01)
    one = np.maximum(draws, 0.0).mean(axis=0).max()
    half = found.expected[N_BUDGETS // 2]  # for the price of one
    assert one * 0.99 <= half <= both


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_more_money_never_buys_less(sign):
    rng = np.random.default_rng(0)
    found = outlook_of(believed(rng.normal(0, 1, 30), rng.uniform(0.1, 1, 30), rng.uniform(1, 5, 30)), 0.5, sign, 40.0)
    assert np.all(np.diff(sign * found.expected) >= -1e-9)
    assert np.all(sign * (found.high - found.low) >= 0.0)
    assert np.all(sign * (found.low - 0.5) >= 0.0)  # what is found already stays found
    assert found.expected[0] == 0.5


def test_units_do_not_matter():
    rng = np.random.default_rng(0)
    mean, std, cost = rng.normal(0, 1, 20), rng.uniform(0.1, 1, 20), rng.uniform(1, 5, 20)
    found = outlook_of(believed(mean, std, cost), 0.5, 1.0, 20.0)
    scaled = outlook_of(believed(1e6 * mean, 1e6 * std, 1e-3 * cost), 0.5e6, 1.0, 0.02)
    assert scaled.expected == pytest.approx(1e6 * found.expected, rel=1e-6)
    assert scaled.extra == pytest.approx(1e-3 * found.extra)


def test_points_close_together_count_once():
    X = [[0.5], [0.5005], [0.501], [0.9]]
    found = outlook_of(believed([0.0] * 4, [1.0] * 4, [1.0] * 4, X), 0.0, 1.0, 4.0)
    assert found.n_boxes == 2


@pytest.mark.parametrize(
    ("mean", "std", "cost"), [([-1e9], [1.0], [1.0]), ([0.0], [0.0], [1.0]), ([0.0], [1.0], [1e9])]
)
def test_where_there_is_nothing_to_hope_for_nothing_is_expected(mean, std, cost):
    found = outlook_of(believed(mean, std, cost), 0.25, 1.0, 10.0)
    assert found.n_boxes == 0
    assert set(found.expected) == set(found.low) == set(found.high) == {0.25}


def test_beliefs_are_those_of_the_optimizer():
    optimizer = ordinary()
    found = beliefs_of(optimizer, dict, -1.0)
    assert [part.name for part in found.slices] == ["rate", "depth", "kind"]
    for part in found.slices:
        points = [{**optimizer.best.params, part.name: value} for value in part.values]
        asked = optimizer.predict(points)
        assert part.median == pytest.approx(asked.median)
        assert part.high == pytest.approx(asked.high, abs=1e-9)
        assert part.cost == pytest.approx(asked.cost)
    assert found.slices[1].values == tuple(range(1, 13))
    assert set(found.slices[2].values) == {"a", "b", None}
    assert math.isclose(found.slices[0].values[0], 1e-4)
    assert len(np.unique(found.X, axis=0)) == len(found.X)
