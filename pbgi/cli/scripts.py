"""For scripts: `pbgi ask` and `pbgi tell`, the two halves of a trial, and a study as plain JSON.

Scripts such as Slurm jobs run trials themselves. The JSON says where a study stands, its best trial, and all trials;
these also as CSV.
"""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from pbgi.checks import check_cost, check_outcomes, check_value, require_count
from pbgi.cli.choosing import Way, goes_on, hand_out, recommended_of, reports_of
from pbgi.cli.program.result import LEAST_COST, Outcome, not_nested
from pbgi.cli.progress import Standing, goes_on_with, standing, was_stopped
from pbgi.cli.running import earlier
from pbgi.cli.study import JobStudy, predicted_cost
from pbgi.constraints.constraint import ConditionStatus
from pbgi.errors import InvalidInputError, NothingLeftError, TrialStateError
from pbgi.prediction import Recommendation
from pbgi.serialization import parsed_json
from pbgi.stopping import StopReason
from pbgi.study import attributes
from pbgi.study.ledger import ledger_of, total
from pbgi.study.outcomes import outcomes_of
from pbgi.study.reports import step_costs
from pbgi.trials.steps import Report, Steps, require_next

KEYS = ("trial", "step", "value", "cost", "failed", "message")


def ask(study: JobStudy) -> dict[str, Any]:
    """Hand out the next trial; it runs until `tell` ends it.

    Raises:
        NothingLeftError: There is a reason to stop.
    """
    added = hand_out(study, {})
    if isinstance(added, StopReason):
        raise NothingLeftError(added.message)
    params = study.settings.space.check(added.params)
    record = {"trial": added.number, "params": params, "predicted_cost": predicted_cost(added)}
    return record if added.last_step is None else record | _way_record(added) | {"cost": earlier(added).cost_or_zero}


def outcomes_in(told: Sequence[str]) -> dict[str, float]:
    """Outcomes as flags tell them, each NAME=NUMBER."""
    found: dict[str, float] = {}
    for text in told:
        name, _, number = text.partition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            raise InvalidInputError(f"--outcome must be NAME=NUMBER, such as latency_ms=12.3; got {text!r}") from None
    if len(found) < len(told):
        raise InvalidInputError(f"--outcome must tell each outcome once; got {', '.join(told)}")
    return found


def tell(
    study: JobStudy, result: Mapping[str, Any], more: Mapping[str, float] = MappingProxyType({})
) -> dict[str, Any]:
    """Record how a trial ended.

    Args:
        study: The study.
        result: The trial's number under "trial", then "value" or "failed": true, "cost" and "message" if known, and
            the outcomes that conditions are about, by their names. With a "step" it is how far the trial has come, and
            it is stopped if it is not worth going on with.
        more: Outcomes that were told apart from it.

    Returns:
        The trial; another one if that had been given up as abandoned.
    """
    names = study.settings.constraints or {}
    unknown = [name for name in more if name not in names]
    if unknown:
        known = ", ".join(names) or "there are none"
        raise InvalidInputError(
            f"an outcome must be one that a condition of the job is about; got {unknown[0]!r}; {known}"
        )
    result = {**result, **more}
    outcomes = {name: not_nested(name, result[name]) for name in names if name in result}
    number, step, value, cost, message = checked({key: x for key, x in result.items() if key not in outcomes})
    outcomes = check_outcomes(outcomes, "result")
    missing = [name for name in names if name not in outcomes]
    if missing and value is not None:
        raise InvalidInputError(
            f"the outcome {missing[0]!r}, which a condition is about, must be told for trial {number}; add "
            f"--outcome {missing[0]}=NUMBER, or {missing[0]!r} to the JSON"
        )

    def told(charged: float | None, observed: float | None) -> Outcome:
        return Outcome(value, charged, None, message, observed=observed, outcomes=outcomes or None)

    def finish() -> int:
        trial = study.trial(number)
        used = max(step_costs(trial).values(), default=0.0)
        if cost is not None and cost < used:
            rule = f"the cost of trial {number} must be at least what it has reported, {used:g}"
            raise InvalidInputError(f"{rule}; got {cost:g}; it is that of all steps together")
        charged, observed = cost, None
        if cost is None and not trial.state.is_finished():
            charged, observed = _assumed_cost(study, trial, failed=value is None), 0.0
        return study.finish(number, told(charged, observed)).number

    def take_in() -> int:
        if step is None or value is None:
            return finish()
        return _report(study, Report(step, value, cost), study.trial(number))

    ended = study.exclusively(take_in)
    return trial_records(study.trials())[ended]


