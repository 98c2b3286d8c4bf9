"""What a point costs.

models.py      UniformCost, KnownCost, LearnedCost: log E[c(x)^p] and its gradient
function.py    a cost as a Python function of the parameters, with a gradient by differences
success.py     how likely a trial is to give a value, and the cost per success
"""

from pbgi.cost.models import (
    WARINESS,
    Cost,
    CostModel,
    KnownCost,
    LearnedCost,
    UniformCost,
    fits,
    least_costs,
    posterior_and_cost,
)

__all__ = [
    "WARINESS",
    "Cost",
    "CostModel",
    "KnownCost",
    "LearnedCost",
    "UniformCost",
    "fits",
    "least_costs",
    "posterior_and_cost",
]
