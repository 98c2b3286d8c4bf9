"""Integration over many panels at once, for integrands that are smooth inside each panel."""

from collections.abc import Callable

import numpy as np

from pbgi.arrays import Floats

# Gauss-Kronrod pair of 3 and 7 points on [-1, 1] (Kronrod, 1965); the Gauss points are every second one.
_NODES = np.array([0.9604912687080203, 0.7745966692414834, 0.4342437493468026])
_KRONROD = np.array([0.1046562260264673, 0.2684880898683334, 0.4013974147759622])
NODES = np.concatenate([-_NODES, [0.0], _NODES[::-1]])
KRONROD_WEIGHTS = np.concatenate([_KRONROD, [0.4509165386584741], _KRONROD[::-1]])
GAUSS_WEIGHTS = np.array([0.0, 5.0, 0.0, 8.0, 0.0, 5.0, 0.0]) / 9.0

MOST_HALVINGS = 60


def graded(edges: Floats, unit: float) -> Floats:
    """Cut panels wider than `unit` at distances unit, 4 unit, 16 unit, ... from both ends.

    A function that varies on the scale `unit` near the edges, and ever more slowly away from them, is then seen.
    """
    cuts = [edges]
    for i in np.flatnonzero(np.diff(edges) > unit):
        low, high = edges[i], edges[i + 1]
        n_cuts = int(np.ceil(np.log((high - low) / unit) / np.log(4.0)))
        distances = unit * 4.0 ** np.arange(n_cuts)
        cuts += [low + distances, high - distances]
    points = np.unique(np.concatenate(cuts))
    inside: Floats = points[(points >= edges[0]) & (points <= edges[-1])]
    return inside


def integrate_panels(f: Callable[[Floats], Floats], edges: Floats) -> float:
    """Integral of f from the first edge to the last, where f is smooth between neighboring edges.

    The two rules differ by the error of the lesser one; the better one is then far closer, so a panel is taken when
    they agree to 1e-11 of it or 1e-15 of the whole, and halved otherwise.

    Args:
        f: Maps an array of points to the values there.
        edges: Rising; f may jump or bend at an edge. A feature far narrower than its panel may go unseen: see `graded`.
    """
    low, high = edges[:-1], edges[1:]
    total, whole = 0.0, 0.0
    for _ in range(MOST_HALVINGS):
        half = 0.5 * (high - low)
        values = f((0.5 * (low + high))[:, None] + half[:, None] * NODES)
        better, lesser = half * (values @ KRONROD_WEIGHTS), half * (values @ GAUSS_WEIGHTS)
        whole = max(whole, float(np.abs(better).sum()))
        taken = np.abs(better - lesser) <= 1e-11 * np.abs(better) + 1e-15 * whole
        total += float(better[taken].sum())
        low, high = low[~taken], high[~taken]
        if low.size == 0:
            return total
        middle = 0.5 * (low + high)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    # Panels this narrow hold a jump that is not at an edge; what is left of them is below rounding.
    return total
