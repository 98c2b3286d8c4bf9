"""The report: one HTML page with the result in words, the plots and all trials.

The page holds all it needs, Plotly's script included, and its policy (`Content-Security-Policy`) lets it load nothing.
Only the scripts whose digests the policy names may run, so that a name which got through as markup could still do
nothing. Text from users is escaped wherever it stands; data of figures are JSON in which no tag can begin.

A page about a run that goes on loads itself again (`follow.js`), from its own file: still nothing is asked of a server.
"""

import base64
import hashlib
import html
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from pathlib import Path

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from pbgi import __version__
from pbgi.display.wording import number, text
from pbgi.errors import InvalidInputError
from pbgi.history import Trial
from pbgi.report.advice import standing, what_to_try
from pbgi.report.plots import Plot, drawn_plots
from pbgi.report.source import Source, subject_of
from pbgi.report.stopped import last_step
from pbgi.report.style import is_wide
from pbgi.report.subject import Subject

MOST_ROWS, LONG = 2000, 30
NUMBERS = (0, 2, 3, 4)  # columns of the table of trials: its number, value, cost and predicted cost
TITLE_HEIGHT = 26  # what is left above a figure is for its tools


def write_report(source: Source, path: str | os.PathLike[str], *, unit: str = "", title: str = "") -> Path:
    """Write a report on a run to an HTML file. An existing file is replaced, as a whole or not at all.

    Args:
        source: A `pbgi.Result`, a `pbgi.Optimizer` or an Optuna study.
        path: The file.
        unit: Of the costs, "s" or "euro", say.
        title: Of the page; by default the name of the study.

    Returns:
        The file.

    Raises:
        InvalidInputError: The source or the unit is none.
        OSError: The file cannot be written.
    """
    if not isinstance(title, str):
        raise InvalidInputError(f"title must be a str; got {title!r}")
    return draw_page(subject_of(source, unit=unit), title).write(path)


def draw_page(subject: Subject, title: str = "") -> "Page":
    """The page, with all its plots made."""
    heading = title or (f"Report on {subject.name}" if subject.name else "Report on a search")
    parts = [
        _summary(subject),
        "<noscript><p class=noscript>The plots need JavaScript; all else can be read without it.</p></noscript>",
        *(_figure(i, plot, drawn, plot.note(subject)) for i, (plot, drawn) in enumerate(_plots(subject))),
        _trials(subject),
        f"<footer>Made by pbgi {__version__} on {datetime.now():%Y-%m-%d %H:%M}.</footer>",
    ]
    return Page(_escaped(heading), "\n".join(parts))


@dataclass(frozen=True)
class Page:
    """A report whose plots are made, which is what takes time.

    Attributes:
        heading: At the top, as HTML.
        body: All that follows, as HTML.
    """

    heading: str
    body: str

    def write(self, path: str | os.PathLike[str], *, every: float | None = None) -> Path:
        """Write it to a file, whole or not at all; see `html` for `every`."""
        target = Path(path)
        _write_whole(target, self.html(every=every).encode("utf-8"))
        return target

    def html(self, *, every: float | None = None) -> str:
        """The page as text.

        Args:
            every: Seconds after which it loads itself again; None: never.
        """
        scripts = [get_plotlyjs(), _part("page.js"), *([] if every is None else [_part("follow.js")])]
        reload, note = ("", "") if every is None else (f' data-every="{every:g}"', _follow_note(every))
        return "\n".join(
            [
                "<!doctype html>",
                f'<html lang="en"{reload}><head><meta charset="utf-8">',
                f'<meta http-equiv="Content-Security-Policy" content="{_policy(*scripts)}">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                '<meta name="color-scheme" content="light dark">',
                f"<title>{self.heading}</title>",
                f"<style>\n{_part('page.css')}</style></head>",
                f"<body><main><h1>{self.heading}</h1>{note}",
                self.body,
                f"</main>{''.join(f'<script>{script}</script>' for script in scripts)}</body></html>\n",
            ]
        )


def _part(name: str) -> str:
    return files("pbgi.report").joinpath(name).read_text("utf-8")


def _follow_note(every: float) -> str:
    """What the reader is told of a page that loads itself again."""
    return f'<p class="how">The run goes on: this page loads itself again every {every:g} seconds.</p>'


# The parts -----------------------------------------------------------------------------------------------------------


def _summary(subject: Subject) -> str:
    """The result in words."""
    cards, best, chosen = [], subject.best, subject.recommended
    if best is not None:
        cards.append(_point(f"Best {text(subject.value_name)}", best.value or 0.0, best))
    if best is not None and chosen is not None and chosen.trial.number != best.number:
        cards.append(_point(f"Recommended, {text(subject.value_name)} without noise", chosen.median, chosen.trial))
    cards.append(_card("Where it stands", _list(standing(subject)), "" if len(cards) == 1 else "whole"))
    if subject.conditions:
        cards.append(_card("Conditions", _list(map(str, subject.conditions)), "whole"))
    cards.append(_card("What to try next", _list(what_to_try(subject)), "whole"))
    return f'<section class="summary">{"".join(cards)}</section>'


