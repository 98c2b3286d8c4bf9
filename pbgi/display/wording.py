"""Numbers and texts as people read them: with sensible digits, and without what would move a cursor."""

import math

NO_BREAK = "\N{NO-BREAK SPACE}"
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


def text(value: object, most: int | None = None) -> str:
    """A value of a parameter, or a name, without what would move the cursor or turn the direction of reading."""
    written = number(value, 6) if isinstance(value, float) else str(value)
    visible = "".join(c if c.isprintable() or c == NO_BREAK else c.encode("unicode_escape").decode() for c in written)
    return visible if most is None or len(visible) <= most else visible[: most - 1] + "…"


def short(value: object) -> str:
    """A value as Python writes it, floats in at most six digits."""
    return f"{value:.6g}" if type(value) is float else repr(value)


def plural(n: int, word: str) -> str:
    """So many of something: 1 trial, 1,200 trials."""
    return f"{n} {word}" if n == 1 else f"{n:,} {word}s"


def _without_zeros(digits: str) -> str:
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
