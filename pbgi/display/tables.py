"""Records of a study as tables for a terminal: numbers with sensible digits, no line wider than the window.

What a name or a message holds cannot move the cursor: all of it goes through `pbgi.display.wording.text`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pbgi.display.wording import number, text

LONGEST = 24  # letters of a name or a text; longer ones are cut
GAP = "  "


def status_table(record: Mapping[str, Any], columns: int) -> str:
    """Where a study stands."""
    counts = ", ".join(f"{n} {state}" for state, n in record["trials"].items())
    more = record["trials_left"]
    rows = [("study", f"{text(record['study'])}, {record['direction']}")]
    if record["budget"] is not None:
        rows.append(("budget", number(record["budget"])))
    rows.append(("spent", number(record["spent"])))
    if record["budget"] is not None:
        rows += [("held", number(record["reserved"])), ("left", number(record["left"]))]
    rows.append(("trials", counts + ("" if more is None else f", about {more} more")))
    if record["best"] is not None:
        rows += _rows_of_best(record["best"])
    return _lines(rows, columns)


def best_table(record: Mapping[str, Any] | None, columns: int) -> str:
    """The best trial, and the recommended one where that is another."""
    if record is None:
        return "no trial has a value yet"
    rows, chosen = _rows_of_best(record), record["recommended"]
    if chosen is not None:
        interval = f"{number(chosen['median'])}, between {number(chosen['low'])} and {number(chosen['high'])} with 80 %"
        same = chosen["trial"] == record["trial"]
        rows.append(("recommended", f"{'the same' if same else 'trial ' + str(chosen['trial'])}; value {interval}"))
        rows += [] if same else _rows_of_params(chosen["params"])
    return _lines(rows, columns)


def trials_table(records: Sequence[Mapping[str, Any]], columns: int) -> str:
    """A line per trial: its state, value and cost, then its parameters, as many as there is room for."""
    if not records:
        return "no trials yet"
    names = list(dict.fromkeys(name for record in records for name in record["params"]))
    heads = ["trial", "state", "value", "cost", *names]
    cells = [[_cell(head) for head in heads]]
    for record in records:
        fixed = (record["trial"], record["state"], record["value"], record["cost"])
        cells.append([_cell(x) for x in (*fixed, *(record["params"].get(name) for name in names))])
    messages = ["", *(text(record["message"] or "", 80) for record in records)]
    return "\n".join(_fitted(cells, messages, columns))


def _fitted(cells: Sequence[Sequence[str]], messages: Sequence[str], columns: int) -> list[str]:
    widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
    shown = len(widths)
    while shown > 4 and sum(widths[:shown]) + len(GAP) * (shown - 1) > columns - 1:
        shown -= 1
    lines = []
    for row, message in zip(cells, messages, strict=True):
        # Numbers stand under each other by their last digit, texts by their first letter.
        aligned = [
            cell.ljust(width) if k == 1 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row[:shown], widths, strict=False))
        ]
        lines.append(_cut(GAP.join([*aligned, message]), columns))
    hidden = len(widths) - shown
    return lines + ([_cut(f"({hidden} more parameters: a wider window, or --json)", columns)] if hidden else [])


def _rows_of_best(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    paid = "" if record["cost"] is None else f", cost {number(record['cost'])}"
    return [
        ("best", f"{number(record['value'], 6)}, trial {record['trial']}{paid}"),
        *_rows_of_params(record["params"]),
    ]


def _rows_of_params(params: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(f"  {text(name, LONGEST)}", text(value)) for name, value in params.items()]


def _lines(rows: Sequence[tuple[str, str]], columns: int) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(_cut(f"{name.ljust(width)}{GAP}{words}", columns) for name, words in rows)


def _cut(line: str, columns: int) -> str:
    """A line that fits the window; what is cut off is marked."""
    line = line.rstrip()
    return line if len(line) < columns else line[: max(columns - 2, 0)].rstrip() + "…"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return number(value) if isinstance(value, float) else text(value, LONGEST)
