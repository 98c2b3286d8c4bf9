"""Spaces against exact arithmetic: bounds are never left, no level loses its share, what goes in comes back."""

import copy
import dataclasses
import enum
import itertools
import json
import math
import pickle
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import pbgi
from pbgi.errors import InvalidInputError
from pbgi.parameter import MAX_LEVELS, Categorical, Float, Integer
from pbgi.space import MAX_GRID, Space

EPS = 2.0**-52
TINY = 5e-324
HUGE = np.finfo(np.float64).max

units = st.floats(0.0, 1.0)
finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(TINY, HUGE)
plain = st.none() | st.booleans() | st.integers() | finite | st.text(max_size=5)


def up(x: float, n: int) -> float:
    """The n-th float above x."""
    for _ in range(n):
        x = math.nextafter(x, math.inf)
    return min(x, HUGE)


@st.composite
def floats(draw, log=None):
    """Bounds anywhere, a few floats apart, or a few orders of magnitude apart."""
    log = draw(st.booleans()) if log is None else log
    first = draw(positive if log else finite)
    second = draw(
        st.one_of(
            positive if log else finite,
            st.integers(1, 9).map(lambda n: up(first, n)),
            st.floats(1.0, 1e6).map(lambda factor: min(max(first * factor, -HUGE), HUGE)),
        )
    )
    return Float(min(first, second), max(first, second), log=log)


