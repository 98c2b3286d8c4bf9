"""The index of boxes paid in stages: against the ordinary one, closed forms, dynamic programming and played boxes."""

import itertools

import numpy as np
import pytest
import stage_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from pbgi import InvalidInputError, gittins_index, gittins_index_and_grad
from pbgi.index import instalment_index, instalment_index_and_grad, inverse_log_h

EXTREMES = [1e-300, 1e-200, 1e-30, 1e-8, 1.0, 1e8, 1e30, 1e200, 1e300]


def random_boxes(seed, n, n_stages, narrowest=0.3, log_price=(-9.0, 0.0)):
    """Stages of unlike deviations and prices that cover many orders of magnitude."""
    rng = np.random.default_rng(seed)
    stds = np.exp(rng.uniform(np.log(narrowest), 0.0, (n, n_stages)))
    return stds / np.linalg.norm(stds, axis=1, keepdims=True), rng.uniform(*log_price, (n, n_stages))


def test_one_stage_is_the_ordinary_index():
    mean, std, log_cost = 0.3, np.array(EXTREMES)[:, None], np.log(np.array(EXTREMES))
    ordinary = gittins_index_and_grad(mean, std, log_cost)
    index, by_std, by_log_cost = instalment_index_and_grad(
        mean, np.broadcast_to(std, (9, 9))[..., None], log_cost[..., None]
    )
    for ours, theirs in zip((index, by_std[..., 0], by_log_cost[..., 0]), ordinary, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=0)


def two_stages_worth(u, stds, prices):
    """E max(0, E max(u + s1 Z1 + s2 Z2, 0) - p2) - p1 in closed form, from one bivariate normal distribution.

    The second stage is paid where the mean is above b = s2 H(p2 / s2) after the first.
    """
    s1, s2 = stds
    both, b = np.hypot(s1, s2), s2 * inverse_log_h(np.log(prices[1] / s2))
    rho, root = s1 / both, s2 / both
    a, c = -u / both, (b - u) / s1  # the prize is positive from a on, the second stage is paid from c on
    # Owen (1956): the bivariate normal distribution function at (-a, -c).
    p_both = 0.5 * (special.ndtr(-a) + special.ndtr(-c)) - (0.5 if a * c < 0 else 0.0)
    p_both -= special.owens_t(-a, (c - rho * a) / (a * root)) + special.owens_t(-c, (a - rho * c) / (c * root))
    partial = stats.norm.pdf(a) * special.ndtr((rho * a - c) / root)
    partial += rho * stats.norm.pdf(c) * special.ndtr((rho * c - a) / root)
    return u * p_both + both * partial - prices[1] * special.ndtr(-c) - prices[0]


@pytest.mark.parametrize("seed", range(5))
def test_two_stages_against_the_closed_form(seed):
    stds, log_prices = random_boxes(seed, 1, 2, narrowest=0.05, log_price=(-6.0, -1.0))
    root = -instalment_index(0.0, stds[0], log_prices[0])
    prices = np.exp(log_prices[0])
    below, above = (two_stages_worth(root + step, stds[0], prices) for step in (-1e-9, 1e-9))
    assert below < 0 < above


