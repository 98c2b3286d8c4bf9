"""Costs, axes and names in figures, as people read them and as no browser takes for anything but text.

Names of parameters, values, messages and names of studies come from users and files. Plotly reads some HTML (`<b>`,
`<a href>`, `<span>`), entities and, where MathJax is loaded, formulas between dollar signs: `label` writes all of that
as plain signs. What goes into the page itself is escaped there (`page.py`).
"""

from typing import Any

from pbgi.display.wording import NO_BREAK, number, text

MOST_LETTERS, MOST_OF_UNIT = 32, 12
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"}


def amount(value: float, unit: str) -> str:
    """A cost with its unit, if that has a name."""
    return f"{number(value)}{NO_BREAK}{unit}" if unit else number(value)


def share(part: float) -> str:
    """A part of one as a percentage."""
    return f"{100.0 * part:.0f}{NO_BREAK}%"


def with_unit(words: str, unit: str) -> str:
    """The title of an axis."""
    return f"{words} ({label(unit, MOST_OF_UNIT)})" if unit else words


def label(value: object, most: int = MOST_LETTERS) -> str:
    """The same for a figure, short, with nothing that Plotly would interpret."""
    return "".join(_ENTITIES.get(c, c) for c in text(value, most))


def _without_middle(written: str, most: int) -> str:
    kept = most - 1
    return written if len(written) <= most else f"{written[: kept // 2]}…{written[-(kept - kept // 2) :]}"


def labels(values: Any, most: int = MOST_LETTERS) -> list[str]:
    """Labels of several values; those that became alike when they were cut are numbered, so that they stay apart."""
    whole = [text(value) for value in values]
    cut = [text(value, most) for value in whole]
    # Names that begin alike are told apart by how they end.
    ends = [c if cut.count(c) == 1 else _without_middle(w, most) for w, c in zip(whole, cut, strict=True)]
    written = [label(each, most) for each in ends]
    return [w if written.count(w) == 1 else f"{w} ({written[: i + 1].count(w)})" for i, w in enumerate(written)]
