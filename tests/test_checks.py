"""Keyword arguments with the name that was meant, also by users of other packages."""

import pytest

import pbgi
from pbgi.checks import HABITS, refuse_unknown_arguments

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


def test_every_hint_is_an_argument_of_minimize():
    @refuse_unknown_arguments
    def nothing() -> None:
        pass

    for name, (_, written) in HABITS.items():
        with pytest.raises(pbgi.UnknownArgumentError) as caught:
            pbgi.minimize(lambda p: p["x"], LINE, **{name: 3})
        assert str(caught.value) == f"Unknown argument {name!r}; use {written}"
        with pytest.raises(pbgi.UnknownArgumentError, match="Unknown argument"):
            nothing(**{name: 3})
