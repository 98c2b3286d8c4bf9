"""Policies on BoTorch: the contract that all policies keep, and their acquisition functions against BoTorch's own.

Searches are tiny: what is tested is the function that is maximized, and what is done with what the search finds.
"""

import dataclasses
import json
import math
import random
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("botorch.acquisition")

import torch
from botorch.acquisition.analytic import ExpectedImprovement
from botorch.acquisition.cost_aware import InverseCostWeightedUtility
from botorch.acquisition.knowledge_gradient import qKnowledgeGradient
from botorch.acquisition.max_value_entropy_search import qMaxValueEntropy, qMultiFidelityMaxValueEntropy
from botorch.acquisition.multi_step_lookahead import make_best_f, qMultiStepLookahead
from botorch.generation.gen import gen_candidates_scipy
from botorch.models.deterministic import GenericDeterministicModel
from botorch.sampling.base import MCSampler
from botorch.sampling.normal import SobolQMCNormalSampler
from engine_fixtures import LINE, MIXED, SQUARE, awkward_values, build_snapshot, cube, expected_improvement
from engine_fixtures import one_thread as one_thread
from scipy import stats

from pbgi import InvalidInputError, Optimizer
from pbgi.botorch.bridge import surrogate_of
from pbgi.botorch.entropy import PerCost, gumbel_maxima
from pbgi.botorch.knowledge_gradient import OneShotKnowledgeGradient
from pbgi.botorch.lookahead import BudgetedPathImprovement, PathImprovement
from pbgi.botorch.policies import (
    BOTORCH_POLICIES,
    BudgetedMultiStepEI,
    KnowledgeGradient,
    MaxValueEntropy,
    MultiFidelityMaxValueEntropy,
    MultiStepEI,
    paths_near,
)
from pbgi.cost import KnownCost, LearnedCost
from pbgi.gp.config import GPConfig
from pbgi.history import History
from pbgi.parameter import Integer
from pbgi.serialization import from_plain, to_plain
from pbgi.space import Space

TINY = {"n_raw_samples_per_dimension": 6, "n_restarts_per_dimension": 1, "n_iterations": 8}
FEW = {"n_candidates_per_dimension": 20, "n_max_values": 4, "n_values": 16}
ALL = [
    KnowledgeGradient(4, **TINY),
    MaxValueEntropy(**FEW, **TINY),
    MultiFidelityMaxValueEntropy(**FEW, **TINY),
    MultiStepEI(2, **TINY),
    BudgetedMultiStepEI(3, **TINY),
]
every_policy = pytest.mark.parametrize("policy", ALL, ids=lambda p: type(p).__name__)
# Enough to find the maximum on a line.
QUICK = {"n_raw_samples_per_dimension": 30, "n_restarts_per_dimension": 3, "n_iterations": 20}
THOROUGH = {"n_raw_samples_per_dimension": 60, "n_restarts_per_dimension": 6, "n_iterations": 60}
BUDGET = 100.0
DENSE = np.linspace(0.0, 1.0, 401)[:, None]
GRID = Space({"n": Integer(1, 4), "m": Integer(0, 2)})


def seeded(seed=0):
    return np.random.default_rng([23, seed])


def wave(X):
    return np.sin(7 * X[:, 0]) - ((X - 0.4) ** 2).sum(axis=1)


def typical(space, n=8, seed=0, **fields):
    X = space.snap(np.random.default_rng(seed).random((n, space.dimension)))
    fields = {"budget": BUDGET, "cost": LearnedCost(), "costs": np.exp(2 * X[:, 0])} | fields
    return build_snapshot(space, X, wave(X), **fields)


def paths(*shape, seed=0):
    return torch.tensor(np.random.default_rng([shape[-1], seed]).random(shape))


def assert_valid(proposal, space):
    assert proposal.x.shape == (space.dimension,)
    assert ((proposal.x >= 0.0) & (proposal.x <= 1.0)).all()
    np.testing.assert_array_equal(space.snap(proposal.x), proposal.x)
    assert 0.0 < proposal.predicted_cost < math.inf
    History().add_running(space.from_unit(proposal.x), proposal.predicted_cost, proposal.record)  # takes the record


# All policies ---------------------------------------------------------------------------------------------------------


def test_naming_a_policy_does_not_import_torch():
    code = "import sys; from pbgi.botorch.policies import BOTORCH_POLICIES; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_policy_is_in_the_suite():
    assert {type(policy) for policy in ALL} == set(BOTORCH_POLICIES)


