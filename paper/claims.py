"""What the paper claims, and what was found: verdicts by rules, with the numbers behind them.

A claim is answered "yes", "no" or "partly" by a comparison of medians that its function spells out; nothing of it is
written by hand, so that more runs may change it. Policies with one or two seeds are not heard.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from paper.evidence import PBGI_POLICIES, REGRET_PANELS, RIVALS, SAME, Evidence, loss, no_worse, spread, told
from paper.figure_names import (
    BAYESIAN_REGRET,
    COST_SCALE,
    DECAY,
    EMPIRICAL,
    HARD_FOR_EI,
    HARD_FOR_EIPC,
    KERNELS,
    LOG_SCALING,
    ROBOT_PUSHING,
    SYNTHETIC,
    TIMING_FIGURE,
)
from paper.reference import GP_NAME, Panel, gp_problem
from paper.results import TIMING
from paper.summary import best_of_panel

FAR = 2.0  # times the regret: "fails"
LOG_STUDY = Panel(gp_problem(), 16, "uniform")
SENSITIVITY = Panel(gp_problem(), 8, "uniform")


@dataclass(frozen=True)
class Finding:
    """A claim and what became of it."""

    claim: str
    verdict: str
    found: str
    figure: str


def _verdict(answers: list[bool]) -> str:
    return "yes" if all(answers) else "partly" if any(answers) else "no"


def findings(evidence: Evidence) -> list[Finding]:
    """All claims for which there are runs."""
    return [found for question in QUESTIONS if (found := question(evidence)) is not None]


# The one-dimensional examples -------------------------------------------------------------------------------------


def _example(evidence: Evidence, problem: str, rival: str, claim: str, figure: str) -> Finding | None:
    panel = Panel(problem, 1, "varying")
    answers, parts = [], []
    for variant in ("as_described", "as_published"):
        own = evidence.on(panel, variant)
        if rival not in own or "PBGI" not in own:
            return None
        answers.append(loss(own[rival]) > FAR * loss(own["PBGI"]))
        parts.append(f"{variant.replace('_', ' ')} {rival} {told(own[rival])}, PBGI {told(own['PBGI'])}")
    return Finding(claim, _verdict(answers), "; ".join(parts), figure)


def _hard_for_eipc(evidence: Evidence) -> Finding | None:
    claim = "EI per cost is stuck where the only good place is dear (Figure 2)"
    return _example(evidence, "hard_for_eipc", "LogEIPC", claim, HARD_FOR_EIPC)


def _hard_for_ei(evidence: Evidence) -> Finding | None:
    claim = "EI wastes its budget where the dear place is hardly better (Appendix A)"
    return _example(evidence, "hard_for_ei", "LogEI", claim, HARD_FOR_EI)


# Panels -----------------------------------------------------------------------------------------------------------


def _counted(evidence: Evidence, panels: list[Panel], claim: str, figure: str) -> Finding | None:
    """On how many panels the better variant of PBGI matches the best of its rivals."""
    answers = {panel: evidence.matches(panel, PBGI_POLICIES, RIVALS) for panel in panels}
    known = {panel: answer for panel, answer in answers.items() if answer is not None}
    if not known:
        return None
    n_yes = sum(known.values())
    ahead = [panel for panel in known if evidence.leads(panel) in PBGI_POLICIES]
    found = f"the better of both matches the best rival, or is ahead, on {n_yes} of {len(known)} panels"
    return Finding(claim, _verdict(list(known.values())), f"{found}, and leads on {len(ahead)}", figure)


def _bayesian_regret(evidence: Evidence) -> Finding | None:
    panels = [panel for panel in REGRET_PANELS if not (panel.dim == 32 and panel.cost == "uniform")]
    return _counted(evidence, panels, "On draws from a prior PBGI or PBGI-D matches or beats the rest", BAYESIAN_REGRET)


def _too_hard(evidence: Evidence) -> Finding | None:
    own = evidence.on(Panel(gp_problem(), 32, "uniform"))
    others = {name: curve for name, curve in own.items() if name in (*PBGI_POLICIES, *RIVALS)}
    if "RS" not in own or not others:
        return None
    answers = [loss(own["RS"]) <= SAME * loss(curve) for curve in others.values()]
    numbers = ", ".join(f"{name} {told(curve)}" for name, curve in others.items())
    claim = "In 32 dimensions at uniform cost nothing beats random search"
    return Finding(claim, _verdict(answers), f"RS {told(own['RS'])}; {numbers}", BAYESIAN_REGRET)


def _kernels(evidence: Evidence) -> Finding | None:
    panels = sorted({c.panel for c in evidence.curves if GP_NAME.fullmatch(c.panel.problem)} - set(REGRET_PANELS))
    claim = "So it is with other kernels and length scales"
    return _counted(evidence, [panel for panel in panels if panel.dim > 4], claim, KERNELS)


def _synthetic(evidence: Evidence) -> Finding | None:
    claims: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("Ackley", "uniform", ("PBGI",)),
        ("Ackley", "varying", ("PBGI",)),
        ("Levy", "uniform", ("PBGI",)),
        ("Levy", "varying", ("PBGI-D", "LogEIPC", "LogEICC")),
        ("Rosenbrock", "uniform", ("PBGI-D",)),
        ("Rosenbrock", "varying", ("PBGI-D",)),
    )
    answers, parts = [], []
    for problem, cost, expected in claims:
        panel = Panel(problem, 16, cost)
        answer = evidence.matches(panel, expected, [p for p in (*PBGI_POLICIES, *RIVALS) if p not in expected])
        if answer is not None:
            answers.append(answer)
            parts.append(f"{problem} {cost} {evidence.leads(panel)}")
    claim = "PBGI is best on Ackley and on Levy at uniform cost, PBGI-D among the best on Rosenbrock and Levy"
    return Finding(claim, _verdict(answers), f"best here: {', '.join(parts)}", SYNTHETIC) if answers else None


def _empirical(evidence: Evidence) -> Finding | None:
    answers, parts = [], []
    for problem, dim, costs in (
        ("Pest Control", 25, ("uniform", "varying")),
        ("Lunar Lander", 12, ("uniform", "unknown")),
    ):
        for cost in costs:
            panel = Panel(problem, dim, cost)
            answer = evidence.matches(panel, ("PBGI",), RIVALS)
            if answer is not None:
                answers.append(answer)
                parts.append(f"{problem} {cost} {evidence.leads(panel)}")
    claim = "PBGI matches or beats the rest on Pest Control and Lunar Lander"
    return Finding(claim, _verdict(answers), f"best here: {', '.join(parts)}", EMPIRICAL) if answers else None


def _pushing(evidence: Evidence) -> Finding | None:
    answers, parts = [], []
    for cost in ("uniform", "unknown", "varying"):
        panel = Panel("Robot Pushing", 14, cost)
        leads = evidence.leads(panel)
        if leads is not None:
            answers.append(leads in ("LogEI", "LogEIPC", "LogEICC"))
            parts.append(f"{'known' if cost == 'varying' else cost} {leads}")
    claim = "On Robot Pushing the variants of LogEI are best"
    return Finding(claim, _verdict(answers), f"best here: {', '.join(parts)}", ROBOT_PUSHING) if answers else None


# Studies ----------------------------------------------------------------------------------------------------------


def _cost_scale(evidence: Evidence) -> Finding | None:
    own = evidence.on(SENSITIVITY)
    large, small = own.get("PBGI, lambda = 0.01"), own.get("PBGI, lambda = 1e-05")
    if large is None or small is None:
        return None
    early = len(large.grid) // 5
    answers = [loss(large, early) < loss(small, early), loss(small) < loss(large)]
    found = f"0.01 and 1e-5 after a fifth of the budget {large.step.median[early]:.2f} and "
    found += f"{small.step.median[early]:.2f}, at its end {told(large)} and {told(small)} ({large.n_seeds} seeds)"
    return Finding("A large lambda gains early, a small one late", _verdict(answers), found, COST_SCALE)


def _decay(evidence: Evidence) -> Finding | None:
    own = evidence.on(SENSITIVITY)
    decayed = [curve for name, curve in own.items() if name.startswith("PBGI-D, lambda_0")]
    fixed = [curve for name, curve in own.items() if name.startswith("PBGI, lambda")]
    if len(decayed) < 2 or len(fixed) < 2:
        return None
    found = f"final medians differ by a factor of {spread(decayed):.2f} over {len(decayed)} settings of PBGI-D, "
    found += f"and of {spread(fixed):.2f} over {len(fixed)} lambdas of PBGI ({decayed[0].n_seeds} seeds)"
    claim = "PBGI-D hardly depends on lambda_0 and beta, less than PBGI on lambda"
    return Finding(claim, _verdict([spread(decayed) < spread(fixed)]), found, DECAY)


def _log_scaling(evidence: Evidence) -> Finding | None:
    own = evidence.on(LOG_STUDY)
    order = [name for name in ("LogEI", "Log(Unst. EI)", "Exp(LogEI)", "Unst. EI") if name in own]
    if len(order) < 4:
        return None
    answers = [loss(own[better]) < loss(own[worse]) for better, worse in pairwise(order)]
    answers[-1] = no_worse(own["Exp(LogEI)"], own["Unst. EI"]) and no_worse(own["Unst. EI"], own["Exp(LogEI)"])
    found = ", ".join(f"{name} {told(own[name])}" for name in sorted(order, key=lambda name: loss(own[name])))
    claim = "LogEI beats Log(Unst. EI), which beats Exp(LogEI), which is like Unst. EI"
    seeds = own["Unst. EI"].n_seeds
    return Finding(claim, _verdict(answers), f"from best to worst {found} ({seeds} seeds)", LOG_SCALING)


def _seconds(evidence: Evidence) -> Finding | None:
    answers, parts = [], []
    for dim in (4, 8, 16):
        timed = [curve for curve in evidence.curves if curve.experiment == TIMING and curve.seconds is not None]
        own = best_of_panel(timed, Panel("Ackley", dim, "uniform"), evidence.variant)
        seconds = {name: float(c.seconds.median.mean()) for name, c in own.items() if c.seconds is not None}
        if "PBGI" in seconds and len(seconds) > 1:
            quick, slow = ([seconds[p] for p in names if p in seconds] for names in (("LogEI", "TS"), ("KG", "MSEI")))
            answers += [other < seconds["PBGI"] for other in quick] + [seconds["PBGI"] < other for other in slow]
            numbers = ", ".join(f"{name} {value:.2g}" for name, value in sorted(seconds.items(), key=lambda x: x[1]))
            parts.append(f"d = {dim}: {numbers} s")
    claim = "A suggestion of PBGI takes longer than of LogEI and TS, and less long than of KG and MSEI"
    return Finding(claim, _verdict(answers), "; ".join(parts), TIMING_FIGURE) if answers else None


QUESTIONS: tuple[Callable[[Evidence], Finding | None], ...] = (
    _hard_for_eipc,
    _hard_for_ei,
    _bayesian_regret,
    _too_hard,
    _kernels,
    _synthetic,
    _empirical,
    _pushing,
    _cost_scale,
    _decay,
    _log_scaling,
    _seconds,
)
