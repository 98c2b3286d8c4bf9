"""What came of races between pbgi and random search: the course of each, several as a table, and all of them as a file.

`demo.py` runs the races and `demo_picture.py` draws them.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

PBGI, RANDOM = "pbgi", "random search"


@dataclass(frozen=True)
class Finished:
    """A trial: its loss if it has one, what it cost, and what had been spent when it ended, in seconds."""

    params: dict
    loss: float | None
    cost: float
    spent: float
    state: str


@dataclass(frozen=True)
class Course:
    """What a contestant made of its budget.

    Attributes:
        n_trials: How many trials it began.
        spent: On all of them, in seconds.
        lost: On those that have no loss, in seconds.
        steps: Each improvement: the seconds spent by then, and the best loss from there on.
    """

    n_trials: int
    spent: float
    lost: float
    steps: Sequence[tuple[float, float]]

    @classmethod
    def of(cls, trials: Sequence[Finished]) -> "Course":
        """The course that these trials took, in their order."""
        steps: list[tuple[float, float]] = []
        for trial in trials:
            if trial.loss is not None and (not steps or trial.loss < steps[-1][1]):
                steps.append((trial.spent, trial.loss))
        lost = math.fsum(trial.cost for trial in trials if trial.loss is None)
        return cls(len(trials), math.fsum(trial.cost for trial in trials), lost, steps)

    @property
    def loss(self) -> float:
        """The best one at the end; infinite if there is none."""
        return self.steps[-1][1] if self.steps else math.inf

    def loss_after(self, seconds: float) -> float:
        """The best one when so much had been spent; infinite if there was none."""
        return next((best for spent, best in reversed(self.steps) if spent <= seconds), math.inf)

    def seconds_until(self, loss: float) -> float:
        """What had been spent when the best loss was no higher than this one; infinite if it never was."""
        return next((spent for spent, best in self.steps if best <= loss), math.inf)


@dataclass(frozen=True)
class Race:
    """The two courses of one seed."""

    seed: int
    pbgi: Course
    random: Course

    def courses(self) -> dict[str, Course]:
        """By the names of the contestants."""
        return {PBGI: self.pbgi, RANDOM: self.random}


@dataclass(frozen=True)
class Races:
    """Races with one budget, in seconds, and with one version of pbgi."""

    version: str
    budget: float
    races: Sequence[Race]

    def save(self, path: Path) -> None:
        """As JSON, a line for each race."""
        lines = ",\n".join(json.dumps(asdict(race)) for race in self.races)
        path.write_text(f'{{"version": "{self.version}", "budget": {self.budget}, "races": [\n{lines}\n]}}\n')

    @classmethod
    def load(cls, path: Path) -> "Races":
        """What `save` has written."""
        told = json.loads(path.read_text())
        races = [Race(race["seed"], Course(**race["pbgi"]), Course(**race["random"])) for race in told["races"]]
        return cls(told["version"], told["budget"], races)

    def table(self) -> str:
        """Race by race, and what to make of it; where two numbers share a column, the first is pbgi's."""
        header = (
            "| seed | pbgi's loss | random search's | reached at | trials   | overspent (s) | lost (s)    |\n"
            "|------|-------------|-----------------|------------|----------|---------------|-------------|"
        )
        ahead = sum(race.pbgi.loss < race.random.loss for race in self.races)
        share = median(self._share(race) for race in self.races)
        outcome = (
            f"pbgi {self.version} ended ahead in {ahead} of {len(self.races)} races of {self.budget:g} s; share of the "
            f"budget at which it reached random search's final loss, median: {shown_share(share)}"
        )
        return "\n".join([header, *(self._row(race) for race in self.races), "", outcome])

    def _row(self, race: Race) -> str:
        ours, theirs = race.pbgi, race.random
        over = [max(course.spent - self.budget, 0.0) for course in (ours, theirs)]
        return (
            f"| {race.seed:4d} | {shown(ours.loss):>11s} | {shown(theirs.loss):>15s} "
            f"| {shown_share(self._share(race)):>10s} | {ours.n_trials:3d} {theirs.n_trials:4d} "
            f"| {over[0]:6.2f} {over[1]:6.2f} | {ours.lost:5.1f} {theirs.lost:5.1f} |"
        )

    def _share(self, race: Race) -> float:
        """Of the budget, that pbgi had spent when it was where random search ended; infinite if it never was."""
        return race.pbgi.seconds_until(race.random.loss) / self.budget


def shown(loss: float | None) -> str:
    return "  none" if loss is None or math.isinf(loss) else f"{loss:6.4f}"


def shown_share(share: float) -> str:
    return f"{100.0 * share:.0f} %" if math.isfinite(share) else "never"
