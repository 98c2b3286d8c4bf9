"""What `pbgi tune` is told: a TOML file, read into a frozen `Job` or refused with file, line and key.

    command = ["python", "train.py", "--lr", "{lr}"]
    budget = 60.0

    [parameters]
    lr = { low = 1e-5, high = 1e-1, log = true }   # a float, since a bound is written as one
    layers = { low = 1, high = 8 }                 # whole numbers
    act = ["relu", "tanh"]                         # one of these
    epochs = 10                                    # the same in every trial
    slope = { low = 0.0, high = 1.0, when = { act = "relu" } }    # exists only with relu

docs/command-line.md lists every key. Nothing in here runs or writes anything.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import Any

from pbgi.checks import require_count, require_positive
from pbgi.cli.parameters import LONGEST_NAME, OWN_PREFIX, Command, names_in, own_names, parts_of, space_in
from pbgi.cli.toml_file import TomlFile
from pbgi.constraints.constraint import AtLeast, AtMost, Condition, Constraints, checked_constraints
from pbgi.errors import InvalidInputError
from pbgi.policy import POLICIES, Policy
from pbgi.settings import DIRECTIONS
from pbgi.space import Space
from pbgi.study.formula import cost_formula, is_formula
from pbgi.trials.steps import Steps

OVERRUNS = ("stop", "finish")
# A command that has never worked is probably wrong. One that has may fail by chance: if every second trial does, five
# in a row are common in a run of a hundred, ten are not.
FAILURES_AT_FIRST, FAILURES_LATER = 5, 10
STEP = "step"  # the key of a report, see `steps.py`
MOST_STEPS = 2**31 - 1  # databases keep steps as 32-bit integers


@dataclass(frozen=True, eq=False)
class Job:
    """A search over the parameters of a program.

    Attributes:
        path: The file it was read from.
        name: Name of the study.
        space: The parameters.
        command: The program and its arguments, with placeholders, some of them in groups; empty for a job that is only
            asked and told.
        direction: "minimize" or "maximize".
        objective: Key of the value in the result.
        cost: Key of the cost in the result; None: the cost is seconds times `price_per_second`, or a formula.
        formula: What a trial costs, as a formula of the parameters; None: the cost is reported or measured.
        result_file: Where the result is, inside the trial's folder; None: the output.
        price_per_second: What a second costs; None: 1, unless the program reports its cost.
        budget: What may be spent.
        overrun: What becomes of trials that run when the budget is used up, "stop" or "finish"; None: see
            `ends_overrun`.
        trials: How many trials there may be.
        parallel: How many commands run at a time.
        timeout: Seconds after which a command is killed.
        retries: How many times a failing command is run again.
        max_failures: How many trials may fail in a row; None: see `most_failures`.
        storage: URL; None: an SQLite file beside the job.
        folder: Where the command runs.
        environment: Added to the environment of the command.
        seed: Of the suggestions.
        n_startup_trials: Points before the model takes over.
        policy: How points are chosen.
        constraints: Conditions on other numbers of the result, by their keys.
        steps: How many steps a trial has, and where it is decided whether it goes on; None: trials tell nothing on
            their way.
    """

    path: Path
    name: str
    space: Space
    command: Command
    direction: str = "minimize"
    objective: str = "value"
    cost: str | None = None
    formula: str | None = None
    result_file: str | None = None
    price_per_second: float | None = None
    budget: float | None = None
    overrun: str | None = None
    trials: int | None = None
    parallel: int = 1
    timeout: float | None = None
    retries: int = 0
    max_failures: int | None = None
    storage: str | None = field(default=None, repr=False)  # it may hold a password
    folder: Path = Path()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    seed: int | None = None
    n_startup_trials: int | None = None
    policy: Policy | None = None
    constraints: Constraints | None = None
    steps: Steps | None = None

    @property
    def program(self) -> str:
        """What the command begins with; empty where there is none."""
        return "".join(parts_of(self.command[0])) if self.command else ""

    @property
    def ends_overrun(self) -> bool:
        """Whether trials are ended when the budget is used up: by default where seconds are what they cost."""
        return self.cost is None and self.formula is None and self.overrun != "finish"

    def most_failures(self, *, has_worked: bool) -> int:
        """So many failed trials in a row end a run."""
        return self.max_failures or (FAILURES_LATER if has_worked else FAILURES_AT_FIRST)

    @property
    def trials_folder(self) -> Path:
        """Where the folders of the trials are."""
        return self.path.with_suffix(".trials")

    @property
    def database(self) -> Path:
        """The SQLite file used where no storage is named."""
        return self.path.with_suffix(".db")


def price_of_second(job: Job) -> float | None:
    """What a second costs; None where only the program knows."""
    usual = 1.0 if job.cost is None and job.formula is None else None
    return usual if job.price_per_second is None else job.price_per_second


def read_job(path: Path) -> Job:
    """The job in a file.

    Raises:
        JobError: It cannot be read, or breaks a rule; the message has the line and the key.
    """
    file = TomlFile.read(path.absolute())
    unknown = [key for key in file.data if key not in ("parameters", *RULES)]
    if unknown:
        raise file.error((unknown[0],), f"no such key; there are parameters, {', '.join(RULES)}")
    if "parameters" not in file.data:
        raise file.error(
            (), "parameters: must be given; write [parameters] and under it lr = { low = 0.0, high = 1.0 }"
        )
    space = space_in(file)
    read: dict[str, Any] = {
        key: file.checked((key,), RULES[key], value) for key, value in file.data.items() if key in RULES
    }
    if read.pop("resumable", False):
        if "steps" not in read:
            raise file.error(("resumable",), "must go with steps = n, which says how long a trial is; got no steps")
        read["steps"] = replace(read["steps"], resumable=True)
    if isinstance(read.get("cost"), Priced):
        written = read.pop("cost").formula
        read["formula"] = file.checked(("cost",), partial(cost_formula, space), written)
    read["folder"] = (file.path.parent / read.get("folder", ".")).absolute()
    job = Job(**{"path": file.path, "name": file.path.stem, "space": space, "command": (), **read})
    _require_consistent(file, job)
    return job


def _require_consistent(file: TomlFile, job: Job) -> None:
    """What concerns several keys."""
    for i, argument in enumerate(job.command):
        known = (*job.space.names, *(OWN_PREFIX + own for own in own_names(with_steps=job.steps is not None)))
        try:
            wrong = [name for part in parts_of(argument) for name in names_in(part) if name not in known]
        except InvalidInputError as error:
            raise file.error(("command", i), str(error)) from None
        if wrong:
            rule = f"{{{wrong[0]}}} must be a parameter or one of pbgi's own"
            raise file.error(("command", i), f"{rule}; there are {', '.join(known)}; a brace itself is written {{{{")
    _require_no_lone_option(file, job)
    told = job.cost or job.formula
    if job.overrun == "stop" and told is not None:
        rule = 'must be "finish" where the program reports its own cost or a formula says it, and seconds do not'
        raise file.error(("overrun",), f'{rule}; got "stop", with cost = {told!r}')
    if job.formula is not None and job.price_per_second is not None:
        rule = "must not be given where cost is a formula, which says what a trial costs"
        raise file.error(("price_per_second",), f"{rule}; got {job.price_per_second:g}")
    if not _is_folder(job.folder):
        raise file.error(("folder",), f"must be a folder that exists; got {str(job.folder)!r}")
    taken = [name for name in job.constraints or {} if name in (job.objective, job.cost)]
    if taken:
        raise file.error(("constraints", taken[0]), f"{taken[0]!r} is the key of the value or the cost already")
    if job.steps is not None:
        _require_good_with_steps(file, job)
    if len(job.name) > LONGEST_NAME:
        raise file.error(("name",), f"a name may have at most {LONGEST_NAME} characters; got {len(job.name)}")


def _require_good_with_steps(file: TomlFile, job: Job) -> None:
    if STEP in (job.objective, job.cost):
        raise file.error(("steps",), f"{STEP!r} is the key of the value or the cost already; rename that")
    if job.constraints:
        rule = "trials that may stop early know no conditions on outcomes yet: give steps or constraints"
        raise file.error(("steps",), f"{rule}; got steps = {file.data['steps']!r} with constraints")


def _require_no_lone_option(file: TomlFile, job: Job) -> None:
    """`"--slope", "{slope}"` would leave the option alone at points without a slope."""
    if any(job.space.may_be_absent(name) for name in names_in(job.program)):
        raise file.error(("command", 0), f"a program must be there in every trial; got {job.program!r}")
    for i, (option, argument) in enumerate(pairwise(job.command)):
        comes_and_goes = isinstance(argument, str) and any(job.space.may_be_absent(name) for name in names_in(argument))
        if comes_and_goes and isinstance(option, str) and option.startswith("-") and not names_in(option):
            rule = f"{argument} is left out where the parameter does not exist, and {option} would stay"
            raise file.error(("command", i + 1), f'{rule}; write the two as a list: ["{option}", "{argument}"]')


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name too long
        return False


# One rule per key ----------------------------------------------------------------------------------------------------


def _command(value: Any) -> Command:
    is_list = isinstance(value, list) and value and isinstance(value[0], str)
    if not is_list or not all(isinstance(part, str) for item in value for part in _as_group(item)):
        got = f'got {value!r}; write ["python", "train.py", "--lr", "{{lr}}"]'
        raise InvalidInputError(f"must be a list of texts, the program and its arguments (no shell reads it); {got}")
    if any("\0" in part for item in value for part in _as_group(item)) or not value[0]:
        raise InvalidInputError(f"must name a program and hold no NUL; got {value!r}")
    return tuple(tuple(item) if isinstance(item, list) else item for item in value)


def _as_group(item: Any) -> list[Any]:
    return item if isinstance(item, list) else [item]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise InvalidInputError(f"must be a text, not empty and without NUL; got {value!r}")
    return value


@dataclass(frozen=True)
class Priced:
    """The cost as a formula of the parameters, as it is written."""

    formula: str


def _cost(value: Any) -> str | Priced:
    """A mere name is a key of the result, anything else a formula; a table says which it is."""
    if isinstance(value, Mapping) and len(value) == 1 and set(value) <= {"key", "formula"}:
        written = _text(next(iter(value.values())))
        return Priced(written) if "formula" in value else written
    if isinstance(value, Mapping):
        raise InvalidInputError(f'must be {{ key = "dollars" }} or {{ formula = "2 * width" }}; got {value!r}')
    return Priced(value) if is_formula(_text(value)) else str(value)


def _one_of(known: Sequence[str], value: Any) -> str:
    if value not in known:
        raise InvalidInputError(f"must be one of {', '.join(map(repr, known))}; got {value!r}")
    return str(value)


def _not_negative(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise InvalidInputError(f"must be a whole number that is not negative; got {value!r}")
    return value


def _positive(value: Any) -> float:
    return require_positive("this", value)


def _count(value: Any) -> int:
    return require_count("this", value)


def _result_file(value: Any) -> str:
    path = Path(_text(value))
    if path.is_absolute() or ".." in path.parts:
        raise InvalidInputError(f"must be a name inside the trial's folder; got {value!r}")
    return str(path)


def _environment(value: Any) -> dict[str, str]:
    good = isinstance(value, Mapping) and all(isinstance(text, str) and "\0" not in text for text in value.values())
    if not good or any(not name or "=" in name or "\0" in name for name in value):
        raise InvalidInputError("must be a table of texts, with names that are not empty and hold no '='")
    return dict(value)


def _policy(value: Any) -> Policy:
    given = {"kind": value} if isinstance(value, str) else value
    known = {kind.__name__: kind for kind in POLICIES}
    if not isinstance(given, Mapping) or not isinstance(given.get("kind"), str) or given["kind"] not in known:
        raise InvalidInputError(f"kind must be one of {', '.join(sorted(known))}; got {value!r}")
    arguments = {key: argument for key, argument in given.items() if key != "kind"}
    kind = known[given["kind"]]
    needed = [name for name, each in signature(kind).parameters.items() if each.default is each.empty]
    if missing := [name for name in needed if name not in arguments]:
        raise InvalidInputError(f"{kind.__name__} needs {missing[0]}; got {value!r}")
    made: Policy = kind(**arguments)
    return made


def _constraints(value: Any) -> Constraints | None:
    """A table with a table for each outcome: `latency_ms = { at_most = 10 }`."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"must be a table; got {value!r}; write latency_ms = {{ at_most = 10 }} under it")
    return checked_constraints({name: _condition(name, condition) for name, condition in value.items()})


