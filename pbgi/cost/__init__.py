"""What a point costs.

models.py      UniformCost, KnownCost, LearnedCost: log E[c(x)^p] and its gradient
affordable.py  which points fit what is left of a budget
function.py    a cost as a Python function of the parameters, with a gradient by differences
success.py     how likely a trial is to give a value, and the cost per success
"""

from pbgi.cost.affordable import WARINESS, Unseen, fits
from pbgi.cost.models import (
    Cost,
    CostModel,
    KnownCost,
    LearnedCost,
    UniformCost,
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
    "Unseen",
    "fits",
    "least_costs",
    "posterior_and_cost",
]
