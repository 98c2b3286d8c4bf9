"""How the first boundary moves with the deviations and the prices of the stages.

At its first boundary a box is worth nothing more than what is kept instead, whatever is decided later. So a small
change of a price counts as often as that price is paid, and a small change of a deviation as often as the box is then
at a bend of what going on is worth. Both are expectations over boxes that start at the first boundary and are cut off
at the later ones: over a law of points with masses again (`smear.py`), now from the first stage on.
"""

import numpy as np

from pbgi.arrays import Bools, Floats
from pbgi.index.boundaries import MOST_EVEN, Boundaries
from pbgi.index.smear import REACH, Bumps, Points, density, panels, steep


class Survivors:
    """Where boxes that start at the first boundary are after 1, 2, ... stages, those that were given up left out."""

    def __init__(self, boundaries: Boundaries) -> None:
        self._boundaries = boundaries
        nothing = np.zeros(boundaries.n_boxes)
        # Boxes that were given up must stay out of sight beside the few that are paid to the end.
        self._reach = np.sqrt(REACH**2 - 2.0 * np.log(boundaries.finishing))
        self._sources = [Points(nothing, nothing[:, None], np.ones((boundaries.n_boxes, 1)), nothing == 0, nothing)]

    def slopes(self, stds: Floats) -> tuple[Floats, Floats]:
        """Derivatives of the first boundary: minus the one in each deviation, and the one in each price, (boxes, R)."""
        boundaries = self._boundaries
        paid, bends = np.ones(stds.shape), np.empty(stds.shape)
        start = np.zeros((boundaries.n_boxes, 1))
        bends[:, 0] = density(start, boundaries.noisy(0))[:, 0]
        for stage in range(1, boundaries.n_stages):
            place, mass = self._next(stage)
            paid[:, stage] = mass.sum(axis=1)
            bends[:, stage] = np.sum(mass * density(place, boundaries.noisy(stage)), axis=1)
        finishing = boundaries.finishing[:, None]
        return stds * bends / finishing, paid / finishing

    def _next(self, stage: int) -> tuple[Floats, Floats]:
        """Places above the boundary of `stage`, and with what probability a box is there."""
        boundaries = self._boundaries
        noise = boundaries.between[:, :stage, stage]
        # How far each earlier boundary lies below this one.
        below = np.stack([boundaries.distances(i)[:, stage - i] for i in range(stage)], axis=1)
        top = boundaries.needed(stage, 1)
        bumps, even = self._bumps(stage, noise, below, top)
        place, weight = panels(bumps, top)
        sources = [source.seen(below[:, i], noise[:, i]) for i, source in enumerate(self._sources)]
        mass = weight * density(place, sources[::-1], self._reach)
        nothing = np.zeros(boundaries.n_boxes)
        self._sources.append(Points(nothing, place, mass, even, nothing))
        return place, mass

    def _bumps(self, stage: int, before: Floats, below: Floats, top: Floats) -> tuple[Bumps, Bools]:
        """What the panels must see: the steps that earlier boundaries cut, and the bends and the noise that come."""
        boundaries = self._boundaries
        after, above = boundaries.between[:, stage, stage + 1 :], boundaries.distances(stage)[:, 1:]
        reach = self._reach[:, None]
        start = np.concatenate([-below - reach * before, np.full(after.shape, -np.inf)], axis=1)
        end = np.concatenate([-below + reach * before, np.maximum(above, reach * after) + REACH * after], axis=1)
        even = top <= MOST_EVEN * np.minimum(before[:, -1], after[:, 0])
        start, end = np.where(even[:, None], -np.inf, start), np.where(even[:, None], np.inf, end)
        first, narrow = steep(reach, before[:, -1:])
        return (
            Bumps(
                start=np.concatenate([np.full(first.shape, -np.inf), start], axis=1),
                end=np.concatenate([first, end], axis=1),
                width=np.concatenate([narrow, before, after], axis=1),
            ),
            even,
        )
