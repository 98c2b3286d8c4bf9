"""What the paper ran: each experiment, appendix included, is a generator of runs.

Names of curves are the paper's. Seeds are 0, 1, ..., shared by all policies. Where the paper's text and its published
figures differ there is a run for each (`paper.described`), told apart by `variant`; figures show "as_published".

No run stands in two experiments without need: kernels and length scales other than the main ones are experiments of
their own, and Robot Pushing with unknown cost, which two figures show, is in `empirical`. The time per suggestion is
measured in its own experiment, so that it can be run on a quiet machine. The last experiment is not the paper's: the
package as it comes, on its panels.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from paper.described import with_twins
from paper.policies import (
    PUBLISHED_SEARCH,
    ExpLogEI,
    LogTextbookEI,
    MaxValueEntropyInUnits,
    MultiFidelityMaxValueEntropyInUnits,
    PublishedThompson,
    SearchedFromSobol,
    SearchedNearBest,
    TextbookEI,
    search_of,
)
from paper.reference import DEFAULT, NEAR_BEST, gp_problem
from paper.results import ENGINES
from paper.specification import DefaultModel, FittedModel, OwnModel, ProblemSpec, Run, Specification, TrueModel
from pbgi.botorch.policies import (
    BudgetedMultiStepEI,
    KnowledgeGradient,
    MaxValueEntropy,
    MultiFidelityMaxValueEntropy,
    MultiStepEI,
)
from pbgi.errors import InvalidInputError
from pbgi.policy import EIPC, PBGI, PBGID, UCB, LogEI, LogEICC, LogEIPC, RandomSearch, Thompson

N_SEEDS, N_SEEDS_SENSITIVITY = 16, 256
COSTS = ("uniform", "varying")
SYNTHETIC = {"ackley": "Ackley", "levy": "Levy", "rosenbrock": "Rosenbrock"}
EMPIRICAL = (
    ("pest_control", "Pest Control", 25, "uniform"),
    ("pest_control", "Pest Control", 25, "varying"),
    ("lunar_lander", "Lunar Lander", 12, "uniform"),
    ("lunar_lander", "Lunar Lander", 12, "unknown"),
    ("robot_pushing", "Robot Pushing", 14, "uniform"),
    ("robot_pushing", "Robot Pushing", 14, "unknown"),
)
KNOWN = ("robot_pushing", "Robot Pushing", 14, "known")
KERNELS = {"matern52": "Matern-5/2", "matern32": "Matern-3/2", "rbf": "squared exponential"}
# The settings of the sensitivity studies are in the authors' configuration files only.
COST_SCALES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
INITIAL_COST_SCALES, DECAYS = (1e-1, 1e-4), (2.0, 10.0, 100.0)

POLICIES: dict[str, Any] = {
    "RS": RandomSearch(),
    "LogEI": LogEI(),
    "TS": Thompson(),
    "UCB": UCB(),
    "KG": KnowledgeGradient(),
    "MES": MaxValueEntropyInUnits(),
    "MSEI": MultiStepEI(),
    "LogEICC": LogEICC(),
    "LogEIPC": LogEIPC(),
    "MFMES": MultiFidelityMaxValueEntropyInUnits(),
    "BMSEI": BudgetedMultiStepEI(),
    "PBGI": PBGI(1e-4),
    "PBGI-D": PBGID(0.1, 2.0),
}
# What the paper ran, by one rule for all panels: where a policy has a closed form its search looks at 200 d Sobol
# points and climbs 10 d times, a path of Thompson sampling is climbed 20 times from 1024 points, and entropy search
# works in the units of the values whether costs differ or not. BoTorch's other policies search as they do there.
SEARCHED = (LogEI, LogEIPC, LogEICC, UCB, PBGI, PBGID)
N_POINTS, N_CLIMBS = 200, 10  # per dimension


def searched(policy: Any) -> SearchedFromSobol:
    """A policy with the published search."""
    return SearchedFromSobol(policy, N_POINTS, N_CLIMBS)


PUBLISHED = {c: searched(p) if isinstance(p, SEARCHED) else p for c, p in POLICIES.items()}
PUBLISHED["TS"] = PublishedThompson()
FITTED = FittedModel()
CURVES = {
    "uniform": ("RS", "LogEI", "TS", "UCB", "KG", "MES", "MSEI", "PBGI", "PBGI-D"),
    "varying": ("RS", "LogEICC", "LogEIPC", "MFMES", "BMSEI", "PBGI", "PBGI-D"),
}


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper.

    Attributes:
        name: As the command line knows it.
        title: What it is, in words.
        n_seeds: How many seeds the paper has.
        runs: All runs of that many seeds.
    """

    name: str
    title: str
    n_seeds: int
    runs: Callable[[str, int], Iterator[Run]]

    def __call__(
        self, n_seeds: int | None = None, variant: str | None = "as_published", *, smaller: bool = False
    ) -> Iterator[Run]:
        """The runs of the first seeds (by default as many as in the paper), of one variant or, for None, of all.

        With `smaller` they have a search of 64 d points and d climbs instead of 200 d and 10 d, and there are only
        those that can.
        """
        runs = with_twins(self.runs(self.name, self.n_seeds if n_seeds is None else n_seeds))
        runs = (run for run in runs if variant in (None, run.variant))
        return filter(None, map(_with_smaller_search, runs)) if smaller else runs


