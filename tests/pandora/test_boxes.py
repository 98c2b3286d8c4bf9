"""Pandora's Box against exhaustive enumeration, simulation, closed forms and its own theory."""

import math
from fractions import Fraction

import numpy as np
import pandora_oracle as oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pbgi import InvalidInputError
from pbgi.pandora import Box, Discrete, Gaussian, solve

PROBLEMS = [oracle.random_problem(np.random.default_rng(seed)) for seed in range(300)]


def gaussian_boxes(n: int, seed: int) -> list[Box]:
    rng = np.random.default_rng(seed)
    return [
        Box(Gaussian(m, s), c)
        for m, s, c in zip(rng.normal(size=n), rng.uniform(0.1, 2, n), rng.uniform(0.2, 3, n), strict=True)
    ]


def mixed_boxes() -> list[Box]:
    return [
        Box(stats.norm(1, 2), 0.3),
        Box(stats.expon(scale=1.5), 0.2),
        Box(stats.uniform(-1, 4), 0.5),
        Box(stats.lognorm(0.8), 0.25),
        Box(Discrete([0, 1, 4], [0.5, 0.3, 0.2]), 0.4),
        Box(stats.poisson(1.2), 0.35),
        Box(stats.t(3), 0.15),
        Box([0.5, 2.5, 2.5, 3.0], 0.6),
    ]


# Against exhaustive enumeration ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost_scale", [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(3)])
def test_value_and_spend_for_a_cost_scale(cost_scale):
    for problem in PROBLEMS:
        solution = solve([box.box() for box in problem], cost_scale=float(cost_scale))
        spend, value = oracle.weitzman(problem, cost_scale)
        assert solution.spend == pytest.approx(float(spend), abs=1e-12)
        assert solution.value == pytest.approx(float(value), abs=1e-12)
        # No policy does better: the best corner of the frontier is the net value.
        best = max(point.value - cost_scale * point.spend for point in oracle.frontier(problem))
        assert solution.net == pytest.approx(float(best), abs=1e-12)
        np.testing.assert_allclose(solution.indices, [float(b.index(cost_scale)) for b in problem], atol=1e-13)


def test_budget_is_spent_exactly_and_no_policy_earns_more():
    rng = np.random.default_rng(0)
    n_mixed = n_slack = 0
    for problem in PROBLEMS:
        frontier = oracle.frontier(problem)
        cheapest, full = min(box.cost for box in problem), frontier[-1].spend
        budget = cheapest + (full - cheapest) * Fraction(int(rng.integers(0, 25)), 20)
        solution = solve([box.box() for box in problem], budget=float(budget))
        assert solution.value == pytest.approx(float(oracle.best_value(frontier, budget)), abs=1e-9)
        if solution.slack:
            assert solution.cost_scale == 0
            assert solution.spend == pytest.approx(float(frontier[-1].spend), abs=1e-9)
        else:
            assert solution.spend == pytest.approx(float(budget), abs=1e-9)
        n_mixed += 0 < solution.go_on_probability < 1
        n_slack += solution.slack
    assert n_mixed > 100  # the coin is really needed
    assert n_slack > 50


def test_played_games_earn_and_spend_what_was_promised():
    """The coin, the order and the stopping as played, over every combination of prizes."""
    for problem in PROBLEMS[:60]:
        budget = float(sum(b.cost for b in problem)) * 0.6
        if budget < min(b.cost for b in problem):
            continue
        solution = solve([box.box() for box in problem], budget=budget)
        value = spend = 0.0
        for go_on, weight in ((0.999999, 1 - solution.go_on_probability), (0.0, solution.go_on_probability)):
            for prizes, probability in every_combination(problem):
                game = solution.play(prizes, rng=FixedCoin(go_on))
                value += weight * probability * game.best
                spend += weight * probability * game.spent
        assert value == pytest.approx(solution.value, abs=1e-9)
        assert spend == pytest.approx(solution.spend, abs=1e-9)


class FixedCoin(np.random.Generator):
    """A generator whose coin always lands the same way."""

    def __init__(self, toss: float) -> None:
        super().__init__(np.random.PCG64(0))
        self._toss = toss

    def random(self) -> float:
        return self._toss


def every_combination(problem):
    combinations = [([], 1.0)]
    for box in problem:
        combinations = [([*vs, float(v)], q * float(p)) for vs, q in combinations for v, p in box.outcomes if p > 0]
    return combinations


