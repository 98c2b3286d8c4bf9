"""Policies that only the paper has: other forms of improvement, another decay, other searches, other units."""

import math
from dataclasses import replace

import numpy as np
import pytest
from engine_fixtures import SQUARE, build_snapshot

import pbgi
from paper.policies import (
    DescribedPBGID,
    ExpLogEI,
    LogTextbookEI,
    MaxValueEntropyInUnits,
    MultiFidelityMaxValueEntropyInUnits,
    OffsetLogarithm,
    SearchedFromSobol,
    SearchedNearBest,
    TextbookEI,
    TextbookImprovement,
)
from pbgi.acquisition import LogExpectedImprovement
from pbgi.best_point import best_point
from pbgi.botorch.policies import MaxValueEntropy, MultiFidelityMaxValueEntropy
from pbgi.cost import KnownCost, UniformCost
from pbgi.search import Search
from pbgi.snapshot import Proposal


def test_described_decay_compares_with_the_best_before():
    optimizer = pbgi.Optimizer(
        {"x": pbgi.Float(0.0, 1.0)},
        direction="maximize",
        cost=UniformCost(),
        policy=DescribedPBGID(0.1, 2.0),
        model=pbgi.GPConfig.paper(),
        seed=0,
    )

    def value(params: dict[str, float]) -> float:
        return -((params["x"] - 0.3) ** 2)

    for x in (0.0, 0.5, 1.0):
        optimizer.tell({"x": x}, value({"x": x}), cost=1.0)
    expected, scales, best = 0.1, set(), max(value({"x": x}) for x in (0.0, 0.5, 1.0))
    for _ in range(12):
        trial = optimizer.ask()
        if "index" not in trial.record:  # still the optimizer's own start
            best = max(best, optimizer.tell(trial, value(trial.params)).value)
            continue
        assert trial.record["cost_scale"] == pytest.approx(expected, rel=1e-12)
        scales.add(expected)
        expected /= 2.0 if best >= trial.record["index"] else 1.0
        best = max(best, optimizer.tell(trial, value(trial.params)).value)
    assert len(scales) > 1  # it did fall


class Line:
    """A model with mean x and deviation 0.5 + x."""

    def posterior(self, X):
        return X[:, 0].copy(), 0.5 + X[:, 0]

    def posterior_with_grad(self, X):
        return *self.posterior(X), np.ones(X.shape), np.ones(X.shape)


def test_textbook_improvement_is_expected_improvement():
    X, model = np.linspace(0.0, 1.0, 9)[:, None], Line()
    stable = np.exp(LogExpectedImprovement(model, None, 0.7).value(X))
    assert TextbookImprovement(model, 0.7).value(X) == pytest.approx(stable, rel=1e-12)
    logarithm = OffsetLogarithm(TextbookImprovement(model, 0.7), 1e-6)
    assert logarithm.value(X) == pytest.approx(np.log(stable + 1e-6), rel=1e-12)


@pytest.mark.parametrize("offset", [None, 1e-6])
def test_gradients_of_the_textbook_forms(offset):
    formula = TextbookImprovement(Line(), 0.7)
    function = formula if offset is None else OffsetLogarithm(formula, offset)
    X, step = np.linspace(0.1, 0.9, 5)[:, None], 1e-6
    differences = (function.value(X + step) - function.value(X - step)) / (2 * step)
    value, gradient = function.value_and_grad(X)
    assert gradient[:, 0] == pytest.approx(differences, rel=1e-7)
    assert value == pytest.approx(function.value(X), rel=1e-14)


def test_textbook_improvement_loses_its_digits_where_the_stable_form_does_not():
    X = np.array([[0.0]])
    assert TextbookImprovement(Line(), 25.0).value(X)[0] == 0.0  # EI is about 1e-546
    assert np.isfinite(LogExpectedImprovement(Line(), None, 25.0).value(X)[0])
    assert OffsetLogarithm(TextbookImprovement(Line(), 25.0), 1e-6).value(X)[0] == pytest.approx(math.log(1e-6))


@pytest.mark.parametrize("policy", [TextbookEI(), LogTextbookEI(), ExpLogEI(), pbgi.LogEI()])
def test_forms_of_expected_improvement_agree_where_it_is_large(policy):
    """On a line with three points all forms have the same maximizer."""
    optimizer = pbgi.Optimizer(
        {"x": pbgi.Float(0.0, 1.0)},
        cost=UniformCost(),
        policy=policy,
        model=pbgi.GPConfig.paper(),
        seed=0,
        n_startup_trials=3,
    )
    for x in (0.1, 0.4, 0.9):
        optimizer.tell({"x": x}, (x - 0.6) ** 2, cost=1.0)
    grid = np.linspace(0.0, 1.0, 100_001)[:, None]
    from pbgi.gp.fit import fit_gp

    X, y = np.array([[0.1], [0.4], [0.9]]), -((np.array([0.1, 0.4, 0.9]) - 0.6) ** 2)
    best = grid[np.argmax(LogExpectedImprovement(fit_gp(X, y, pbgi.GPConfig.paper()), None, y.max()).value(grid)), 0]
    assert optimizer.ask().params["x"] == pytest.approx(best, abs=1e-3)


