"""How objects show themselves in a notebook: small tables in HTML, in which every text is escaped."""

import html
from collections.abc import Iterable, Mapping, Sequence

from pbgi.display.wording import text

MOST_ROWS = 20


def heading(words: str) -> str:
    """A line in bold above a table."""
    return f"<p><strong>{escaped(words)}</strong></p>"


def sentence(words: str) -> str:
    """A line of text."""
    return f"<p>{escaped(words)}</p>"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a head; of very many rows the first, and how many there are."""
    every = list(rows)
    head = "".join(f'<th style="text-align:left">{escaped(name)}</th>' for name in heads)
    body = "".join(_row(row) for row in every[:MOST_ROWS])
    more = "" if len(every) <= MOST_ROWS else sentence(f"... and {len(every) - MOST_ROWS:,} more")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def params_table(params: Mapping[str, object]) -> str:
    """Names and values of a point."""
    return table(("parameter", "value"), params.items())


def escaped(value: object) -> str:
    """Any value as text that no browser takes for more."""
    return html.escape(text(value))


def _row(cells: Sequence[object]) -> str:
    return "<tr>" + "".join(f'<td style="text-align:left">{escaped(cell)}</td>' for cell in cells) + "</tr>"
