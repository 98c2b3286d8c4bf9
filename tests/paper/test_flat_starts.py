"""Why published climbs do not move: derivatives at their starts, beside the tolerance of SciPy's L-BFGS-B."""

from dataclasses import replace

import numpy as np
import pytest

from paper.execution import build_model, build_problem, start_points
from paper.experiments import EXPERIMENTS, N_CLIMBS, N_POINTS
from paper.policies import TextbookImprovement
from paper.reference import Panel, gp_problem, published
from pbgi.gp.posterior import GP
from pbgi.search import build_pool

TOLERANCE = 1e-5  # of the largest derivative: SciPy's, which BoTorch leaves as it is


def steepest(dim):
    """The largest derivative of log EI and of EI at each of the starts of the first climbs, at uniform cost."""
    runs = EXPERIMENTS["bayesian_regret"](1)
    spec = next(r.specification for r in runs if (r.dim, r.cost, r.curve) == (dim, "uniform", "LogEI"))
    unsearched = (*spec.problem.arguments, ("find_optimum", False))  # the highest value takes seconds to find
    problem = build_problem(replace(spec.problem, arguments=unsearched))
    config = build_model(spec, problem)
    start = start_points(spec, problem)
    X, y = problem.space.to_unit_many(start), np.array([problem.evaluate(params)[0] for params in start])
    model = GP.with_hyperparameters(X, y, config.hyperparameters, config, standardize=False)
    pool = build_pool(dim, np.random.default_rng(0), n_sobol=N_POINTS * dim)
    value, slope = TextbookImprovement(model, float(y.max())).value_and_grad(pool)
    best = np.argsort(-value)[: N_CLIMBS * dim]
    largest = np.abs(slope[best]).max(axis=1)
    return largest / value[best], largest


def test_in_32_dimensions_every_start_is_too_flat_and_the_published_curves_are_one():
    of_log, _ = steepest(32)
    assert of_log.max() < TOLERANCE
    curves = published(Panel(gp_problem(), 32, "uniform"))
    medians = [curves[name].median for name in ("LogEI", "UCB", "PBGI", "PBGI-D")]
    assert all(np.array_equal(median, medians[0]) for median in medians)
    assert medians[0][-1] == pytest.approx(curves["RS"].median[-1], rel=0.02)


def test_in_16_dimensions_nearly_every_start_of_ei_is_too_flat_but_many_of_its_logarithm_are_not():
    of_log, of_ei = steepest(16)
    assert np.mean(of_ei < TOLERANCE) > 0.9
    assert np.mean(of_log < TOLERANCE) < 0.7


def test_in_8_dimensions_no_start_is_too_flat():
    of_log, of_ei = steepest(8)
    assert min(of_log.min(), of_ei.min()) > TOLERANCE