@st.composite
def integers(draw, log=None, max_levels=MAX_LEVELS):
    log = draw(st.booleans()) if log is None else log
    step = draw(st.sampled_from([1, 1, 2, 3, 10]) | st.integers(1, 10**6))
    low = draw(st.integers(step // 2 + 1, 10**6) | st.integers(step // 2 + 1, 2**61)) if log else None
    low = draw(st.integers(-20, 20) | st.integers(-(2**61), 2**61)) if low is None else low
    most = min(max_levels, (2**63 - 1 - low) // step)
    n_levels = draw(st.integers(1, min(20, most)) | st.integers(1, most))
    return Integer(low, low + (n_levels - 1) * step, log=log, step=step)


categoricals = st.lists(plain, min_size=1, max_size=6, unique=True).map(Categorical)
parameters = st.one_of(floats(), integers(), categoricals, plain)
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=4)
spaces = st.dictionaries(names, parameters, min_size=1, max_size=5).map(Space)


@st.composite
def spaces_with_rows(draw):
    space = draw(spaces)
    n = draw(st.integers(1, 4))
    row = st.lists(units, min_size=space.dimension, max_size=space.dimension)
    return space, np.array(draw(st.lists(row, min_size=n, max_size=n))).reshape(n, space.dimension)


def same(a, b) -> bool:
    """Equal, and of the same types: 1, 1.0 and True differ."""
    return list(a) == list(b) and all(type(a[k]) is type(b[k]) and a[k] == b[k] for k in a)


def allowed(p: Float, value: float) -> Fraction:
    """The promise of the module: how far from the exact value a float may be."""
    ulp = Fraction(math.ulp(value))
    if not p.log:
        return 2 * Fraction(EPS) * (Fraction(p.high) - Fraction(p.low)) + ulp
    return 4 * Fraction(EPS) * (1 + Fraction(float(mp.log(p.high) - mp.log(p.low)))) * Fraction(value) + ulp


# Floats ------------------------------------------------------------------------------------------------------------


@given(floats(), st.lists(units, min_size=1))
@example(Float(1e-300, 1e300, log=True), [0.0, TINY, 1e-17, 0.5, 1 - EPS / 2, 1.0])
@example(Float(TINY, HUGE, log=True), [0.0, TINY, 1e-17, 0.5, 1 - EPS / 2, 1.0])
@example(Float(-HUGE, HUGE), [0.0, TINY, 0.5, 1 - EPS / 2, 1.0])
@example(Float(1e16, 1e16 + 2), [0.0, 0.3, 1.0])
@example(Float(TINY, 3 * TINY, log=True), [0.0, 0.3, 1 - EPS / 2, 1.0])
@example(Float(0.0, TINY), [0.0, 0.5, 1.0])
def test_floats_stay_within_their_bounds(p, u):
    values = p.from_unit(np.array(u))
    assert all(type(v) is float and p.low <= v <= p.high for v in values)
    back = p.to_unit(values)
    assert np.all((back >= 0) & (back <= 1))


@given(floats())
def test_floats_are_exact_at_their_bounds(p):
    assert p.from_unit(np.array([0.0, 1.0])) == [p.low, p.high]
    assert p.to_unit([p.low, p.high]).tolist() == [0.0, float(p.low < p.high)]


@given(floats(), units)
@example(Float(1e-300, 1e300, log=True), 0.3)
@example(Float(TINY, HUGE, log=True), 0.7)
@example(Float(1e-300, 1e-295, log=True), 1e-9)
@example(Float(-HUGE, HUGE), 0.3)
def test_floats_come_back(p, u):
    (value,) = p.from_unit(np.array([u]))
    (back,) = p.from_unit(p.to_unit([value]))
    assert abs(Fraction(back) - Fraction(value)) <= allowed(p, value)


@given(floats(log=False), units)
@example(Float(-HUGE, HUGE), 0.3)  # high - low overflows
@example(Float(-HUGE, 1e300), 0.7)
@example(Float(-1.0, 0.0), 1 - EPS / 2)
def test_linear_floats_are_the_exact_line(p, u):
    (value,) = p.from_unit(np.array([u]))
    exact = Fraction(p.low) + Fraction(u) * (Fraction(p.high) - Fraction(p.low))
    assert abs(Fraction(value) - exact) <= allowed(p, value)


@given(floats(log=True), units)
def test_log_floats_are_the_exact_line_in_the_logarithm(p, u):
    (value,) = p.from_unit(np.array([u]))
    with mp.workdps(50):
        exact = mp.mpf(p.low) * (mp.mpf(p.high) / mp.mpf(p.low)) ** mp.mpf(u)
        bound = allowed(p, value)
        assert abs(mp.mpf(value) - exact) <= mp.mpf(bound.numerator) / bound.denominator


# Levels ------------------------------------------------------------------------------------------------------------


@given(integers(), st.data())
def test_integers_come_back_exactly(p, data):
    value = p.low + p.step * data.draw(st.integers(0, p.n_levels - 1) | st.sampled_from([0, p.n_levels - 1]))
    u = p.to_unit([value])
    assert 0.0 < u[0] < 1.0
    (back,) = p.from_unit(u)
    assert type(back) is int
    assert back == value


@given(integers(), st.lists(units, min_size=1))
def test_integers_stay_on_their_steps(p, u):
    for value in p.from_unit(np.array([*u, 0.0, 1.0])):
        assert p.low <= value <= p.high
        assert (value - p.low) % p.step == 0


@given(integers(log=False), st.data())
def test_linear_levels_sit_in_the_middle_of_equal_pieces(p, data):
    i = data.draw(st.integers(0, p.n_levels - 1))
    exact = Fraction(2 * i + 1, 2 * p.n_levels)
    assert abs(Fraction(float(p.to_unit([p.low + i * p.step])[0])) - exact) <= Fraction(EPS) * exact


def cut(p, i: int) -> float:
    """Where level i - 1 ends and level i begins, by bisection."""
    below, above = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (below + above)
        if p.from_unit(np.array([middle]))[0] < p.low + i * p.step:
            below = middle
        else:
            above = middle
    return above


@pytest.mark.parametrize(
    "p",
    [
        Integer(0, 1),
        Integer(1, 8),
        Integer(-7, 2, step=3),
        Integer(2**60, 2**60 + 6),
        Integer(1, 8, log=True),
        Integer(32, 256, log=True, step=32),
        Integer(2, 8, log=True, step=3),
        Integer(2**60, 2**60 + 6, log=True),
    ],
    ids=repr,
)
def test_share_of_each_level(p):
    """The cuts are those of the line, or of the logarithm, from half a step below low to half a step above high."""
    with mp.workdps(50):
        half = mp.mpf(p.step) / 2
        scale = mp.log if p.log else mp.mpf
        first, last = scale(p.low - half), scale(p.high + half)
        for i in range(1, p.n_levels):
            exact = (scale(p.low + i * p.step - half) - first) / (last - first)
            assert abs(cut(p, i) - exact) <= 4 * EPS


@given(st.integers(2, 40), st.integers(1, 5))
def test_equal_parts_count_equally(k, n):
    """n k points at the middles of equal cells: n of them for each level, the ends included."""
    u = (np.arange(n * k) + 0.5) / (n * k)
    assert Integer(1, k).from_unit(u) == [i for i in range(1, k + 1) for _ in range(n)]
    letters = [chr(65 + i) for i in range(k)]
    assert Categorical(letters).from_unit(u) == [letter for letter in letters for _ in range(n)]


def test_log_level_sits_at_its_own_logarithm():
    p = Integer(1, 4, log=True)  # from log(0.5) to log(4.5), a range of log(9)
    expected = [math.log(2 * v) / math.log(9) for v in (1, 2, 3, 4)]
    np.testing.assert_allclose(p.grid(), expected, rtol=4 * EPS)


# Spaces ------------------------------------------------------------------------------------------------------------

MIXED = Space(
    {
        "lr": Float(1e-5, 1e-1, log=True),
        "layers": Integer(1, 8),
        "act": Categorical(["relu", "tanh", None]),
        "epochs": 10,
        "width": Integer(16, 4096, log=True, step=16),
        "same": Float(2, 2),
        "only": Categorical(["a"]),
        "seed": Integer(0, 10**6),
        "momentum": Float(0, 1),
    }
)


def test_what_moves_and_what_does_not():
    assert MIXED.coordinates == ("lr", "layers", "act", "width", "seed", "momentum")
    assert MIXED.dimension == 6
    assert MIXED.categorical.tolist() == [False, False, True, False, False, False]
    assert [None if g is None else len(g) for g in MIXED.grids] == [None, 8, 3, 256, None, None]
    point = MIXED.from_unit(np.full(6, 0.5))
    assert list(point) == list(MIXED.names)
    assert (point["epochs"], point["same"], point["only"], point["act"]) == (10, 2.0, "a", "tanh")
    assert point["momentum"] == 0.5
    assert point["lr"] == pytest.approx(1e-3, rel=1e-12)


def test_space_without_a_dimension():
    space = Space({"a": 1, "b": Integer(3, 3), "c": Categorical([True])})
    point = {"a": 1, "b": 3, "c": True}
    assert (space.dimension, space.n_points, space.grids, space.categorical.shape) == (0, 1, (), (0,))
    assert same(space.from_unit([]), point)
    assert space.to_unit(point).shape == (0,)
    assert len(space.from_unit_many(np.empty((3, 0)))) == 3
    assert space.snap(np.empty((3, 0))).shape == (3, 0)


@given(spaces_with_rows())
def test_points_come_back(space_and_rows):
    space, X = space_and_rows
    for x in X:
        point = space.from_unit(x)
        assert same(space.check(point), point)
        back = space.from_unit(space.to_unit(point))
        for name, p in space.parameters.items():
            if isinstance(p, Float):
                assert abs(Fraction(back[name]) - Fraction(point[name])) <= allowed(p, point[name])
            else:
                assert type(back[name]) is type(point[name])
                assert back[name] == point[name]


@given(categoricals, units)
def test_choices_are_the_objects_themselves(p, u):
    (value,) = p.from_unit(np.array([u]))
    assert any(value is choice for choice in p.choices)
    assert p.check(value) is value


@given(spaces_with_rows())
def test_many_are_each_alone_to_the_bit(space_and_rows):
    space, X = space_and_rows
    points = space.from_unit_many(X)
    assert all(same(point, space.from_unit(x)) for point, x in zip(points, X, strict=True))
    alone = np.array([space.to_unit(point) for point in points]).reshape(X.shape)
    assert space.to_unit_many(points).tobytes() == alone.tobytes()
    assert space.snap(X).tobytes() == np.array([space.snap(x) for x in X]).reshape(X.shape).tobytes()


def test_many_are_each_alone_in_long_columns_too():
    """Vectorized logarithms may round differently from scalar ones; a resumed run must not see that."""
    X = np.random.default_rng(0).random((257, MIXED.dimension))
    points = MIXED.from_unit_many(X)
    assert MIXED.from_unit_many(np.asfortranarray(X)) == points == [MIXED.from_unit(x) for x in X]
    assert MIXED.to_unit_many(points).tobytes() == np.array([MIXED.to_unit(p) for p in points]).tobytes()


@given(spaces_with_rows())
def test_snap_goes_to_the_grid_and_stays(space_and_rows):
    space, X = space_and_rows
    before = X.copy()
    snapped = space.snap(X)
    assert snapped.tobytes() == space.snap(snapped).tobytes()
    assert X.tobytes() == before.tobytes()
    assert space.snap(X[None]).shape == (1, *X.shape)
    for j, (name, grid) in enumerate(zip(space.coordinates, space.grids, strict=True)):
        if isinstance(space.parameters[name], Float):
            assert np.array_equal(snapped[:, j], X[:, j])
        if grid is not None:
            assert np.all(np.isin(snapped[:, j], grid))
    assert all(same(a, b) for a, b in zip(space.from_unit_many(snapped), space.from_unit_many(X), strict=True))
    discrete = [j for j, name in enumerate(space.coordinates) if not isinstance(space.parameters[name], Float)]
    assert np.array_equal(space.to_unit_many(space.from_unit_many(X))[:, discrete], snapped[:, discrete])


@given(integers(max_levels=300).filter(lambda p: p.n_levels > 1))
def test_grid_is_where_the_values_are(p):
    (grid,) = Space({"n": p}).grids
    values = list(range(p.low, p.high + 1, p.step))
    assert np.all(np.diff(grid) > 0)
    assert grid.tobytes() == p.to_unit(values).tobytes() == p.snap(grid).tobytes()
    assert p.from_unit(grid) == values


def test_grid_only_where_it_can_be_swept():
    assert len(Space({"n": Integer(1, MAX_GRID)}).grids[0]) == MAX_GRID
    assert Space({"n": Integer(0, MAX_GRID)}).grids == (None,)
    # Choices have no order to interpolate in, however many they are.
    assert len(Space({"n": Categorical(range(MAX_GRID + 1))}).grids[0]) == MAX_GRID + 1


def test_number_of_points_is_the_number_of_points():
    space = Space({"a": Integer(1, 7, step=2), "b": Categorical(["x", 1, None]), "c": 5, "d": Integer(1, 2, log=True)})
    cells = np.array(list(itertools.product(*space.grids)))
    keys = {space.key(space.from_unit(x)) for x in cells}
    assert space.n_points == 4 * 3 * 2 == len(keys) == len(cells)
    assert type(space.n_points) is int
    assert MIXED.n_points == math.inf
    many = {f"n{i}": Integer(0, 2**40 - 1) for i in range(30)}
    assert Space(many).n_points == 2**1200  # beyond the largest float
    assert Space(many | {"x": Float(0, 1)}).n_points == math.inf


def test_coordinates_may_carry_rounding_but_no_more():
    space = Space({"x": Float(1, 3), "n": Integer(1, 4)})
    assert space.from_unit([-1e-12, 1 + 1e-12]) == {"x": 1.0, "n": 4}
    assert space.from_unit(np.array([1, 0])) == {"x": 3.0, "n": 1}
    assert space.snap([[1 + 1e-12, 0.0]]).tolist() == [[1.0, 0.125]]


@pytest.mark.parametrize(
    ("x", "said"),
    [
        ([0.5, math.nan], "must be in [0, 1]; got nan"),
        ([0.5, math.inf], "must be in [0, 1]; got inf"),
        ([0.5, 1.1], "must be in [0, 1]; got 1.1"),
        ([-0.1, 0.5], "must be in [0, 1]; got -0.1"),
        ([0.5], "must be of shape (2,); got (1,)"),
        ([[0.5, 0.5]], "must be of shape (2,); got (1, 2)"),
        (0.5, "must be of shape (2,); got ()"),
        (["0.5", "0.5"], "must be real numbers"),
        ([0.5, 1j], "must be real numbers"),
        ([0.5, None], "must be real numbers"),
        ([[0.5], [0.5, 0.5]], "must be real numbers"),
    ],
)
def test_unit_points_are_checked(x, said):
    space = Space({"x": Float(1, 3), "n": Integer(1, 4)})
    with pytest.raises(InvalidInputError) as caught:
        space.from_unit(x)
    assert said in str(caught.value)


# Identity ----------------------------------------------------------------------------------------------------------


@given(spaces_with_rows())
def test_keys_are_equal_for_the_same_point_only(space_and_rows):
    space, X = space_and_rows
    points = space.from_unit_many(X)
    for a, b in itertools.product(points, points):
        assert (space.key(a) == space.key(b)) == same(a, b)
        assert (space.key(a) == space.key(b)) <= (hash(space.key(a)) == hash(space.key(b)))


def test_keys_see_the_value_not_how_it_was_written():
    space = Space({"x": Float(0, 1), "n": Integer(0, 1), "c": Categorical([1, "a"])})
    key = space.key({"x": 1.0, "n": 1, "c": 1})
    assert key == space.key({"c": np.int64(1), "n": np.int8(1), "x": 1})
    assert key != space.key({"x": math.nextafter(1.0, 0.0), "n": 1, "c": 1})
    assert repr(space.key({"x": 0.0, "n": 1, "c": 1})) == repr(space.key({"x": -0.0, "n": 1, "c": 1}))


def test_keys_of_true_and_one_differ():
    keys = {Space({"c": Categorical([value, "other"])}).key({"c": value}) for value in (True, 1, 1.0, "1")}
    assert len(keys) == 4


@given(spaces)
def test_json_round_trip(space):
    back = Space.from_plain(json.loads(json.dumps(space.to_plain(), allow_nan=False)))
    assert back == space
    assert hash(back) == hash(space)
    assert same(back.parameters, space.parameters)
    assert json.dumps(back.to_plain()) == json.dumps(space.to_plain())


@given(spaces)
def test_copies_are_equal(space):
    for other in (pickle.loads(pickle.dumps(space)), copy.deepcopy(space), Space(space.parameters)):  # noqa: S301
        assert other == space
        assert other.parameters == space.parameters


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"x": 1}, {"x": True}),
        ({"x": 1}, {"x": 1.0}),
        ({"x": 1}, {"y": 1}),
        ({"x": 1}, {"x": Categorical([1])}),
        ({"x": 1, "y": 2}, {"y": 2, "x": 1}),
        ({"x": Float(0, 1)}, {"x": Float(0, 2)}),
        ({"x": Float(1, 2)}, {"x": Float(1, 2, log=True)}),
        ({"x": Float(0, 1)}, {"x": Integer(0, 1)}),
        ({"x": Integer(0, 2)}, {"x": Integer(0, 2, step=2)}),
        ({"x": Categorical([1, 2])}, {"x": Categorical([1.0, 2])}),
        ({"x": Categorical([1, 2])}, {"x": Categorical([2, 1])}),
    ],
)
def test_different_spaces(a, b):
    assert Space(a) != Space(b)
    assert Space(a) == Space(dict(a))
    assert Space(a) != a