def _with_smaller_search(run: Run) -> Run | None:
    policy = run.specification.policy
    if not isinstance(policy, SearchedFromSobol) or search_of(policy) != PUBLISHED_SEARCH:
        return None
    return replace(run, specification=replace(run.specification, policy=SearchedFromSobol(policy.policy)))


@dataclass(frozen=True)
class _Panel:
    """What the curves of one plot share."""

    experiment: str
    function: str
    problem: str
    dim: int
    cost: str
    model: FittedModel | TrueModel | OwnModel | DefaultModel = FITTED
    arguments: tuple[tuple[str, Any], ...] = ()
    seeded: bool = False  # whether each seed has an objective of its own
    start: tuple[tuple[float, ...], ...] | None = None

    def runs(self, policies: dict[str, Any], n_seeds: int) -> Iterator[Run]:
        for seed in range(n_seeds):
            own = (("seed", seed),) if self.seeded else ()
            problem = ProblemSpec(self.function, (*self.arguments, *own))
            for curve, policy in policies.items():
                spec = Specification(self.experiment, problem, policy, self.model, seed, self.start)
                yield Run(spec, self.problem, self.dim, self.cost, curve)


def _policies(cost: str, *omitted: str) -> dict[str, Any]:
    return {curve: PUBLISHED[curve] for curve in CURVES[cost] if curve not in omitted}


# Synthetic problems and draws from a prior ------------------------------------------------------------------------


def _synthetic_panel(experiment: str, function: str, dim: int, cost: str) -> _Panel:
    arguments = (("dimension", dim), ("cost", cost))
    return _Panel(experiment, function, SYNTHETIC[function], dim, cost, arguments=arguments)


def _synthetic(experiment: str, n_seeds: int) -> Iterator[Run]:
    for function in SYNTHETIC:
        for dim in (4, 8, 16):
            for cost in COSTS:
                yield from _synthetic_panel(experiment, function, dim, cost).runs(_policies(cost), n_seeds)


def _timing(experiment: str, n_seeds: int) -> Iterator[Run]:
    policies = {curve: PUBLISHED[curve] for curve in ("LogEI", "TS", "KG", "PBGI", "MSEI")}
    for dim in (4, 8, 16):
        yield from _synthetic_panel(experiment, "ackley", dim, "uniform").runs(policies, n_seeds)


def _gp_panel(experiment: str, dim: int, cost: str, kernel: str = "matern52", length_scale: float = 0.1) -> _Panel:
    """A panel of Bayesian regret.

    Where costs vary the published runs never got the true prior: they fitted a Matern-5/2, whatever the kernel.
    """
    true = TrueModel(kernel, length_scale)
    return _Panel(
        experiment,
        "gp_draw",
        gp_problem(KERNELS[kernel], length_scale),
        dim,
        cost,
        model=true if cost == "uniform" else FittedModel("matern52", standardize=False),
        arguments=(("dimension", dim), ("cost", cost), ("kernel", kernel), ("length_scale", length_scale)),
        seeded=True,
    )


def _regret_panels(experiment: str, n_seeds: int, kernel: str, length_scale: float) -> Iterator[Run]:
    for dim in (4, 8, 16, 32):
        for cost in COSTS:
            omitted: tuple[str, ...] = ()  # Appendix C, "Omitted baselines"; the figures do have MES at d = 32
            if dim == 32:
                omitted = ("KG", "MSEI")
            elif dim == 16 and length_scale == 0.1:
                omitted = ("MSEI",)
            panel = _gp_panel(experiment, dim, cost, kernel, length_scale)
            yield from panel.runs(_policies(cost, *omitted), n_seeds)


