"""Boxes paid in stages: against dynamic programming over all boxes together, played games, and ordinary boxes."""

import itertools
from functools import cache

import numpy as np
import pytest
from scipy import stats

from pbgi import InvalidInputError
from pbgi.index import instalment_index
from pbgi.pandora import Box, Discrete, Gaussian, MarkovBox, Solution, StagedBox, StagedSolution, solve

COIN = MarkovBox(
    costs={"new": 0.5, "good": 1.0},
    transitions={"new": {"good": 0.5, "poor": 0.5}, "good": {"great": 0.5, "fair": 0.5}},
    prizes={"poor": 1.0, "fair": 3.0, "great": 6.0},
    start="new",
)


def random_chain(rng):
    """Up to three states that cost something, and prizes on a coarse lattice, so that ties are common."""
    n = int(rng.integers(1, 4))
    prizes = {f"prize {x}": float(x) for x in rng.choice(np.arange(-2, 6), 3, replace=False)}
    transitions = {}
    for state in range(n):
        after = [*range(state + 1, n), *prizes]
        chosen = [after[i] for i in rng.choice(len(after), min(2, len(after)), replace=False)]
        transitions[state] = dict(zip(chosen, [0.25, 0.75] if len(chosen) == 2 else [1.0], strict=True))
    return MarkovBox({state: float(rng.integers(1, 5)) / 4 for state in range(n)}, transitions, prizes, 0)


def as_chain(box):
    """A box with one payment and a discrete prize, as a chain."""
    if isinstance(box, MarkovBox):
        return box
    values = box.reward.values.tolist()
    return MarkovBox(
        {"closed": box.expected_cost},
        {"closed": dict(zip(values, box.reward.probabilities.tolist(), strict=True))},
        dict(zip(values, values, strict=True)),
        "closed",
    )


def best_net(boxes, cost_scale):
    """The net of the best policy, by dynamic programming over the states of all boxes together."""
    chains = [as_chain(box) for box in boxes]

    @cache
    def net(states, best):
        options = [] if best is None else [best]
        for i, (chain, state) in enumerate(zip(chains, states, strict=True)):
            if state in chain.costs:
                total = -cost_scale * chain.costs[state]
                for after, p in chain.transitions[state].items():
                    shown = chain.prizes.get(after)
                    kept = best if shown is None else shown if best is None else max(best, shown)
                    total += p * net((*states[:i], after, *states[i + 1 :]), kept)
                options.append(total)
        return max(options)

    return net(tuple(chain.start for chain in chains), None)


def paths(box):
    """Everything a box may show, with its probability, as `play` takes it."""
    chain = as_chain(box)

    def from_state(state):
        if state in chain.prizes:
            return [((), 1.0)]
        return [
            ((after, *rest), p * share)
            for after, p in chain.transitions[state].items()
            for rest, share in from_state(after)
        ]

    found = from_state(chain.start)
    return found if isinstance(box, MarkovBox) else [(shown[0], p) for shown, p in found]


def played(solution):
    """Expected prize and cost of `play`, over everything that may happen."""
    value = spend = 0.0
    for outcome in itertools.product(*map(paths, solution.boxes)):
        probability = np.prod([p for _, p in outcome])
        game = solution.play([shown for shown, _ in outcome])
        value, spend = value + probability * game.best, spend + probability * game.spent
    return value, spend