# Against closed forms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("price", [1e-12, 1e-6, 1e-3, 0.1, 0.3, 1.0, 5.0])
def test_indices_with_closed_forms(price):
    """E max(prize - g, 0) = price, solved by hand."""
    boxes = [
        Box(stats.uniform(2, 3), price),
        Box(stats.expon(), price),
        Box(stats.pareto(3.0), price),
        Box(stats.norm(1, 2), price),
        Box(Discrete([1.0, 3.0], [0.5, 0.5]), price),
    ]
    uniform = 5 - math.sqrt(6 * price) if price <= 1.5 else 3.5 - price
    exponential = -math.log(price) if price <= 1 else 1 - price
    pareto = (2 * price) ** -0.5 if price <= 0.5 else 1.5 - price
    discrete = 3 - 2 * price if price <= 1 else 2 - price
    indices = solve(boxes, cost_scale=1.0).indices
    np.testing.assert_allclose(indices[[0, 1, 2, 4]], [uniform, exponential, pareto, discrete], rtol=1e-11, atol=1e-12)
    survival = stats.norm(1, 2).expect(lambda x: max(x - indices[3], 0.0), lb=indices[3]) if price > 1e-4 else price
    assert survival == pytest.approx(price, rel=1e-7)


def test_one_box_is_always_opened():
    solution = solve([Box(stats.norm(-5, 1), 3.0)])
    assert solution.value == pytest.approx(-5, abs=1e-12)
    assert solution.spend == 3.0
    assert solution.net == pytest.approx(-8, abs=1e-12)


def test_two_uniform_boxes_by_hand():
    """First U[0,2], then U[0,1] if the first prize is below its index: spend 1 + g/2, with g = 1 - sqrt(2 scale)."""
    boxes = [Box(stats.uniform(0, 2), 1.0), Box(stats.uniform(0, 1), 1.0)]
    solution = solve(boxes, budget=1.3)
    assert solution.cost_scale == pytest.approx(0.08, rel=1e-6)
    assert solution.spend == pytest.approx(1.3, abs=1e-12)
    # E best = 1 + integral over f < 0.6 of E max(U - f, 0), density 1/2.
    assert solution.value == pytest.approx(1 + (1 - 0.4**3) / 12, abs=1e-12)


def test_slack_budget_buys_full_information():
    boxes = [Box(stats.uniform(0, 2), 1.0), Box(stats.uniform(0, 1), 1.0)]
    solution = solve(boxes, budget=1.7)
    assert solution.slack
    assert solution.cost_scale == 0
    assert solution.spend == pytest.approx(1.5, abs=1e-12)
    assert solution.value == pytest.approx(1 + 1 / 12, abs=1e-12)  # E max(U[0,2], U[0,1])
    np.testing.assert_array_equal(solution.indices, [2.0, 1.0])


def test_gaussian_budget_is_slack_only_when_it_buys_everything():
    boxes = gaussian_boxes(5, 0)
    total = sum(box.cost for box in boxes)
    assert not solve(boxes, budget=0.999 * total).slack
    solution = solve(boxes, budget=total)
    assert solution.slack
    assert solution.spend == pytest.approx(total, rel=1e-12)
    samples = np.random.default_rng(0).normal(size=(1_000_000, 5))
    best = np.max([b.reward.mean for b in boxes] + samples * [b.reward.std for b in boxes], axis=1)
    assert solution.value == pytest.approx(best.mean(), abs=5 * best.std() / 1000)


def test_budget_of_the_cheapest_box_buys_just_that():
    boxes = [Box(Gaussian(0, 1), 2.0), Box(Gaussian(1, 1), 1.0), Box(Gaussian(3, 1), 1.0)]
    solution = solve(boxes, budget=1.0)
    assert solution.spend == pytest.approx(1.0, abs=1e-12)
    assert solution.value == pytest.approx(3.0, abs=1e-9)


# Against simulation ---------------------------------------------------------------------------------------------------


def simulate(solution, samples):
    """Best prize and spend of every row of prizes, by the indices alone."""
    costs = np.array([box.expected_cost for box in solution.boxes])
    best, spend = np.full(len(samples), -np.inf), np.zeros(len(samples))
    for box in solution.order:
        opened = best < solution.indices[box]
        spend += opened * costs[box]
        best = np.where(opened, np.maximum(best, samples[:, box]), best)
    return best, spend