@pytest.mark.parametrize(("n_stages", "narrowest"), [(2, 0.1), (3, 0.05), (5, 0.3), (8, 0.3), (20, 0.6)])
def test_any_number_of_stages_against_dynamic_programming(n_stages, narrowest):
    log_price = (-9.0, 0.0) if n_stages < 20 else (-7.0, -3.0)
    stds, log_prices = random_boxes(n_stages, 2, n_stages, narrowest, log_price)
    index = instalment_index(0.0, stds, log_prices)
    expected = [-oracle.boundaries(s, np.exp(p))[0] for s, p in zip(stds, log_prices, strict=True)]
    np.testing.assert_allclose(index, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("n_stages", [3, 20])
def test_a_box_played_at_its_index_gains_nothing(n_stages):
    """Beside a sure prize as large as the index, whoever opens the box by the rule comes out even."""
    stds, log_prices = (x[0] for x in random_boxes(n_stages, 1, n_stages, 0.2, (-6.0, -3.0)))
    offsets = [instalment_index(0.0, stds[k:], log_prices[k:]) for k in range(n_stages)]
    rng, n = np.random.default_rng(0), 200_000
    mean, gain, going_on = np.full(n, -offsets[0]), np.zeros(n), np.ones(n, dtype=bool)
    for std, log_price, offset in zip(stds, log_prices, offsets, strict=True):
        going_on &= mean + offset >= 0
        gain -= np.where(going_on, np.exp(log_price), 0.0)
        mean = mean + std * rng.standard_normal(n)
    gain += np.where(going_on, np.maximum(mean, 0.0), 0.0)
    assert abs(gain.mean()) < 4 * gain.std() / np.sqrt(n)
    assert 0.01 < going_on.mean() < 0.99


def assert_slopes(stds, log_prices, rtol=1e-6):
    """Derivatives against differences of the index, which is exact to 1e-11."""
    index, by_std, by_log_cost = instalment_index_and_grad(0.0, stds, log_prices)
    step = 1e-4
    for k, unit in enumerate(np.eye(stds.size)):
        rise_std = instalment_index(0.0, stds + step * unit * stds[k], log_prices)
        rise_std -= instalment_index(0.0, stds - step * unit * stds[k], log_prices)
        rise_cost = instalment_index(0.0, stds, log_prices + step * unit)
        rise_cost -= instalment_index(0.0, stds, log_prices - step * unit)
        assert by_std[k] * stds[k] == pytest.approx(rise_std / (2 * step), rel=rtol, abs=1e-7)
        assert by_log_cost[k] == pytest.approx(rise_cost / (2 * step), rel=rtol, abs=1e-7)
    # Twice the deviations and the prices make twice the index.
    assert by_std @ stds + by_log_cost.sum() == pytest.approx(index, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("narrowest", [0.3, 1e-3])
def test_slopes_are_those_of_the_index(seed, narrowest):
    stds, log_prices = random_boxes(seed, 1, 4, narrowest)
    assert_slopes(stds[0], log_prices[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("stds", "prices"),
    [
        ([1e-3, 1e-3, 1e-3, 1.0], [1e-4, 1e-3, 1e-2, 0.1]),  # nothing is revealed until the last
        ([1.0, 1e-3, 1.0], [0.05, 1e-3, 0.1]),  # a small stage between two large ones
        ([1.0, 1e-6, 1.0], [0.05, 1e-8, 0.1]),
        ([0.1, 1.0], [1e-12, 0.5]),  # a first look for nothing
        ([1e-5, 1.0, 0.1], [1e-25, 1e-15, 1e-12]),
        ([1.0, 1.0], [1e-3, 30.0]),  # hardly ever paid to the end
    ],
)
def test_slopes_of_uneven_stages(stds, prices):
    assert_slopes(np.array(stds), np.log(prices), rtol=1e-4)


def test_stages_that_reveal_nothing_are_paid_with_the_next():
    price = np.log([0.05, 0.1, 0.02, 0.2])
    inside = instalment_index(1.0, [0.5, 0.0, 0.0, 0.8], price)
    assert inside == pytest.approx(instalment_index(1.0, [0.5, 0.8], np.log([0.05, 0.32])), rel=1e-12)
    after = instalment_index(1.0, [0.5, 0.8, 0.0, 0.0], price)
    assert after == pytest.approx(instalment_index(1.0 - 0.22, [0.5, 0.8], np.log([0.05, 0.1])), rel=1e-12)
    assert instalment_index(1.0, [0.0, 0.7, 0.0, 0.0], price) == pytest.approx(
        gittins_index(1.0, 0.7, np.log(0.15)) - 0.22, rel=1e-12
    )
    np.testing.assert_allclose(instalment_index_and_grad(1.0, np.zeros(4), price)[2], -np.exp(price), rtol=1e-12)
    assert instalment_index(1.0, np.zeros(4), price) == pytest.approx(1.0 - 0.37, rel=1e-12)


@pytest.mark.parametrize("small", [1e-3, 1e-6, 1e-9, 1e-10])
def test_an_index_moves_no_further_than_a_stage_reveals(small):
    """From a stage that reveals nothing to one that reveals little, wherever it stands."""
    price = np.log([1e-7, 0.05, 1e-4])
    for place in range(3):
        stds = np.insert([0.6, 0.8], place, small)
        without = instalment_index(0.0, np.insert([0.6, 0.8], place, 0.0), price)
        assert -1e-11 <= instalment_index(0.0, stds, price) - without <= 10 * small


def test_stages_are_worth_more_than_one_payment_and_less_than_the_first_price():
    for n_stages, narrowest, log_price in itertools.product((2, 4), (0.3, 1e-4), ((-9, 0), (-40, 3), (-200, -100))):
        stds, log_prices = random_boxes(n_stages, 30, n_stages, narrowest, log_price)
        index, spread = instalment_index(0.0, stds, log_prices), np.linalg.norm(stds, axis=1)
        scale = 1.0 + np.exp(log_prices).sum(axis=1)
        assert np.all(index >= gittins_index(0.0, spread, special.logsumexp(log_prices, axis=1)) - 1e-10 * scale)
        assert np.all(index <= gittins_index(0.0, spread, log_prices[:, 0]) + 1e-10 * scale)


@settings(max_examples=40, deadline=None)
@given(
    stds=st.lists(st.floats(-12, 0), min_size=2, max_size=4),
    log_prices=st.lists(st.floats(-60, 6), min_size=4, max_size=4),
    stage=st.integers(0, 3),
    factor=st.floats(1.01, 100),
)
def test_dearer_is_worth_less_and_more_revealed_is_worth_more(stds, log_prices, stage, factor):
    stds, log_prices = 10.0 ** np.array(stds), np.array(log_prices[: len(stds)])
    unit = np.eye(len(stds))[stage % len(stds)]
    index = instalment_index(0.0, stds, log_prices)
    slack = 1e-10 * (np.linalg.norm(stds) + np.exp(log_prices).sum())
    assert instalment_index(0.0, stds, log_prices + unit * np.log(factor)) <= index + slack
    assert instalment_index(0.0, stds * (1 + unit * (factor - 1)), log_prices) >= index - slack * factor


def test_more_is_known_earlier():
    """Moving what a stage reveals to an earlier one, at the same prices, is worth something."""
    price = np.log([0.05, 0.05, 0.05])
    spreads = [np.sqrt([share, 0.9 - share, 0.1]) for share in (0.1, 0.4, 0.8)]
    index = instalment_index(0.0, np.array(spreads), price)
    assert np.all(np.diff(index) > 1e-3)


def test_finite_over_the_whole_range():
    rng = np.random.default_rng(0)
    stds, costs = (rng.choice([0.0, *EXTREMES], (200, 3)) for _ in range(2))
    costs = np.where(costs == 0, 1e-300, costs)
    for result in instalment_index_and_grad(0.0, stds, np.log(costs) + np.log(rng.choice(EXTREMES, (200, 1)))):
        assert np.all(np.isfinite(result))


def test_a_batch_is_the_same_as_its_boxes():
    stds, log_prices = random_boxes(0, 100, 3, narrowest=0.01)
    stds[::7, 1] = 0.0
    together = instalment_index_and_grad(0.0, stds, log_prices)
    for k in (0, 7, 50, 99):
        for ours, alone in zip(together, instalment_index_and_grad(0.0, stds[k], log_prices[k]), strict=True):
            np.testing.assert_allclose(ours[k], alone, rtol=0, atol=1e-10)


def test_batches_broadcast():
    index = instalment_index(np.zeros((2, 1)), [[1.0, 0.5]], np.full((3, 2), -2.0))
    assert index.shape == (2, 3)
    assert instalment_index(0.0, [1.0, 0.5], [-2.0, -2.0]) == pytest.approx(index[0, 0])
    assert instalment_index(np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3))).shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((0.0, 1.0, [-1.0]), r"stages, at least one, as their last axis; got shapes \(\) and \(1,\)"),
        ((0.0, [1.0, 2.0], [-1.0]), "as their last axis"),
        ((0.0, np.zeros(0), np.zeros(0)), "at least one"),
        (([0.0, 1.0], np.ones((3, 1)), [-1.0]), "shapes must broadcast"),
        ((0.0, [-1.0, 1.0], [0.0, 0.0]), "stds must be finite and not negative; got -1.0"),
        ((np.nan, [1.0], [0.0]), "mean must be finite; got nan"),
        ((0.0, [1.0], [np.inf]), "log_costs must be finite, that is"),
        ((0.0, ["a"], [0.0]), "stds must be a real number"),
    ],
)
def test_bad_input_is_refused(arguments, said):
    with pytest.raises(InvalidInputError, match=said):
        instalment_index(*arguments)


def test_tensors_have_the_same_numbers_and_slopes():
    torch = pytest.importorskip("torch")
    stds, log_prices = random_boxes(0, 4, 3)
    index, by_std, by_log_cost = instalment_index_and_grad(0.5, stds, log_prices)
    tensors = [torch.tensor(x, requires_grad=True) for x in (np.full(4, 0.5), stds, log_prices)]
    result = instalment_index(*tensors)
    result.sum().backward()
    np.testing.assert_array_equal(result.detach().numpy(), index)
    for tensor, slope in zip(tensors, (np.ones(4), by_std, by_log_cost), strict=True):
        np.testing.assert_array_equal(tensor.grad.numpy(), slope)
    single = instalment_index(*(x.detach().float() for x in tensors))
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single.numpy(), index, rtol=1e-5)
    both = instalment_index_and_grad(*(x.detach() for x in tensors))
    np.testing.assert_array_equal(both[1].numpy(), by_std)
