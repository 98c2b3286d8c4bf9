"""Hyperparameters of trials that something else chooses are those of the last fit."""

import pytest

import pbgi
from pbgi.choosing import elsewhere
from pbgi.choosing.elsewhere import FittedOnce
from pbgi.choosing.fitting import fit_values
from pbgi.choosing.state import RunState
from pbgi.model import last_hyperparameters
from pbgi.notes import VALUE_MODEL


def state_of(optimizer):
    return RunState.of(optimizer.space, optimizer.direction, optimizer.settings, optimizer.trials)


def test_it_is_fitted_anew_when_a_trial_has_ended_and_not_before(monkeypatch):
    calls = []
    monkeypatch.setattr(elsewhere, "fit_values", lambda state: (calls.append(len(state.trials)), fit_values(state))[1])
    optimizer, fitted = pbgi.Optimizer({"x": pbgi.Float(0.0, 1.0)}, seed=0, steps=3), FittedOnce()
    assert fitted(state_of(optimizer)).trials == ()
    for i in range(3):
        trial = optimizer.enqueue({"x": 0.2 * i})
        fitted(state_of(optimizer))
        optimizer.report(trial, 1, 0.5)
        fitted(state_of(optimizer))
        optimizer.report(trial, 3, 0.4)
    noted = fitted(state_of(optimizer))
    assert calls == [2, 3, 3]  # when the next trial was there, and at last
    assert last_hyperparameters(noted.trials, VALUE_MODEL, 1) is not None
    assert [trial.params for trial in noted.trials] == [trial.params for trial in optimizer.trials]


@pytest.mark.parametrize("n", [1, 4])
def test_what_is_noted_is_what_a_fit_says(n):
    optimizer = pbgi.Optimizer({"x": pbgi.Float(0.0, 1.0)}, seed=0)
    for i in range(n):
        optimizer.tell(optimizer.enqueue({"x": 0.2 * i}), 0.1 * i)
    noted = FittedOnce()(state_of(optimizer))
    assert noted.trials[0].record.keys() >= {VALUE_MODEL.name}
    assert optimizer.trials[0].record == {}
