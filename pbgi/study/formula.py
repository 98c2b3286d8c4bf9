"""A cost written as a formula of the parameters: `2 + 0.1 * width`, read by a small language of its own.

    formula  sums and differences of products and quotients of powers, with parentheses and signs
    power    `a ** b`, which binds tighter than a sign in front and from right to left, as in Python
    atom     a number, a parameter by its name or as {any name}, or min, max, log, exp, sqrt of formulas

Nothing is evaluated by Python: text becomes tokens, tokens become functions of numbers, all numbers are floats, and
lengths and depths are bounded, so that no text can take long, run code or reach anything but the parameters.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from pbgi.cost.function import RULE
from pbgi.errors import InvalidInputError
from pbgi.parameter import Categorical, Parameter
from pbgi.space import Space

MOST_LETTERS, MOST_DEPTH = 1000, 40
N_TRIED = 256  # points at which the formula of a cost must be one
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[^\W\d]\w*)|\{(?P<braced>[^{}]*)\}"
    r"|(?P<sign>\*\*|[-+*/(),])|(?P<end>$))",
)
Value: TypeAlias = Callable[[Mapping[str, Any]], float]
FUNCTIONS: dict[str, tuple[Callable[..., float], int | None]] = {  # with the number of their arguments
    "min": (min, None),
    "max": (max, None),
    "log": (math.log, 1),
    "exp": (math.exp, 1),
    "sqrt": (math.sqrt, 1),
}
OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


@dataclass(frozen=True)
class Formula:
    """A formula of the parameters of a space; called with a point it gives a number.

    Args:
        text: As it is written.
        space: Whose parameters it may name, if they are numbers.

    Raises:
        InvalidInputError: It is none; the message says where and what would be one.
    """

    text: str
    space: Space = field(compare=False, repr=False)
    _value: Value = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.text) > MOST_LETTERS:
            raise InvalidInputError(f"a formula may have {MOST_LETTERS} characters; got {len(self.text)}")
        object.__setattr__(self, "_value", _Parser(self.text, self.space).formula())

    def __call__(self, params: Mapping[str, Any]) -> float:
        """The value at a point; NaN where there is none, such as the logarithm of a negative number."""
        try:
            return float(self._value(params))
        except (ArithmeticError, ValueError):
            return math.nan


def is_formula(text: str) -> bool:
    """Whether a text has a sign, a parenthesis or a number in it, and is no mere name."""
    return re.fullmatch(r"\s*[^\W\d]\w*\s*", text) is None


def cost_formula(space: Space, text: str) -> str:
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


class _Parser:
    """Reads one formula, from left to right."""

    def __init__(self, text: str, space: Space) -> None:
        self._text, self._space, self._depth = text, space, 0
        self._tokens = list(_tokens(text))
        self._next = 0

    def formula(self) -> Value:
        """All of it."""
        value = self._sum()
        if self._kind != "end":
            raise self._error("an operator or the end")
        return value

    @property
    def _kind(self) -> str:
        return self._tokens[self._next][0]

    @property
    def _word(self) -> str:
        return self._tokens[self._next][1]

    def _takes(self, *signs: str) -> str | None:
        """The next token if it is one of these signs."""
        if self._kind == "sign" and self._word in signs:
            self._next += 1
            return self._tokens[self._next - 1][1]
        return None

    def _chain(self, part: Callable[[], Value], *signs: str) -> Value:
        """Parts between signs, from left to right."""
        first, rest = part(), list[tuple[Callable[[float, float], float], Value]]()
        while (sign := self._takes(*signs)) is not None:
            rest.append((OPERATIONS[sign], part()))

        def value(params: Mapping[str, Any]) -> float:  # in a loop: a long sum is no deep one
            total = first(params)
            for operation, operand in rest:
                total = operation(total, operand(params))
            return total

        return value if rest else first

    def _sum(self) -> Value:
        return self._deeper(lambda: self._chain(self._product, "+", "-"))

    def _product(self) -> Value:
        return self._chain(self._signed, "*", "/")

    def _signed(self) -> Value:
        sign = self._takes("-", "+")
        if sign is None:
            return self._power()
        value = self._deeper(self._signed)
        return (lambda params: -value(params)) if sign == "-" else value

    def _power(self) -> Value:
        base = self._atom()
        if self._takes("**") is None:
            return base
        exponent = self._deeper(self._signed)
        return lambda params: math.pow(base(params), exponent(params))

    def _deeper(self, part: Callable[[], Value]) -> Value:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise InvalidInputError(f"parentheses and signs may be nested {MOST_DEPTH} deep; got {self._text!r}")
        value = part()
        self._depth -= 1
        return value

    def _atom(self) -> Value:
        kind, word = self._kind, self._word
        if self._takes("(") is not None:
            value = self._sum()
            self._close()
            return value
        if kind not in ("number", "name", "braced"):
            raise self._error("a number, a parameter or a parenthesis")
        self._next += 1
        if kind == "number":
            constant = float(word)
            return lambda _: constant
        if kind == "name" and self._takes("(") is not None:
            return self._call(word)
        return self._parameter(word)

    def _close(self) -> None:
        if self._takes(")") is None:
            raise self._error("a closing parenthesis")

    def _call(self, name: str) -> Value:
        if name not in FUNCTIONS:
            raise InvalidInputError(f"a function must be one of {', '.join(FUNCTIONS)}; got {name!r}")
        function, n_arguments = FUNCTIONS[name]
        arguments = [self._sum()]
        while self._takes(",") is not None:
            arguments.append(self._sum())
        self._close()
        if n_arguments not in (None, len(arguments)):
            raise InvalidInputError(f"{name} takes one formula; got {len(arguments)}")
        if len(arguments) == 1 and n_arguments is None:
            return arguments[0]
        return lambda params: function(*(argument(params) for argument in arguments))

    def _parameter(self, name: str) -> Value:
        if name not in self._space.parameters:
            known = ", ".join(self._space.names)
            raise InvalidInputError(f"a name must be that of a parameter; got {name!r}; there are {known}")
        if not _is_number(self._space.parameters[name]):
            raise InvalidInputError(f"parameter {name!r} must be a number to be in a formula; it has other values")
        if self._space.may_be_absent(name):
            raise InvalidInputError(f"parameter {name!r} must exist everywhere to be in a formula; it has a when")
        return lambda params: float(params[name])

    def _error(self, wanted: str) -> InvalidInputError:
        found = "the end" if self._kind == "end" else repr(self._word)
        return InvalidInputError(f"a formula must have {wanted} where it has {found}; got {self._text!r}")


def _tokens(text: str) -> Iterable[tuple[str, str]]:
    place = 0
    while True:
        found = _TOKEN.match(text, place)
        if found is None or found.lastgroup is None:
            bad = text[place:].lstrip()[:1]
            rule = "a formula may hold numbers, parameters, + - * / ** ( ) , and min, max, log, exp, sqrt"
            raise InvalidInputError(f"{rule}; got {bad!r} in {text!r}")
        yield found.lastgroup, found[found.lastgroup]
        if found.lastgroup == "end":
            return
        place = found.end()


def _is_number(parameter: Parameter | Any) -> bool:
    values = parameter.choices if isinstance(parameter, Categorical) else [parameter]
    return all(isinstance(value, Parameter) or type(value) in (int, float) for value in values)