def test_equality_of_parameters():
    assert Float(0, 1) == Float(0.0, 1.0)
    assert Integer(0, 4, step=2) == Integer(np.int64(0), 4, step=2)
    assert Categorical([1, "a"]) == Categorical((1, "a"))
    assert hash(Categorical([1, "a"])) == hash(Categorical((1, "a")))
    assert Categorical([1, "a"]) != Categorical([True, "a"])
    assert Categorical(np.array([1, 2])).choices == (1, 2)
    assert {type(c) for c in Categorical([np.int64(1), np.str_("a"), np.float64(2.5)]).choices} == {int, str, float}


def test_nothing_can_be_changed():
    space = Space(source := {"x": Float(0, 1), "n": Integer(1, 3)})
    source["y"] = 1
    assert space.names == ("x", "n")
    for name in ("names", "dimension", "parameters", "grids"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(space, name, None)
    for parameter, name in ((Float(0, 1), "low"), (Integer(0, 1), "high"), (Categorical([1]), "choices")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(parameter, name, 0)
    with pytest.raises(TypeError):
        space.parameters["x"] = 1
    for array in (space.grids[1], space.categorical):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


# Refusals ----------------------------------------------------------------------------------------------------------


class Color(str, enum.Enum):  # noqa: UP042 - the kind of value people have
    RED = "red"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Float(2, 1), "low must not exceed high; got low=2.0, high=1.0; swap them"),
        (lambda: Float(math.nan, 1), "low must be finite; got nan"),
        (lambda: Float(0, math.inf), "high must be finite; got inf"),
        (lambda: Float(0, 10**400), "high must be finite; got 1000"),
        (lambda: Float(0, 1, log=True), "low must be positive with log=True; got low=0.0"),
        (lambda: Float(-1, 1, log=True), "low must be positive with log=True; got low=-1.0"),
        (lambda: Float(True, 2), "low must be a real number; got True"),
        (lambda: Float("0", 1), "low must be a real number; got '0'"),
        (lambda: Float(0, 1j), "high must be a real number; got 1j"),
        (lambda: Float(None, 1), "low must be a real number; got None"),
        (lambda: Float(0, np.True_), "high must be a real number; got np.True_"),
        (lambda: Float(0, 1, log="yes"), "log must be True or False; got 'yes'"),
        (lambda: Integer(8, 1), "low must not exceed high; got low=8, high=1; swap them"),
        (lambda: Integer(0.5, 2), "low must be a whole number of type int; got 0.5"),
        (lambda: Integer(1, 8.0), "high must be a whole number of type int; got 8.0"),
        (lambda: Integer(1, math.nan), "high must be a whole number of type int; got nan"),
        (lambda: Integer(False, 2), "low must be a whole number of type int; got False"),
        (lambda: Integer(1, "8"), "high must be a whole number of type int; got '8'"),
        (lambda: Integer(0, 2**63), "high must fit in 64 bits; got 9223372036854775808"),
        (lambda: Integer(0, 2**40), "at most 2**40 values; got 1099511627777; take a larger step or a Float"),
        (lambda: Integer(1, 8, step=0), "step must be at least 1; got 0"),
        (lambda: Integer(1, 8, step=-1), "step must be at least 1; got -1"),
        (lambda: Integer(1, 8, step=0.5), "step must be a whole number of type int; got 0.5"),
        (lambda: Integer(1, 8, step=True), "step must be a whole number of type int; got True"),
        (lambda: Integer(1, 10, step=4), "got low=1, high=10, step=4; the largest high that fits is 9"),
        (lambda: Integer(0, 8, log=True), "low must be positive with log=True; got low=0"),
        (
            lambda: Integer(2, 10, log=True, step=4),
            "low must exceed step / 2 with log=True; got low=2, step=4; raise low to 3",
        ),
        (lambda: Space({"a\0b": Float(0, 1)}), "must be text that files and databases hold; got 'a\\x00b'"),
        (lambda: Space({"a\ud800": 1}), "must be text that files and databases hold; got 'a\\ud800'"),
        (lambda: Categorical([]), "choices must not be empty"),
        (lambda: Categorical("abc"), "choices must be a list or tuple; got 'abc'"),
        (lambda: Categorical({"a", "b"}), "choices must be a list or tuple; got {"),
        (lambda: Categorical(3), "choices must be a list or tuple; got 3"),
        (lambda: Categorical(["a", "a"]), "choices must differ, and 1, 1.0 and True count as one; got 'a' and 'a'"),
        (lambda: Categorical([1, 1.0]), "got 1 and 1.0; drop one"),
        (lambda: Categorical([0, 2, False]), "got 0 and False; drop one"),
        (lambda: Categorical([[1], [2]]), "each choice must be a str, int, float, bool or None; got [1]"),
        (lambda: Categorical([(1, 2)]), "each choice must be a str, int, float, bool or None; got (1, 2)"),
        (lambda: Categorical([len]), "each choice must be a str, int, float, bool or None; got <built-in"),
        (lambda: Categorical([Color.RED]), "each choice must be a str, int, float, bool or None; got <Color"),
        (lambda: Categorical([math.nan]), "each choice must be finite; got nan"),
        (lambda: Categorical([1, math.inf]), "each choice must be finite; got inf; use a string"),
        (lambda: Space({}), "at least one parameter; got {}"),
        (lambda: Space([("x", 1)]), "must be a mapping with at least one parameter; got [('x', 1)]"),
        (lambda: Space({1: Float(0, 1)}), "name of a parameter must be a str and not empty; got 1"),
        (lambda: Space({"": Float(0, 1)}), "name of a parameter must be a str and not empty; got ''"),
        (
            lambda: Space({"x": (0, 1)}),
            "parameter 'x' must be a Float, Integer, Categorical or a plain fixed value; got (0, 1)",
        ),
        (lambda: Space({"x": Float}), "parameter 'x' must be a Float, Integer, Categorical or a plain fixed value"),
        (lambda: Space({"x": math.nan}), "parameter 'x' must be finite; got nan"),
    ],
)
def test_refusals(make, said):
    with pytest.raises(InvalidInputError) as caught:
        make()
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"x": 2.5}, "parameter 'x' must be from 0.0 to 1.0; got 2.5"),
        ({"x": math.nan}, "parameter 'x' must be finite; got nan"),
        ({"x": True}, "parameter 'x' must be a real number; got True"),
        ({"x": "0.5"}, "parameter 'x' must be a real number; got '0.5'"),
        ({"n": 0}, "parameter 'n' must be from 1 to 9; got 0"),
        ({"n": 4}, "parameter 'n' must be 1 plus a multiple of 2; got 4"),
        ({"n": 3.0}, "parameter 'n' must be a whole number of type int; got 3.0"),
        ({"n": True}, "parameter 'n' must be a whole number of type int; got True"),
        ({"c": "b"}, "parameter 'c' must be one of ['a', 1], of the same type; got 'b'"),
        ({"c": True}, "parameter 'c' must be one of ['a', 1], of the same type; got True"),
        ({"c": 1.0}, "parameter 'c' must be one of ['a', 1], of the same type; got 1.0"),
        ({"c": ["a"]}, "parameter 'c' must be one of ['a', 1], of the same type; got ['a']"),
        ({"f": 4}, "parameter 'f' must be one of [3], of the same type; got 4"),
        ({"z": 1}, "params must have exactly 'x', 'n', 'c', 'f'; unknown: 'z'"),
        (None, "params must be a mapping"),
    ],
)
def test_points_are_checked(change, said):
    space = Space({"x": Float(0, 1), "n": Integer(1, 9, step=2), "c": Categorical(["a", 1]), "f": 3})
    good = {"f": 3, "c": 1, "n": np.int32(3), "x": 1}
    assert same(space.check(good), {"x": 1.0, "n": 3, "c": 1, "f": 3})
    for method in (space.check, space.key, space.to_unit):
        with pytest.raises(InvalidInputError) as caught:
            method(change and good | change)
        assert said in str(caught.value)
    with pytest.raises(InvalidInputError, match="missing: 'x', 'f'"):
        space.check({"n": 3, "c": 1})


