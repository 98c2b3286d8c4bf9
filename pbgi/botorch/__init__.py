"""The Gittins index inside BoTorch, and BoTorch inside the optimizer.

Acquisition functions for `optimize_acqf`, a stop rule on a model and a pool, policies for `pbgi.Optimizer` that search
with BoTorch, and the engine's Gaussian process as a model of BoTorch.

Needs BoTorch (`pip install botorch`). Names are imported when they are first used.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from pbgi.errors import MissingPackageError
from pbgi.lazy import names_from

if any(find_spec(name) is None for name in ("torch", "botorch")):
    raise MissingPackageError("pbgi.botorch needs BoTorch: pip install botorch")

if TYPE_CHECKING:
    from pbgi.botorch.acquisition import LogExpectedImprovementPerCost, PandorasBoxGittinsIndex
    from pbgi.botorch.bridge import botorch_model
    from pbgi.botorch.policies import (
        BudgetedMultiStepEI,
        KnowledgeGradient,
        MaxValueEntropy,
        MultiFidelityMaxValueEntropy,
        MultiStepEI,
    )
    from pbgi.botorch.stopping import StopSignal, gittins_stopping

_HOMES = {
    "acquisition": ("LogExpectedImprovementPerCost", "PandorasBoxGittinsIndex"),
    "bridge": ("botorch_model",),
    "policies": (
        "BudgetedMultiStepEI",
        "KnowledgeGradient",
        "MaxValueEntropy",
        "MultiFidelityMaxValueEntropy",
        "MultiStepEI",
    ),
    "stopping": ("StopSignal", "gittins_stopping"),
}

__all__ = [
    "BudgetedMultiStepEI",
    "KnowledgeGradient",
    "LogExpectedImprovementPerCost",
    "MaxValueEntropy",
    "MultiFidelityMaxValueEntropy",
    "MultiStepEI",
    "PandorasBoxGittinsIndex",
    "StopSignal",
    "botorch_model",
    "gittins_stopping",
]


__getattr__ = names_from("pbgi.botorch", _HOMES)


def __dir__() -> list[str]:
    return __all__
