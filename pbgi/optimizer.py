"""Ask for a point, tell what it gave and cost: the only place where directions are turned.

Everything the next suggestion depends on is in the history and the seed. What the models must remember (the last fitted
hyperparameters) and what the policy must remember is in the records of the trials, and the randomness of a suggestion
is a function of (seed, number of trials): so the same history gives the same suggestion, bit for bit, in any process.
"""

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, overload

import numpy as np
from threadpoolctl import ThreadpoolController

from pbgi.arrays import Floats
from pbgi.checks import refuse_unknown_arguments, require_count
from pbgi.cost import WARINESS, Cost, CostModel, KnownCost, LearnedCost, UniformCost, few
from pbgi.errors import InvalidInputError, NothingLeftError, UnknownTrialError
from pbgi.fitting import cost_notes, fit_costs, fit_values, paid_trials
from pbgi.gp.config import GPConfig
from pbgi.history import WITHOUT_VALUE, History, Trial, TrialState
from pbgi.model import ModelKind
from pbgi.notes import Note
from pbgi.parameter import Parameter
from pbgi.plain import Value, require_fields
from pbgi.policy import Policy
from pbgi.prediction import Prediction, Recommendation, predict, recommend
from pbgi.settings import FIELDS, FORMAT, Settings
from pbgi.snapshot import Proposal, Snapshot, cost_of, failure_radius
from pbgi.space import Space
from pbgi.startup import START_SHARE, start_point
from pbgi.stopping import NothingLeft, Situation, StopReason, StopRule

# A trial fits what is left of the budget to within this share of it: ten trials of 0.1 fit a budget of 1, whatever
# rounding says, and so do ten trials of a learned cost that has always been the same.
ROUNDING, LEARNING = 1e-12, 1e-4
LAST_SHARE = 0.1  # of the budget: over it wariness doubles, and nothing is tried that may well not fit


@dataclass(frozen=True, eq=False)
class _Next:
    """What comes next: a proposal with the stop rule's note, or why there is none."""

    proposal: Proposal | None
    note: Mapping[str, Note]
    nothing_left: NothingLeft | None


