"""Results of an earlier run, taken where they fit another space."""

import pytest

from pbgi import Categorical, Float, Integer, InvalidInputError, Optimizer, Settings, Space, WarmStart


def earlier(points):
    """An optimizer that has tried these points, at a cost of 2 each."""
    names = points[0]
    space = {name: Float(0.0, 10.0) if isinstance(value, float) else value for name, value in names.items()}
    space = {name: Categorical(["a", "b"]) if value in ("a", "b") else value for name, value in space.items()}
    optimizer = Optimizer(space, seed=0)
    for i, point in enumerate(points):
        optimizer.tell(optimizer.enqueue(point), float(i), cost=2.0)
    return optimizer


def taken(trials, space, **options):
    return WarmStart(trials, **options).fitting(Space(space))


def test_known_trials_inform_and_are_not_charged():
    old = earlier([{"x": 1.0}, {"x": 2.0}, {"x": 4.0}, {"x": 5.0}])
    old.fail(old.ask(), cost=3.0)
    old.ask()
    space = Space({"x": Float(0.0, 4.0)})
    new = Optimizer.of(space, "minimize", Settings(budget=10.0, seed=0), known=old.trials)
    assert [(t.number, t.params["x"], t.value, t.cost, t.external) for t in new.trials] == [
        (i, x, float(i), 2.0, True) for i, x in enumerate([1.0, 2.0, 4.0])
    ]
    assert new.spent == 0.0
    assert new.best.value == 0.0
    assert new.typical_cost == 2.0
    assert new.ask().record["value_model"], "the model has values: there is no start"


def test_known_trials_come_after_those_of_the_run():
    old, space = earlier([{"x": 1.0}]), Space({"x": Float(0.0, 10.0)})
    own = earlier([{"x": 3.0}, {"x": 4.0}])
    new = Optimizer.of(space, "minimize", Settings(seed=0), own.trials, known=WarmStart(old.trials))
    assert [t.params["x"] for t in new.trials] == [3.0, 4.0, 1.0]
    assert new.spent == 4.0


def test_a_parameter_that_the_earlier_run_did_not_have():
    old = earlier([{"x": 1.0}, {"x": 2.0}]).trials
    space = {"x": Float(0.0, 10.0), "depth": Integer(1, 5)}
    assert taken(old, space) == ()
    assert [t.params for t in taken(old, space, filled={"depth": 3})] == [{"x": x, "depth": 3} for x in (1.0, 2.0)]
    assert taken(old, space | {"depth": 4})[0].params == {"x": 1.0, "depth": 4}
    with pytest.raises(InvalidInputError, match="must be from 1 to 5; got 9"):
        taken(old, space, filled={"depth": 9})
    with pytest.raises(InvalidInputError, match="filled must name parameters of the space; got 'deep'"):
        taken(old, space, filled={"deep": 1})


def test_a_parameter_that_only_the_earlier_run_had():
    """It had one value in all trials with a value, or is told to make no difference."""
    space = {"x": Float(0.0, 10.0)}
    one = earlier([{"x": 1.0, "act": "a"}, {"x": 2.0, "act": "a"}])
    assert [t.params for t in taken(one.trials, space)] == [{"x": 1.0}, {"x": 2.0}]
    one.fail(one.enqueue({"x": 3.0, "act": "b"}), cost=1.0)
    assert len(taken(one.trials, space)) == 2, "a trial without a value does not count"
    two = earlier([{"x": 1.0, "act": "a"}, {"x": 2.0, "act": "b"}]).trials
    assert taken(two, space) == ()
    assert len(taken(two, space, ignored=["act"])) == 2
    with pytest.raises(InvalidInputError, match="must name parameters that the space does not have; got 'x'"):
        taken(two, space, ignored=["x"])
    with pytest.raises(InvalidInputError, match="ignored must be a list of names"):
        WarmStart(two, ignored="act")


def test_what_a_warm_start_is_made_of():
    with pytest.raises(InvalidInputError, match=r"must be pbgi\.Trial"):
        WarmStart([{"x": 1.0}])
