"""Numbers and tables as Markdown."""

from collections.abc import Iterable, Sequence


def number(x: float) -> str:
    """Three significant digits, without an exponent where that can be read."""
    if x != 0 and not 1e-4 <= abs(x) < 1e7:
        return f"{x:.2e}"
    digits = f"{float(f'{x:.3g}'):,.6f}".rstrip("0").rstrip(".")
    return "0" if digits == "-0" else digits


def middle(values: tuple[float, float, float]) -> str:
    """Median with quartiles, e.g. "0.5 [0.4, 0.7]"."""
    median, q25, q75 = (number(value) for value in values)
    return f"{median} [{q25}, {q75}]"


def duration(seconds: float) -> str:
    """Seconds in the unit a reader would choose."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{number(seconds)} s"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], n_text: int = 0) -> str:
    """A table; all columns but the first, and the last `n_text`, are aligned to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1 - n_text), *["---"] * n_text], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