@every_policy
def test_frozen_hashable_and_survives_json(policy):
    copy = from_plain("policy", json.loads(json.dumps(to_plain(policy))), BOTORCH_POLICIES)
    assert copy == policy
    assert hash(copy) == hash(policy)
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.n_iterations = 3


def test_defaults_are_those_of_the_paper():
    search = {"n_raw_samples_per_dimension": 200, "n_restarts_per_dimension": 10, "n_iterations": 200}
    entropy = {"n_candidates_per_dimension": 1000, "n_max_values": 10, "n_values": 128}
    own = [{"n_fantasies": 64}, entropy, entropy, {"n_steps": 4}, {"n_steps": 4}]
    assert [dataclasses.asdict(kind()) for kind in BOTORCH_POLICIES] == [search | fields for fields in own]


@pytest.mark.parametrize("bad", [0, -1, 2.5, True, "3", None])
def test_bad_settings_are_refused(bad):
    for kind, name in [
        (KnowledgeGradient, "n_fantasies"),
        (MaxValueEntropy, "n_candidates_per_dimension"),
        (MultiStepEI, "n_steps"),
        (BudgetedMultiStepEI, "n_restarts_per_dimension"),
    ]:
        with pytest.raises(InvalidInputError, match=f"{name} must be a positive whole number; got"):
            kind(**{name: bad})
    with pytest.raises(InvalidInputError, match="n_fantasies must be at least 2; got 1"):
        KnowledgeGradient(1)


@every_policy
@pytest.mark.parametrize("space", [LINE, cube(3)], ids=["line", "cube"])
def test_same_snapshot_and_seed_same_point_to_the_bit(policy, space):
    first, second = (policy.propose(typical(space), seeded()) for _ in range(2))
    assert_valid(first, space)
    assert first.x.tobytes() == second.x.tobytes()
    assert (first.predicted_cost, first.record) == (second.predicted_cost, second.record)
    other = policy.propose(typical(space), seeded(1))
    assert other.x.tobytes() != first.x.tobytes()


@every_policy
def test_no_global_state(policy):
    snapshot = typical(LINE)
    first = policy.propose(snapshot, seeded())
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    before = random.getstate(), np.random.get_state()[1].copy(), torch.random.get_rng_state()  # noqa: NPY002
    dtype, grad, threads = torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()
    with torch.no_grad():  # a search needs gradients, whatever the caller does
        again = policy.propose(snapshot, seeded())
    assert random.getstate() == before[0]
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert torch.equal(torch.random.get_rng_state(), before[2])
    assert (torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()) == (dtype, grad, threads)
    np.testing.assert_array_equal(again.x, first.x)


@every_policy
@awkward_values
def test_awkward_values(policy, X, values):
    snapshot = build_snapshot(SQUARE, X, values, budget=BUDGET, cost=LearnedCost(), costs=np.arange(1.0, len(X) + 1))
    assert_valid(policy.propose(snapshot, seeded()), SQUARE)


@every_policy
def test_copies_without_noise(policy):
    snapshot = build_snapshot(SQUARE, [[0.3, 0.6]] * 9 + [[0.1, 0.1]], [1.0] * 9 + [2.0], config=GPConfig(noise=0.0))
    assert_valid(policy.propose(snapshot, seeded()), SQUARE)


@every_policy
def test_failed_and_pending_points(policy):
    rng = np.random.default_rng(5)
    failed, pending = rng.random((3, 2)), rng.random((4, 2))
    snapshot = typical(SQUARE, failed=failed, pending=pending)
    for seed in range(2):
        proposal = policy.propose(snapshot, seeded(seed))
        assert_valid(proposal, SQUARE)
        assert (np.abs(failed - proposal.x) >= 0.05).any(axis=1).all()


@every_policy
def test_tries_near_failures_when_there_is_nowhere_else(policy):
    """Failures every 0.08 leave no point of the line untouched."""
    proposal = policy.propose(typical(LINE, failed=np.arange(0.0, 1.04, 0.08).clip(max=1.0)[:, None]), seeded())
    assert_valid(proposal, LINE)