def _bayesian_regret(experiment: str, n_seeds: int) -> Iterator[Run]:
    return _regret_panels(experiment, n_seeds, "matern52", 0.1)


def _kernels(experiment: str, n_seeds: int) -> Iterator[Run]:
    for kernel in ("matern32", "rbf"):
        yield from _regret_panels(experiment, n_seeds, kernel, 0.1)


def _length_scales(experiment: str, n_seeds: int) -> Iterator[Run]:
    for length_scale in (0.5, 1.0):
        yield from _regret_panels(experiment, n_seeds, "matern52", length_scale)


def _lambda_sensitivity(experiment: str, n_seeds: int) -> Iterator[Run]:
    policies = {f"PBGI, lambda = {scale:g}": searched(PBGI(scale)) for scale in COST_SCALES}
    return _gp_panel(experiment, 8, "uniform").runs(policies, n_seeds)


def _decay_sensitivity(experiment: str, n_seeds: int) -> Iterator[Run]:
    policies = {
        f"PBGI-D, lambda_0 = {scale:g}, beta = {decay:g}": searched(PBGID(scale, decay))
        for scale in INITIAL_COST_SCALES
        for decay in DECAYS
    }
    return _gp_panel(experiment, 8, "uniform").runs(policies, n_seeds)


def _log_scaling(experiment: str, n_seeds: int) -> Iterator[Run]:
    """The paper's figure has uniform costs; the same question for expected improvement per cost is added."""
    forms = {"Unst. EI": TextbookEI(), "Log(Unst. EI)": LogTextbookEI(1e-6), "Exp(LogEI)": ExpLogEI()}
    uniform: dict[str, Any] = {name: searched(form) for name, form in forms.items()}
    uniform |= {curve: PUBLISHED[curve] for curve in ("LogEI", "PBGI")}
    yield from _gp_panel(experiment, 16, "uniform").runs(uniform, n_seeds)
    varying = {"EIPC": searched(EIPC()), "LogEIPC": PUBLISHED["LogEIPC"]}
    yield from _gp_panel(experiment, 16, "varying").runs(varying, n_seeds)


def _search(experiment: str, n_seeds: int) -> Iterator[Run]:
    """The main panels with searches that were not published: around the best points too, and more climbs of a path."""
    for cost in COSTS:
        panels = [_gp_panel(experiment, dim, cost) for dim in (8, 16, 32)]
        panels += [_synthetic_panel(experiment, function, 16, cost) for function in SYNTHETIC]
        alike = (problem for problem in (*EMPIRICAL, KNOWN) if (problem[-1] == "uniform") == (cost == "uniform"))
        panels += [_empirical_panel(experiment, *problem) for problem in alike]
        closed = (curve for curve in CURVES[cost] if isinstance(POLICIES[curve], SEARCHED))
        policies: dict[str, Any] = {f"{curve}{NEAR_BEST}": SearchedNearBest(POLICIES[curve]) for curve in closed}
        if cost == "uniform":
            policies[f"TS{NEAR_BEST}"] = Thompson()
            policies["TS, many climbs"] = SearchedFromSobol(Thompson())
        for panel in panels:
            yield from panel.runs(policies, n_seeds)


def _units(experiment: str, n_seeds: int) -> Iterator[Run]:
    """Entropy search on the synthetic problems, standardized as everything else in `pbgi` is."""
    others: dict[str, dict[str, Any]] = {
        "uniform": {"MES, standardized": MaxValueEntropy()},
        "varying": {"MFMES, standardized": MultiFidelityMaxValueEntropy()},
    }
    for cost, policies in others.items():
        for function in SYNTHETIC:
            yield from _synthetic_panel(experiment, function, 16, cost).runs(policies, n_seeds)


def _engines(experiment: str, n_seeds: int) -> Iterator[Run]:
    """Panels that were run on torch, by the engine in NumPy: a prior that is known, and a model that is fitted."""
    for panel in (_gp_panel(experiment, 4, "uniform"), _synthetic_panel(experiment, "ackley", 4, "varying")):
        closed = {curve: policy for curve, policy in PUBLISHED.items() if isinstance(POLICIES[curve], SEARCHED)}
        yield from panel.runs({curve: closed[curve] for curve in CURVES[panel.cost] if curve in closed}, n_seeds)


# One-dimensional and empirical problems ---------------------------------------------------------------------------


