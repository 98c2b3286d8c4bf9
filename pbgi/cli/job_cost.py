"""What a job file says of costs: a key of the result, or a formula of the parameters.

cost = "dollars"                          a mere name: the key under which the program reports what a trial cost
cost = "2 + 0.1 * width"                  anything else: what a trial costs, see `pbgi.study.formula`
cost = { key = "gpu-hours" }              where a text could be both
cost = { formula = "width" }
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pbgi.cost_function import RULE
from pbgi.errors import InvalidInputError
from pbgi.space import Space
from pbgi.study.formula import Formula, is_formula

N_TRIED = 256  # points at which a formula must be a cost


@dataclass(frozen=True)
class Priced:
    """The cost as a formula of the parameters, as it is written."""

    formula: str


def cost_rule(value: Any) -> str | Priced:
    """A mere name is a key of the result, anything else a formula; a table says which it is."""
    if isinstance(value, Mapping) and len(value) == 1 and set(value) <= {"key", "formula"}:
        written = require_text(next(iter(value.values())))
        return Priced(written) if "formula" in value else written
    if isinstance(value, Mapping):
        raise InvalidInputError(f'must be {{ key = "dollars" }} or {{ formula = "2 * width" }}; got {value!r}')
    return Priced(value) if is_formula(require_text(value)) else str(value)


def require_price(space: Space, text: str) -> str:
    """A formula that is positive and finite at the corners of the space and at points all over it."""
    way_out = 'a key of the result that is not a mere name is written cost = { key = "..." }'
    try:
        formula = Formula(text, space)
    except InvalidInputError as error:
        raise InvalidInputError(f"{error}; {way_out}") from None
    spread = np.random.default_rng(0).random((N_TRIED, space.dimension))
    for params in space.from_unit_many(np.concatenate([spread, np.zeros_like(spread[:1]), np.ones_like(spread[:1])])):
        cost = formula(params)
        if not 0.0 < cost < math.inf:
            raise InvalidInputError(f"{RULE}; {text!r} is {cost:g} at {params}")
    return text


def require_text(value: Any) -> str:
    """A text of a job file, or an `InvalidInputError`."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise InvalidInputError(f"must be a text, not empty and without NUL; got {value!r}")
    return value
