"""Trials that report on their way: the part of an optimizer that listens, and says whether they go on."""

from pbgi.checks import refuse_unknown_arguments, require_count
from pbgi.choosing.choice import goes_on, undisturbed
from pbgi.choosing.state import RunState
from pbgi.errors import InvalidInputError
from pbgi.history import History, Trial, TrialState
from pbgi.settings import Settings
from pbgi.trials.steps import Steps


class Reporting:
    """What `Optimizer` says of trials that are under way."""

    _settings: Settings
    _history: History

    @property
    def _state(self) -> RunState:
        raise NotImplementedError

    def _own(self, trial: Trial | int) -> Trial:
        raise NotImplementedError

    @refuse_unknown_arguments
    def report(self, trial: Trial | int, step: int, value: float, *, cost: float | None = None) -> Trial:
        """Record how far a running trial has come; that of the last step completes it.

        Args:
            trial: A trial or its number.
            step: How far it has come, from 1 to the last step. Steps rise; some may be left out.
            value: The outcome there. NaN or an infinity fails the trial.
            cost: What it has cost so far, all steps together: it is charged at once.

        Returns:
            The trial. Reporting the same again changes nothing.

        Raises:
            InvalidInputError: There are no `steps`, the step is none of them or does not follow the last one, the cost
                has shrunk, or is missing where the budget counts it.
            TrialStateError: The trial does not run.
        """
        own, steps = self._own(trial), self._required_steps("report()")
        if steps.last < require_count("step", step):
            raise InvalidInputError(f"step must not exceed the last one, {steps.last}; got {step!r}")
        if cost is None and self._settings.must_tell_cost:
            raise InvalidInputError(
                f"cost must be told, since the budget counts it; got cost=None in a report of trial {own.number}; "
                "it is what the trial has cost so far"
            )
        if cost is None and self._state.prices_are_known and own.predicted_cost is not None:
            cost = own.predicted_cost * step / steps.last
        reported = self._history.report(own.number, step, value, cost)
        if reported.step < steps.last or reported.state is not TrialState.RUNNING:
            return reported
        return self._history.complete(own.number, value, reported.used or None)

    @refuse_unknown_arguments
    def should_continue(self, trial: Trial | int) -> bool:
        """Whether a trial is worth going on with. It is decided where a stage ends, see `Steps`; in between it is.

        False for a trial that has ended.
        """
        own = self._own(trial)
        self._required_steps("should_continue()")
        with undisturbed():
            return goes_on(self._state, own.number)

    @refuse_unknown_arguments
    def stop(self, trial: Trial | int, *, charge: float | None = None) -> Trial:
        """Record that a running trial was stopped early. It is charged what it has reported, which informs for good.

        One that has ended stays as it is. Where trials are resumable `ask` may hand it out again.

        Args:
            trial: A trial or its number.
            charge: What the budget pays for it, where that is not what it has reported.
        """
        own = self._own(trial)
        return self._history.stop(own.number, charge) if own.state is TrialState.RUNNING else own

    def _required_steps(self, method: str) -> Steps:
        if self._settings.steps is None:
            raise InvalidInputError(
                f"{method} needs to know how long a trial is: Optimizer(..., steps=n); got steps=None"
            )
        return self._settings.steps