def _point(heading: str, value: float, trial: Trial) -> str:
    """A card with a value and the parameters that it belongs to."""
    rows = "".join(
        f"<tr><th scope=row>{_escaped(name)}</th><td>{_escaped(v)}</td></tr>" for name, v in trial.params.items()
    )
    return _card(heading, f'<p class="value">{_escaped(number(value, 6))}</p><table>{rows}</table>')


def _card(heading: str, body: str, kind: str = "") -> str:
    return f'<div class="card {kind}"><h2>{_escaped(heading)}</h2>{body}</div>'


def _list(sentences: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{_escaped(sentence)}</li>" for sentence in sentences) + "</ul>"


def _plots(subject: Subject) -> list[tuple[Plot, go.Figure]]:
    return list(drawn_plots(subject))


def _figure(position: int, plot: Plot, drawn: go.Figure, note: str) -> str:
    """A heading, how to read it, and the data of the figure."""
    how_to_read = f"{plot.how_to_read} {note}".strip()
    # The page has headings of its own; what the title took is taken off.
    above, height = drawn.layout.margin.t - TITLE_HEIGHT, drawn.layout.height - TITLE_HEIGHT
    drawn.update_layout(title=None, margin_t=above, height=height)
    name = f"figure-{position}"
    return (
        f"<section><h2>{_escaped(plot.title)}</h2><p class=how>{_escaped(how_to_read)}</p>"
        f'<div class="scroll{" wide" if is_wide(drawn) else ""}">'
        f'<div class="plot" data-figure="{name}" style="height:{drawn.layout.height}px" role="img" '
        f'aria-label="{_escaped(plot.title)}"></div></div>'
        '<p class="hint">Swipe the figure sideways to see all of it.</p>'
        f'<script type="application/json" id="{name}">{_json(drawn)}</script></section>'
    )


def _trials(subject: Subject) -> str:
    """All trials in a table; of very many the latest."""
    shown = subject.trials[-MOST_ROWS:]
    if not shown:
        return ""
    names = list(dict.fromkeys(name for trial in shown for name in trial.params))
    said = ["message"] if any(trial.message for trial in shown) else []
    heads = ["trial", "state", text(subject.value_name), "cost", "predicted", *names, *said]
    kinds = (
        " class=number" if i in NUMBERS else " class=long" if len(name) > LONG else "" for i, name in enumerate(heads)
    )
    head = "".join(f"<th scope=col{kind}>{_escaped(name)}</th>" for name, kind in zip(heads, kinds, strict=True))
    body = "".join(_row(subject, trial, names, has_messages=bool(said)) for trial in shown)
    shortened = "" if len(shown) == len(subject.trials) else f" The latest {len(shown):,} of {len(subject.trials):,}."
    unit = f" Costs are in {_escaped(subject.unit)}." if subject.unit else ""
    note = f"<p class=how>{shortened}{unit}</p>" if shortened or unit else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<section><h2>All trials</h2>{note}<div class="trials" tabindex="0">{table}</div></section>'


def _row(subject: Subject, trial: Trial, names: list[str], *, has_messages: bool) -> str:
    state = subject.state_of(trial) + (", known before" if trial.external else "")
    step = last_step(subject, trial) if subject.ended_early(trial) else 0
    state += f" at step {step}" if step else ""
    distinction = _distinction(subject, trial)
    state += f", {distinction}" if distinction else ""
    paid = None if subject.state_of(trial) == "running" else trial.charged
    numbers = [None if x is None else number(x, 6) for x in (trial.value, paid, trial.predicted_cost)]
    cells = [
        f'<td class="number">{trial.number}</td><td>{state}</td>',
        *(f'<td class="number">{_escaped(x or "")}</td>' for x in numbers),
        *(_cell(trial.params.get(name, "")) for name in names),
        *([_cell(trial.message or "")] if has_messages else []),
    ]
    return f'<tr class="{distinction or subject.state_of(trial)}">{"".join(cells)}</tr>'


def _distinction(subject: Subject, trial: Trial) -> str:
    """Whether it is the best trial, or the recommended one where that is another."""
    if subject.best is not None and trial.number == subject.best.number:
        return "best"
    chosen = subject.recommended
    return "recommended" if chosen is not None and chosen.trial.number == trial.number else ""


def _cell(value: object) -> str:
    written = _escaped(value)
    return f'<td class="long">{written}</td>' if len(written) > LONG else f"<td>{written}</td>"


# What keeps it safe --------------------------------------------------------------------------------------------------


def _escaped(value: object) -> str:
    return html.escape(text(value))


def _json(drawn: go.Figure) -> str:
    """The figure as JSON in which no tag begins, so that none can end the script it stands in."""
    return str(drawn.to_json()).replace("<", "\\u003c")


def _policy(*scripts: str) -> str:
    """Run these scripts, load nothing, send nothing anywhere."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    rules = {
        "default-src": "'none'",
        "script-src": allowed,
        "style-src": "'unsafe-inline'",
        "img-src": "data: blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{rule} {value}" for rule, value in rules.items())


def _write_whole(path: Path, page: bytes) -> None:
    """Write beside it first, then put it in its place in one step."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".draft")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
