"""What every edge checks: numbers, counts, values and costs of trials, and arguments with the name that was meant."""

import math
import numbers
from collections.abc import Callable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from pbgi.errors import InvalidInputError, UnknownArgumentError

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)


def unboxed(value: object) -> object:
    """The builtin inside a NumPy scalar, else the value itself."""
    return value.item() if isinstance(value, np.generic) else value


def is_real(value: object) -> bool:
    """Whether it is a real number of any kind: a bool is none, and a Decimal, unlike `numbers.Real`, is one."""
    return isinstance(value, numbers.Real | Decimal) and not isinstance(value, bool)


def as_float(number: Any) -> float:
    """A real number as the nearest float; an infinity beyond the largest one, NaN for a Decimal that is no number."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    except ValueError:  # a Decimal that signals
        return math.nan


def require_positive(name: str, value: object) -> float:
    """The value as a float, if it is a positive, finite real number."""
    plain = unboxed(value)
    number = as_float(plain) if is_real(plain) else math.nan
    if not 0.0 < number < math.inf:
        raise InvalidInputError(f"{name} must be a positive, finite number; got {value!r}")
    return number


def require_count(name: str, value: object, *, zero: bool = False) -> int:
    """The value as an int, if it is a positive whole number, or zero where that is allowed."""
    plain = unboxed(value)
    if isinstance(plain, bool) or not isinstance(plain, int) or plain < (0 if zero else 1):
        rule = "a whole number that is not negative" if zero else "a positive whole number"
        raise InvalidInputError(f"{name} must be {rule}; got {value!r}")
    return plain


def check_value(value: object, name: str = "value") -> float:
    """The outcome of a trial as a float. NaN and infinite values pass: they fail the trial, not the run.

    Raises:
        InvalidInputError: Not a real number (int, float, Decimal, Fraction, NumPy scalar, array of shape ()).
    """
    number = _unwrapped(value)
    if not is_real(number):
        raise InvalidInputError(f"{name} must be a real number; got {value!r}; use fail() for a trial without a value")
    return as_float(number)


def check_cost(cost: object, name: str = "cost") -> float | None:
    """The cost of a trial as a float; None, for a cost that is not known, passes.

    Raises:
        InvalidInputError: Neither None nor a positive, finite real number.
    """
    if cost is None:
        return None
    number = _unwrapped(cost)
    if not is_real(number) or not 0.0 < as_float(number) < math.inf:
        raise InvalidInputError(f"{name} must be a positive, finite number; got {cost!r}; leave it out if not known")
    return as_float(number)


def check_charge(charge: object, name: str = "charge") -> float | None:
    """What a trial is charged as a float; None, for its cost, and 0, for nothing, pass.

    Raises:
        InvalidInputError: Neither None nor a finite real number that is not negative.
    """
    number = _unwrapped(charge)
    return 0.0 if is_real(number) and number == 0 else check_cost(charge, name)


def check_outcomes(outcomes: object, name: str = "constraints") -> dict[str, float]:
    """Outcomes by name as floats.

    Raises:
        InvalidInputError: No mapping from names to finite real numbers.
    """
    if not isinstance(outcomes, Mapping) or not all(isinstance(key, str) for key in outcomes):
        raise InvalidInputError(f"{name} must map names of outcomes to numbers; got {outcomes!r}")
    for key, outcome in outcomes.items():
        number = _unwrapped(outcome)
        if not is_real(number) or not math.isfinite(as_float(number)):
            raise InvalidInputError(f"{name}[{key!r}] must be a finite number; got {outcome!r}")
    return {key: as_float(_unwrapped(outcome)) for key, outcome in outcomes.items()}


def _unwrapped(value: Any) -> object:
    """The number inside a NumPy scalar or any array of shape (), else the value itself."""
    if type(value) is float:  # nearly always, and the questions below take longer than all others together
        return value
    if np.ma.is_masked(value):  # item() would make a zero of what is not there
        return None
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def set_fields(frozen: object, **fields: object) -> None:
    """Set fields of a frozen dataclass while it is being made."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)