def _report(study: JobStudy, report: Report, trial: FrozenTrial) -> int:
    """Take in how far a trial has come, and end it if it is complete or not worth going on with."""
    steps, number = study.settings.steps, trial.number
    if steps is None:
        raise InvalidInputError(f"step must go with steps = n in the job, which says how long a trial is; got {report}")
    if report.step > steps.last:
        raise InvalidInputError(f"step must not exceed the last one, {steps.last}; got {report.step}")
    before = reports_of(steps, trial)
    report = report._replace(cost=_cost_so_far(study, report, trial, steps))
    if report in before[-1:]:
        return number
    if trial.state.is_finished():
        state = "stopped" if was_stopped(trial) else STATES[trial.state]
        raise TrialStateError(f"trial {number} has ended and stays as it is: {state}; got step {report.step}")
    require_next(f"trial {number}", before, report)
    way = Way(steps, [*before, report], n_stored=len(before))
    way.store(study, number)
    charged = LEAST_COST if report.cost is None else report.cost
    if report.step == steps.last:
        return study.finish(number, Outcome(report.value, charged, None)).number
    if steps.is_decision(way.reports) and not goes_on(study, number):
        return study.finish(number, Outcome(None, charged, None, way.why_stopped, stopped=True)).number
    return number


def _cost_so_far(study: JobStudy, report: Report, trial: FrozenTrial, steps: Steps) -> float | None:
    """What a trial has cost by a step, all steps together: where nobody tells it, a share of what was expected."""
    if report.cost is not None:
        return report.cost
    if study.settings.budget is not None and study.settings.formula is None:
        raise InvalidInputError(f"cost must be told, since the budget counts it; got none for trial {trial.number}")
    predicted = predicted_cost(trial)
    return None if predicted is None else predicted * report.step / steps.last


def _assumed_cost(study: JobStudy, trial: Any, *, failed: bool) -> float:
    """What a trial is charged whose cost nobody tells: what was expected, and what interrupted attempts have cost.

    One that `tune` has put back and that is given up now has cost those alone.
    """
    paid = earlier(trial).cost_or_zero
    if failed and paid and not trial.user_attrs.get(attributes.COMMAND):
        return paid
    predicted = predicted_cost(trial)
    if predicted is None and study.settings.budget is not None:
        raise InvalidInputError(
            f"cost must be told, since the budget counts it and nothing is known of costs yet; got none for trial "
            f"{trial.number}"
        )
    return total([paid, predicted or LEAST_COST])


def checked(result: Mapping[str, Any]) -> tuple[int, int | None, float | None, float | None, str | None]:
    """Number, step, value, cost and message, each by its rule."""
    unknown = [key for key in result if key not in KEYS]
    if unknown:
        raise InvalidInputError(f"a result must have keys among {', '.join(KEYS)}; got {unknown[0]!r}")
    result = {key: not_nested(key, value) for key, value in result.items()}
    number, failed, message = result.get("trial"), result.get("failed", False), result.get("message")
    if type(number) is not int or number < 0:
        raise InvalidInputError(f"trial must be a number from `ask`; got {number!r}")
    if failed not in (True, False) or bool(failed) == (result.get("value") is not None):
        raise InvalidInputError(f"trial {number} must have a value or have failed, and not both")
    step = None if result.get("step") is None else require_count("step", result["step"])
    if message is not None and not isinstance(message, str):
        raise InvalidInputError(f"message must be a text; got {message!r}")
    value = None if failed else check_value(result["value"])
    if value is not None and not math.isfinite(value):
        value, message = None, message or f"the value of a trial must be finite; got {value!r}"
    return number, step, value, check_cost(result.get("cost")), message if value is None else None