@pytest.mark.parametrize("share", [0.1, 0.4, 0.8])
@pytest.mark.parametrize("make", [lambda: gaussian_boxes(12, 1), mixed_boxes])
def test_value_and_spend_against_simulation(make, share):
    boxes = make()
    costs = [box.expected_cost for box in boxes]
    solution = solve(boxes, budget=max(min(costs), share * sum(costs)))
    rng = np.random.default_rng(2)
    n = 400_000
    samples = np.stack([draw(box.reward, n, rng) for box in boxes], axis=1)
    best, spend = simulate(solution, samples)
    if solution.go_on_probability > 0:  # the indices shown are those of the rule that stops at ties
        assert spend.mean() <= solution.spend + 5 * spend.std() / math.sqrt(n)
        assert best.mean() <= solution.value + 5 * best.std() / math.sqrt(n)
        net = best.mean() - solution.cost_scale * spend.mean()
        assert net == pytest.approx(solution.net, abs=5 * (best - solution.cost_scale * spend).std() / math.sqrt(n))
    else:
        assert spend.mean() == pytest.approx(solution.spend, abs=5 * spend.std() / math.sqrt(n))
        assert best.mean() == pytest.approx(solution.value, abs=5 * best.std() / math.sqrt(n))


def draw(reward, n, rng):
    if isinstance(reward, Gaussian):
        return rng.normal(reward.mean, reward.std, n)
    if isinstance(reward, Discrete):
        return rng.choice(reward.values, n, p=reward.probabilities)
    return reward.rvs(n, random_state=rng)


def test_play_draws_prizes_and_costs():
    boxes = [*mixed_boxes(), Box(stats.norm(3, 1), stats.gamma(4.0, scale=0.1))]
    solution = solve(boxes, budget=1.0)
    rng = np.random.default_rng(3)
    games = [solution.play(rng) for _ in range(4000)]
    best, spent = np.array([(game.best, game.spent) for game in games]).T
    assert best.mean() == pytest.approx(solution.value, abs=5 * best.std() / math.sqrt(4000))
    assert spent.mean() == pytest.approx(solution.spend, abs=5 * spent.std() / math.sqrt(4000))
    assert len({opening.cost for game in games for opening in game.openings if opening.box == 8}) > 100


# Theory ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: gaussian_boxes(20, 4), mixed_boxes, lambda: [b.box() for b in PROBLEMS[7]]])
def test_dual_is_convex_and_spend_falls(make):
    boxes = make()
    scales = np.linspace(0.01, 3.0, 60)
    solutions = [solve(boxes, cost_scale=s) for s in scales]
    budget = 0.5 * sum(box.expected_cost for box in boxes)
    dual = np.array([s.net + s.cost_scale * budget for s in solutions])
    assert np.all(dual[2:] - 2 * dual[1:-1] + dual[:-2] >= -1e-10)
    assert np.all(np.diff([s.spend for s in solutions]) <= 1e-10)


def test_slope_of_the_net_is_minus_the_spend():
    boxes, step = gaussian_boxes(8, 5), 1e-6
    rise = solve(boxes, cost_scale=0.3 + step).net - solve(boxes, cost_scale=0.3 - step).net
    assert -rise / (2 * step) == pytest.approx(solve(boxes, cost_scale=0.3).spend, rel=1e-7)


def test_crossing_indices_of_gaussian_boxes_need_the_coin():
    """Two indices that cross make the spend jump although prizes are continuous: no single rule spends the budget."""
    boxes = [Box(Gaussian(0.0, 2.0), 1.0), Box(Gaussian(1.0, 0.5), 1.0)]
    scales = np.geomspace(0.01, 1, 1000)
    spends = np.array([solve(boxes, cost_scale=s).spend for s in scales])
    jump = int(np.argmin(np.diff(spends)))
    assert spends[jump] - spends[jump + 1] > 0.1
    budget = 0.5 * (spends[jump] + spends[jump + 1])
    solution = solve(boxes, budget=budget)
    assert 0 < solution.go_on_probability < 1
    assert solution.spend == pytest.approx(budget, abs=1e-9)
    # The dual bound proves it optimal: value <= net(scale) + scale * budget for every scale.
    assert solution.value <= min(solve(boxes, cost_scale=s).net + s * budget for s in scales) + 1e-9
    lower, upper = (solve(boxes, cost_scale=scales[j]) for j in (jump, jump + 1))
    assert upper.value - 1e-9 <= solution.value <= lower.value + 1e-9


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.floats(0.05, 0.95), st.floats(1e-6, 1e6), st.floats(-1e3, 1e3))
def test_units_do_not_matter(seed, share, factor, shift):
    boxes = gaussian_boxes(6, seed)
    moved = [Box(Gaussian(2.0 * b.reward.mean + shift, 2.0 * b.reward.std), factor * b.cost) for b in boxes]
    costs = [b.cost for b in boxes]
    budget = min(costs) + share * (sum(costs) - min(costs))
    a, b = solve(boxes, budget=budget), solve(moved, budget=factor * budget)
    assert b.value == pytest.approx(2.0 * a.value + shift, rel=1e-7, abs=1e-7)
    assert b.spend == pytest.approx(factor * budget, rel=1e-12)


