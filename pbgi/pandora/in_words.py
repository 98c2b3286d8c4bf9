"""A solution at the prompt and in a notebook."""

from collections.abc import Sequence
from typing import Any, Protocol

from pbgi.arrays import Floats, Ints
from pbgi.display.notebook import heading, sentence, table
from pbgi.display.wording import number, short

MOST_SHOWN = 10  # boxes of an order that are written out


class Solved(Protocol):
    """What is told of a solution."""

    @property
    def boxes(self) -> Sequence[Any]:
        """Which have an `expected_cost`."""

    @property
    def order(self) -> Ints:
        """Box numbers by falling index."""

    @property
    def indices(self) -> Floats:
        """One per box."""

    @property
    def value(self) -> float:
        """Expected best prize."""

    @property
    def spend(self) -> float:
        """Expected cost."""

    @property
    def cost_scale(self) -> float:
        """How much prize a unit of cost is worth."""


def in_a_line(solution: Solved) -> str:
    """For the prompt."""
    first = [*map(str, solution.order[:MOST_SHOWN]), *(["..."] if len(solution.order) > MOST_SHOWN else [])]
    figures = {name: short(getattr(solution, name)) for name in ("value", "spend", "cost_scale")}
    rest = ", ".join(f"{name}={figure}" for name, figure in figures.items())
    return f"{type(solution).__name__}(boxes={len(solution.boxes)}, order=[{', '.join(first)}], {rest})"


def as_table(solution: Solved) -> str:
    """For a notebook: boxes in the order of opening."""
    said = f"Expected prize {number(solution.value)} for an expected cost of {number(solution.spend)}"
    rows = (
        (box, number(solution.boxes[box].expected_cost), number(float(solution.indices[box]))) for box in solution.order
    )
    rule = "Open from the top; stop once the best prize is at least the index of the next box."
    return heading(said) + table(("box", "expected cost", "index"), rows) + sentence(rule)
