"""What a report can be made from, and the subject made of it.

Result, Optimizer    the run itself
optuna Study         of a PBGISampler, of the command line or of any other sampler (`study.py`)
"""

from dataclasses import replace
from typing import Any, TypeAlias

from pbgi.errors import InvalidInputError
from pbgi.optimizer import Optimizer
from pbgi.parameter import Categorical, Float, Integer, Parameter
from pbgi.report.subject import Subject
from pbgi.run import Result
from pbgi.space import Space

Source: TypeAlias = Any
"""A `pbgi.Result`, a `pbgi.Optimizer` or an Optuna study; also a `Subject`, which stays as it is."""


def subject_of(source: Source, *, unit: str = "", name: str = "") -> Subject:
    """What is to be reported on.

    Args:
        source: A `pbgi.Result`, a `pbgi.Optimizer`, an Optuna study, or a `Subject`.
        unit: Of the costs, "s" or "euro", say; by default seconds where it is known that they are.
        name: Of the run; by default the study's.

    Raises:
        InvalidInputError: It is something else, or a study of several objectives.
    """
    if not isinstance(unit, str):
        raise InvalidInputError(f"unit must be a str, what costs are counted in; got {unit!r}")
    if isinstance(source, Subject):
        return source
    if isinstance(source, Result):
        return replace(_of_optimizer(source.optimizer, unit, name), known_reason=source.stop_reason)
    if isinstance(source, Optimizer):
        return replace(_of_optimizer(source, unit, name), ask_reason=source.should_stop)
    if hasattr(source, "directions") and hasattr(source, "get_trials"):
        from pbgi.report.study import subject_of_study

        return subject_of_study(source, unit=unit, name=name)
    raise InvalidInputError(f"a report must be on a pbgi.Result, a pbgi.Optimizer or an Optuna study; got {source!r}")


def _of_optimizer(optimizer: Optimizer, unit: str, name: str) -> Subject:
    return Subject(
        name=name,
        direction=optimizer.direction,
        parameters=_varying(optimizer.space),
        trials=optimizer.trials,
        budget=optimizer.budget,
        unit=unit,
        optimizer=optimizer,
        numbers=tuple(trial.number for trial in optimizer.trials),
        curves={t.number: tuple((r.step, r.value) for r in t.reports) for t in optimizer.trials if t.reports},
    )


def _varying(space: Space) -> dict[str, Parameter]:
    """The parameters of a space that vary."""
    every = {name: space.parameters[name] for name in space.coordinates}
    return {name: p for name, p in every.items() if isinstance(p, Float | Integer | Categorical)}
