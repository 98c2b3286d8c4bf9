"""Ray Tune that knows what trials cost: a searcher, a scheduler, and a stopper for the budget.

    PBGISearch     suggests by the Gittins index, within a budget; running trials are pending and their cost is reserved
    PBGIScheduler  stops trials that are not worth going on with
    PBGIStopper    ends the experiment when the budget is spent, running trials included, or no trial is worth its price

`TuneConfig(search_alg=PBGISearch(budget=...), num_samples=-1)` is a whole search: it ends by itself. Needs
`pip install 'ray[tune]'`.
"""

from pbgi.errors import MissingPackageError

try:
    import ray.tune  # noqa: F401 (to say what is missing)
except ImportError as missing:
    raise MissingPackageError("pbgi.integrations.ray needs Ray Tune: pip install 'ray[tune]'") from missing

from pbgi.integrations.ray.scheduler import PBGIScheduler
from pbgi.integrations.ray.searcher import PBGISearch
from pbgi.integrations.ray.stopper import PBGIStopper

__all__ = ["PBGIScheduler", "PBGISearch", "PBGIStopper"]