@every_policy
def test_integers_down_to_the_last_point(policy):
    levels = np.array([[a, b] for a in GRID.grids[0] for b in GRID.grids[1]])
    order = np.random.default_rng(2).permutation(12)
    for n_left in (7, 1):
        excluded, left = levels[order[n_left:]], levels[order[:n_left]]
        snapshot = build_snapshot(GRID, excluded, wave(excluded), budget=BUDGET, excluded=excluded)
        proposal = policy.propose(snapshot, seeded())
        assert_valid(proposal, GRID)
        assert (left == proposal.x).all(axis=1).any()
    snapshot = build_snapshot(GRID, levels, wave(levels), budget=BUDGET, excluded=levels)
    assert policy.propose(snapshot, seeded()) is None


def mean_price(params):
    return 1.0 + 20.0 * np.mean(list(params.values()))


@every_policy
@pytest.mark.parametrize("affordable", [15.0, 4.0, 1.3])
def test_never_more_than_is_affordable(policy, affordable):
    snapshot = typical(cube(3), cost=KnownCost(mean_price), affordable=affordable)
    proposal = policy.propose(snapshot, seeded())
    assert_valid(proposal, cube(3))
    assert proposal.predicted_cost == pytest.approx(1.0 + 20.0 * proposal.x.mean(), rel=1e-9)
    assert proposal.predicted_cost <= affordable * (1 + 1e-12)


@every_policy
@pytest.mark.parametrize("affordable", [0.999, -2.0])
def test_nothing_is_affordable(policy, affordable):
    assert policy.propose(typical(cube(2), cost=KnownCost(mean_price), affordable=affordable), seeded()) is None


@every_policy
def test_categories_are_refused(policy):
    with pytest.raises(InvalidInputError, match="need numbers, not categories"):
        policy.propose(typical(MIXED), seeded())


@every_policy
def test_drives_an_optimizer(policy):
    """And leaves what it must remember in the records, which nothing else does."""
    optimizer = Optimizer(cube(2), policy=policy, budget=30.0, n_startup_trials=3, seed=1)
    for _ in range(6):
        trial = optimizer.ask()
        optimizer.tell(trial, float(trial.params["x0"]) ** 2, cost=1.0 + float(trial.params["x1"]))
    assert len({tuple(t.params.values()) for t in optimizer.trials}) == 6
    paths = [t.record["path"] for t in optimizer.trials if "path" in t.record]
    assert len(paths) == (3 if isinstance(policy, MultiStepEI) else 0)


# Knowledge gradient ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [GPConfig.paper(), GPConfig(noise=0.3, kernel="rbf")], ids=["paper", "noisy"])
def test_knowledge_gradient_and_its_slope_are_botorchs(config):
    surrogate = surrogate_of(typical(cube(3), pending=[[0.5, 0.1, 0.9]], config=config))
    ours = OneShotKnowledgeGradient(surrogate, 5, seed=7)
    theirs = qKnowledgeGradient(surrogate.model, 5, SobolQMCNormalSampler(torch.Size([5]), seed=7))
    X = [paths(4, 6, 3).requires_grad_() for _ in range(2)]
    values = [acquisition(x) for acquisition, x in zip((ours, theirs), X, strict=True)]
    for value in values:
        value.sum().backward()
    np.testing.assert_allclose(values[0].detach(), values[1].detach(), rtol=1e-7)
    np.testing.assert_allclose(X[0].grad, X[1].grad, atol=1e-6)


def knowledge_gradient_on_grid(snapshot, X):
    """E max over the grid of the mean after one more value, less the best mean, by 401 quantiles of that value."""
    surrogate = surrogate_of(snapshot)
    with torch.no_grad():
        posterior = surrogate.model.posterior(torch.tensor(X))
    mean, covariance = posterior.mean.numpy()[:, 0], posterior.distribution.covariance_matrix.numpy()
    z = stats.norm.ppf((np.arange(401) + 0.5) / 401)
    slopes = covariance / np.sqrt(np.diag(covariance) + surrogate.training.noise)[:, None]
    return np.array([(mean[:, None] + slope[:, None] * z).max(axis=0).mean() for slope in slopes]) - mean.max()