def test_large_problem_agrees_with_the_sum_term_by_term():
    """The fast sums (interpolated block by block) against the plain double loop over 3,000 boxes."""
    boxes = gaussian_boxes(3000, 6)
    mean, std = np.array([(b.reward.mean, b.reward.std) for b in boxes]).T
    costs = np.array([b.cost for b in boxes])
    for cost_scale in (0.3, 1e-3, 1e-8, 1e-40):
        solution = solve(boxes, cost_scale=cost_scale)
        g = solution.indices[solution.order]
        log_cdf = stats.norm.logcdf((g[:, None] - mean[solution.order]) / std[solution.order])
        opened = np.exp(np.tril(log_cdf, -1).sum(axis=1))
        assert solution.spend == pytest.approx(costs[solution.order] @ opened, rel=1e-11)


def test_prizes_of_very_different_spread():
    """A narrow prize amid wide ones: the value of two independent Gaussians opened blindly is known in closed form."""
    wide, narrow = (0.0, 1e4), (3e3, 1e-3)
    boxes = [Box(Gaussian(*wide), 1.0), Box(Gaussian(*narrow), 1.0)]
    theta = math.hypot(wide[1], narrow[1])
    alpha = (wide[0] - narrow[0]) / theta
    expected = wide[0] * stats.norm.cdf(alpha) + narrow[0] * stats.norm.cdf(-alpha) + theta * stats.norm.pdf(alpha)
    assert solve(boxes, budget=2.0).value == pytest.approx(expected, rel=1e-12)
    samples = np.random.default_rng(8).normal(size=(400_000, 2)) * [wide[1], narrow[1]] + [wide[0], narrow[0]]
    solution = solve(boxes, cost_scale=100.0)
    best, spend = simulate(solution, samples)
    net = best - 100.0 * spend
    assert solution.net == pytest.approx(net.mean(), abs=5 * net.std() / math.sqrt(400_000))


def test_heavy_tail_far_above_everything_else():
    """Paretos have E max(prize - g, 0) = g**(1 - b) / (b - 1): the index is far out, the value is not."""
    boxes = [Box(stats.pareto(2.5), 1e-9), Box(Gaussian(1.0, 0.01), 1e-3)]
    solution = solve(boxes)
    g = (1.5e-9) ** (-1 / 1.5)
    assert solution.indices[0] == pytest.approx(g, rel=1e-11)
    # Opened first; then the other one if the prize is below its index, which earns E max(other - prize, 0) on top.
    other, density = stats.norm(1.0, 0.01), stats.pareto(2.5).pdf
    x = np.linspace(1.0, solution.indices[1], 200_001)
    gain = (0.01 * stats.norm.pdf((x - 1) / 0.01) - (x - 1) * other.sf(x)) * density(x)
    expected = 2.5 / 1.5 + np.trapezoid(gain, x)
    assert solution.value == pytest.approx(expected, rel=1e-9)
    assert solution.spend == pytest.approx(1e-9 + 1e-3 * stats.pareto(2.5).cdf(solution.indices[1]), rel=1e-12)


def test_equal_boxes():
    """n equal boxes: each is opened while none of the earlier prizes reaches the common index."""
    n, box = 50, Box(Gaussian(1.0, 2.0), 0.1)
    solution = solve([box] * n)
    below = stats.norm.cdf((solution.indices[0] - 1.0) / 2.0)
    assert solution.spend == pytest.approx(0.1 * (1 - below**n) / (1 - below), rel=1e-12)


# Playing and refusing -------------------------------------------------------------------------------------------------


def test_play_step_by_step():
    boxes = [Box(Discrete([0, 10], [0.9, 0.1]), 0.5), Box(Discrete([4], [1]), 1.0), Box(Gaussian(0, 1), 0.9)]
    solution = solve(boxes)
    np.testing.assert_allclose(solution.indices[:2], [5.0, 3.0])
    assert list(solution.order) == [0, 1, 2]
    game = solution.play([0, 4, 1])
    assert [(o.box, o.reward, o.cost, o.best) for o in game.openings] == [(0, 0, 0.5, 0), (1, 4, 1.0, 4)]
    assert game.best == 4
    assert game.spent == 1.5
    assert "4, is at least the index of the next box (2)" in game.stop_reason
    assert solution.play([10, 4, 1]).spent == 0.5
    assert solve(boxes[:1]).play([0]).stop_reason == "every box has been opened"