@pytest.mark.parametrize("seed", range(25))
def test_chains_against_dynamic_programming(seed):
    rng = np.random.default_rng(seed)
    boxes = [random_chain(rng) for _ in range(int(rng.integers(1, 4)))]
    if seed % 2:
        boxes.append(Box(Discrete([0, 3], [0.5, 0.5]), 0.5))
    if seed % 5 == 0:
        boxes.append(boxes[0])
    cost_scale = float(rng.choice([0.5, 1.0, 2.0]))
    solution = solve(boxes, cost_scale=cost_scale)
    assert isinstance(solution, StagedSolution)
    assert solution.net == pytest.approx(best_net(boxes, cost_scale), abs=1e-12)
    value, spend = played(solution)
    assert solution.spend == pytest.approx(spend, abs=1e-12)
    assert solution.value == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_budgets_of_chains(seed):
    """At any rate, the best net plus what the budget costs bounds what it can buy; the solution reaches the bound."""
    rng = np.random.default_rng(seed)
    boxes = [random_chain(rng) for _ in range(3)]
    least, most = min(box.expected_cost for box in boxes), sum(box.expected_cost for box in boxes)
    budget = least + 0.3 * (most - least)
    solution = solve(boxes, budget=budget)
    assert solution.spend == pytest.approx(budget, rel=1e-9) or solution.slack
    rate = max(solution.cost_scale, 1e-9)
    assert solution.value == pytest.approx(best_net(boxes, rate) + rate * solution.spend, abs=1e-8)
    assert 0.0 <= solution.go_on_probability <= 1.0


def test_a_coin_between_two_rules_spends_the_budget():
    solution = solve([COIN, COIN], budget=1.2)
    rng = np.random.default_rng(0)
    spent = [solution.play(rng).spent for _ in range(20_000)]
    assert np.mean(spent) == pytest.approx(1.2, abs=4 * np.std(spent) / np.sqrt(20_000))
    assert 0 < solution.go_on_probability < 1


def test_boxes_with_one_stage_are_ordinary():
    chains = [MarkovBox({0: 0.3}, {0: {1: 0.4, 2: 0.6}}, {1: 2.0, 2: 0.0}, 0), COIN]
    same = [Box(Discrete([2.0, 0.0], [0.4, 0.6]), 0.3), COIN]
    for arguments in ({"cost_scale": 0.7}, {"budget": 1.0}):
        ours, theirs = solve(chains, **arguments), solve(same, **arguments)
        assert (ours.value, ours.spend) == pytest.approx((theirs.value, theirs.spend), abs=1e-9)
    ordinary = [Box(Gaussian(0.0, 1.0), 0.1), Box(Gaussian(0.5, 0.3), 0.2), Box(stats.expon(), 0.3)]
    staged = [StagedBox(0.0, [1.0], [0.1]), StagedBox(0.5, [0.3], [0.2]), ordinary[2]]
    plain = solve(ordinary, cost_scale=0.8)
    assert isinstance(plain, Solution)
    found = solve(staged, cost_scale=0.8)
    np.testing.assert_allclose(found.indices, plain.indices, atol=1e-11)
    assert found.order.tolist() == plain.order.tolist()
    assert (found.value, found.spend) == pytest.approx((plain.value, plain.spend), abs=1e-9)


@pytest.mark.parametrize("cost_scale", [0.3, 2.0])
@pytest.mark.parametrize("stds", [[0.6, 0.8], [0.02, 0.5, 0.8], [0.9, 0.01, 0.4]])
def test_gaussian_stages_against_games(stds, cost_scale):
    costs = [0.02, 0.05, 0.1][: len(stds)]
    boxes = [StagedBox(0.0, stds, costs), StagedBox(0.1, stds[::-1], costs), COIN, Box(Gaussian(3.0, 1.0), 0.1)]
    boxes[2] = MarkovBox({0: 0.05, 1: 0.1}, {0: {1: 0.5, 2: 0.5}, 1: {2: 0.5, 3: 0.5}}, {2: 2.0, 3: 4.0}, 0)
    solution = solve(boxes, cost_scale=cost_scale)
    assert solution.indices[0] == pytest.approx(instalment_index(0.0, stds, np.log(cost_scale * np.array(costs))))
    rng, n = np.random.default_rng(1), 4000
    games = [solution.play(rng) for _ in range(n)]
    for expected, found in ((solution.value, [g.best for g in games]), (solution.spend, [g.spent for g in games])):
        assert np.mean(found) == pytest.approx(expected, abs=4 * np.std(found) / np.sqrt(n))