class Asking:
    """A policy that goes to the best point tried, and keeps what it was asked for."""

    def __init__(self):
        self.asked = []

    def propose(self, snapshot, rng):
        self._best = snapshot.X[snapshot.warped.argmax()]
        found = best_point(snapshot, self, rng)
        return Proposal(found.x, 1.0, {"index": found.value})

    def value(self, X):
        self.asked.append(X.copy())
        return -np.abs(X - self._best).sum(axis=1)

    def value_and_grad(self, X):
        return -np.abs(X - self._best).sum(axis=1), -np.sign(X - self._best)


def test_a_search_from_sobol_points_does_not_begin_at_the_best_points():
    pool, proposal = asked_for(lambda asking: SearchedFromSobol(asking, 25, n_climbs_per_dimension=2))
    assert len(pool) == 50
    assert not (np.abs(pool - [0.3, 0.6]).max(axis=1) < 1e-3).any()
    assert proposal.record["index"] == pytest.approx(0.0, abs=1e-3)  # climbs get there all the same


def test_a_search_near_the_best_points_begins_there_whatever_the_snapshot_says():
    pool, _ = asked_for(lambda asking: SearchedNearBest(asking), near_best=False)
    assert (np.abs(pool - [0.3, 0.6]).max(axis=1) < 1e-3).any()
    without, _ = asked_for(lambda asking: asking, near_best=False)
    assert not (np.abs(without - [0.3, 0.6]).max(axis=1) < 1e-3).any()


def asked_for(wrapped, near_best=True):
    """The first pool that is evaluated, and the proposal, where (0.3, 0.6) is the best point tried."""
    snapshot = build_snapshot(SQUARE, np.array([[0.3, 0.6], [0.9, 0.1], [0.5, 0.5]]), np.array([2.0, 0.0, 1.0]))
    asking, snapshot = Asking(), replace(snapshot, search=Search(near_best=near_best))
    proposal = wrapped(asking).propose(snapshot, np.random.default_rng(0))
    return asking.asked[0], proposal


# Entropy search in the units of the values ----------------------------------------------------------------------------

CENTER, SCALE = 100.0, 30.0
PLAIN_AND_IN_UNITS = [
    (MaxValueEntropy, MaxValueEntropyInUnits),
    (MultiFidelityMaxValueEntropy, MultiFidelityMaxValueEntropyInUnits),
]


def entropy_snapshot(standardize=True):
    """Values far from standardized ones, and points that cost more to the right."""
    X = np.random.default_rng(0).random((8, 2))
    values = CENTER + SCALE * np.sin(5 * X[:, 0]) * X[:, 1]
    config = pbgi.GPConfig(noise=1e-4, outputs="standardized" if standardize else "plain")
    return build_snapshot(SQUARE, X, values, cost=KnownCost(lambda p: 1.0 + 5.0 * p["x"]), config=config)


def maximized(policy, snapshot):
    """What the policy maximizes: the entropy search, without its cost."""
    from pbgi.botorch.bridge import surrogate_of

    acquisition = policy._acquisition(surrogate_of(snapshot), snapshot, np.random.default_rng(1))
    return getattr(acquisition, "_of", acquisition)


@pytest.mark.parametrize(("plain", "in_units"), PLAIN_AND_IN_UNITS)
def test_entropy_search_in_units_believes_the_same(plain, in_units):
    import torch

    snapshot = entropy_snapshot()
    ours, theirs = (maximized(policy(10, 4, 8), snapshot) for policy in (plain, in_units))
    X = np.random.default_rng(2).random((5, 2))
    mean, std = snapshot.model.posterior(X)
    with torch.no_grad():
        believed = theirs.model.posterior(torch.tensor(X))
    np.testing.assert_allclose(believed.mean[:, 0], mean, rtol=1e-8)
    np.testing.assert_allclose(believed.variance[:, 0].sqrt(), std, rtol=1e-5)
    values = snapshot.warped
    expected = values.mean() + values.std(ddof=1) * ours.posterior_max_values
    np.testing.assert_allclose(theirs.posterior_max_values, expected, rtol=1e-8)


@pytest.mark.parametrize(("plain", "in_units"), PLAIN_AND_IN_UNITS)
def test_entropy_search_in_units_is_the_plain_one_where_nothing_is_standardized(plain, in_units):
    snapshot = entropy_snapshot(standardize=False)
    few = {"n_raw_samples_per_dimension": 8, "n_restarts_per_dimension": 1, "n_iterations": 5}
    proposals = [p(10, 4, 8, **few).propose(snapshot, np.random.default_rng(3)) for p in (plain, in_units)]
    np.testing.assert_array_equal(proposals[0].x, proposals[1].x)


def test_sampled_information_depends_on_the_unit():
    """Information does not; BoTorch's estimate from few samples does. So the policies differ."""
    import torch

    snapshot = entropy_snapshot()
    X = torch.tensor(np.random.default_rng(4).random((50, 1, 2)))
    gaps = []
    for n_values in (8, 1024):
        estimates = []
        for policy in (MaxValueEntropy(10, 4, n_values), MaxValueEntropyInUnits(10, 4, n_values)):
            with torch.random.fork_rng(devices=[]), torch.no_grad():
                torch.default_generator.manual_seed(7)  # the same samples for both
                estimates.append(maximized(policy, snapshot)(X).numpy())
        gaps.append(np.abs(estimates[0] - estimates[1]).max() / np.abs(estimates[0]).max())
    assert gaps[0] > 1e-3
    assert gaps[1] < gaps[0] / 4