@pytest.mark.parametrize(
    ("X", "values", "config"),
    [([[0.0], [0.3], [1.0]], [0.0, 1.0, 0.5], GPConfig.paper()), ([[0.1], [0.9]], [0.0, 1.0], GPConfig(noise=0.1))],
    ids=["exact", "noisy"],
)
def test_knowledge_gradient_is_maximized(X, values, config):
    """Where it has one peak: a one-shot search easily ends at a lower one."""
    grid = DENSE[::4]
    snapshot = build_snapshot(LINE, X, values, config=config)
    gains = knowledge_gradient_on_grid(snapshot, grid)
    proposal = KnowledgeGradient(32, **THOROUGH).propose(snapshot, seeded())
    assert np.interp(proposal.x[0], grid[:, 0], gains) >= 0.98 * gains.max()
    assert gains.min() < 0.1 * gains.max()


def test_knowledge_gradient_is_climbed_as_botorch_climbs_it():
    surrogate = surrogate_of(typical(LINE, n=5, config=GPConfig.paper()))
    ours = OneShotKnowledgeGradient(surrogate, 3, seed=2)
    theirs = qKnowledgeGradient(surrogate.model, 3, SobolQMCNormalSampler(torch.Size([3]), seed=2))
    ends = [gen_candidates_scipy(paths(3, 4, 1), a, 0.0, 1.0, options={"maxiter": 20})[1] for a in (ours, theirs)]
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-4)


# Entropy --------------------------------------------------------------------------------------------------------------


