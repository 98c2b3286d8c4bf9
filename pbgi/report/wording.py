"""Numbers and names as people read them, and as no browser takes for anything but text.

Names of parameters, values, messages and names of studies come from users and files. Plotly reads some HTML (`<b>`,
`<a href>`, `<span>`), entities and, where MathJax is loaded, formulas between dollar signs: `label` writes all of that
as plain signs. What goes into the page itself is escaped there (`page.py`).
"""

import math
from typing import Any

MOST_LETTERS, MOST_OF_UNIT = 32, 12
NO_BREAK = "\N{NO-BREAK SPACE}"
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"}
# Between these bounds a number is written out, outside of them with an exponent.
_LEAST, _MOST = 1e-4, 1e7


def number(value: float, digits: int = 4) -> str:
    """A number in so many digits: 0.001235, 12.35, 1,235, 1.235e-9."""
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size and not _LEAST <= size < _MOST:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{_without_zeros(mantissa)}e{int(exponent)}"
    decimals = digits - 1 - (math.floor(math.log10(size)) if size else 0)
    return _without_zeros(f"{value:,.{max(decimals, 0)}f}")


def amount(value: float, unit: str) -> str:
    """A cost with its unit, if that has a name."""
    return f"{number(value)}{NO_BREAK}{unit}" if unit else number(value)


def share(part: float) -> str:
    """A part of one as a percentage."""
    return f"{100.0 * part:.0f}{NO_BREAK}%"


def with_unit(words: str, unit: str) -> str:
    """The title of an axis."""
    return f"{words} ({label(unit, MOST_OF_UNIT)})" if unit else words


def text(value: object, most: int | None = None) -> str:
    """A value of a parameter, or a name, without what would move the cursor or turn the direction of reading."""
    written = number(value, 6) if isinstance(value, float) else str(value)
    visible = "".join(c if c.isprintable() or c == NO_BREAK else c.encode("unicode_escape").decode() for c in written)
    return visible if most is None or len(visible) <= most else visible[: most - 1] + "…"


def label(value: object, most: int = MOST_LETTERS) -> str:
    """The same for a figure, short, with nothing that Plotly would interpret."""
    return "".join(_ENTITIES.get(c, c) for c in text(value, most))


def labels(values: Any, most: int = MOST_LETTERS) -> list[str]:
    """Labels of several values; those that became alike when they were cut are numbered, so that they stay apart."""
    written = [label(value, most) for value in values]
    return [w if written.count(w) == 1 else f"{w} ({written[: i + 1].count(w)})" for i, w in enumerate(written)]


def _without_zeros(digits: str) -> str:
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
