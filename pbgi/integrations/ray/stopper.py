"""A stopper for the budget of a search, and for its worth.

The search alone begins no trial that does not fit, and ends when there is nothing left to begin. What runs by then runs
to its end, though, and may cost more than was expected. With the stopper the experiment ends when the budget is spent,
counting what running trials have reported so far.
"""

from collections.abc import Mapping
from typing import Any

from ray.tune import Stopper
from ray.tune.utils import flatten_dict

from pbgi.errors import InvalidInputError
from pbgi.integrations.ray.searcher import PBGISearch, search_in_use


class PBGIStopper(Stopper):
    """Ends an experiment when the budget of its search is spent, or no trial is worth its price.

    When the budget is spent, running trials are stopped too. The one whose report used it up is recorded with the value
    it has reported. When no further trial is worth its price, those that run are waited for.

    It keeps no account of its own: it asks the search, so it holds across `Tuner.restore`.

    Args:
        search: The search of the same experiment.
    """

    def __init__(self, search: PBGISearch) -> None:
        if not isinstance(search, PBGISearch):
            raise InvalidInputError(f"search must be the PBGISearch of the experiment; got {search!r}")
        self._identity = search.identity

    def __call__(self, trial_id: str, result: Mapping[str, Any]) -> bool:
        """Whether to stop a trial: its report uses up the budget."""
        search = search_in_use(self._identity)
        return search is not None and search.is_spent_by(trial_id, flatten_dict(dict(result)))

    def stop_all(self) -> bool:
        """Whether to stop the experiment."""
        search = search_in_use(self._identity)
        return search is not None and search.stop_reason is not None