def sampled_maxima(surrogate, X):
    """BoTorch's samples of the largest value at the points X: a seed fixes which quantiles they are."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.random.manual_seed(5)
        return qMaxValueEntropy(surrogate.model, torch.tensor(X)).posterior_max_values.numpy()[:, 0]


def test_samples_of_the_largest_value_are_botorchs():
    """The quantiles that BoTorch has drawn are read off its samples at some points, and give those at others."""
    snapshot = typical(SQUARE, config=GPConfig.paper())
    surrogate = surrogate_of(snapshot)
    training = surrogate.training

    def ours(X, uniform):
        mean, std = snapshot.model.posterior(X)
        return gumbel_maxima((mean - training.center) / training.scale, std / training.scale, uniform)

    here, there = (np.random.default_rng(seed).random((n, 2)) for seed, n in ((0, 200), (1, 20)))
    location, above = ours(here, np.exp(-np.exp([0.0, -1.0])))  # quantiles of a Gumbel distribution at 0 and 1
    uniform = np.exp(-np.exp(-(sampled_maxima(surrogate, here) - location) / (above - location)))
    assert ((uniform > 0.0) & (uniform < 1.0)).all()
    np.testing.assert_allclose(ours(there, uniform), sampled_maxima(surrogate, there), rtol=1e-6)


def test_quartiles_of_the_largest_value():
    """Against draws of the largest of independent values: a Gumbel distribution has their quartiles."""
    rng = np.random.default_rng(1)
    mean, std = rng.normal(size=50), rng.uniform(0.1, 2.0, 50)
    draws = (mean + std * rng.standard_normal((100_000, 50))).max(axis=1)
    quartiles = gumbel_maxima(mean, std, np.array([0.25, 0.5, 0.75]))
    np.testing.assert_allclose(
        quartiles[[0, 2]] - quartiles[1], np.quantile(draws, [0.25, 0.75]) - np.median(draws), atol=0.1
    )
    assert quartiles[1] == pytest.approx(np.median(draws), abs=0.02)


def information(mean, std, maxima):
    """Max-value entropy search without noise in closed form (Wang and Jegelka 2017, eq. 6)."""
    gamma = (maxima[:, None] - mean) / std
    ratio = np.exp(stats.norm.logpdf(gamma) - stats.norm.logcdf(gamma))
    return (0.5 * gamma * ratio - stats.norm.logcdf(gamma)).mean(axis=0)


def test_max_value_entropy_is_maximized():
    for seed in range(2):
        snapshot = typical(LINE, n=5, seed=seed, config=GPConfig.paper())
        mean, std = snapshot.model.posterior(DENSE)
        # Many samples, so that theirs and these, which are others, say the same.
        maxima = gumbel_maxima(mean, std, (np.arange(200) + 0.5) / 200)
        gains = information(mean, std, maxima)
        policy = MaxValueEntropy(400, n_max_values=100, n_values=64, **THOROUGH)
        proposal = policy.propose(snapshot, seeded(seed))
        assert np.interp(proposal.x[0], DENSE[:, 0], gains) >= 0.9 * gains.max()
        assert gains.min() < 0.5 * gains.max()


def test_max_value_entropy_goes_where_it_learns():
    """All is known left of 0.6, and nothing of what lies to the right, where the trend leads upwards."""
    X = np.linspace(0.0, 0.6, 13)[:, None]
    proposal = MaxValueEntropy(100, **TINY).propose(build_snapshot(LINE, X, X[:, 0], config=GPConfig.paper()), seeded())
    assert proposal.x[0] > 0.7


def test_entropy_per_cost_is_botorchs():
    snapshot = typical(SQUARE, cost=KnownCost(mean_price), config=GPConfig.paper())
    surrogate = surrogate_of(snapshot)
    candidates = torch.tensor(np.random.default_rng(0).random((30, 2)))
    cost_model = GenericDeterministicModel(lambda X: 1.0 + 20.0 * X.mean(dim=-1, keepdim=True))
    with torch.random.fork_rng(devices=[]):
        entropy = qMaxValueEntropy(surrogate.model, candidates)
        theirs = qMultiFidelityMaxValueEntropy(
            surrogate.model, candidates, cost_aware_utility=InverseCostWeightedUtility(cost_model)
        )
        theirs.sampler, theirs.posterior_max_values = entropy.sampler, entropy.posterior_max_values
        X = paths(12, 1, 2)
        with torch.no_grad():
            np.testing.assert_allclose(PerCost(entropy, snapshot.price)(X), theirs(X), rtol=1e-5, atol=1e-9)


def test_entropy_per_cost_goes_to_the_cheap_side():
    """Both sides promise the same: the price decides, but not for those who are blind to it."""
    X, values = np.array([[0.0], [0.5], [1.0]]), [0.0, 1.0, 0.0]
    prices = (lambda p: 1.0 + 20.0 * p["x"], lambda p: 21.0 - 20.0 * p["x"])
    snapshots = [build_snapshot(LINE, X, values, cost=KnownCost(p), config=GPConfig.paper()) for p in prices]
    left, right = (MultiFidelityMaxValueEntropy(**FEW, **QUICK).propose(s, seeded()).x[0] for s in snapshots)
    assert left < 0.5 < right
    blind = [MaxValueEntropy(**FEW, **QUICK).propose(s, seeded()).x[0] for s in snapshots]
    assert blind[0] == blind[1]


# Lookahead ------------------------------------------------------------------------------------------------------------


class PosteriorMean(MCSampler):
    """Imagines what is expected, once."""

    def __init__(self):
        super().__init__(sample_shape=torch.Size([1]))

    def forward(self, posterior):
        return posterior.mean.unsqueeze(0)


@pytest.mark.filterwarnings("ignore:ExpectedImprovement has known numerical issues")
@pytest.mark.parametrize("n_steps", [2, 3, 4])
def test_path_improvement_is_botorchs(n_steps):
    """Against the general tree of BoTorch, with one branch and expected improvement at every step.

    Not its slope: BoTorch's misses part of what a point does to later ones.
    """
    surrogate = surrogate_of(typical(cube(2), config=GPConfig(noise=1e-2)))
    theirs = qMultiStepLookahead(
        surrogate.model,
        batch_sizes=[1] * (n_steps - 1),
        samplers=[PosteriorMean() for _ in range(n_steps - 1)],
        valfunc_cls=[ExpectedImprovement] * n_steps,
        valfunc_argfacs=[make_best_f] * n_steps,
    )
    ours = PathImprovement(surrogate)
    for seed in range(6):  # one by one: BoTorch's best_f does not broadcast over a batch of trees
        X = paths(1, n_steps, 2, seed=seed)
        with torch.no_grad():
            np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-6, atol=1e-12)


def test_slope_of_the_path_improvement():
    acquisition = PathImprovement(surrogate_of(typical(SQUARE, config=GPConfig(noise=1e-2))))
    assert torch.autograd.gradcheck(acquisition, (paths(3, 4, 2).requires_grad_(),), eps=1e-6, atol=1e-6)


def improvements(snapshot, path):
    """What each point of a path (q, d) is expected to improve, from the engine's posterior given pending points."""
    best, gains = snapshot.warped.max(), []
    for i, x in enumerate(path):
        mean, std = snapshot.model.condition_on_pending(path[:i]).posterior(x[None])
        gains.append(expected_improvement(mean[0], std[0], best))
        best = max(best, mean[0])
    return np.array(gains)