class Optimizer:
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
    ) -> None:
        given = (space, direction, cost, budget, policy, stop, model, n_startup_trials, seed)
        self._set_up(Settings.checked(*given))

    def _set_up(self, settings: Settings) -> None:
        self._settings, self._space = settings, settings.space
        self._sign, self._budget = settings.sign, settings.budget
        self._history = History()
        self._rows: dict[int, Floats] = {}
        self._cached: tuple[tuple[Trial, ...], _Next] | None = None

    # Asking and telling ----------------------------------------------------------------------------------------------

    @overload
    def ask(self) -> Trial: ...

    @overload
    def ask(self, n: int) -> list[Trial]: ...

    @refuse_unknown_arguments
    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """The next trial to run, or a list of `n` of them: of fewer where there are no more, and at least of one.

        Raises:
            NothingLeftError: Every point has been tried, or none is expected to fit what is left of the budget.
        """
        if n is not None:
            return self._batch(require_count("n", n))
        upcoming = self._next()
        if upcoming.proposal is None:
            raise NothingLeftError(self._nothing_left_message(upcoming))
        proposal = upcoming.proposal
        params = self._space.from_unit(proposal.x)
        return self._history.add_running(params, proposal.predicted_cost, {**proposal.record, **upcoming.note})

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
        """Hand out a point of the user's choice as the next trial."""
        checked = self._space.check(params)
        predicted = None
        if self._cost_is_known(self._history.trials) and self._space.dimension:
            with _undisturbed():
                point = self._space.to_unit(checked)[None]
                predicted = cost_of(float(self._cost_model(self._history.trials).log_moment(point, 1.0)[0]))
        return self._history.add_running(checked, predicted)

    @refuse_unknown_arguments
    def adopt(
        self,
        params: Mapping[str, Value],
        *,
        predicted_cost: float | None = None,
        record: Mapping[str, Note] | None = None,
    ) -> Trial:
        """Take up a running trial that `ask` handed out elsewhere, in another process of the same run.

        Args:
            params: Its point.
            predicted_cost: What was expected of its cost there.
            record: What was noted of it there.
        """
        return self._history.add_running(self._space.check(params), predicted_cost, record)

    @refuse_unknown_arguments
    def tell(
        self,
        trial: Trial | int | Mapping[str, Value],
        value: float,
        *,
        cost: float | None = None,
        charge: float | None = None,
    ) -> Trial:
        """Record the value of a trial, and what it cost.

        Args:
            trial: A trial, its number, or a dict of parameters: an observation from elsewhere, which informs the
                models and is not charged.
            value: The outcome. NaN or an infinity fails the trial.
            cost: What it cost: an observation that the cost model learns from.
            charge: What the budget pays for it, where that is not its cost: nobody saw what it cost, or attempts that
                failed came before. Nothing is learned from it.

        Returns:
            The finished trial. Telling the same again changes nothing. A trial that ended without a value, because it
            was given up, say, takes one that comes late.
        """
        if isinstance(trial, Mapping):
            if charge is not None:
                raise InvalidInputError(f"charge must be None for an observation from elsewhere; got {charge!r}")
            return self._history.add_external(self._space.check(trial), value, cost)
        own = self._own(trial)
        unpaid = cost is None and charge is None and own.state not in WITHOUT_VALUE
        if unpaid and self._budget is not None and isinstance(self._settings.cost, LearnedCost | None):
            raise InvalidInputError(
                f"cost must be told, since the budget counts it; got cost=None for trial {own.number}; "
                "with cost=UniformCost() the budget is a number of trials"
            )
        return self._history.complete(own.number, value, cost, charge)

    @refuse_unknown_arguments
    def fail(
        self,
        trial: Trial | int,
        *,
        cost: float | None = None,
        message: str | None = None,
        charge: float | None = None,
    ) -> Trial:
        """Record that a trial ended without a value.

        It is charged all the same: the charge, else the cost, else what was expected. None of them is taken for an
        observation of what a success costs.
        """
        own = self._own(trial)
        paid = self._charge_without(cost, own) if charge is None else charge
        return self._history.fail(own.number, cost, message, paid)

    @refuse_unknown_arguments
    def interrupt(
        self,
        trial: Trial | int,
        *,
        cost: float | None = None,
        message: str | None = None,
        charge: float | None = None,
    ) -> Trial:
        """Record that a trial was ended from outside: by Ctrl-C, or because the budget was used up.

        It is charged as a failed one is, and it says nothing of its point, which may be tried again.
        """
        own = self._own(trial)
        paid = self._charge_without(cost, own) if charge is None else charge
        return self._history.interrupt(own.number, cost, message, paid)

    def _charge_without(self, cost: float | None, own: Trial) -> float | None:
        """What a trial without a value is charged where neither told nor predicted: what others have cost."""
        if cost is not None or own.predicted_cost is not None or self._budget is None or own.state in WITHOUT_VALUE:
            return None
        told = [trial.cost for trial in self._history.trials if trial.cost is not None]
        if not told:
            raise InvalidInputError(
                f"cost must be told, since the budget counts it and nothing is known of costs yet; got cost=None for "
                f"trial {own.number}"
            )
        return self.typical_cost or _mean(told)

    def should_stop(self) -> StopReason | None:
        """Why to stop now, or None."""
        return self._settings.stop.reason(self._situation(None)) or self._stop_before_next()

    def _stop_before_next(self) -> StopReason | None:
        upcoming = self._next()
        if upcoming.nothing_left is NothingLeft.EXHAUSTED:
            return StopReason("SpaceExhausted", self._nothing_left_message(upcoming))
        return self._settings.stop.reason(self._situation(upcoming))

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
        """What it was told once and for all, with defaults filled in."""
        return self._settings

    @property
    def space(self) -> Space:
        """Where points lie."""
        return self._space

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, by number."""
        return self._history.trials

    @property
    def best(self) -> Trial | None:
        """The completed trial with the best value; the first of equals; None if there is none."""
        done = self._history.completed
        return max(done, key=lambda t: (self._sign * (t.value or 0.0), -t.number)) if done else None

    @property
    def recommended(self) -> Recommendation | None:
        """The completed trial whose point is believed to be the best, with an interval; None if there is none.

        It is `best` where the values show no noise.
        """
        best, done = self.best, self._history.completed
        if best is None or best.value is None:
            return None
        if not self._space.dimension:  # one point, and no model of it
            return Recommendation(best, best.value, best.value, best.value)
        with _undisturbed():
            snapshot, _ = self._snapshot(self._history.trials, None)
            return recommend(snapshot, done, self._points(done), best)

    @property
    def budget(self) -> float | None:
        """What may be spent."""
        return self._budget

    @property
    def endless(self) -> bool:
        """Whether nothing would ever stop a run: no budget, no stop rule, and infinitely many points."""
        return self._settings.endless

    @property
    def spent(self) -> float:
        """Charged for finished trials, failed ones included."""
        return self._history.spent

    @property
    def typical_cost(self) -> float | None:
        """What a trial that gave a value has cost on average; None while none has told its cost."""
        costs = [trial.cost for trial in paid_trials(self._history.trials) if trial.cost is not None]
        return _mean(costs) if costs else None

    @property
    def reserved(self) -> float:
        """Expected cost of the running trials."""
        return self._history.reserved

    @property
    def remaining(self) -> float | None:
        """What is left of the budget after reservations; None without a budget."""
        return None if self._budget is None else max(self._budget - self.spent - self.reserved, 0.0)

    @refuse_unknown_arguments
    def predict(self, points: Sequence[Mapping[str, Value]]) -> Prediction:
        """What is believed of points now: the value they would give, and what they would cost.

        Args:
            points: Dicts of parameters.

        Raises:
            InvalidInputError: A point is not in the space, no trial has completed yet, or no parameter varies.
        """
        X = np.array([self._space.to_unit(self._space.check(point)) for point in points])
        if not self._history.completed or not self._space.dimension:
            known = f"{len(self._history.completed)} completed trials, {self._space.dimension} parameters that vary"
            raise InvalidInputError(
                f"predict() needs at least one completed trial and one parameter that varies; got {known}"
            )
        with _undisturbed():
            snapshot, _ = self._snapshot(self._history.trials, None)
            return predict(snapshot, X.reshape(len(points), self._space.dimension))

    # The next point --------------------------------------------------------------------------------------------------

    def _next(self) -> _Next:
        trials = self._history.trials
        if self._cached is None or self._cached[0] != trials:
            with _undisturbed():
                self._cached = trials, self._choose(trials)
        return self._cached[1]

    def _choose(self, trials: tuple[Trial, ...]) -> _Next:
        rng = np.random.default_rng([self._settings.seed, len(trials)])
        # A trial that was interrupted says nothing of its point, which may be tried again.
        seen = self._points([trial for trial in trials if trial.state is not TrialState.INTERRUPTED])
        excluded = None if self._settings.model.noisy else seen
        full = len(seen) >= self._space.n_points and len(np.unique(seen, axis=0)) >= self._space.n_points
        if full and excluded is not None:
            return _Next(None, {}, NothingLeft.EXHAUSTED)
        if self._space.dimension == 0:
            return _Next(Proposal(np.empty(0), None), {}, None)
        if self._in_startup(trials):
            proposal = self._start(trials, seen, excluded, rng)
            if proposal is not None:
                return _Next(proposal, {}, None)
        if not self._history.completed:
            return self._last_resort(trials, seen, excluded, rng)
        snapshot, record = self._snapshot(trials, excluded)
        proposal = self._settings.policy.propose(snapshot, rng)
        if proposal is None:
            unlimited = math.isinf(snapshot.affordable)
            return (
                _Next(None, {}, NothingLeft.EXHAUSTED) if unlimited else self._last_resort(trials, seen, excluded, rng)
            )
        note = self._settings.stop.note(snapshot, rng)
        return _Next(replace(proposal, record={**proposal.record, **record}), note, None)

    def _in_startup(self, trials: tuple[Trial, ...]) -> bool:
        if not self._history.completed or self._in_the_dark(trials):
            return True
        if len(trials) >= self._settings.n_startup_trials:
            return False
        return self._budget is None or self.spent + self.reserved < START_SHARE * self._budget

    def _in_the_dark(self, trials: tuple[Trial, ...]) -> bool:
        """Whether a budget must hold while nothing is known of costs: values from elsewhere may say none."""
        return math.isfinite(self._affordable()) and not self._cost_is_known(trials)

    def _start(
        self, trials: tuple[Trial, ...], seen: Floats, excluded: Floats | None, rng: np.random.Generator
    ) -> Proposal | None:
        """A starting point that fits its part of the start's share, or at least what is left of that share.

        While nothing has succeeded, one that fits the budget will do. While nothing is known of costs it is one around
        the middle of the space, the further out the more have failed: a corner may cost all there is.
        """
        cost = self._cost_model(trials) if self._cost_is_known(trials) else None
        affordable = self._affordable()
        allowances = [affordable]
        if self._budget is not None:
            left = START_SHARE * self._budget - self.spent - self.reserved
            allowances = [left / max(self._settings.n_startup_trials - len(trials), 1), left]
            allowances += [] if self._history.completed else [affordable]
        reaches = (1.0 - 0.75 ** max(len(self._history.failed), 1), 1.0) if self._in_the_dark(trials) else (1.0,)
        for allowance, reach in itertools.product(allowances, reaches):
            limit = min(allowance, affordable)
            proposal = start_point(self._space, seen, cost, limit, excluded, rng, reach=reach)
            if proposal is not None:
                return proposal
        return None

    def _last_resort(
        self, trials: tuple[Trial, ...], seen: Floats, excluded: Floats | None, rng: np.random.Generator
    ) -> _Next:
        """Where nothing fits for sure because few costs are known yet: a point that fits as likely as not.

        With the last of the budget that would be a gamble for little.
        """
        proposal = None
        few_known = self._cost_is_known(trials) and len(paid_trials(trials)) < few(self._space.dimension)
        if few_known and self._affordable() > LAST_SHARE * (self._budget or 0.0):
            cost, affordable = self._cost_model(trials), self._affordable()
            proposal = start_point(self._space, seen, cost, affordable, excluded, rng, 0.0)
        return _Next(proposal, {}, NothingLeft.UNAFFORDABLE if proposal is None else None)

    def _snapshot(self, trials: tuple[Trial, ...], excluded: Floats | None) -> tuple[Snapshot, dict[str, Note]]:
        values = fit_values(self._settings, trials, self._history.completed, self._points)
        cost = self._cost_model(trials)
        record = {**values.notes, **cost_notes(self._settings, trials, cost)}
        snapshot = Snapshot(
            space=self._space,
            X=values.X,
            warped=values.warped,
            warp=values.warp,
            model=values.model.condition_on_pending(self._points(self._history.running)),
            cost=cost,
            trials=trials,
            sign=self._sign,
            failed=self._points(self._history.failed),
            excluded=excluded,
            spent=self.spent,
            budget=self._budget,
            affordable=self._affordable(),
            wariness=self._wariness(),
            failed_radius=np.array([failure_radius(t, len(trials)) for t in self._history.failed]),
        )
        return snapshot, record

    def _cost_model(self, trials: tuple[Trial, ...]) -> CostModel:
        return fit_costs(self._settings, trials, self._points)

    def _cost_is_known(self, trials: tuple[Trial, ...]) -> bool:
        """Whether anything can be said of the cost of a point before the first cost was told."""
        if paid_trials(trials):
            return True
        known = isinstance(self._settings.cost, KnownCost | UniformCost)
        return known or (self._settings.cost is None and self._budget is None)

    def _affordable(self) -> float:
        remaining = self.remaining
        if remaining is None or not self._settings.budget_holds:
            return math.inf
        exact = isinstance(self._settings.cost, KnownCost | UniformCost)
        return remaining * (1.0 + (ROUNDING if exact else LEARNING))

    def _wariness(self) -> float:
        """How many deviations above its median a cost must fit: twice as many when the last of the budget is spent.

        A search for the best point that just fits finds the one whose cost is underestimated the most. Near the end,
        where that is a trial too many, little is lost by leaving it out.
        """
        if self._budget is None or self.remaining is None:
            return WARINESS
        return WARINESS * (1.0 + max(1.0 - self.remaining / self._budget / LAST_SHARE, 0.0))

    def _points(self, trials: Any) -> Floats:
        """Unit-cube rows of the trials; each is converted once."""
        for trial in trials:
            if trial.number not in self._rows:
                self._rows[trial.number] = self._space.to_unit(trial.params)
        return np.array([self._rows[t.number] for t in trials]).reshape(len(trials), self._space.dimension)

    def _situation(self, upcoming: _Next | None) -> Situation:
        return Situation(
            trials=self._history.trials,
            budget=self._budget,
            spent=self.spent,
            reserved=self.reserved,
            sign=self._sign,
            note=upcoming.note if upcoming else {},
            nothing_left=upcoming.nothing_left if upcoming else None,
        )

    def _nothing_left_message(self, upcoming: _Next) -> str:
        if upcoming.nothing_left is NothingLeft.EXHAUSTED:
            return f"every one of the {self._space.n_points:g} points of the space has been tried"
        return f"no trial is expected to fit the {self.remaining:g} that is left of the budget of {self._budget:g}"

    # Saving ----------------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """All of it as JSON text; functions (known costs) and models of other making must be given again."""
        saved = {"format": FORMAT, **self._settings.to_plain(), "history": self._history.to_json()}
        return json.dumps(saved, allow_nan=False)

    @classmethod
    @refuse_unknown_arguments
    def from_json(
        cls, text: str, *, cost: Cost | None = None, policy: Policy | None = None, model: ModelKind | None = None
    ) -> "Optimizer":
        """The optimizer that `to_json` wrote; it goes on as if it had never stopped.

        Args:
            text: What `to_json` returned.
            cost: The cost again, if it holds a function: JSON cannot.
            policy: The policy again, if it was not one of `pbgi.policy`.
            model: The model again, if it was not a `GPConfig`.

        Raises:
            InvalidInputError: The text is something else; the message names what is wrong.
        """
        try:
            data = json.loads(text)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"text must be what to_json wrote; got {str(text)[:50]!r}: {error}") from None
        require_fields("optimizer", data, ("format", "space", *FIELDS, "history"))
        if data["format"] != FORMAT:
            raise InvalidInputError(
                f"format must be {FORMAT}; got {data['format']!r}; it was written by another version"
            )
        optimizer = cls.__new__(cls)
        optimizer._set_up(Settings.from_plain(data, cost, policy, model))
        history = History.from_json(data["history"])
        for trial in history.trials:
            optimizer._space.check(trial.params)
        optimizer._history = history
        return optimizer


def _mean(costs: list[float]) -> float:
    return math.fsum(cost / len(costs) for cost in costs)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """With one thread, since more make small matrices slower, and without a word of NumPy's on what overflows."""
    with _threadpools().limit(limits=1), np.errstate(all="ignore"):
        yield


@cache
def _threadpools() -> ThreadpoolController:
    """Found once: looking for the libraries takes longer than a suggestion."""
    return ThreadpoolController()
