"""The searcher: Ray Tune's questions, answered by an optimizer.

Tune asks for a configuration whenever there is room for a trial (`suggest`), and says what trials report
(`on_trial_result`) and how they end (`on_trial_complete`). What there is to remember is in `experiment.py`; this
module translates names, spaces and files. Tune saves the searcher with the experiment, as JSON, and restores it in
`Tuner.restore`; what Ray itself pickles of a searcher holds the experiment as that same JSON text.
"""

import json
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

from ray.tune.result import DEFAULT_METRIC
from ray.tune.search import Searcher

from pbgi.checks import refuse_unknown_arguments
from pbgi.cost import Cost
from pbgi.errors import InvalidInputError
from pbgi.gp.config import GPConfig
from pbgi.integrations.ray.experiment import Experiment
from pbgi.integrations.ray.meter import SECONDS, STEP
from pbgi.integrations.ray.settings import SearchSettings, agreed, check_metric, check_mode
from pbgi.integrations.ray.spaces import Config, SearchSpace
from pbgi.optimizer import Optimizer
from pbgi.policy import Policy
from pbgi.serialization import parsed_json, require_fields
from pbgi.settings import Settings
from pbgi.stopping import StopReason, StopRule
from pbgi.trials.steps import Steps

FORMAT = 1
FIELDS = ("format", "identity", "metric", "mode", "space", "experiment")
_LOGGER = logging.getLogger(__name__)