def test_path_improvement_from_the_engines_posterior():
    snapshot = typical(SQUARE, config=GPConfig.paper(), pending=[[0.9, 0.9]])
    surrogate = surrogate_of(snapshot)
    X = paths(5, 3, 2, seed=1)
    expected = [improvements(snapshot, path).sum() for path in X.numpy()]
    with torch.no_grad():
        ours = surrogate.training.scale * PathImprovement(surrogate)(X)
    np.testing.assert_allclose(ours, expected, rtol=1e-5)


def test_one_step_is_expected_improvement():
    for seed in range(3):
        snapshot = typical(LINE, n=6, seed=seed)
        proposal = MultiStepEI(1, **THOROUGH).propose(snapshot, seeded(seed))
        gains = expected_improvement(*snapshot.model.posterior(DENSE), snapshot.warped.max())
        reached = expected_improvement(*snapshot.model.posterior(proposal.x[None]), snapshot.warped.max())
        assert reached[0] >= gains.max() * (1 - 1e-6)


def test_path_is_maximized_and_recorded():
    """Two steps on a line against all pairs of a grid."""
    snapshot = typical(LINE, n=4, config=GPConfig.paper())
    proposal = MultiStepEI(2, **THOROUGH).propose(snapshot, seeded())
    path = np.array(proposal.record["path"]).reshape(2, 1)
    np.testing.assert_array_equal(path[0], proposal.x)
    grid = np.linspace(0, 1, 21)
    pairs = np.array([[[a], [b]] for a in grid for b in grid])
    best = max(improvements(snapshot, pair).sum() for pair in pairs)
    assert improvements(snapshot, path).sum() >= best


def test_starts_lead_from_the_last_path_to_anywhere():
    last = np.random.default_rng(0).random((4, 3))
    starts = paths_near(last, 200, seeded())
    assert starts.shape == (200, 4, 3)
    assert ((starts >= 0.0) & (starts <= 1.0)).all()
    np.testing.assert_array_equal(starts[0, :3], last[1:])  # one step further on
    distance = np.abs(starts[:, :3] - last[1:]).mean(axis=(1, 2))
    assert distance[:20].max() < 0.1 < distance[-20:].min()
    assert stats.kstest(starts[:, 3].ravel(), "uniform").pvalue > 1e-3


def test_last_path_is_where_the_search_begins():
    """Without climbing to speak of, the proposal is near the second point of the path in the latest record."""
    policy = MultiStepEI(3, n_raw_samples_per_dimension=4, n_restarts_per_dimension=4, n_iterations=1)
    X = np.random.default_rng(1).random((6, 4))
    old, last, short = ([float(v)] * k for v, k in ((0.9, 12), (0.2, 12), (0.5, 8)))
    records = [{}, {"path": old}, {"path": last}, {"path": short}, {}, {}]
    shared = {"values": np.sin(5 * X[:, 0]), "config": GPConfig.paper()}
    with_path = policy.propose(build_snapshot(cube(4), X, records=records, **shared), seeded())
    older = [{}, {"path": old}, {"path": last}, {"path": short}]
    same = policy.propose(build_snapshot(cube(4), X, records=[*older, {"path": short}, {}], **shared), seeded())
    without = policy.propose(build_snapshot(cube(4), X, **shared), seeded())
    np.testing.assert_array_equal(with_path.x, same.x)  # a path of another length is not this policy's
    assert np.abs(with_path.x - without.x).max() > 1e-3


# Budgeted lookahead ---------------------------------------------------------------------------------------------------


def test_window_is_what_the_last_trials_cost_or_what_is_left():
    X, costs = np.linspace(0, 1, 6)[:, None], np.array([50.0, 40.0, 1.0, 2.0, 3.0, 4.0])
    fields = {"cost": LearnedCost(), "costs": costs}
    for budget, spent, n_steps, window in [
        (1000.0, 100.0, 4, 10.0),
        (1000.0, 100.0, 5, 50.0),
        (1000.0, 100.0, 9, 100.0),
        (107.0, 100.0, 4, 7.0),
        (None, 100.0, 4, 10.0),
    ]:
        snapshot = build_snapshot(LINE, X, wave(X), budget=budget, spent=spent, **fields)
        assert BudgetedMultiStepEI(n_steps).window(snapshot) == pytest.approx(window)
    # A running trial is expected to cost one, which is no longer there to spend.
    snapshot = build_snapshot(LINE, X, wave(X), budget=107.0, spent=100.0, pending=[[0.1]], **fields)
    assert BudgetedMultiStepEI().window(snapshot) == pytest.approx(6.0)


