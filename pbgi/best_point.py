"""The search for the best allowed point: affordable, not excluded, and unlikely to fail if there is such a point."""

import math

import numpy as np

from pbgi.acquisition import Cheapness, InBranch, Restricted
from pbgi.arrays import Floats
from pbgi.cost import CostModel
from pbgi.parameter import Parameter, levels_of
from pbgi.search import Acquisition, FineGrid, Grid, SearchResult, build_pool, search
from pbgi.snapshot import Snapshot
from pbgi.space import Space

N_INCUMBENTS = 3


def best_point(
    snapshot: Snapshot,
    acquisition: Acquisition,
    rng: np.random.Generator,
    *,
    pool: Floats | None = None,
    former_maximizers: Floats | None = None,
    times_climbs: int = 1,
) -> SearchResult:
    """The best allowed point.

    Args:
        snapshot: What is known, and how to search.
        acquisition: What is maximized.
        rng: Source of all randomness.
        pool: Points to choose starts from; by default Sobol points, and what the search and the following add.
        former_maximizers: Points of earlier searches, added as they are.
        times_climbs: How many times the usual number of climbs.
    """
    pool = _pool(snapshot, rng, former_maximizers) if pool is None else pool
    if snapshot.branch and snapshot.space.conditions is not None:
        acquisition = InBranch(acquisition, snapshot.space.conditions, snapshot.branch)
    if not snapshot.is_affordable(snapshot.space.snap(pool)).any():
        pool = np.concatenate([pool, cheap_points(snapshot.space, snapshot.cost, pool, snapshot.excluded, rng)])
    for wary in (True, False) if len(snapshot.failed) else (False,):
        free = math.isinf(snapshot.affordable) and not wary
        found = search(
            acquisition if free else restricted(snapshot, acquisition, wary=wary),
            pool,
            rng=rng,
            n_starts=times_climbs * snapshot.search.n_climbs(snapshot.space.dimension),
            grids=grids_of(snapshot.space),
            excluded=snapshot.excluded,
            lengths=_lengths(snapshot),
            activity=snapshot.space.conditions,
        )
        if found.x is not None and math.isfinite(found.value):
            break
    return found


def restricted(snapshot: Snapshot, acquisition: Acquisition, *, wary: bool = True) -> Restricted:
    """The function where points are affordable and, if wary, neither close to failures nor likely to fail."""
    return Restricted(
        acquisition,
        None if math.isinf(snapshot.affordable) else snapshot.is_affordable,
        snapshot.failed if wary else snapshot.failed[:0],
        snapshot.failed_radius if wary else 0.0,
        snapshot.space.categorical,
        snapshot.success if wary else None,
    )


def cheap_points(
    space: Space, cost: CostModel, pool: Floats, excluded: Floats | None, rng: np.random.Generator
) -> Floats:
    """The cheapest points there are, with their neighbors: for when a pool holds none that is affordable."""
    grids, activity = grids_of(space), space.conditions
    found = search(Cheapness(cost), pool, rng=rng, grids=grids, excluded=excluded, activity=activity)
    return space.snap(build_pool(space.dimension, rng, n_sobol=0, incumbents=found.X_all[:N_INCUMBENTS]))


def grids_of(space: Space) -> list[Grid | FineGrid | None]:
    """The grids of a space, as the search wants them."""
    grids = zip(space.coordinates, space.grids, space.categorical, strict=True)
    return [
        _fine_grid(space.parameters[name]) if levels is None else Grid(levels, ordered=not is_category)
        for name, levels, is_category in grids
    ]


def _fine_grid(parameter: object) -> FineGrid | None:
    """The grid of a number of many levels: points that differ by less than a level are the same point."""
    levels = levels_of(parameter) if isinstance(parameter, Parameter) else None
    return None if levels is None else FineGrid(levels.n_levels, levels.at, levels.positions)


def _pool(snapshot: Snapshot, rng: np.random.Generator, former_maximizers: Floats | None) -> Floats:
    d, how = snapshot.space.dimension, snapshot.search
    best = snapshot.best_first[:N_INCUMBENTS]
    # What earlier searches found is near the best points as a rule.
    incumbents, former = (snapshot.X[best], former_maximizers) if how.near_best else (None, None)
    return build_pool(d, rng, n_sobol=how.n_points(d), incumbents=incumbents, former_maximizers=former)


def _lengths(snapshot: Snapshot) -> Floats | None:
    """What the model has learned of how far values go before they change."""
    known = snapshot.model.hyperparameters
    return None if known is None else np.array(known.length_scales)
