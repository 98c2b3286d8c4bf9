"""Search spaces of scikit-learn: what they mean to the engine, the way back, and what is refused."""

import math

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn_fixtures import price_of_model, prices_of_models

from pbgi import Categorical, Float, Integer, InvalidInputError, KnownCost, LearnedCost, Space, UniformCost
from pbgi.integrations.sklearn.spaces import SearchSpace


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (Float(0.0, 1.0), Float(0.0, 1.0)),
        (Integer(1, 9, step=2), Integer(1, 9, step=2)),
        (Categorical(["a", "b"]), Categorical(["a", "b"])),
        (["rbf", None, 3, 0.5, True], Categorical(["rbf", None, 3, 0.5, True])),
        (np.array([0.1, 1.0]), Categorical([0.1, 1.0])),
        ([np.float64(0.1), np.int64(3)], Categorical([0.1, 3])),
        (range(1, 20, 2), Integer(1, 19, step=2)),
        (range(9, 0, -2), Integer(1, 9, step=2)),
        (stats.uniform(2.0, 3.0), Float(2.0, 5.0)),
        (stats.uniform(loc=-1, scale=4), Float(-1.0, 3.0)),
        (stats.loguniform(1e-3, 10), Float(1e-3, 10.0, log=True)),
        (stats.reciprocal(1, 100), Float(1.0, 100.0, log=True)),
        (stats.loguniform(1e-3, 10, scale=2), Float(2e-3, 20.0, log=True)),
        (stats.randint(3, 8), Integer(3, 7)),
        (stats.randint(low=3, high=8, loc=1), Integer(4, 8)),
        ("rbf", "rbf"),
        (0.5, 0.5),
        (None, None),
    ],
)
def test_what_is_written_is_what_is_meant(given, meant):
    space = SearchSpace.of({"p": given})
    assert space.engine == Space({"p": meant})
    assert not space.objects


@pytest.mark.parametrize("distribution", [stats.uniform(2.0, 3.0), stats.loguniform(1e-3, 10), stats.randint(3, 8)])
def test_bounds_are_those_of_what_is_drawn(distribution):
    drawn = distribution.rvs(2000, random_state=np.random.default_rng(0))
    p = SearchSpace.of({"p": distribution}).engine.parameters["p"]
    assert p.low <= drawn.min() <= drawn.max() <= p.high
    units = np.array(p.to_unit(drawn.tolist()))
    assert stats.kstest(units, "uniform").statistic < (0.15 if isinstance(p, Integer) else 0.04)  # as likely everywhere


@pytest.mark.parametrize(
    "choices",
    [
        [SVC(), LogisticRegression()],
        [SVC, None],
        [(50,), (100, 50)],
        [math.nan, math.inf, 1.0],
        [1, 1.0, True],
        np.array([SVC(), "passthrough"], dtype=object),
    ],
)
def test_any_object_may_be_a_choice(choices):
    space = SearchSpace.of({"p": choices, "q": [1, 2]})
    assert space.engine == Space({"p": Categorical(range(len(choices))), "q": Categorical([1, 2])})
    for position, choice in enumerate(choices):
        candidate = space.candidate({"p": position, "q": 2})
        assert candidate["p"] is choice
        assert candidate["q"] == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((0.0, 1.0), "for bounds write"),
        ({1.0, 2.0}, "for choices a list"),
        (SVC(), "a list of choices"),
        (stats.expon(), "got expon of scipy.stats; for bounds write"),
        (stats.norm(0, 1), "got norm"),
        (stats.loguniform(1, 10, loc=3), "got loguniform"),
        (stats.uniform, "for bounds write"),
        ([], "'p': choices must not be empty"),
        (["a", "a"], "'p': choices must differ"),
        (range(0), "got range"),
        (np.eye(2), "a list of choices"),
        (math.nan, "'p' must be finite"),
    ],
)
def test_what_has_no_plain_meaning_is_refused(given, message):
    with pytest.raises(InvalidInputError, match=message) as raised:
        SearchSpace.of({"p": given})
    assert "'p'" in str(raised.value)


SEVERAL = [
    {
        "model": [SVC()],
        "C": Float(0.1, 10.0, log=True),
        "kernel": ["rbf", "poly"],
        "degree": Integer(2, 5, when={"kernel": "poly"}),
    },
    {"model": [LogisticRegression(), LogisticRegression(penalty=None)], "C": [1.0, 2.0], "fit_intercept": True},
]


def test_a_list_of_spaces_is_one_space():
    space = SearchSpace.of(SEVERAL)
    X = np.random.default_rng(0).random((60, space.engine.dimension))
    candidates = [space.candidate(params) for params in space.engine.from_unit_many(X)]
    shapes = {(type(c["model"]), *sorted(c.keys() - {"model"})) for c in candidates}
    assert shapes == {
        (SVC, "C", "kernel"),
        (SVC, "C", "degree", "kernel"),
        (LogisticRegression, "C", "fit_intercept"),
    }
    assert all((c["kernel"] == "poly") == ("degree" in c) for c in candidates if "kernel" in c)
    assert {c["C"] for c in candidates if "kernel" not in c} == {1.0, 2.0}
    columns = space.candidates(space.engine.columns(X))
    assert columns.keys() == {"model", "C", "kernel", "degree", "fit_intercept"}
    for i, candidate in enumerate(candidates):
        assert all(columns[name][i] == value for name, value in candidate.items())


@pytest.mark.parametrize("given", [[], [[{"C": [1]}]]])
def test_a_list_must_hold_spaces(given):
    with pytest.raises(InvalidInputError, match="must hold at least one mapping, and no other list"):
        SearchSpace.of(given)


@pytest.mark.parametrize("given", [None, "C", 3])
def test_no_space_is_refused(given):
    with pytest.raises(InvalidInputError, match="search_space must be a mapping"):
        SearchSpace.of(given)


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize("learned", [False, True])
def test_functions_of_costs_see_the_objects(vectorized, learned):
    space = SearchSpace.of({"model": [SVC(), LogisticRegression()]})
    function = prices_of_models if vectorized else price_of_model
    kind = LearnedCost if learned else KnownCost
    cost = space.cost(kind(function, vectorized=vectorized))
    seen = cost.known_factor if learned else cost.price
    if vectorized:
        assert seen({"model": np.array([1, 0, 1])}).tolist() == [19.0, 4.0, 19.0]
    else:
        assert [seen({"model": i}) for i in (0, 1)] == [4.0, 19.0]
    assert cost.vectorized == vectorized


def test_other_costs_stay_as_they_are():
    objects, plain = SearchSpace.of({"p": [SVC()]}), SearchSpace.of({"p": [1, 2]})
    known = KnownCost(price_of_model)
    assert plain.cost(known) is known
    for cost in (None, UniformCost(), LearnedCost()):
        assert objects.cost(cost) is cost