def test_window_where_no_cost_was_told():
    X = np.linspace(0, 1, 3)[:, None]
    snapshot = build_snapshot(LINE, X, wave(X), cost=KnownCost(lambda p: 2.0 + p["x"]))
    untold = tuple(dataclasses.replace(trial, cost=None, predicted_cost=None) for trial in snapshot.trials)
    assert BudgetedMultiStepEI(2).window(dataclasses.replace(snapshot, trials=untold)) == pytest.approx(5.5)


def test_budgeted_improvement_of_known_costs():
    """A step counts if the path fits the window up to it."""
    snapshot = typical(SQUARE, cost=KnownCost(lambda p: 1.0 + p["x"]), config=GPConfig.paper())
    surrogate = surrogate_of(snapshot)
    X = paths(8, 3, 2, seed=3)
    sums = (1.0 + X[..., 0]).cumsum(dim=-1).numpy()
    window = 3.0
    fits = sums <= window
    assert fits[:, 1].any()
    assert not fits[:, 1].all()
    assert (np.abs(sums - window) > 0.02).all()  # the border is soft
    expected = [(improvements(snapshot, path) * fit).sum() for path, fit in zip(X.numpy(), fits, strict=True)]
    with torch.no_grad():
        ours = surrogate.training.scale * BudgetedPathImprovement(surrogate, snapshot.price, window)(X)
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-12)


def test_budgeted_improvement_of_learned_costs():
    """Times the probability of a log-normal cost to fit, the ones before being what is expected of their logarithm."""
    snapshot = typical(SQUARE, n=9, config=GPConfig.paper())
    surrogate, window = surrogate_of(snapshot), 9.0
    X = paths(6, 2, 2, seed=4)
    with torch.no_grad():
        ours = surrogate.training.scale * BudgetedPathImprovement(surrogate, snapshot.price, window)(X)
    for path, value in zip(X.numpy(), ours, strict=True):
        up, down = (snapshot.cost.log_moment(path, power) for power in (1.0, -1.0))
        mean, std = (up - down) / 2, np.sqrt(up + down)
        left = window - np.array([0.0, np.exp(mean[0])])
        expected = (improvements(snapshot, path) * stats.lognorm.cdf(left, s=std, scale=np.exp(mean))).sum()
        assert float(value) == pytest.approx(expected, rel=1e-5)


def test_slope_of_the_budgeted_improvement():
    snapshot = typical(SQUARE, n=9, config=GPConfig(noise=1e-2))
    acquisition = BudgetedPathImprovement(surrogate_of(snapshot), snapshot.price, 12.0)
    assert torch.autograd.gradcheck(acquisition, (paths(2, 3, 2, seed=5).requires_grad_(),), eps=1e-6, atol=1e-5)


@pytest.mark.parametrize("window", [1.5, 4.0, 12.0])
def test_first_step_fits_the_window(window):
    """The best is where points are dear; a budget that is nearly spent sends the search to cheap ones."""
    X = np.random.default_rng(0).random((8, 4))
    values = X.mean(axis=1)
    fields = {"cost": KnownCost(mean_price), "costs": 1.0 + 20.0 * X.mean(axis=1), "config": GPConfig.paper()}
    policy = BudgetedMultiStepEI(2, **(TINY | {"n_raw_samples_per_dimension": 20}))
    snapshot = build_snapshot(cube(4), X, values, budget=500.0, spent=500.0 - window, **fields)
    proposal = policy.propose(snapshot, seeded())
    assert proposal.record["window"] == pytest.approx(window)
    assert proposal.predicted_cost <= window * 1.01
    free = policy.propose(build_snapshot(cube(4), X, values, budget=500.0, spent=0.0, **fields), seeded())
    assert free.predicted_cost > 12.0


def test_window_that_buys_nothing_falls_back():
    """The least price is one: no path is worth anything, and the proposal is the one of log expected improvement."""
    snapshot = typical(SQUARE, cost=KnownCost(mean_price), budget=10.0, spent=9.5)
    proposal = BudgetedMultiStepEI(2, **TINY).propose(snapshot, seeded())
    assert_valid(proposal, SQUARE)
    assert proposal.record == {}
    others = np.random.default_rng(0).random((500, 2))
    gains, reached = (
        expected_improvement(*snapshot.model.posterior(P), snapshot.warped.max()) for P in (others, proposal.x[None])
    )
    assert reached[0] >= gains.max()
