"""Trials that tell how they come along: what they report, and at which steps it is decided whether they go on.

A step is a unit of the work of a trial: an epoch, a tree, so many rows. A stage is all the steps between two decisions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pbgi.checks import check_cost, check_value, checks_arguments, require_count, set_fields
from pbgi.errors import InvalidInputError

# Without stages of the user's choice each is twice as long as all before it, and the first is not below this share.
DOUBLING, SHORTEST = 2, 64


class Report(NamedTuple):
    """A report of a trial that is under way.

    Attributes:
        step: How far it had come, from 1.
        value: The value then.
        cost: What it had cost by then, all steps together; None if it did not say.
    """

    step: int
    value: float
    cost: float | None


def checked_report(step: object, value: object, cost: object, where: str = "a report") -> Report:
    """A report whose numbers are of the right kind; the value may be NaN or infinite."""
    step = require_count(f"step of {where}", step)
    return Report(step, check_value(value, f"value of {where}"), check_cost(cost, f"cost of {where}"))


def checked_reports(where: str, reports: object) -> tuple[Report, ...]:
    """Reports in the order of their steps, with finite values and costs that do not shrink."""
    if not isinstance(reports, Sequence) or not all(isinstance(r, Sequence) and len(r) == 3 for r in reports):
        raise InvalidInputError(f"reports of {where} must be a list of (step, value, cost); got {reports!r}")
    checked: tuple[Report, ...] = ()
    for each in reports:
        step, value, cost = each
        report = checked_report(step, value, cost, where)
        if not -float("inf") < report.value < float("inf"):
            raise InvalidInputError(f"values of reports of {where} must be finite; got {report.value!r}")
        require_next(where, checked, report)
        checked = (*checked, report)
    return checked


def require_next(where: str, before: Sequence[Report], report: Report) -> None:
    """Raise unless a report may follow those before it."""
    last = before[-1].step if before else 0
    if report.step <= last:
        rule = f"steps that {where} reports must rise, and none is reported twice with another value or cost"
        raise InvalidInputError(f"{rule}; got step {report.step} after step {last}")
    used = cost_so_far(before)
    if report.cost is not None and report.cost < used:
        rule = f"a reported cost is what {where} has cost so far, all steps together, and must not shrink"
        raise InvalidInputError(f"{rule}; got {report.cost!r} after {used!r}")


def cost_so_far(reports: Sequence[Report]) -> float:
    """The last cost that was told; 0 if none was."""
    return next((report.cost for report in reversed(reports) if report.cost is not None), 0.0)


@checks_arguments
@dataclass(frozen=True)
class Steps:
    """The number of steps of a trial, and the steps at which it is decided whether it goes on.

    Args:
        last: The step at which a trial is complete: the number of epochs, say.
        stages: Steps at which it is decided, rising; by default each stage doubles what was done before it.
        resumable: Whether a trial that was stopped can go on later from where it stood, from a checkpoint, say. Then
            `ask` may hand it out again.
    """

    last: int
    stages: tuple[int, ...] = ()
    resumable: bool = False

    def __post_init__(self) -> None:
        last = require_count("last", self.last)
        stages = tuple(require_count("stages", step) for step in self.stages) or doubling(last)
        if list(stages) != sorted(set(stages)) or stages[-1] > last:
            raise InvalidInputError(f"stages must rise and not exceed last={last}; got {self.stages!r}")
        if not isinstance(self.resumable, bool):
            raise InvalidInputError(f"resumable must be True or False; got {self.resumable!r}")
        set_fields(self, last=last, stages=stages if stages[-1] == last else (*stages, last))

    def n_stages_at(self, step: int) -> int:
        """How many stages have ended at a step."""
        return sum(end <= step for end in self.stages)

    def is_decision(self, reports: Sequence[Report]) -> bool:
        """Whether the last report ended a stage, and not the last one."""
        if not reports or reports[-1].step >= self.last:
            return False
        before = reports[-2].step if len(reports) > 1 else 0
        return self.n_stages_at(reports[-1].step) > self.n_stages_at(before)


def doubling(last: int) -> tuple[int, ...]:
    """Steps of which each is about half the next one."""
    ends: list[int] = []
    share = 1
    while share <= SHORTEST and -(-last // share) not in ends:
        ends.append(-(-last // share))
        share *= DOUBLING
    return tuple(reversed(ends))


def steps_of(given: Any) -> Steps | None:
    """What a user gave as `steps`: a `Steps`, a number of steps, the steps at which stages end, or nothing."""
    if given is None or isinstance(given, Steps):
        return given
    if isinstance(given, Iterable) and not isinstance(given, str):
        ends = tuple(given)
        if not ends:
            raise InvalidInputError(f"steps must name at least one step; got {given!r}")
        return Steps(ends[-1], ends)
    return Steps(require_count("steps", given))
