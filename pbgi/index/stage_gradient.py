"""How the first boundary moves with the deviations and the prices of the stages.

At its first boundary a box is worth nothing more than what is kept instead, whatever is decided later. So a small
change of a price counts as often as that price is paid, and a small change of a deviation as often as the box is then
at a bend of what going on is worth. Both are expectations over boxes that start at the first boundary and are cut off
at the later ones: over a law of points with masses again (`smear.py`), now from the first stage on.
"""

import numpy as np

from pbgi.arrays import Bools, Floats
from pbgi.index.boundaries import MOST_EVEN, Boundaries
from pbgi.index.smear import REACH, Bumps, Panels, Points, density, panels, steep


class Survivors:
    """Where boxes that start at the first boundary are after 1, 2, ... stages, those that were given up left out."""

    def __init__(self, boundaries: Boundaries) -> None:
        self._boundaries = boundaries
        nothing = np.zeros(boundaries.n_boxes)
        # Boxes that were given up must stay out of sight beside the few that are paid to the end.
        self._reach = np.sqrt(REACH**2 - 2.0 * np.log(boundaries.finishing[:, 0]))
        self._sources = [Points(nothing, nothing[:, None], np.ones((boundaries.n_boxes, 1)), nothing == 0, nothing)]

    def slopes(self, stds: Floats) -> tuple[Floats, Floats]:
        """Derivatives of the first boundary: minus the one in each deviation, and the one in each price, (boxes, R)."""
        boundaries = self._boundaries
        paid, bends = np.ones(stds.shape), np.empty(stds.shape)
        start = np.zeros((boundaries.n_boxes, 1))
        bends[:, 0] = density(start, boundaries.noisy(0))[:, 0]
        for stage in range(1, boundaries.n_stages):
            nodes, here = self._next(stage)
            bend = density(nodes.place, boundaries.noisy(stage))
            bends[:, stage] = np.sum(nodes.weight * here * bend, axis=1)
            paid[:, stage] = self._paid(stage, nodes, here, nodes.weight * bend)
        finishing = boundaries.finishing[:, :1]
        return stds * bends / finishing, paid / finishing

    def _paid(self, stage: int, nodes: Panels, here: Floats, ends: Floats) -> Floats:
        """Probability that the stage after `stage` is paid: of those who finish, and of those who do not.

        X_stage says below which place a box is given up later. So a sum over places and X_stage asks nothing about the
        many places so far up that every box finishes.
        """
        below, all_of_them = nodes.below(here)
        finishing = self._boundaries.finishing
        beyond = np.maximum(1.0 - finishing[:, stage] - ends.sum(axis=1), 0.0)
        paid: Floats = finishing[:, 0] + np.sum(ends * below, axis=1) + beyond * all_of_them
        return paid

    def _next(self, stage: int) -> tuple[Panels, Floats]:
        """Places above the boundary of `stage`, and the density of boxes there."""
        boundaries = self._boundaries
        noise = boundaries.between[:, :stage, stage]
        # How far each earlier boundary lies below this one.
        below = np.stack([boundaries.distances(i)[:, stage - i] for i in range(stage)], axis=1)
        bumps, top, even = self._bumps(stage, noise, below)
        nodes = panels(bumps, top)
        sources = [source.seen(below[:, i], noise[:, i]) for i, source in enumerate(self._sources)]
        here = density(nodes.place, sources[::-1], self._reach)
        nothing = np.zeros(boundaries.n_boxes)
        self._sources.append(Points(nothing, nodes.place, nodes.weight * here, even, nothing))
        return nodes, here

    def _bumps(self, stage: int, before: Floats, below: Floats) -> tuple[Bumps, Floats, Bools]:
        """What the panels must see, and how far up: steps of earlier boundaries, bends and noise to come."""
        boundaries = self._boundaries
        after, above = boundaries.between[:, stage, stage + 1 :], boundaries.distances(stage)[:, 1:]
        reach = self._reach[:, None]
        start = np.concatenate([-below - reach * before, np.full(after.shape, -np.inf)], axis=1)
        end = np.concatenate([-below + reach * before, np.maximum(above, reach * after) + REACH * after], axis=1)
        top = np.maximum(np.minimum(boundaries.needed(stage, 1), np.max(above + reach * after, axis=1)), 0.0)
        even = top <= MOST_EVEN * np.minimum(before[:, -1], after[:, 0])
        start, end = np.where(even[:, None], -np.inf, start), np.where(even[:, None], np.inf, end)
        first, narrow = steep(reach, before[:, -1:])
        return (
            Bumps(
                start=np.concatenate([np.full(first.shape, -np.inf), start], axis=1),
                end=np.concatenate([first, end], axis=1),
                width=np.concatenate([narrow, before, after], axis=1),
            ),
            top,
            even,
        )
