"""Formulas of costs: what they are worth beside Python's own arithmetic, and what is no formula."""

import contextlib
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pbgi
from pbgi.errors import InvalidInputError
from pbgi.study.formula import Formula, is_formula

SPACE = pbgi.Space(
    {
        "width": pbgi.Integer(1, 8),
        "lr": pbgi.Float(0.0, 1.0),
        "odd name": pbgi.Float(0.0, 9.0),
        "act": pbgi.Categorical(["a", "b"]),
        "batch": pbgi.Categorical([16, 32]),
        "epochs": 3,
        "max": pbgi.Float(0.0, 9.0),
    }
)
POINT = {"width": 4, "lr": 0.5, "odd name": 2.0, "act": "a", "batch": 16, "epochs": 3, "max": 7.0}
PYTHON = {"__builtins__": {}, "min": min, "max": max, "log": math.log, "exp": math.exp, "sqrt": math.sqrt}


def trees(inner):
    """Formulas that Python reads as the same: every sub-formula may or may not have parentheses."""
    pairs = st.tuples(inner, st.sampled_from(["+", "-", "*", "/", " + ", " - "]), inner).map("".join)
    calls = st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})")
    return pairs | calls | inner.map("({})".format) | inner.map("-{}".format) | inner.map("exp({})".format)


ATOMS = st.sampled_from(["width", "lr", "batch", "epochs", "2", "0.5", ".25", "1e-3", "3."])


@given(st.recursive(ATOMS, trees, max_leaves=12))
def test_arithmetic_is_that_of_python(text):
    names = {name: float(value) for name, value in POINT.items() if name in ("width", "lr", "batch", "epochs")}
    try:
        expected = eval(text, PYTHON, names)  # noqa: S307 (made of the pieces above; the oracle)
    except ArithmeticError:
        expected = math.nan
    assert Formula(text, SPACE)(POINT) == pytest.approx(expected, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 + 0.1 * width", 2.4),
        ("-2 ** 2", -4.0),
        ("2 ** -1", 0.5),
        ("2 ** 3 ** 2", 512.0),
        ("{odd name} * {width}", 8.0),
        ("max", 7.0),
        ("max(max, 9)", 9.0),
        ("log(exp(3))", 3.0),
        (" width\n+ 1 ", 5.0),
        ("1 / 0", math.nan),
        ("log(-1)", math.nan),
        ("(-8) ** 0.5", math.nan),
        ("9 ** 9 ** 9 ** 9", math.nan),
        ("1e999", math.inf),
    ],
)
def test_values(text, value):
    assert Formula(text, SPACE)(POINT) == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a number, a parameter or a parenthesis where it has the end"),
        ("2 width", "an operator or the end where it has 'width'"),
        ("(1", "a closing parenthesis"),
        ("1)", "an operator or the end"),
        ("min()", "a number, a parameter or a parenthesis where it has '\\)'"),
        ("exp(1, 2)", "exp takes one formula; got 2"),
        ("depth * 2", "must be that of a parameter; got 'depth'; there are width, lr"),
        ("act * 2", "parameter 'act' must be a number"),
        ("sin(lr)", "must be one of min, max, log, exp, sqrt; got 'sin'"),
        ("__import__('os').system('true')", 'got "\'"'),
        ("().__class__", "got '\\.'"),
        ("lr.real", "got '.'"),
        ("lambda: 1", "got ':'"),
        ("[1 for _ in width]", "got '\\['"),
        ("1 if lr else 2", "an operator or the end"),
        ("width = 3", "got '='"),
        ("f'{lr}'", 'got "\'"'),
        ("{lr!r}", "got 'lr!r'"),
        ("0x10", "an operator or the end"),
        ("1_000", "an operator or the end"),
        ("\u0661 + 1", "got '\u0661'"),
        ("(" * 50 + "1" + ")" * 50, "nested 40 deep"),
        ("-" * 500 + "1", "nested 40 deep"),
        ("2**" * 100 + "1", "nested 40 deep"),
        ("1+" * 600 + "1", "may have 1000 characters"),
    ],
)
def test_what_is_no_formula(text, why):
    with pytest.raises(InvalidInputError, match=why):
        Formula(text, SPACE)


@given(st.text(alphabet="0123456789.e+-*/(), widthlrmaxexp{}_'\"\\\n", max_size=60))
def test_any_text_is_a_number_or_an_error(text):
    with contextlib.suppress(InvalidInputError):
        assert isinstance(Formula(text, SPACE)(POINT), float)


def test_the_longest_take_no_time():
    began = time.process_time()
    Formula("+".join(["1"] * 500), SPACE)(POINT)
    Formula("9**" * 39 + "9", SPACE)(POINT)
    assert Formula("1" * 999, SPACE)(POINT) == math.inf
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("name", ["dollars", "gpu_hours", " dollars ", "coût"])
def test_names_are_no_formulas(name):
    assert not is_formula(name)
    assert is_formula(f"2 * {name}")


def test_a_parameter_with_a_condition_is_refused():
    """Where it is absent, the formula would have no value."""
    space = pbgi.Space({"kind": pbgi.Categorical([1, 2]), "depth": pbgi.Integer(1, 8, when={"kind": 2})})
    assert Formula("2 * kind", space)({"kind": 1}) == 2.0
    with pytest.raises(InvalidInputError, match="parameter 'depth' must exist everywhere"):
        Formula("kind + depth", space)