FLOAT = {"name": "x", "kind": "float", "low": 0.0, "high": 1.0, "log": False}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "space must be a mapping"),
        ({}, "space must have exactly 'parameters'; missing: 'parameters'"),
        ({"parameters": [FLOAT], "version": 1}, "unknown: 'version'"),
        ({"parameters": {"x": FLOAT}}, "parameters of a space must be a list"),
        ({"parameters": []}, "at least one parameter"),
        ({"parameters": [FLOAT, FLOAT]}, "names of parameters must differ; got ['x', 'x']"),
        ({"parameters": [1]}, "parameters[0] must be a mapping with a kind; got 1"),
        ({"parameters": [{"name": "x"}]}, "parameters[0] must be a mapping with a kind"),
        ({"parameters": [FLOAT | {"kind": "complex"}]}, "kind of parameters[0] must be one of"),
        ({"parameters": [FLOAT | {"kind": ["float"]}]}, "kind of parameters[0] must be one of"),
        ({"parameters": [FLOAT | {"size": 1}]}, "unknown: 'size'"),
        ({"parameters": [FLOAT | {"name": 3}]}, "name of a parameter must be a str and not empty; got 3"),
        ({"parameters": [FLOAT | {"high": -1.0}]}, "parameter 'x': low must not exceed high"),
        ({"parameters": [FLOAT | {"high": "1"}]}, "parameter 'x': high must be a real number; got '1'"),
        ({"parameters": [FLOAT | {"log": 1}]}, "parameter 'x': log must be True or False; got 1"),
        ({"parameters": [{k: FLOAT[k] for k in ("name", "kind", "low", "log")}]}, "missing: 'high'"),
        ({"parameters": [{"name": "x", "kind": "integer", "low": 1, "high": 2.5, "log": False, "step": 1}]}, "got 2.5"),
        ({"parameters": [{"name": "x", "kind": "categorical", "choices": {}}]}, "choices must be a list or tuple"),
        ({"parameters": [{"name": "x", "kind": "categorical", "choices": [[1]]}]}, "parameter 'x': each choice"),
        ({"parameters": [{"name": "x", "kind": "fixed", "value": [1]}]}, "parameter 'x' must be a str, int"),
        ({"parameters": [{"name": "x", "kind": "fixed", "value": math.nan}]}, "parameter 'x' must be finite"),
    ],
)
def test_json_is_checked(data, said):
    with pytest.raises(InvalidInputError) as caught:
        Space.from_plain(data)
    assert said in str(caught.value)


