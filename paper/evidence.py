"""Questions that claims are answered by, asked of the summaries of runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from paper.comparison import final
from paper.markdown import number
from paper.reference import Panel, gp_problem
from paper.summary import CurveSummary, best_of_panel

# Two runs of one experiment of 16 seeds differ by 5 to 15 % in the median: so much is called "the same" in a claim.
SAME = 1.15

PBGI_POLICIES = ("PBGI", "PBGI-D")
RIVALS = ("LogEI", "LogEIPC", "LogEICC", "UCB", "TS", "KG", "MES", "MSEI", "MFMES", "BMSEI")
REGRET_PANELS = tuple(Panel(gp_problem(), d, cost) for cost in ("uniform", "varying") for d in (8, 16, 32))


@dataclass(frozen=True)
class Evidence:
    """What was run.

    Attributes:
        curves: Summaries of all experiments.
        variant: Which runs speak first.
    """

    curves: Sequence[CurveSummary]
    variant: str = "as_published"

    def on(self, panel: Panel, variant: str | None = None) -> dict[str, CurveSummary]:
        """The curves of a panel that have a median, by policy; of a variant only, if one is named."""
        wanted = self.variant if variant is None else variant
        chosen = best_of_panel(self.curves, panel, wanted)
        own = (curve for curve in chosen.values() if variant is None or curve.variant == variant)
        return {curve.policy: curve for curve in own if not curve.is_points}

    def leads(self, panel: Panel, variant: str | None = None) -> str | None:
        """The policy that ends best."""
        own = {p: c for p, c in self.on(panel, variant).items() if p in (*PBGI_POLICIES, *RIVALS)}
        return min(own, key=lambda policy: loss(own[policy])) if own else None

    def matches(self, panel: Panel, policies: Iterable[str], rivals: Iterable[str]) -> bool | None:
        """Whether the best of these policies ends no worse than the best of the rivals; None where one is not run."""
        own = self.on(panel)
        ours, theirs = ([own[name] for name in names if name in own] for names in (policies, rivals))
        if not ours or not theirs:
            return None
        best, rival = min(ours, key=loss), min(theirs, key=loss)
        return no_worse(best, rival)


def loss(curve: CurveSummary, at: int = -1) -> float:
    """The median at the end, or at another point of the grid: smaller is better."""
    median = float(curve.step.median[at])
    return -median if curve.quantity == "best" else median


def no_worse(curve: CurveSummary, other: CurveSummary) -> bool:
    """Whether a curve ends as good as another of its panel: regret within 15 %, or best values within that progress."""
    if curve.quantity == "regret":
        return loss(curve) <= SAME * loss(other)
    progress = float(other.step.median[-1] - other.step.median[0])
    return float(other.step.median[-1] - curve.step.median[-1]) <= (SAME - 1.0) * progress


def told(curve: CurveSummary) -> str:
    """The median at the end."""
    return number(final(curve.step)[0])


def spread(curves: Iterable[CurveSummary]) -> float:
    """The largest final median over the smallest."""
    finals = [float(curve.step.median[-1]) for curve in curves]
    return float(np.max(finals) / np.min(finals))
