"""The experiments as data: how many runs, which curves, what each stands for, and what the text says instead."""

import hashlib
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from engine_fixtures import SQUARE, build_snapshot
from scipy import optimize

import pbgi
from paper.described import FACTORS
from paper.execution import build_model, build_problem, start_points
from paper.experiments import EXPERIMENTS, experiment_named
from paper.policies import (
    DescribedPBGID,
    ExpLogEI,
    LogTextbookEI,
    OffsetLogarithm,
    SearchedFromSobol,
    SearchedNearBest,
    TextbookEI,
    TextbookImprovement,
)
from paper.reference import NEAR_BEST, Panel, published, published_panels, published_seconds
from paper.specification import FittedModel, OwnModel, ProblemSpec, Run, Specification, TrueModel
from pbgi.acquisition import LogExpectedImprovement
from pbgi.botorch.policies import BudgetedMultiStepEI
from pbgi.cost import UniformCost
from pbgi.errors import InvalidInputError
from pbgi.gp_config import Hyperparameters
from pbgi.snapshot import Proposal

# By hand: curves per panel (nine with uniform, seven with varying cost, less the omitted ones), panels, seeds.
COUNTS = {
    "synthetic": 3 * 3 * (9 + 7) * 16,
    "bayesian_regret": (16 + 16 + 15 + 14) * 16,
    "empirical": (3 * 9 + 3 * 6) * 16,
    "kernels": 2 * (16 + 16 + 15 + 14) * 16,
    "length_scales": 2 * (16 + 16 + 16 + 14) * 16,
    "timing": 3 * 5 * 16,
    "lambda_sensitivity": 4 * 256,
    "decay_sensitivity": 2 * 3 * 256,
    "hard_for_eipc": 2 * 16,
    "hard_for_ei": 2 * 16,
    "log_scaling": (5 + 2) * 16,
    "search": (9 * 5 + 10 * 4) * 16,
    "units": (3 + 3) * 16,
    "robot_pushing_known": 7 * 16,
}


def find(experiment: str, panel: str, curve: str, variant: str = "as_published", seed: int = 0) -> Run:
    runs = EXPERIMENTS[experiment](seed + 1, variant)
    (run,) = [r for r in runs if (r.panel, r.curve, r.specification.seed) == (panel, curve, seed)]
    return run


def test_number_of_runs():
    assert {name: len(list(experiment())) for name, experiment in EXPERIMENTS.items()} == COUNTS


def test_first_seeds_only():
    assert {run.specification.seed for run in EXPERIMENTS["timing"](3)} == {0, 1, 2}
    assert len(list(EXPERIMENTS["timing"](3))) == 3 * 5 * 3


def test_unknown_experiment_is_named_with_the_known_ones():
    with pytest.raises(InvalidInputError, match=r"must be one of synthetic, .* got 'syntetic'"):
        experiment_named("syntetic")


@pytest.fixture(scope="module")
def all_runs() -> list[Run]:
    return [run for experiment in EXPERIMENTS.values() for run in experiment(2, variant=None)]


def test_runs_are_hashable_and_keys_unique(all_runs):
    assert len(set(all_runs)) == len(all_runs) == len({run.key for run in all_runs})


def test_runs_survive_json(all_runs):
    assert [Run.from_plain(json.loads(run.to_json())) for run in all_runs] == all_runs


def test_key_is_the_hash_of_canonical_json():
    spec = Specification("toy", ProblemSpec("ackley", (("dimension", 2),)), pbgi.PBGI(0.5), FittedModel(), 3)
    text = (
        '{"experiment":"toy","kind":"Specification",'
        '"model":{"kernel":"matern52","kind":"FittedModel","standardise":true},"n_evaluations":null,"n_start":null,'
        '"policy":{"cost_scale":0.5,"kind":"PBGI"},'
        '"problem":{"arguments":[["dimension",2]],"factor":1.0,"function":"ackley","kind":"ProblemSpec","price":"own"},'
        '"seed":3,"start":null}'
    )
    assert spec.key == hashlib.sha256(text.encode()).hexdigest()


def test_labels_do_not_change_the_key():
    run = find("timing", "Ackley d=4 uniform", "PBGI")
    assert replace(run, curve="another", problem="name").key == run.key
    assert find("timing", "Ackley d=4 uniform", "PBGI", seed=1).key != run.key


@pytest.mark.parametrize("panel", published_panels(), ids=lambda panel: panel.name)
def test_main_panels_have_the_published_curves(panel):
    main = [
        run for name in ("synthetic", "bayesian_regret", "empirical", "hard_for_eipc") for run in EXPERIMENTS[name](1)
    ]
    assert {r.curve for r in main if Panel.of(r.problem, r.dim, r.cost) == panel} == set(published(panel))


@pytest.mark.parametrize("dim", [4, 8, 16])
def test_timing_has_the_published_curves(dim):
    curves = {run.curve for run in EXPERIMENTS["timing"](1) if run.dim == dim}
    assert curves == set(published_seconds(Panel("Ackley", dim, "uniform")))