def _one_dimensional(experiment: str, n_seeds: int) -> Iterator[Run]:
    """The start is one point, the left end."""
    panel = _Panel(
        experiment,
        experiment,
        experiment,
        1,
        "varying",
        model=OwnModel(),
        arguments=(("model", "published"),),
        seeded=True,
        start=((0.0,),),
    )
    rival = {"hard_for_eipc": "LogEIPC", "hard_for_ei": "LogEI"}[experiment]
    return panel.runs({curve: PUBLISHED[curve] for curve in (rival, "PBGI")}, n_seeds)


def _empirical_panel(experiment: str, function: str, problem: str, dim: int, cost: str) -> _Panel:
    return _Panel(experiment, function, problem, dim, cost, arguments=(("cost", cost),))


def _empirical(experiment: str, n_seeds: int) -> Iterator[Run]:
    omitted = {"Pest Control": ("BMSEI",), "Lunar Lander": ("MFMES",), "Robot Pushing": ("MFMES",)}
    for function, problem, dim, cost in EMPIRICAL:
        panel = _empirical_panel(experiment, function, problem, dim, cost)
        policies = _policies("uniform") if cost == "uniform" else _policies("varying", *omitted[problem])
        yield from panel.runs(policies, n_seeds)


def _robot_pushing_known(experiment: str, n_seeds: int) -> Iterator[Run]:
    return _empirical_panel(experiment, *KNOWN).runs(_policies("varying"), n_seeds)


# The package as it comes ------------------------------------------------------------------------------------------


def _default(experiment: str, n_seeds: int) -> Iterator[Run]:
    """Policy, model and search that nobody has chosen, where there are published numbers.

    What they are changes with the package and the keys of runs do not: delete `results/default.jsonl` to run them anew.
    """
    panels = [
        _synthetic_panel(experiment, name, dim, cost) for dim in (4, 8, 16) for name in SYNTHETIC for cost in COSTS
    ]
    panels += [_gp_panel(experiment, dim, cost) for dim in (8, 16, 32) for cost in COSTS]
    panels += [_empirical_panel(experiment, *problem) for problem in EMPIRICAL]
    for panel in panels:
        yield from replace(panel, model=DefaultModel()).runs({DEFAULT: PBGID()}, n_seeds)


# All of them ------------------------------------------------------------------------------------------------------

_ALL = (
    Experiment("synthetic", "Ackley, Levy and Rosenbrock, d = 4, 8, 16", N_SEEDS, _synthetic),
    Experiment("bayesian_regret", "draws from a Matern-5/2 prior, d = 4, 8, 16, 32", N_SEEDS, _bayesian_regret),
    Experiment("empirical", "Pest Control, Lunar Lander, Robot Pushing", N_SEEDS, _empirical),
    Experiment("kernels", "Bayesian regret with Matern-3/2 and squared exponential kernels", N_SEEDS, _kernels),
    Experiment("length_scales", "Bayesian regret with length scales 0.5 and 1", N_SEEDS, _length_scales),
    Experiment("timing", "seconds per suggestion on Ackley", N_SEEDS, _timing),
    Experiment("lambda_sensitivity", "PBGI with several lambda", N_SEEDS_SENSITIVITY, _lambda_sensitivity),
    Experiment("decay_sensitivity", "PBGI-D with several lambda_0 and beta", N_SEEDS_SENSITIVITY, _decay_sensitivity),
    Experiment("hard_for_eipc", "a 1-D problem where EI per cost fails", N_SEEDS, _one_dimensional),
    Experiment("hard_for_ei", "a 1-D problem where EI fails", N_SEEDS, _one_dimensional),
    Experiment("log_scaling", "logarithm and stability of EI", N_SEEDS, _log_scaling),
    Experiment("search", "the main panels with searches that were not published", N_SEEDS, _search),
    Experiment(ENGINES, "panels of torch, by the engine in NumPy", N_SEEDS, _engines),
    Experiment("units", "entropy search in other units", N_SEEDS, _units),
    Experiment("robot_pushing_known", "Robot Pushing with known cost", N_SEEDS, _robot_pushing_known),
    Experiment("default", "pbgi as it comes, on the panels with published numbers", N_SEEDS, _default),
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}


def experiment_named(name: str) -> Experiment:
    """The experiment of that name.

    Raises:
        InvalidInputError: There is none.
    """
    if name not in EXPERIMENTS:
        raise InvalidInputError(f"experiment must be one of {', '.join(EXPERIMENTS)}; got {name!r}")
    return EXPERIMENTS[name]