def parsed_result(text: str) -> dict[str, Any]:
    """The result on standard input: a JSON object."""
    try:
        found = parsed_json(text)
    except ValueError as error:
        raise InvalidInputError(f'standard input must be JSON such as {{"trial": 7, "value": 0.3}}; {error}') from None
    if not isinstance(found, dict):
        raise InvalidInputError(f"standard input must be a JSON object; got {text[:50]!r}")
    return found


# Records -------------------------------------------------------------------------------------------------------------


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
        "state": "stopped" if was_stopped(trial) else STATES[trial.state],
        "params": dict(trial.params),
        "value": trial.value if trial.state is TrialState.COMPLETE and math.isfinite(trial.value or 0.0) else None,
        "cost": charged if trial.state.is_finished() else None,
        "predicted_cost": predicted_cost(trial),
        "seconds": trial.user_attrs.get(attributes.SECONDS),
        "message": trial.user_attrs.get(attributes.MESSAGE),
        "started": None if trial.datetime_start is None else trial.datetime_start.isoformat(),
        "ended": None if trial.datetime_complete is None else trial.datetime_complete.isoformat(),
        **({"outcomes": outcomes} if (outcomes := outcomes_of(trial)) else {}),
        **_way_record(trial),
    }


def _way_record(trial: FrozenTrial) -> dict[str, Any]:
    """How far a trial has come that tells its steps, and which one it goes on with."""
    if trial.last_step is None:
        return {}
    before = goes_on_with(trial)
    told = {"step": trial.last_step, "value_at_step": trial.intermediate_values[trial.last_step]}
    return told if before is None else {**told, "goes_on_with": before}


def status_record(study: JobStudy) -> dict[str, Any]:
    """Where a study stands."""
    now = standing(study.settings, study.trials())
    return {"study": study.name, "direction": study.settings.direction, **standing_record(now)}


def standing_record(now: Standing) -> dict[str, Any]:
    """The same without names."""
    return {
        "budget": now.budget,
        "spent": now.spent,
        "reserved": now.reserved,
        "left": now.left,
        "trials": {"complete": now.complete, "failed": now.failed, "running": now.running}
        | ({} if now.stopped is None else {"stopped": now.stopped}),
        "trials_left": now.trials_left,
        "best": None if now.best is None else trial_record(now.best, now.best_cost),
        **_conditions_record(now),
    }


def _conditions_record(now: Standing) -> dict[str, Any]:
    """How the conditions stand, where there are any."""
    return {"conditions": [_condition_record(status) for status in now.conditions]} if now.conditions else {}


def _condition_record(status: ConditionStatus) -> dict[str, Any]:
    record = {"name": status.name, "condition": str(status.condition), "outcome": status.outcome}
    return record | {"told": status.n_told, "broken": status.n_broken, "binds": status.binds}


def best_record(study: JobStudy) -> dict[str, Any] | None:
    """The best trial, and under "recommended" the one to choose, which may be another where values are noisy; or None.

    Between "low" and "high" lies the value of the latter without noise, with a probability of 80 %.
    """
    trials = study.trials()
    now = standing(study.settings, trials)
    if now.best is None:
        return None
    chosen = recommended_of(study.settings, trials)
    recommended = None if chosen is None else trial_records(trials)[chosen.trial.number] | _belief(chosen)
    return trial_record(now.best, now.best_cost) | {"recommended": recommended} | _conditions_record(now)


def _belief(chosen: Recommendation) -> dict[str, float]:
    return {"median": chosen.median, "low": chosen.low, "high": chosen.high}


def exported(study: JobStudy, kind: str) -> str:
    """All trials as text."""
    records = trial_records(study.trials())
    if kind == "csv":
        return _csv(study.settings.space.names, records)
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
