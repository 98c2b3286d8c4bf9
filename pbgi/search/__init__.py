"""Where a function of the unit cube is largest.

climb.py     quasi-Newton climbs from many points at once
grids.py     the same where coordinates live on grids
maximize.py  a pool of points, starts chosen from it, and the search
"""

from pbgi.search.grids import FineGrid, Grid
from pbgi.search.maximize import (
    Acquisition,
    Activity,
    Search,
    SearchResult,
    build_pool,
    default_n_sobol,
    default_n_starts,
    search,
)

__all__ = [
    "Acquisition",
    "Activity",
    "FineGrid",
    "Grid",
    "Search",
    "SearchResult",
    "build_pool",
    "default_n_sobol",
    "default_n_starts",
    "search",
]
