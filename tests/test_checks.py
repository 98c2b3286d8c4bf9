"""Keyword arguments with the name that was meant, also by users of other packages."""

import inspect

import pytest

import pbgi
from pbgi.checks import HABITS, refuse_unknown_arguments
from pbgi.integrations.optuna import PBGISampler

LINE = {"x": pbgi.Float(0, 1)}


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("n_trials", "use stop=pbgi.MaxTrials(n)"),
        ("n_calls", "use stop=pbgi.MaxTrials(n)"),
        ("max_evals", "use stop=pbgi.MaxTrials(n)"),
        ("n_iter", "use stop=pbgi.MaxTrials(n)"),
        ("max_iter", "use stop=pbgi.MaxTrials(n)"),
        ("timeout", "use seconds=..."),
        ("random_state", "use seed=..."),
        ("algo", "use policy=..."),
        ("verbose", "use progress=True"),
        ("n_jobs", "use n_workers=n"),
        ("bounds", "use space={...}"),
        ("callback", "did you mean 'callbacks'?"),
    ],
)
def test_habits_from_elsewhere(name, way_out):
    with pytest.raises(pbgi.UnknownArgumentError) as caught:
        pbgi.minimize(lambda p: p["x"], LINE, **{name: 3})
    assert str(caught.value) == f"Unknown argument {name!r}; {way_out}"


def test_a_hint_names_only_what_is_there():
    """An optimizer runs nothing, so it has no seconds."""
    with pytest.raises(pbgi.UnknownArgumentError, match="Unknown argument 'timeout'; there are space"):
        pbgi.Optimizer(LINE, timeout=3)
    with pytest.raises(pbgi.UnknownArgumentError, match=r"Unknown argument 'n_trials'; use stop=pbgi.MaxTrials\(n\)"):
        pbgi.Optimizer(LINE, n_trials=3)


def test_every_hint_is_an_argument_of_minimize_or_of_a_parameter():
    @refuse_unknown_arguments
    def nothing() -> None:
        pass

    makers = {
        **dict.fromkeys(inspect.signature(pbgi.minimize).parameters, lambda **k: pbgi.minimize(len, LINE, **k)),
        **dict.fromkeys(("low", "high", "log", "step", "when"), lambda **k: pbgi.Float(0.0, 1.0, **k)),
        "choices": pbgi.Categorical,
    }
    for name, (argument, written) in HABITS.items():
        with pytest.raises(pbgi.UnknownArgumentError) as caught:
            makers[argument](**{name: 3})
        assert str(caught.value) == f"Unknown argument {name!r}; use {written}"
        with pytest.raises(pbgi.UnknownArgumentError, match="Unknown argument"):
            nothing(**{name: 3})


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("multivariate", "leave it out: all parameters are chosen together"),
        ("constant_liar", "leave it out: running trials always count"),
        ("n_ei_candidates", "leave it out: it is about estimators of TPE"),
        ("deterministic_objective", r"values are exact.* use model=pbgi.GPConfig\(noisy=True\)"),
        ("n_trials", "it is for study.optimize"),
        ("timeout", "it is for study.optimize"),
        ("random_state", "use seed="),
        ("n_start_trials", "did you mean 'n_startup_trials'"),
    ],
)
def test_arguments_of_samplers_of_optuna(name, way_out):
    with pytest.raises(pbgi.UnknownArgumentError, match=f"Unknown argument '{name}'; {way_out}"):
        PBGISampler(**{name: 3})


@pytest.mark.parametrize(
    ("arguments", "way_out"),
    [
        ({"cost": lambda _: 1.0}, "write cost=pbgi.KnownCost"),
        ({"policy": "EI"}, "write policy=pbgi.PBGI"),
        ({"policy": pbgi.LogEI}, "write policy=pbgi.PBGI"),
        ({"stop": 20}, "write stop=pbgi.MaxTrials"),
    ],
)
def test_what_is_given_in_place_of_an_object_is_answered_with_one(arguments, way_out):
    with pytest.raises(pbgi.InvalidInputError, match=way_out):
        pbgi.minimize(len, LINE, budget=3, **arguments)