def _condition(name: str, value: Any) -> Condition:
    kinds: dict[str, Callable[[Any], Condition]] = {"at_most": AtMost, "at_least": AtLeast}
    if not isinstance(value, Mapping) or len(value) != 1 or next(iter(value)) not in kinds:
        raise InvalidInputError(f"{name} must be {{ at_most = number }} or {{ at_least = number }}; got {value!r}")
    ((kind, limit),) = value.items()
    return kinds[kind](limit)


def _steps(value: Any) -> Steps:
    """A number of steps, or a list of those at which it is decided whether a trial goes on."""
    ends = value if isinstance(value, list) else [value]
    if not ends or any(type(step) is not int for step in ends):
        raise InvalidInputError(f"must be how many steps a trial has, or a list of steps; got {value!r}; write 27")
    if max(ends) > MOST_STEPS:
        raise InvalidInputError(f"a trial may have up to 2**31 - 1 steps; got {value!r}")
    return Steps(ends[-1], tuple(ends)) if isinstance(value, list) else Steps(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInputError(f"must be true or false; got {value!r}")
    return value


def _finite_count(value: Any) -> int:
    return _count(int(value) if isinstance(value, float) and math.isfinite(value) and value.is_integer() else value)


RULES: dict[str, Callable[[Any], Any]] = {
    "command": _command,
    "name": _text,
    "direction": partial(_one_of, tuple(DIRECTIONS)),
    "objective": _text,
    "cost": _cost,
    "result_file": _result_file,
    "price_per_second": _positive,
    "budget": _positive,
    "overrun": partial(_one_of, OVERRUNS),
    "trials": _finite_count,
    "parallel": _count,
    "timeout": _positive,
    "retries": _not_negative,
    "max_failures": _count,
    "storage": _text,
    "folder": _text,
    "environment": _environment,
    "seed": _not_negative,
    "n_startup_trials": _count,
    "policy": _policy,
    "constraints": _constraints,
    "steps": _steps,
    "resumable": _truth,
}