def test_samples_are_equally_likely_values():
    a = solve([Box(np.array([1.0, 1.0, 2.0]), 0.1), Box([0.0, 5.0], 0.2)])
    b = solve([Box(Discrete([1, 2], [2 / 3, 1 / 3]), 0.1), Box(Discrete([5, 0], [0.5, 0.5]), 0.2)])
    assert (a.value, a.spend) == pytest.approx((b.value, b.spend), abs=1e-14)


def test_random_cost_counts_by_its_mean():
    boxes = [Box(Gaussian(0, 1), stats.expon(scale=0.5)), Box(Gaussian(0, 2), stats.gamma(2.0, scale=0.1))]
    fixed = [Box(Gaussian(0, 1), 0.5), Box(Gaussian(0, 2), 0.2)]
    assert solve(boxes).value == solve(fixed).value
    assert solve(boxes).spend == solve(fixed).spend


GOOD = Gaussian(0, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: solve([]), "boxes must hold at least one box"),
        (lambda: solve([GOOD]), "boxes must be Box"),
        (lambda: Box(GOOD, 0.0), "cost must be positive and finite.*got 0"),
        (lambda: Box(GOOD, -1), "cost must be positive and finite.*got -1"),
        (lambda: Box(GOOD, math.nan), "cost must be positive"),
        (lambda: Box(GOOD, "free"), "cost must be a positive number or a frozen distribution; got 'free'"),
        (lambda: Box(GOOD, stats.norm(-1, 1)), "cost must be positive and finite.*got -1"),
        (lambda: Box(stats.cauchy(), 1.0), "finite mean; that of cauchy"),
        (lambda: Box(stats.pareto(0.9), 1.0), "finite mean; that of pareto.*inf"),
        (lambda: Box(stats.norm([0, 1], 1), 1.0), "one distribution, with scalar parameters"),
        (lambda: Box(stats.norm, 1.0), "reward must be a frozen scipy.stats distribution"),
        (lambda: Box([], 1.0), "samples of a reward must be a list of at least one number"),
        (lambda: Box([1.0, math.nan], 1.0), "samples of a reward must be finite; got nan"),
        (lambda: Box(Gaussian(0, 0), 1.0), "std must be positive and finite; got 0"),
        (lambda: Discrete([1, 2], [0.5, 0.6]), "probabilities must sum to one; got a sum of 1.1"),
        (lambda: Discrete([1, 2], [1.5, -0.5]), "probabilities must not be negative; got -0.5"),
        (lambda: Discrete([1, 2], [1.0]), "values and probabilities must have one length; got 2 and 1"),
        (lambda: Discrete([1, math.inf], [0.5, 0.5]), "values must be finite; got inf"),
        (lambda: solve([Box(GOOD, 2), Box(GOOD, 3)], budget=1.9), "at least the cost of the cheapest box, 2,.*got 1.9"),
        (lambda: solve([Box(GOOD, 2)], budget=math.inf), "budget must be a positive, finite number; got inf"),
        (lambda: solve([Box(GOOD, 2)], cost_scale=0), "cost_scale must be a positive, finite number; got 0"),
        (lambda: solve([Box(GOOD, 2)], cost_scale=1.0, budget=3.0), "cost_scale or budget, not both"),
        (lambda: solve([Box(GOOD, 2)]).play([1.0, 2.0]), r"one prize per box \(1\); got 2"),
        (lambda: solve([Box(stats.geom(1e-8), 2)]), "at most 1000000 values"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_a_budget_that_no_float_above_zero_meets():
    """The second box is opened nine times in ten only at a cost_scale of about exp(-170000)."""
    boxes = [Box(Gaussian(0.0, 1.0), 1.0), Box(Gaussian(0.1, 0.002), 1.0)]
    solution = solve(boxes, budget=1.9)
    assert solution.spend == pytest.approx(1.9, rel=1e-12)
    # What opening it always would bring, E max: at such a rate nothing is lost by leaving it closed at times.
    theta = math.hypot(1.0, 0.002)
    z = -0.1 / theta
    best = 0.1 * stats.norm.cdf(-z) + theta * stats.norm.pdf(z)
    assert solution.value == pytest.approx(best, rel=1e-9)
