"""Ask for a point, tell what it gave and cost: the only place where directions are turned.

Everything the next suggestion depends on is in the history and the seed. What the models must remember (the last fitted
hyperparameters) and what the policy must remember is in the records of the trials, and the randomness of a suggestion
is a function of (seed, number of trials): so the same history gives the same suggestion, bit for bit, in any process.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import overload

import numpy as np

from pbgi.checks import refuse_unknown_arguments, require_count
from pbgi.choosing.choice import Choice, choose, nothing_left_message, snapshot_of, stop_reason, undisturbed
from pbgi.choosing.fitting import fit_costs
from pbgi.choosing.state import RunState, mean
from pbgi.constraints.constraint import ConditionStatus, Constraints, statuses, told_outcomes
from pbgi.cost import Cost
from pbgi.display.notebook import heading, params_table
from pbgi.display.wording import number, plural, short
from pbgi.errors import BrokenFunctionError, InvalidInputError, NothingLeftError, UnknownTrialError
from pbgi.gp.config import GPConfig
from pbgi.history import NO_OUTCOMES, WITHOUT_VALUE, History, Trial
from pbgi.importance import Importance, importance_of
from pbgi.model import ModelKind
from pbgi.parameter import Parameter
from pbgi.policy import Policy
from pbgi.prediction import Prediction, Recommendation, predict, recommend
from pbgi.reporting import Reporting
from pbgi.serialization import Value
from pbgi.settings import Settings
from pbgi.snapshot import cost_of
from pbgi.space import Space
from pbgi.stopping import StopReason, StopRule
from pbgi.trials.steps import Steps
from pbgi.warm_start import WarmStart


class Optimizer(Reporting):
    """Suggests points to try, knowing what trials cost.

    Args:
        space: Names to `Float`, `Integer`, `Categorical` or fixed values.
        direction: "minimize" or "maximize".
        cost: `UniformCost()`, `KnownCost(fn)` or `LearnedCost()`; by default learned from the costs told, and uniform
            if none are told and there is no budget.
        budget: What may be spent, in the unit of the costs.
        policy: How points are chosen; by default the decaying Gittins index, `PBGID()`. `PBGI(cost_scale=...)` takes
            an exchange rate and, unless `stop` says otherwise, stops when no trial is worth its price.
        stop: When to stop, besides when the budget is spent, see `pbgi.stopping`.
        model: What is assumed of the objective: a `GPConfig`, or an object that fits as `pbgi.model` says.
        n_startup_trials: Points before the model takes over; by default half as many as there are parameters, at least
            three and enough to try every choice (the paper's 2 (d + 1) where the run may end because no trial is worth
            its price), and fewer if they would take more than a quarter of the budget.
        seed: Random seed. Drawn from the operating system if not given.
        constraints: Names of outcomes with the conditions that they must keep, `AtMost(limit)` or `AtLeast(limit)`.
            Every trial with a value must tell them, and only trials that keep all of them count as good.
        steps: How many steps a trial has, or a `Steps`, if trials report on their way and may stop early.
        max_failures: After so many failures, while no trial has given a value, `ask` raises a `BrokenFunctionError`;
            None to go on whatever happens.
    """

    @refuse_unknown_arguments
    def __init__(
        self,
        space: Space | Mapping[str, Parameter | Value],
        *,
        direction: str = "minimize",
        cost: Cost | None = None,
        budget: float | None = None,
        policy: Policy | None = None,
        stop: StopRule | None = None,
        model: GPConfig | ModelKind | None = None,
        n_startup_trials: int | None = None,
        seed: int | None = None,
        constraints: Constraints | None = None,
        steps: Steps | int | Sequence[int] | None = None,
        max_failures: int | None = 5,
    ) -> None:
        settings = Settings(
            cost=cost,
            budget=budget,
            policy=policy,  # type: ignore[arg-type]  # defaults are filled in
            stop=stop,  # type: ignore[arg-type]
            model=model,  # type: ignore[arg-type]
            n_startup_trials=n_startup_trials,
            seed=seed,  # type: ignore[arg-type]
            constraints=constraints,
            steps=steps,  # type: ignore[arg-type]
            max_failures=max_failures,
        )
        self._set_up(space if isinstance(space, Space) else Space(space), direction, settings, ())

    @classmethod
    def of(
        cls,
        space: Space,
        direction: str,
        settings: Settings,
        trials: Iterable[Trial] = (),
        *,
        known: WarmStart | Iterable[Trial] = (),
    ) -> "Optimizer":
        """An optimizer for trials that are held elsewhere, for example in a study or a file.

        Args:
            space: Where points lie.
            direction: "minimize" or "maximize".
            settings: What else it is told.
            trials: The history: trials with the numbers 0, 1, 2, ... and points of the space.
            known: Trials of an earlier run, of another space perhaps: those that fit are added to the history as
                observations from elsewhere, which inform and are not charged. A `WarmStart` says more of how they fit.

        Raises:
            InvalidInputError: A number or a point is another.
        """
        warm, own = known if isinstance(known, WarmStart) else WarmStart(known), tuple(trials)
        added = (replace(trial, number=len(own) + i) for i, trial in enumerate(warm.fitting(space)))
        optimizer = cls.__new__(cls)
        optimizer._set_up(space, direction, settings, (*own, *added))
        return optimizer

    def _set_up(self, space: Space, direction: str, settings: Settings, trials: Iterable[Trial]) -> None:
        state = RunState.of(space, direction, settings, trials)
        self._space, self._direction, self._settings = state.space, state.direction, state.settings
        self._history, self._X = History(state.trials), state.X
        self._known_state = state
        self._cached: tuple[RunState, Choice] | None = None
        self._n_failures_heard = len(self._history.failed)

    @property
    def _state(self) -> RunState:
        """Where the run stands: the same state, with what it has worked out, as long as nothing is told."""
        trials = self._history.trials
        if trials == self._known_state.trials:
            return self._known_state
        new = trials[len(self._X) :]  # points are converted once
        if new:
            self._X = np.concatenate([self._X, self._space.to_unit_many([trial.params for trial in new])])
        self._known_state = RunState(self._space, self._direction, self._settings, trials, self._X)
        return self._known_state

    # Asking and telling ----------------------------------------------------------------------------------------------

    @overload
    def ask(self) -> Trial: ...

    @overload
    def ask(self, n: int) -> list[Trial]: ...

    @refuse_unknown_arguments
    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """The next trial to run; with `n` a list of up to `n` trials, of at least one.

        Raises:
            NothingLeftError: Every point has been tried, or none is expected to fit what is left of the budget.
            BrokenFunctionError: All of the first `max_failures` trials failed; said once for each failure.
        """
        if n is not None:
            return self._batch(require_count("n", n))
        self._require_sense()
        state, choice = self._next()
        if choice.resumed is not None:
            return self._history.resume(choice.resumed)
        if choice.proposal is None:
            raise NothingLeftError(nothing_left_message(state, choice))
        proposal = choice.proposal
        params = self._space.from_unit(proposal.x)
        return self._history.add_running(params, proposal.predicted_cost, {**proposal.record, **choice.note})

    def _require_sense(self) -> None:
        """Refuse a trial after a failure while nothing else is known: no other point mends a broken function."""
        failed, most = self._history.failed, self._settings.max_failures
        if most is None or self._history.completed or len(failed) < most or len(failed) == self._n_failures_heard:
            return
        self._n_failures_heard = len(failed)
        raise BrokenFunctionError(
            f"the first {len(failed)} trials failed, and none gave a value; mend the function and go on, or give "
            f"Optimizer(max_failures=None); the last: {failed[-1].message}"
        )

    def _batch(self, n: int) -> list[Trial]:
        """As many trials as there are: a caller who gets none must not leave any running."""
        batch: list[Trial] = []
        while len(batch) < n:
            try:
                batch.append(self.ask())
            except Exception:  # whatever it is, the next call of `ask` meets it again, with no trial to lose
                if not batch:
                    raise
                break
        return batch

    @refuse_unknown_arguments
    def enqueue(self, params: Mapping[str, Value]) -> Trial:
        """Make a trial of a point of your choice, which is the next one to run."""
        checked, state = self._space.check(params), self._state
        predicted = None
        if state.cost_is_known and self._space.dimension:
            with undisturbed():
                point = self._space.to_unit(checked)[None]
                predicted = cost_of(float(fit_costs(state).log_moment(point, 1.0)[0]))
        return self._history.add_running(checked, predicted)

    @refuse_unknown_arguments
    def tell(
        self,
        trial: Trial | int | Mapping[str, Value],
        value: float,
        *,
        cost: float | None = None,
        charge: float | None = None,
        constraints: Mapping[str, float] = NO_OUTCOMES,
    ) -> Trial:
        """Record the value of a trial, and what it cost.

        Args:
            trial: A trial, its number, or a dict of parameters: an observation from elsewhere, which informs the
                models and is not charged.
            value: The outcome. NaN or an infinity fails the trial.
            cost: What it cost: an observation that the cost model learns from.
            charge: What the budget pays for it, where that is not its cost: nobody saw what it cost, or attempts that
                failed came before. Nothing is learned from it.
            constraints: The outcomes that conditions are about, by name.

        Returns:
            The finished trial. Telling the same again changes nothing. A trial that ended without a value, because it
            was given up, say, takes one that comes late.
        """
        outcomes = told_outcomes(self._settings.constraints, constraints, value)
        if isinstance(trial, Mapping):
            if charge is not None:
                raise InvalidInputError(f"charge must be None for an observation from elsewhere; got {charge!r}")
            return self._history.add_external(self._space.check(trial), value, cost, outcomes)
        own = self._own(trial)
        unpaid = cost is None and charge is None and own.state not in WITHOUT_VALUE
        if unpaid and self._settings.must_tell_cost:
            raise InvalidInputError(
                f"cost must be told, since the budget counts it; got cost=None for trial {own.number}; "
                "with cost=UniformCost() the budget is a number of trials"
            )
        return self._history.complete(own.number, value, cost, outcomes, charge)

    @refuse_unknown_arguments
    def fail(
        self,
        trial: Trial | int,
        *,
        cost: float | None = None,
        message: str | None = None,
        charge: float | None = None,
        constraints: Mapping[str, float] = NO_OUTCOMES,
    ) -> Trial:
        """Record that a trial ended without a value.

        It is charged all the same: the charge, else the cost, else what was expected. None of them is taken for an
        observation of what a success costs. Outcomes that conditions are about may be known all the same.
        """
        outcomes = told_outcomes(self._settings.constraints, constraints, None)
        return self._end_without_value(partial(self._history.fail, constraints=outcomes), trial, cost, message, charge)

    @refuse_unknown_arguments
    def interrupt(
        self, trial: Trial | int, *, cost: float | None = None, message: str | None = None, charge: float | None = None
    ) -> Trial:
        """Record that a trial was interrupted: by Ctrl-C, say, or because the budget was used up.

        It is charged as a failed one is, and it says nothing of its point, which may be tried again.
        """
        return self._end_without_value(self._history.interrupt, trial, cost, message, charge)

    def _end_without_value(
        self,
        end: Callable[[int, float | None, str | None, float | None], Trial],
        trial: Trial | int,
        cost: float | None,
        message: str | None,
        charge: float | None,
    ) -> Trial:
        own = self._own(trial)
        return end(own.number, cost, message, self._charge_without(cost, own) if charge is None else charge)

    def _charge_without(self, cost: float | None, own: Trial) -> float | None:
        """What a trial without a value is charged where neither told nor predicted: what others have cost."""
        known = cost is not None or own.predicted_cost is not None or own.used > 0.0
        if known or self.budget is None or own.state in WITHOUT_VALUE:
            return None
        told = mean([trial.cost for trial in self._history.trials if trial.cost is not None])
        if told is None:
            raise InvalidInputError(
                f"cost must be told, since the budget counts it and nothing is known of costs yet; got cost=None for "
                f"trial {own.number}"
            )
        return self.typical_cost or told

    def should_stop(self) -> StopReason | None:
        """The reason to stop now, or None."""
        return stop_reason(self._state, None) or stop_reason(*self._next())

    def _next(self) -> tuple[RunState, Choice]:
        """Where the run stands and what comes next; `should_stop` and `ask` share it."""
        state = self._state
        if self._cached is None or self._cached[0] is not state:
            with undisturbed():
                self._cached = state, choose(state)
        return self._cached

    def _own(self, trial: Trial | int) -> Trial:
        if isinstance(trial, Trial):
            own = self._history.trial(trial.number)
            if own.params != trial.params:
                raise UnknownTrialError(
                    f"trial {trial.number} must be one of this optimizer; got one with other params"
                )
            return own
        return self._history.trial(trial)

    # What is known ---------------------------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """The settings, with defaults filled in."""
        return self._settings

    @property
    def space(self) -> Space:
        """The search space."""
        return self._space

    @property
    def direction(self) -> str:
        """Either "minimize" or "maximize"."""
        return self._direction

    @property
    def n_startup_trials(self) -> int:
        """Points before the model takes over."""
        return self._settings.n_startup_in(self._space)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, by number."""
        return self._history.trials

    @property
    def best(self) -> Trial | None:
        """The completed trial with the best value that keeps all conditions; the first of equals; None if none does."""
        return self._state.best

    @property
    def recommended(self) -> Recommendation | None:
        """The completed trial whose point is believed to be the best, with an interval; None if there is none.

        It is `best` where the values show no noise.
        """
        state = self._state
        best = state.best
        if best is None or best.value is None:
            return None
        if not self._space.dimension:  # one point, and no model of it
            return Recommendation(best, best.value, best.value, best.value)
        with undisturbed():
            snapshot, _ = snapshot_of(state)
            return recommend(snapshot, state.feasible, state.points(state.feasible), best)

    @property
    def conditions(self) -> tuple[ConditionStatus, ...]:
        """How the conditions on outcomes stand: how many trials break each, and which one binds."""
        return statuses(self._settings.constraints, self.trials, self.best)

    @property
    def budget(self) -> float | None:
        """What may be spent."""
        return self._settings.budget

    @property
    def endless(self) -> bool:
        """Whether nothing would ever stop a run: no budget, no stop rule, and infinitely many points."""
        return self._settings.is_endless_in(self._space)

    @property
    def spent(self) -> float:
        """Charged for finished trials, failed ones included."""
        return self._history.spent

    @property
    def typical_cost(self) -> float | None:
        """What a trial that gave a value has cost on average; None while none has told its cost."""
        return self._state.typical_cost

    @property
    def reserved(self) -> float:
        """Expected cost of the running trials: a typical one where nothing was known when they began."""
        return self._state.reserved

    @property
    def remaining(self) -> float | None:
        """What is left of the budget after reservations; None without a budget."""
        return self._state.remaining

    @refuse_unknown_arguments
    def predict(self, points: Sequence[Mapping[str, Value]]) -> Prediction:
        """Predictions for points: their values, with intervals, and their costs.

        Args:
            points: Dicts of parameters.

        Raises:
            InvalidInputError: A point is not in the space, no trial has completed yet, or no parameter varies.
        """
        X = np.array([self._space.to_unit(self._space.check(point)) for point in points])
        self._require_a_model("predict")
        with undisturbed():
            snapshot, _ = snapshot_of(self._state)
            return predict(snapshot, X.reshape(len(points), self._space.dimension))

    def importance(self) -> tuple[Importance, ...]:
        """The importance of each parameter that varies, with intervals.

        Raises:
            InvalidInputError: No trial has completed yet, or no parameter varies.
        """
        self._require_a_model("importance")
        with undisturbed():
            return importance_of(snapshot_of(self._state)[0])

    def _require_a_model(self, asked: str) -> None:
        if not self._history.completed or not self._space.dimension:
            known = f"{len(self._history.completed)} completed trials, {self._space.dimension} parameters that vary"
            raise InvalidInputError(
                f"{asked}() needs at least one completed trial and one parameter that varies; got {known}"
            )

    def __repr__(self) -> str:
        return f"Optimizer({self._standing()})"

    def _repr_html_(self) -> str:
        """For a notebook."""
        shown = self._space._repr_html_() if self.best is None else params_table(self.best.params)
        return heading(f"Optimizer: {self._standing()}") + shown

    def _standing(self) -> str:
        """Where the run stands, in a line."""
        best = self.best
        said = [f"{self._direction}, {plural(len(self.trials), 'trial')}"]
        said += [] if best is None else [f"best {short(best.value)} in trial {best.number}"]
        said += [f"spent {number(self.spent)}" + ("" if self.budget is None else f" of {number(self.budget)}")]
        said += [f"{number(self.reserved)} reserved"] if self.reserved else []
        return ", ".join(said)

    # Saving ----------------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The state as JSON text; functions (known costs) and models of your own must be given again on reading."""
        return self._state.to_json()

    @classmethod
    @refuse_unknown_arguments
    def from_json(
        cls, text: str, *, cost: Cost | None = None, policy: Policy | None = None, model: ModelKind | None = None
    ) -> "Optimizer":
        """The optimizer that `to_json` wrote. It continues as if it had never stopped.

        Args:
            text: What `to_json` returned.
            cost: The cost again, if it holds a function: JSON cannot.
            policy: The policy again, if it was not one of `pbgi.policy`.
            model: The model again, if it was not a `GPConfig`.

        Raises:
            InvalidInputError: The text is something else; the message names what is wrong.
        """
        state = RunState.from_json(text, cost=cost, policy=policy, model=model)
        return cls.of(state.space, state.direction, state.settings, state.trials)