class PBGISearch(Searcher):
    """Suggests configurations by the Gittins index, knowing what trials cost.

    The value of a trial is what it reported last. With a budget no trial begins that is not expected to fit what is
    left; `suggest` then waits for running trials, and ends the search when there are none.

    Args:
        space: What to search, as `param_space` of `tune.Tuner`, which is the other place to say it.
        metric: The name of the value that trials report; by default that of `TuneConfig`.
        mode: "min" or "max"; by default that of `TuneConfig`.
        budget: What may be spent, in the unit of the costs, over all trials and restarts.
        cost: The name under which trials report what they have cost so far, from which the cost is learned: by default
            their seconds. Or what is known beforehand: `pbgi.KnownCost(price)`, with a function of the configuration,
            or `pbgi.UniformCost()`, which makes the budget a number of trials.
        policy: See `pbgi.Optimizer`.
        stop: See `pbgi.Optimizer`.
        model: See `pbgi.Optimizer`.
        n_startup_trials: See `pbgi.Optimizer`.
        seed: See `pbgi.Optimizer`.
        points_to_evaluate: Configurations to try first.
        steps: How many steps a trial has, or where it is decided whether it goes on, see `pbgi.Optimizer`. Reports on
            the way then inform, and `PBGIScheduler(search)` stops trials that are not worth going on with.
        time_attr: The name under which trials report at which step they are.
    """

    CKPT_FILE_TMPL = "searcher-state-{}.json"

    @refuse_unknown_arguments
    def __init__(
        self,
        space: Mapping[str, Any] | None = None,
        *,
        metric: str | None = None,
        mode: str | None = None,
        budget: float | None = None,
        cost: str | Cost = SECONDS,
        policy: Policy | None = None,
        stop: StopRule | None = None,
        model: GPConfig | None = None,
        n_startup_trials: int | None = None,
        seed: int | None = None,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        steps: Steps | int | Sequence[int] | None = None,
        time_attr: str = STEP,
    ) -> None:
        check_metric(metric)
        check_mode(mode)
        filled_in: dict[str, Any] = {"policy": policy, "stop": stop, "model": model, "seed": seed, "steps": steps}
        engine = Settings(budget=budget, n_startup_trials=n_startup_trials, **filled_in)
        settings = SearchSettings(cost, engine, time_attr)
        super().__init__(metric=metric, mode=mode)
        self._set_up(settings, space, points_to_evaluate or (), metric, mode)
        if self._space is not None and mode is not None:
            self._begin()

    def _set_up(
        self, settings: SearchSettings, own_space: Any, points: Sequence[Any], metric: str | None, mode: str | None
    ) -> None:
        self._settings, self._own_space, self._points = settings, own_space, list(points)
        self._named, self._turned = metric, mode
        self._space: SearchSpace | None = None if own_space is None else SearchSpace.of(own_space)
        self._experiment: Experiment | None = None
        self._identity = uuid4().hex
        _IN_USE[self._identity] = self

    def _begin(self) -> None:
        self._experiment = self._settings.fresh_experiment(self._space_so_far, str(self._turned), self._points)

    # What is known ---------------------------------------------------------------------------------------------------

    @property
    def metric(self) -> str | None:  # type: ignore[override]
        """The name of the value that trials report."""
        return DEFAULT_METRIC if self._named is None and self._turned is not None else self._named

    @property
    def mode(self) -> str | None:  # type: ignore[override]
        """Whether smaller or larger values are better."""
        return self._turned

    @property
    def identity(self) -> str:
        """What this search and its copies in other processes have in common."""
        return self._identity

    @property
    def optimizer(self) -> Optimizer:
        """The engine: its trials, the best of them, what is reserved. To be looked at; Tune does the telling."""
        return self._ready.optimizer

    @property
    def budget(self) -> float | None:
        """What may be spent."""
        return self._ready.optimizer.budget

    @property
    def spent(self) -> float:
        """Charged for trials that have ended, failed ones included, and what running ones have reported so far."""
        return self._ready.spent

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the search is over: its budget is spent, or nothing runs and nothing should begin; None if it is not."""
        return None if self._experiment is None else self._experiment.ended()

    def is_spent_by(self, trial_id: str, result: Mapping[str, Any]) -> bool:
        """Whether the budget is spent if a trial reports this."""
        return self._experiment is not None and self._experiment.is_spent_by(trial_id, result)

    @property
    def steps(self) -> Steps | None:
        """How long a trial is, and where it is decided whether it goes on."""
        return self._settings.engine.steps

    @property
    def _ready(self) -> Experiment:
        if self._experiment is None:
            lacking = "mode" if self._space is not None else "space"
            way_out = "give it to PBGISearch, or param_space to tune.Tuner and metric and mode to tune.TuneConfig"
            raise InvalidInputError(f"{lacking} must be known before the search begins; got None; {way_out}")
        return self._experiment

    def _space_so_far(self) -> SearchSpace:
        assert self._space is not None  # noqa: S101 (for the type checker: there is no experiment without)
        return self._space

    # What Tune asks and says -----------------------------------------------------------------------------------------

    def set_search_properties(self, metric: str | None, mode: str | None, config: Config, **spec: Any) -> bool:
        """Take space, metric and mode from the Tuner; an experiment begins.

        Trials that an earlier experiment left running, in a file that was restored before, have nobody to end them:
        they are failed, and charged what they had cost.

        Returns:
            Whether the space was taken; False if there is one already.
        """
        del spec  # the rest of the experiment, which does not matter here
        check_metric(metric)
        check_mode(mode)
        named, turned = agreed("metric", self._named, metric), agreed("mode", self._turned, mode)
        if self._own_space is None:
            own = SearchSpace.of(config)
            if self._experiment is not None:
                own.require_like(self._space_so_far())
            self._space = own
        self._named, self._turned = named, turned
        if self._experiment is not None:
            self._experiment.fail_running("left running by an earlier experiment")
        elif turned is not None:
            self._begin()
        return self._own_space is None

    def suggest(self, trial_id: str) -> Config | str | None:  # type: ignore[override]
        """A configuration for a trial; None: not now; `Searcher.FINISHED`: not any more."""
        experiment = self._ready
        _IN_USE[self._identity] = self
        if trial_id not in experiment:
            reason = experiment.why_not()
            if reason is not None and experiment.n_running:
                experiment.give_up_lost()
                return None  # what runs may cost less than is held for it, and may change what is worth its price
            if reason is not None:
                _LOGGER.info("Search ended: %s", reason.message)
                return Searcher.FINISHED
            experiment.hand_out(trial_id)
        # What is constant in a param_space Tune adds by itself.
        has_own = self._own_space is not None
        return self._space_so_far().from_engine(experiment.trial(trial_id).params, with_constants=has_own)

    def on_trial_result(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """Note what a trial has cost so far.

        Raises:
            InvalidInputError: No trial has ever reported its cost, or its step, under the name it should.
        """
        if self._knows(trial_id, result):
            self._ready.report(trial_id, result, result.get(str(self.metric)))
            self._require_names(result)

    def goes_on(self, trial_id: str, result: Mapping[str, Any], *, best_next: bool = True) -> bool:
        """Note what a trial reports, and say whether it is worth going on with: what `PBGIScheduler` asks.

        Args:
            trial_id: Ray's.
            result: The report.
            best_next: Whether the next new trial is the best there is, or one that something else chooses.
        """
        self.on_trial_result(trial_id, result)
        return str(self.metric) not in result or self._ready.goes_on(trial_id, result, best_next=best_next)

    def on_trial_complete(self, trial_id: str, result: Mapping[str, Any] | None = None, error: bool = False) -> None:
        """Record how a trial ended: by the value it reported last, or failed. Its cost so far is charged either way."""
        if not self._knows(trial_id, result or {}):
            return
        experiment, value = self._ready, (result or {}).get(str(self.metric))
        if result:
            experiment.report(trial_id, result, value)
        if error:
            experiment.fail(trial_id, "failed in Ray Tune")
        elif result:
            experiment.complete(trial_id, value)
        else:
            experiment.leave(trial_id)

    def add_evaluated_point(
        self,
        parameters: Mapping[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: list[float] | None = None,
        *,
        cost: float | None = None,
    ) -> None:
        """Tell what is known from elsewhere; it informs and is not charged.

        Args:
            parameters: The configuration.
            value: What it gave.
            error: Whether it failed; then the value does not matter.
            pruned: Whether it was stopped early; its value counts all the same, as with trials of this search.
            intermediate_values: Not used: the value of a trial is the last one.
            cost: What it cost, if that is known.
        """
        del pruned, intermediate_values
        optimizer = self._ready.optimizer
        optimizer.tell(self._space_so_far().to_engine(parameters), math.nan if error else value, cost=cost)

    def _knows(self, trial_id: str, result: Mapping[str, Any]) -> bool:
        """Whether something can be recorded of a trial; one that Ray runs again is taken up first."""
        experiment = self._ready
        if trial_id in experiment:
            if not experiment.is_running(trial_id) and result and experiment.is_news(trial_id, result):
                experiment.take_up(trial_id, experiment.trial(trial_id).params)
            return experiment.is_running(trial_id)
        try:
            axes = self._space_so_far().axes.items()
            point = {name: axis.to_engine(result[f"config/{name}"]) for name, axis in axes}
        except (KeyError, InvalidInputError):
            _LOGGER.warning("Trial %s is not one of this search and is left out: it is not charged.", trial_id)
            return False
        experiment.take_up(trial_id, point)
        return True

    def _require_names(self, result: Mapping[str, Any]) -> None:
        """A name that no trial reports is a mistake: a budget would never be spent, no trial ever stopped."""
        cost, step = self._settings.cost_name, self._settings.step_name
        if cost is not None and cost not in result and not self._ready.knows_costs:
            rule = f"trials must report what they cost as {cost!r}"
            raise InvalidInputError(f"{rule}; got {_names(result)}; report it, or leave cost out to count seconds")
        if self.steps is not None and step not in result and not self._ready.knows_steps:
            rule = f"trials must report at which step they are as {step!r}"
            raise InvalidInputError(f"{rule}; got {_names(result)}; report it, or leave time_attr out to count reports")

    # Saving ----------------------------------------------------------------------------------------------------------

    def save(self, checkpoint_path: str) -> None:
        """Write everything to a file, as JSON."""
        Path(checkpoint_path).write_text(self._to_json(), encoding="utf-8")

    def restore(self, checkpoint_path: str) -> None:
        """Go on as if never stopped, from a file that `save` wrote.

        What was saved holds, but for the budget, if this search was given one: a search may go on with more.

        Raises:
            InvalidInputError: The file holds something else, or the search of another space.
        """
        self._load(Path(checkpoint_path).read_text(encoding="utf-8"))

    def _to_json(self) -> str:
        saved = {"format": FORMAT, "identity": self._identity, "metric": self._named, "mode": self._turned}
        if self._experiment is None:
            return json.dumps(saved | {"space": None, "experiment": None})
        space = self._space_so_far().to_plain()
        return json.dumps(saved | {"space": space, "experiment": self._experiment.to_plain()}, allow_nan=False)

    def _load(self, text: str) -> None:
        try:
            saved = parsed_json(text)
        except ValueError as error:
            raise InvalidInputError(f"a saved search must be JSON; got {text[:50]!r}: {error}") from None
        require_fields("a saved search", saved, FIELDS)
        if saved["format"] != FORMAT or type(saved["identity"]) is not str:
            raise InvalidInputError(f"format of a saved search must be {FORMAT}; got {saved['format']!r}")
        check_metric(saved["metric"])
        check_mode(saved["mode"])
        if saved["experiment"] is not None:
            self._take(saved["experiment"], saved["space"])
        self._named, self._turned, self._identity = saved["metric"], saved["mode"], saved["identity"]
        _IN_USE[self._identity] = self

    def _take(self, saved: Any, saved_space: Any) -> None:
        """Take over a saved experiment, checked before anything changes."""
        experiment = self._settings.saved_experiment(saved, self._space_so_far)
        space = SearchSpace.from_plain(saved_space, experiment.optimizer.space)
        if self._space is not None:
            self._space.require_like(space)
        self._experiment, self._space = experiment, self._space or space

    def __getstate__(self) -> dict[str, Any]:
        """For Ray's pickles: what it was made of, and the experiment as JSON text."""
        made_of = (self._settings, self._own_space, self._points, self._named, self._turned)
        return {"made_of": made_of, "space": self._space, "saved": self._to_json()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set_up(*state["made_of"])
        self._space = state["space"]
        self._load(state["saved"])


# The searches of this process, each under its identity the one that was used last. A stopper finds its search here:
# Ray pickles the two apart, so a reference would lead to a copy that is told nothing.
_IN_USE: "WeakValueDictionary[str, PBGISearch]" = WeakValueDictionary()


def search_in_use(identity: str) -> PBGISearch | None:
    """The search with this identity that was used last in this process, if there is one."""
    return _IN_USE.get(identity)


def _names(result: Mapping[str, Any]) -> str:
    return ", ".join(sorted(reported for reported in result if not reported.startswith("config/")))
