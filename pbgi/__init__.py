"""Cost-aware optimization by the Pandora's Box Gittins index: the public names, on one page.

Names are imported when they are first used, so that `import pbgi` stays light.
"""

from typing import TYPE_CHECKING

from pbgi.lazy import names_from

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pbgi.constraints.constraint import AtLeast, AtMost
    from pbgi.cost import KnownCost, LearnedCost, UniformCost
    from pbgi.errors import (
        BrokenFunctionError,
        InvalidInputError,
        MissingPackageError,
        NothingLeftError,
        PbgiError,
        StopRun,
        TrialStateError,
        UnknownArgumentError,
        UnknownTrialError,
    )
    from pbgi.gp import GPConfig
    from pbgi.history import Trial, TrialState
    from pbgi.importance import Importance
    from pbgi.index import gittins_index, gittins_index_and_grad, inverse_log_h, log_h
    from pbgi.optimizer import Optimizer
    from pbgi.parameter import Categorical, Float, Integer
    from pbgi.policy import EI, EIPC, PBGI, PBGID, UCB, LogEI, LogEICC, LogEIPC, RandomSearch, Thompson
    from pbgi.run import Result, maximize, minimize
    from pbgi.settings import Settings
    from pbgi.space import Space
    from pbgi.stopping import BudgetSpent, GittinsStop, MaxTrials, StopReason
    from pbgi.trials.steps import Report, Steps
    from pbgi.warm_start import WarmStart

_HOMES = {
    "constraints.constraint": ("AtLeast", "AtMost"),
    "cost": ("KnownCost", "LearnedCost", "UniformCost"),
    "errors": (
        "BrokenFunctionError",
        "InvalidInputError",
        "MissingPackageError",
        "NothingLeftError",
        "PbgiError",
        "StopRun",
        "TrialStateError",
        "UnknownArgumentError",
        "UnknownTrialError",
    ),
    "gp": ("GPConfig",),
    "history": ("Trial", "TrialState"),
    "importance": ("Importance",),
    "index": ("gittins_index", "gittins_index_and_grad", "inverse_log_h", "log_h"),
    "optimizer": ("Optimizer",),
    "parameter": ("Categorical", "Float", "Integer"),
    "policy": ("EI", "EIPC", "PBGI", "PBGID", "UCB", "LogEI", "LogEICC", "LogEIPC", "RandomSearch", "Thompson"),
    "run": ("Result", "maximize", "minimize"),
    "settings": ("Settings",),
    "space": ("Space",),
    "trials.steps": ("Report", "Steps"),
    "stopping": ("BudgetSpent", "GittinsStop", "MaxTrials", "StopReason"),
    "warm_start": ("WarmStart",),
}

__all__ = [  # noqa: RUF022 (in the order of the alphabet, whatever the case)
    "AtLeast",
    "AtMost",
    "BrokenFunctionError",
    "BudgetSpent",
    "Categorical",
    "EI",
    "EIPC",
    "Float",
    "GPConfig",
    "GittinsStop",
    "Importance",
    "Integer",
    "InvalidInputError",
    "KnownCost",
    "LearnedCost",
    "LogEI",
    "LogEICC",
    "LogEIPC",
    "MaxTrials",
    "MissingPackageError",
    "NothingLeftError",
    "Optimizer",
    "PBGI",
    "PBGID",
    "PbgiError",
    "RandomSearch",
    "Report",
    "Result",
    "Settings",
    "Space",
    "Steps",
    "StopReason",
    "StopRun",
    "Thompson",
    "Trial",
    "TrialState",
    "TrialStateError",
    "UCB",
    "UniformCost",
    "UnknownArgumentError",
    "UnknownTrialError",
    "WarmStart",
    "gittins_index",
    "gittins_index_and_grad",
    "inverse_log_h",
    "log_h",
    "maximize",
    "minimize",
]


__getattr__ = names_from("pbgi", _HOMES)


def __dir__() -> list[str]:
    return __all__