@given(spaces_with_rows())
def test_columns_hold_the_same_values_as_rows(space_and_rows):
    space, X = space_and_rows
    columns = {name: column.tolist() for name, column in space.columns(X).items()}
    by_row = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    assert repr(by_row) == repr(space.from_unit_many(X))  # types too


# Floats with a step -------------------------------------------------------------------------------------------------


def test_a_float_with_a_step_has_decimal_levels():
    p = Float(0.1, 0.7, step=0.1)
    assert p.from_unit(np.array([0.0, 0.2, 0.5, 0.99, 1.0])) == [0.1, 0.2, 0.4, 0.7, 0.7]
    assert p.n_levels == 7
    assert p.check(0.1 + 0.2) == 0.3  # what arithmetic makes of it is the level itself
    assert Float(-1.0, 1.0, step=0.25).check(np.float64(0.75)) == 0.75


def test_levels_of_a_float_are_those_of_an_integer_of_as_many_steps():
    p, steps = Float(2.0, 5.0, step=0.5), Integer(0, 6)
    values = [2.0 + 0.5 * k for k in range(7)]
    assert (p.to_unit(values) == steps.to_unit(range(7))).all()
    space = Space({"x": p, "y": Categorical(["a", "b"])})
    assert space.n_points == 14
    assert (space.grids[0] == steps.grid()).all()
    assert Space.from_plain(space.to_plain()) == space