# What users of other packages write, our argument for it, and how it is written.
HABITS: dict[str, tuple[str, str]] = (
    dict.fromkeys(
        ("n_trials", "n_calls", "max_evals", "n_iter", "max_iter", "maxiter", "max_trials", "num_samples", "n_evals"),
        ("stop", "stop=pbgi.MaxTrials(n)"),
    )
    | dict.fromkeys(
        ("timeout", "max_time", "time_limit", "time_budget_s", "walltime_limit"), ("seconds", "seconds=...")
    )
    | dict.fromkeys(("random_state", "rstate", "rng", "random_seed", "seeds"), ("seed", "seed=..."))
    | dict.fromkeys(("algo", "sampler", "acq_func", "acquisition", "method", "search_alg"), ("policy", "policy=..."))
    | dict.fromkeys(
        ("n_initial_points", "n_random_starts", "init_points", "n_startup", "n_init"),
        ("n_startup_trials", "n_startup_trials=n"),
    )
    | dict.fromkeys(("verbose", "show_progress_bar", "show_progressbar", "disp"), ("progress", "progress=True"))
    | dict.fromkeys(("n_jobs", "workers", "max_concurrent", "num_workers"), ("n_workers", "n_workers=n"))
    | dict.fromkeys(("bounds", "dimensions", "search_space", "param_space", "pbounds"), ("space", "space={...}"))
    | dict.fromkeys(("func", "f", "fn", "objective"), ("fun", "fun=..."))
    | dict.fromkeys(("points_to_evaluate", "initial_points", "y0"), ("x0", "x0=[...]"))
    | dict.fromkeys(("checkpoint", "storage", "load_if_exists", "trials_save_file"), ("resume", 'resume="run.json"'))
    | dict.fromkeys(("surrogate", "surrogate_model", "kernel", "base_estimator"), ("model", "model=pbgi.GPConfig(...)"))
    | dict.fromkeys(("maximize", "mode", "minimize"), ("direction", 'direction="maximize"'))
    | {"catch": ("max_failures", "max_failures=None, to go on whatever the function raises")}
    | dict.fromkeys(("prior", "scale", "log_scale", "distribution"), ("log", "log=True"))
    | dict.fromkeys(("q", "quantum", "precision"), ("step", "step=..."))
    | dict.fromkeys(("min", "lower", "minimum"), ("low", "low=..."))
    | dict.fromkeys(("max", "upper", "maximum"), ("high", "high=..."))
    | dict.fromkeys(("condition", "conditions", "depends_on", "parent", "parents"), ("when", "when={'parent': value}"))
    | dict.fromkeys(("values", "categories", "options", "items"), ("choices", "choices=[...]"))
)
# What users of Optuna's samplers write, and what to do here; a sampler is known by an argument that no other has.
SAMPLER_MARK = "independent_sampler"
SAMPLER_HABITS: dict[str, str] = (
    dict.fromkeys(("multivariate", "group"), "leave it out: all parameters are chosen together, those of branches too")
    | dict.fromkeys(("n_trials", "timeout", "n_jobs", "callbacks"), "it is for study.optimize")
    | dict.fromkeys(
        ("n_ei_candidates", "gamma", "weights", "prior_weight", "consider_prior", "consider_endpoints"),
        "leave it out: it is about estimators of TPE, of which there are none here",
    )
    | {
        "constant_liar": "leave it out: running trials always count",
        "deterministic_objective": "values are exact by default; for noisy ones use model=pbgi.GPConfig(noisy=True)",
        "direction": "it is for optuna.create_study",
        "pruner": "it is for optuna.create_study",
    }
)


def _way_out(name: str, known: list[str]) -> str:
    if SAMPLER_MARK in known and name in SAMPLER_HABITS:
        return SAMPLER_HABITS[name]
    argument, written = HABITS.get(name, ("", ""))
    if argument in known:
        return f"use {written}"
    close = get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"there are {', '.join(known)}" if known else "it takes none"


def refuse_unknown_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with an `UnknownArgumentError` where Python would raise a bare TypeError."""
    known = [name for name in signature(function).parameters if name not in ("self", "cls")]

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                raise UnknownArgumentError(f"Unknown argument {name!r}; {_way_out(name, known)}")
        return function(*args, **kwargs)

    return checked


def checks_arguments(cls: C) -> C:
    """The class, a dataclass, say, with the same for what it is made of."""
    cls.__init__ = refuse_unknown_arguments(cls.__init__)  # type: ignore[misc]
    return cls
