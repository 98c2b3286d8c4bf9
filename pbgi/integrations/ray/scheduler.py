"""A scheduler that stops trials when what is left of them is not worth its price.

It keeps no account of its own: a search holds the trials, their reports and their costs, and says whether one goes on.
That is the search of the experiment, if it is a `PBGISearch`, else one that suggests nothing and is told everything.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler

from pbgi.checks import refuse_unknown_arguments
from pbgi.cost import Cost
from pbgi.errors import InvalidInputError
from pbgi.history import TrialState
from pbgi.integrations.ray.meter import SECONDS, STEP
from pbgi.integrations.ray.searcher import PBGISearch, search_in_use
from pbgi.trials.steps import Steps


class PBGIScheduler(FIFOScheduler):
    """Stops a trial when what is left of it is not worth what it would cost.

    Best with `PBGISearch`: `PBGIScheduler(search)`, where the search was given `steps`. With any other searcher say
    what is searched and how long a trial is: `PBGIScheduler(space=param_space, steps=27)`. Nothing is stopped before
    three trials have come to their end; trials end at their last step.

    Args:
        search: The `PBGISearch` of the same experiment; then all else is as there.
        space: What is searched, as `param_space` of `tune.Tuner`.
        steps: How many steps a trial has, or where it is decided whether it goes on, see `pbgi.Optimizer`.
        metric: The name of the value that trials report; by default that of `TuneConfig`.
        mode: "min" or "max"; by default that of `TuneConfig`.
        cost: The name under which trials report what they have cost so far, by default their seconds; see `PBGISearch`.
        time_attr: The name under which trials report at which step they are.
        seed: Of the points at which it is looked what a new trial would be worth.
    """

    @refuse_unknown_arguments
    def __init__(
        self,
        search: PBGISearch | None = None,
        *,
        space: Mapping[str, Any] | None = None,
        steps: Steps | int | Sequence[int] | None = None,
        metric: str | None = None,
        mode: str | None = None,
        cost: str | Cost = SECONDS,
        time_attr: str = STEP,
        seed: int = 0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        given = (space, steps, metric, mode, cost, time_attr) != (None, None, None, None, SECONDS, STEP)
        self._own: PBGISearch | None = None
        if search is None:
            self._own = search = _recorder(space, steps, metric, mode, cost, time_attr, seed)
        elif not isinstance(search, PBGISearch):
            raise InvalidInputError(f"search must be the PBGISearch of the experiment, or None; got {search!r}")
        elif given:
            raise InvalidInputError("with a search, space, steps, metric, mode, cost and time_attr are said there")
        elif search.steps is None:
            raise InvalidInputError("search must know how long a trial is: PBGISearch(..., steps=n); got steps=None")
        self._identity = search.identity

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        """Take metric and mode from the Tuner."""
        taken: bool = super().set_search_properties(metric, mode, **spec)
        if self._own is not None:
            self._own.set_search_properties(metric, mode, {})
        return taken

    def on_trial_result(self, _controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        """Whether a trial goes on."""
        search = self._search()
        if search is None or search.goes_on(trial.trial_id, result, best_next=self._own is None):
            return str(TrialScheduler.CONTINUE)
        return str(TrialScheduler.STOP)

    # A search of the experiment hears from Tune how trials end.

    def on_trial_complete(self, _controller: Any, trial: Trial, result: dict[str, Any]) -> None:
        """Record how a trial ended."""
        if self._own is not None:
            self._own.on_trial_complete(trial.trial_id, result)

    def on_trial_error(self, _controller: Any, trial: Trial) -> None:
        """Record that a trial failed."""
        if self._own is not None:
            self._own.on_trial_complete(trial.trial_id, error=True)

    def on_trial_remove(self, _controller: Any, trial: Trial) -> None:
        """Record that a trial was ended while it waited."""
        if self._own is not None:
            self._own.on_trial_complete(trial.trial_id)

    def debug_string(self) -> str:
        """What Tune prints."""
        search = self._search()
        trials = () if search is None or search.mode is None else search.optimizer.trials
        n_stopped = sum(trial.state is TrialState.STOPPED for trial in trials)
        return f"Using PBGIScheduler: {n_stopped} of {len(trials)} trials stopped early"

    def _search(self) -> PBGISearch | None:
        """Ray pickles scheduler and search apart: that of the experiment is found by its identity."""
        return self._own or search_in_use(self._identity)


def _recorder(
    space: Any, steps: Any, metric: str | None, mode: str | None, cost: str | Cost, time_attr: str, seed: int
) -> PBGISearch:
    """A search that suggests nothing."""
    if space is None or steps is None:
        lacking = " and ".join(name for name, value in (("space", space), ("steps", steps)) if value is None)
        way_out = "PBGIScheduler(search) with a PBGISearch(steps=n), or PBGIScheduler(space=param_space, steps=n)"
        raise InvalidInputError(f"{lacking} must be given where there is no PBGISearch; write {way_out}")
    return PBGISearch(space, metric=metric, mode=mode, cost=cost, steps=steps, time_attr=time_attr, seed=seed)
