"""The experiments as data: how many runs, which curves, what each stands for, and what the text says instead."""

import hashlib
import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

import pbgi
from paper.comparison import SAME_HERE
from paper.described import FACTORS
from paper.execution import assumed_cost, build_model, build_problem, start_points
from paper.experiments import EXPERIMENTS, experiment_named
from paper.policies import (
    PUBLISHED_SEARCH,
    DescribedPBGID,
    MaxValueEntropyInUnits,
    MultiFidelityMaxValueEntropyInUnits,
    PublishedThompson,
    SearchedFromSobol,
    SearchedNearBest,
)
from paper.reference import DEFAULT, NEAR_BEST, Panel, best_published, published, published_panels, published_seconds
from paper.specification import DefaultModel, FittedModel, OwnModel, ProblemSpec, Run, Specification, TrueModel
from pbgi.botorch.policies import BudgetedMultiStepEI
from pbgi.errors import InvalidInputError
from pbgi.gp.config import Hyperparameters

# By hand: curves per panel (nine with uniform, seven with varying cost, less the omitted ones), panels, seeds.
COUNTS = {
    "synthetic": 3 * 3 * (9 + 7) * 16,
    "bayesian_regret": (16 + 16 + 15 + 14) * 16,
    "empirical": (3 * 9 + 3 * 6) * 16,
    "kernels": 2 * (16 + 16 + 15 + 14) * 16,
    "length_scales": 2 * (16 + 16 + 16 + 14) * 16,
    "timing": 3 * 5 * 16,
    "lambda_sensitivity": 5 * 256,
    "decay_sensitivity": 2 * 3 * 256,
    "hard_for_eipc": 2 * 16,
    "hard_for_ei": 2 * 16,
    "log_scaling": (5 + 2) * 16,
    "search": (9 * (4 + 2) + 10 * 4) * 16,
    "engines": 2 * 4 * 16,
    "units": (3 + 3) * 16,
    "robot_pushing_known": 7 * 16,
    "default": (3 * 3 * 2 + 3 * 2 + 6) * 16,
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


def test_runs_can_be_sent_to_another_process(all_runs):
    assert pickle.loads(pickle.dumps(all_runs)) == all_runs  # noqa: S301 (our own)


def test_runs_are_plain_json(all_runs):
    for run in all_runs:
        plain = run.to_plain()
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain
        assert plain["specification"]["seed"] == run.specification.seed


def test_key_is_the_hash_of_canonical_json():
    spec = Specification("toy", ProblemSpec("ackley", (("dimension", 2),)), pbgi.PBGI(0.5), FittedModel(), 3)
    text = (
        '{"experiment":"toy","kind":"Specification",'
        '"model":{"kernel":"matern52","kind":"FittedModel","standardize":true},"n_evaluations":null,"n_start":null,'
        '"policy":{"cost_scale":0.5,"kind":"PBGI"},'
        '"problem":{"arguments":[["dimension",2]],"factor":1.0,"function":"ackley","kind":"ProblemSpec","price":"own"},'
        '"seed":3,"start":null}'
    )
    assert spec.key == hashlib.sha256(text.encode()).hexdigest()[:16]


def test_labels_do_not_change_the_key():
    run = find("timing", "Ackley d=4 uniform", "PBGI")
    assert replace(run, curve="another", problem="name").key == run.key
    assert find("timing", "Ackley d=4 uniform", "PBGI", seed=1).key != run.key


@pytest.mark.parametrize("panel", published_panels(), ids=lambda panel: panel.name)
def test_main_panels_have_the_published_curves(panel):
    """And that of log EI, cooled, which is not published as numbers on two panels."""
    others = ("search", "default", "engines", "units", "timing")
    main = [run for name, experiment in EXPERIMENTS.items() if name not in others for run in experiment(1)]
    ours = {r.curve for r in main if Panel.of(r.problem, r.dim, r.cost) == panel}
    theirs = {SAME_HERE.get(name, name) for name in published(panel)}
    unpublished = {"LogEICC"} if panel.problem == "Ackley" and panel.dim < 16 and panel.cost == "varying" else set()
    unpublished |= {"EIPC"} & ours
    assert ours - theirs == unpublished
    assert theirs <= ours


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
    assert policies["PBGI"] == SearchedFromSobol(pbgi.PBGI(1e-4), 200, 10)
    assert policies["PBGI-D"] == SearchedFromSobol(pbgi.PBGID(0.1, 2.0), 200, 10)
    assert (policies["RS"], policies["TS"]) == (pbgi.RandomSearch(), PublishedThompson(1024, 20))
    assert (policies["MES"], policies["MFMES"]) == (MaxValueEntropyInUnits(), MultiFidelityMaxValueEntropyInUnits())
    assert policies["BMSEI"] == BudgetedMultiStepEI(4)
    decays = {run.specification.policy.policy for run in EXPERIMENTS["decay_sensitivity"](1)}
    assert decays == {pbgi.PBGID(start, decay) for start in (0.1, 1e-4) for decay in (2.0, 10.0, 100.0)}


def test_the_default_runs_where_there_are_published_numbers():
    runs = list(EXPERIMENTS["default"](1))
    panels = [Panel.of(run.problem, run.dim, run.cost) for run in runs]
    assert len(panels) == 18 + 12
    assert set(panels) == set(best_published()) - {Panel("Robot Pushing", 14, "varying")}
    assert {run.curve for run in runs} == {DEFAULT}


@pytest.mark.parametrize(
    ("experiment", "panel", "curve"),
    [
        ("synthetic", "Levy d=4 varying", "PBGI"),
        ("bayesian_regret", "GP sample (Matern-5/2, ls=0.1) d=8 uniform", "PBGI"),
        ("empirical", "Lunar Lander d=12 unknown", "PBGI"),
    ],
)
def test_the_default_has_the_problem_and_the_start_of_the_other_curves(experiment, panel, curve):
    default, other = (
        find(*which, seed=1).specification for which in (("default", panel, DEFAULT), (experiment, panel, curve))
    )
    assert default.problem == other.problem
    assert (default.seed, default.start, default.n_start) == (other.seed, other.start, other.n_start)


# Models -----------------------------------------------------------------------------------------------------------


def test_uniform_bayesian_regret_knows_the_prior():
    run = find("kernels", "GP sample (squared exponential, ls=0.1) d=4 uniform", "PBGI")
    model = build_model(run.specification, build_problem(run.specification.problem))
    assert model.hyperparameters == Hyperparameters((0.1,) * 4, 1.0, 1e-4)
    assert (model.kernel, model.outputs) == ("rbf", "plain")


def test_varying_bayesian_regret_is_fitted_as_published_and_fixed_as_described():
    where = "kernels", "GP sample (Matern-3/2, ls=0.1) d=4 varying", "LogEIPC"
    assert find(*where).specification.model == FittedModel("matern52", standardize=False)
    assert find(*where, variant="as_described").specification.model == TrueModel("matern32", 0.1)


@pytest.mark.parametrize(
    ("experiment", "curve", "policy"),
    [
        ("synthetic", "PBGI-D", SearchedFromSobol(DescribedPBGID(0.1, 2.0), 200, 10)),
        ("search", f"PBGI-D{NEAR_BEST}", SearchedNearBest(DescribedPBGID(0.1, 2.0))),
    ],
)
def test_the_decay_as_described_has_the_same_search(experiment, curve, policy):
    assert find(experiment, "Ackley d=16 uniform", curve, variant="as_described").specification.policy == policy


def test_one_rule_for_every_search():
    """Of every policy with a closed form, on every panel and in every study of the paper's."""
    own = ("search", "default", "units")
    runs = [run for name, experiment in EXPERIMENTS.items() if name not in own for run in experiment(1, None)]
    searches = {run.search for run in runs}
    assert searches == {PUBLISHED_SEARCH, "1024 / 20", "none", "BoTorch's"}
    assert {run.curve for run in runs if run.search == "1024 / 20"} == {"TS"}
    assert {run.curve for run in runs if run.search == "none"} == {"RS"}


def test_a_smaller_search_is_another_run_with_the_same_labels_but_one():
    larger = find("synthetic", "Levy d=4 varying", "PBGI")
    smaller = [run for run in EXPERIMENTS["synthetic"](1, smaller=True) if run.panel == larger.panel]
    assert {run.curve for run in smaller} == {"LogEIPC", "LogEICC", "PBGI", "PBGI-D"}
    (twin,) = [run for run in smaller if run.curve == "PBGI"]
    assert twin.specification.policy == SearchedFromSobol(pbgi.PBGI(1e-4), 64, 1)
    assert twin.labels == larger.labels | {"search": "64 d / d"}
    assert twin.key != larger.key


def test_synthetic_problems_have_the_model_of_the_paper():
    run = find("synthetic", "Ackley d=4 uniform", "PBGI")
    assert build_model(run.specification, build_problem(run.specification.problem)) == pbgi.GPConfig.paper()


def test_the_default_is_what_an_optimizer_does_if_nothing_is_chosen():
    run = find("default", "Ackley d=4 uniform", DEFAULT)
    problem = build_problem(run.specification.problem)
    model = build_model(run.specification, problem)
    chosen = pbgi.Optimizer(problem.space, policy=run.specification.policy, model=model, seed=0)
    assert chosen.to_json() == pbgi.Optimizer(problem.space, seed=0).to_json()


def test_unknown_costs_are_learned_as_the_paper_does_or_as_the_package_does():
    spec = find("empirical", "Lunar Lander d=12 unknown", "PBGI").specification
    problem = build_problem(spec.problem)
    assert assumed_cost(spec, problem) == pbgi.LearnedCost(model=pbgi.GPConfig.paper(), trend=False)
    assert assumed_cost(replace(spec, model=DefaultModel()), problem) == pbgi.LearnedCost()


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
