"""A study as plain JSON, for scripts: where it stands, its best trial, all trials, and the same as CSV."""

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from pbgi.cli.progress import Standing, standing
from pbgi.cli.study import StudyBook, predicted_cost
from pbgi.cli.suggest import recommended_of
from pbgi.prediction import Recommendation
from pbgi.study import attributes
from pbgi.study.ledger import ledger_of

STATES = {
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
    TrialState.COMPLETE: "complete",
    TrialState.FAIL: "failed",
    TrialState.PRUNED: "failed",
}
COLUMNS = ("trial", "state", "value", "cost", "predicted_cost", "seconds", "message", "started", "ended")
FORMATS = ("json", "jsonl", "csv")
FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last four are the same in full width


def trial_records(trials: Sequence[FrozenTrial]) -> list[dict[str, Any]]:
    """All trials, each with what it was charged."""
    accounts = ledger_of(trials).accounts
    return [
        trial_record(trial, accounts[trial.number].charged if trial.number in accounts else 0.0) for trial in trials
    ]


def trial_record(trial: FrozenTrial, charged: float) -> dict[str, Any]:
    """One trial."""
    return {
        "trial": trial.number,
        "state": STATES[trial.state],
        "params": dict(trial.params),
        "value": trial.value if trial.value is not None and math.isfinite(trial.value) else None,
        "cost": charged if trial.state.is_finished() else None,
        "predicted_cost": predicted_cost(trial),
        "seconds": trial.user_attrs.get(attributes.SECONDS),
        "message": trial.user_attrs.get(attributes.MESSAGE),
        "started": None if trial.datetime_start is None else trial.datetime_start.isoformat(),
        "ended": None if trial.datetime_complete is None else trial.datetime_complete.isoformat(),
    }


def status_record(book: StudyBook) -> dict[str, Any]:
    """Where a study stands."""
    now = standing(book.settings, book.trials())
    return {"study": book.name, "direction": book.settings.direction, **standing_record(now)}


def standing_record(now: Standing) -> dict[str, Any]:
    """The same without names."""
    return {
        "budget": now.budget,
        "spent": now.spent,
        "reserved": now.reserved,
        "left": now.left,
        "trials": {"complete": now.complete, "failed": now.failed, "running": now.running},
        "trials_left": now.trials_left,
        "best": None if now.best is None else trial_record(now.best, now.best_cost),
    }


def best_record(book: StudyBook) -> dict[str, Any] | None:
    """The best trial, and under "recommended" the one to choose, which may be another where values are noisy; or None.

    Between "low" and "high" lies the value of the latter without noise, with a probability of 80 %.
    """
    trials = book.trials()
    now = standing(book.settings, trials)
    if now.best is None:
        return None
    chosen = recommended_of(book.settings, trials)
    recommended = None if chosen is None else trial_records(trials)[chosen.trial.number] | _belief(chosen)
    return trial_record(now.best, now.best_cost) | {"recommended": recommended}


def _belief(chosen: Recommendation) -> dict[str, float]:
    return {"median": chosen.median, "low": chosen.low, "high": chosen.high}


def exported(book: StudyBook, kind: str) -> str:
    """All trials as text."""
    records = trial_records(book.trials())
    if kind == "csv":
        return _csv(book.settings.space.names, records)
    if kind == "jsonl":
        return "".join(json.dumps(record) + "\n" for record in records)
    return json.dumps(records, indent=1) + "\n"


def _csv(names: Sequence[str], records: Iterable[dict[str, Any]]) -> str:
    """A column per field and per parameter; parameters have a prefix, so that no name can be in the way of another."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *(f"params.{name}" for name in names)])
    for record in records:
        params = record["params"]
        writer.writerow([_cell(x) for x in (*(record[c] for c in COLUMNS), *(params.get(name) for name in names))])
    return text.getvalue()


def _cell(value: Any) -> Any:
    """A value as a spreadsheet may see it: a text that it would take for a formula gets an apostrophe in front."""
    if not isinstance(value, str):
        return value
    text = value.replace("\r\n", "\n").replace("\r", "\n")  # a carriage return alone is not quoted, and ends a row
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text