def test_a_space_written_before_there_were_steps_is_read():
    entry = {"name": "x", "kind": "float", "low": 0.0, "high": 1.0, "log": False}
    assert Space.from_plain({"parameters": [entry]}) == Space({"x": Float(0.0, 1.0)})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Float(0.0, 1.0, step=1e308), "high - low must be a whole number of steps; .*that fits is 0.0"),
        (lambda: Float(0.0, 1.0, step=0.3), "high - low must be a whole number of steps; .*that fits is 0.9"),
        (lambda: Float(0.0, 1.0, step=0), "step must be positive; got 0"),
        (lambda: Float(0.1, 1.0, step=0.1, log=True), "log and step do not go together"),
        (lambda: Float(0.0, 1.0, step=1e-300), "at most 2[*][*]40 steps"),
        (lambda: Float(0.0, 1.0, step=0.1).check(0.25), "must be 0.0 plus a multiple of 0.1; got 0.25"),
    ],
)
def test_steps_are_checked(make, said):
    with pytest.raises(InvalidInputError, match=said):
        make()


@pytest.mark.parametrize("step", [0.25, 0.0001])  # of the second there are too many levels to list
def test_no_level_of_a_float_is_tried_twice(step):
    space = {"x": Float(0.0, 1.0, step=step)}
    result = pbgi.minimize(lambda p: (p["x"] - 0.5) ** 2, space, budget=12, cost=pbgi.UniformCost(), seed=0)
    tried = [trial.params["x"] for trial in result.trials]
    assert len(set(tried)) == len(tried) == min(12, 1 + round(1 / step))
    assert all(abs(x / step - round(x / step)) < 1e-6 for x in tried)
    assert abs(result.params["x"] - 0.5) <= 0.01  # an exhausted space has tried it