@pytest.mark.parametrize(
    ("experiment", "panel", "curve", "budget"),
    [  # the end of the published axes, or the table of budgets by hand
        ("synthetic", "Levy d=16 uniform", "PBGI", 160.0),
        ("synthetic", "Levy d=16 varying", "PBGI", 400.0),
        ("bayesian_regret", "GP sample (Matern-5/2, ls=0.1) d=8 uniform", "PBGI", 200.0),
        ("bayesian_regret", "GP sample (Matern-5/2, ls=0.1) d=8 varying", "PBGI", 400.0),
        ("kernels", "GP sample (squared exponential, ls=0.1) d=4 uniform", "PBGI", 80.0),
        ("length_scales", "GP sample (Matern-5/2, ls=0.5) d=4 varying", "PBGI", 160.0),
        ("hard_for_eipc", "hard_for_eipc d=1 varying", "PBGI", 40.0),
        ("empirical", "Pest Control d=25 varying", "PBGI", 800.0),
    ],
)
def test_budgets(experiment, panel, curve, budget):
    assert build_problem(find(experiment, panel, curve).specification.problem).budget == budget


def test_settings_of_the_paper():
    policies = {run.curve: run.specification.policy for run in EXPERIMENTS["synthetic"](1)}
    assert policies["PBGI"] == SearchedFromSobol(pbgi.PBGI(1e-4))
    assert policies["PBGI-D"] == SearchedFromSobol(pbgi.PBGID(0.1, 2.0))
    assert (policies["RS"], policies["TS"]) == (pbgi.RandomSearch(), pbgi.Thompson())
    assert policies["BMSEI"] == BudgetedMultiStepEI(4)
    decays = {run.specification.policy.policy for run in EXPERIMENTS["decay_sensitivity"](1)}
    assert decays == {pbgi.PBGID(start, decay) for start in (0.1, 1e-4) for decay in (2.0, 10.0, 100.0)}


# Models -----------------------------------------------------------------------------------------------------------


def test_uniform_bayesian_regret_knows_the_prior():
    run = find("kernels", "GP sample (squared exponential, ls=0.1) d=4 uniform", "PBGI")
    model = build_model(run.specification, build_problem(run.specification.problem))
    assert model.hyperparameters == Hyperparameters((0.1,) * 4, 1.0, 1e-4)
    assert (model.kernel, model.standardise) == ("rbf", False)


def test_varying_bayesian_regret_is_fitted_as_published_and_fixed_as_described():
    where = "kernels", "GP sample (Matern-3/2, ls=0.1) d=4 varying", "LogEIPC"
    assert find(*where).specification.model == FittedModel("matern52", standardise=False)
    assert find(*where, variant="as_described").specification.model == TrueModel("matern32", 0.1)


@pytest.mark.parametrize(
    ("experiment", "curve", "searched"),
    [("synthetic", "PBGI-D", SearchedFromSobol), ("search", f"PBGI-D{NEAR_BEST}", SearchedNearBest)],
)
def test_the_decay_as_described_has_the_same_search(experiment, curve, searched):
    twin = find(experiment, "Ackley d=16 uniform", curve, variant="as_described")
    assert twin.specification.policy == searched(DescribedPBGID(0.1, 2.0))


def test_synthetic_problems_have_the_model_of_the_paper():
    run = find("synthetic", "Ackley d=4 uniform", "PBGI")
    assert build_model(run.specification, build_problem(run.specification.problem)) == pbgi.GPConfig.paper()


def test_one_dimensional_problems_bring_their_model():
    published_run = find("hard_for_eipc", "hard_for_eipc d=1 varying", "PBGI")
    described = find("hard_for_eipc", "hard_for_eipc d=1 varying", "PBGI", "as_described")
    far = np.array([[0.0]])  # where the amplitude is 0.01: taken for a variance it is a deviation of 0.1
    for run, deviation in ((published_run, 0.1), (described, 0.01)):
        problem = build_problem(run.specification.problem)
        model = build_model(run.specification, problem)
        _, std = model.fit(np.array([[1.0]]), np.zeros(1)).posterior(far)
        assert std[0] == pytest.approx(deviation, rel=1e-9)
        assert start_points(run.specification, problem) == [{"z": -500.0}]


def test_own_model_needs_a_problem_that_has_one():
    spec = Specification("toy", ProblemSpec("ackley", (("dimension", 2),)), pbgi.LogEI(), OwnModel(), 0)
    with pytest.raises(InvalidInputError, match="brings a model; got Ackley"):
        build_model(spec, build_problem(spec.problem))


@pytest.mark.parametrize("function", ["no_such", "Problem", "__all__"])
def test_only_problems_are_built(function):
    with pytest.raises(InvalidInputError, match=r"must be a problem of pbgi\.problems"):
        build_problem(ProblemSpec(function))