@pytest.mark.parametrize("cost_scale", [0.1, 1.0, 5.0])
def test_spend_is_the_slope_of_the_net(cost_scale):
    """What one more unit of exchange rate takes from the best net is what is spent."""
    boxes = [StagedBox(0.0, [0.6, 0.3, 0.5], [0.02, 0.05, 0.1]), StagedBox(0.3, [0.2, 0.7], [0.03, 0.2])]
    boxes.append(Box(stats.expon(), 0.3))
    step = 1e-4 * cost_scale
    nets = [solve(boxes, cost_scale=cost_scale + side * step).net for side in (-1, 1)]
    assert solve(boxes, cost_scale=cost_scale).spend == pytest.approx((nets[0] - nets[1]) / (2 * step), rel=1e-6)


def test_budget_of_gaussian_stages():
    boxes = [StagedBox(0.1 * k, [0.6, 0.3], [0.02, 0.1]) for k in range(3)]
    values = []
    for budget in (0.15, 0.2, 0.3):
        solution = solve(boxes, budget=budget)
        assert solution.spend == pytest.approx(budget, rel=1e-8)
        values.append(solution.value)
    assert values[0] < values[1] < values[2]
    assert values[1] - values[0] > values[2] - values[1]


def test_a_game_tells_every_payment():
    solution = solve([COIN, Box(Discrete([2.0], [1.0]), 0.1)], cost_scale=0.5)
    game = solution.play([["good", "fair"], 2.0])
    assert [(o.box, o.stage, o.state, o.reward) for o in game.openings] == [
        (0, 1, "good", None),
        (0, 2, "fair", 3.0),
    ]
    assert (game.best, game.spent) == (3.0, 1.5)
    assert "is at least the index of the next box (1)" in game.stop_reason
    poor = solution.play([["poor"], 2.0])
    assert poor.openings[-1].box == 1
    assert poor.stop_reason == "every box has been paid to its end"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: StagedBox(0.0, [1.0, 0.0], [1.0, 1.0]), "pay a stage that reveals nothing together"),
        (lambda: StagedBox(0.0, [1.0], [1.0, 1.0]), "one number per stage; got 1 and 2"),
        (lambda: StagedBox(0.0, [1.0], [0.0]), "costs must be positive; got 0"),
        (lambda: StagedBox(np.nan, [1.0], [1.0]), "mean must be finite; got nan"),
        (lambda: StagedBox(0.0, 1.0, [1.0]), "stds must be a list"),
        (lambda: MarkovBox({0: 1.0}, {0: {1: 0.5}}, {1: 0.0}, 0), "sum to one"),
        (lambda: MarkovBox({0: 1.0}, {0: {1: 1.0}}, {2: 0.0}, 0), "needs a cost or a prize; got none for 1, after 0"),
        (lambda: MarkovBox({0: 1.0}, {0: {1: 1.0}}, {1: 0.0}, 1), "start must be a state with a cost; got 1"),
        (lambda: MarkovBox({0: 1.0, 1: 1.0}, {0: {1: 1.0}, 1: {0: 1.0}}, {2: 0.0}, 0), "reached again from itself"),
        (lambda: MarkovBox({0: 1.0}, {}, {2: 0.0}, 0), "must have the same states"),
        (lambda: MarkovBox({0: -1.0}, {0: {1: 1.0}}, {1: 0.0}, 0), "cost of 0"),
        (lambda: solve([COIN], budget=0.1), "what the cheapest prize costs in expectation, 1,"),
        (lambda: solve([COIN], budget=1.0, cost_scale=1.0), "not both"),
        (lambda: solve([COIN], cost_scale=-1.0), "cost_scale"),
        (lambda: solve([COIN, 3]), "number 1 is 3"),
        (lambda: solve([COIN]).play([["great"]]), "states that follow; got 'great'"),
        (lambda: solve([COIN]).play([]), "one entry per box"),
        (lambda: solve([StagedBox(0.0, [1.0, 1.0], [0.1, 0.1])]).play([[0.0]]), "must be 2 means"),
    ],
)
def test_bad_input_is_refused(make, said):
    with pytest.raises(InvalidInputError, match=said):
        make()
