"""Trials that something else chooses, of which it is asked whether they go on: their records hold no fits."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pbgi.choosing.fitting import fit_values
from pbgi.choosing.state import RunState
from pbgi.history import TrialState
from pbgi.notes import Note


class FittedOnce:
    """Remembers the hyperparameters of the last fit; fitted anew when a trial has ended."""

    def __init__(self) -> None:
        self._fitted: tuple[Any, Mapping[str, Note]] = None, {}

    def __call__(self, state: RunState) -> RunState:
        """The state, with these hyperparameters in the record of its first trial, if a trial has a value."""
        if not state.completed:
            return state
        ended = sum(trial.state in (TrialState.COMPLETE, TrialState.STOPPED) for trial in state.trials)
        fitted_for = (state.space, state.direction, ended)
        if self._fitted[0] != fitted_for:
            self._fitted = fitted_for, fit_values(state).notes
        noted = replace(state.trials[0], record=self._fitted[1])
        return replace(state, trials=(noted, *state.trials[1:]))