# The start --------------------------------------------------------------------------------------------------------


def test_start_is_shared_by_policies_and_costs_and_differs_by_seed():
    def start(cost: str, curve: str, seed: int) -> list[dict[str, float]]:
        spec = find("synthetic", f"Levy d=4 {cost}", curve, seed=seed).specification
        return start_points(spec, build_problem(spec.problem))

    first = start("uniform", "PBGI", 0)
    assert len(first) == 2 * (4 + 1)
    assert first == start("uniform", "RS", 0) == start("varying", "LogEIPC", 0)
    assert first != start("uniform", "PBGI", 1)


def test_start_is_uniform():
    spec = find("synthetic", "Levy d=16 uniform", "PBGI").specification
    problem = build_problem(spec.problem)
    points = np.array([list(p.values()) for s in range(40) for p in start_points(replace(spec, seed=s), problem)])
    n = points.size
    assert abs(points.mean() - 0.5) < 5 * math.sqrt(1 / 12 / n)
    assert abs(np.mean(points < 0.25) - 0.25) < 5 * math.sqrt(0.25 * 0.75 / n)


# As described -----------------------------------------------------------------------------------------------------


def test_rosenbrock_as_described():
    point = {f"x{k}": x for k, x in enumerate((0.1, 0.9, 0.4, 0.5))}
    height = optimize.rosen(-5.0 + 15.0 * np.array(list(point.values())))
    run = find("synthetic", "Rosenbrock d=4 varying", "PBGI", "as_described")
    problem = build_problem(run.specification.problem)
    value, cost = problem.evaluate(point)
    assert value == pytest.approx(-1e5 * height, rel=1e-12)  # the text: 1e5 times the function
    assert value * problem.unit == pytest.approx(-height, rel=1e-12)  # plotted in its own units
    assert cost == pytest.approx(1.0 + 20.0 * 1.9, rel=1e-12)  # the text: 20 |x|_1 + 1
    assert problem.cost.price(point) == cost
    assert problem.budget == pytest.approx(100.0 * (1 + 10 * 4) / 11)


def test_published_rosenbrock_is_divided():
    problem = build_problem(find("synthetic", "Rosenbrock d=4 uniform", "PBGI").specification.problem)
    height = optimize.rosen(np.full(4, -5.0))
    assert problem.evaluate(dict.fromkeys(problem.space.names, 0.0)).value == pytest.approx(-height / 1e5, rel=1e-12)
    assert FACTORS["levy"] == 1e4  # from a hundredth to a hundred times


def test_twins_are_there_only_where_they_differ():
    twins = [run for run in EXPERIMENTS["synthetic"](1, "as_described") if run.panel == "Ackley d=4 uniform"]
    assert [run.curve for run in twins] == ["PBGI-D"]
    assert list(EXPERIMENTS["lambda_sensitivity"](1, "as_described")) == []


def test_described_decay_compares_with_the_best_before():
    optimizer = pbgi.Optimizer(
        {"x": pbgi.Float(0.0, 1.0)}, direction="maximize", cost=UniformCost(), policy=DescribedPBGID(0.1, 2.0), seed=0
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


# Policies of the appendix -----------------------------------------------------------------------------------------


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
    """On a line with three points all forms have the same maximiser."""
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
    from pbgi.gp_fit import fit_gp

    X, y = np.array([[0.1], [0.4], [0.9]]), -((np.array([0.1, 0.4, 0.9]) - 0.6) ** 2)
    best = grid[np.argmax(LogExpectedImprovement(fit_gp(X, y, pbgi.GPConfig.paper()), None, y.max()).value(grid)), 0]
    assert optimizer.ask().params["x"] == pytest.approx(best, abs=1e-3)


class Asking:
    """A policy that goes to the best point tried, and keeps what it was asked for."""

    def __init__(self, near_best):
        self.asked, self._near_best = [], near_best

    def propose(self, snapshot, rng):
        self._best = snapshot.X[snapshot.values.argmax()]
        found = snapshot.maximise(self, rng, near_best=self._near_best)
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


def test_a_search_near_the_best_points_begins_there_whatever_the_policy_says():
    pool, _ = asked_for(lambda asking: SearchedNearBest(asking), near_best=False)
    assert (np.abs(pool - [0.3, 0.6]).max(axis=1) < 1e-3).any()
    without, _ = asked_for(lambda asking: asking, near_best=False)
    assert not (np.abs(without - [0.3, 0.6]).max(axis=1) < 1e-3).any()


def asked_for(wrapped, near_best=True):
    """The first pool that is evaluated, and the proposal, where (0.3, 0.6) is the best point tried."""
    snapshot = build_snapshot(SQUARE, np.array([[0.3, 0.6], [0.9, 0.1], [0.5, 0.5]]), np.array([2.0, 0.0, 1.0]))
    asking = Asking(near_best)
    proposal = wrapped(asking).propose(snapshot, np.random.default_rng(0))
    return asking.asked[0], proposal
