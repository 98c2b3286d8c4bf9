"""Boxes paid in stages by dynamic programming on fine panels, one at a time: what the fast index is tested against."""

import numpy as np
from scipy import optimize, special

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def h(z):
    return np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) + z * special.ndtr(z)


def boundaries(stds, prices):
    """The u at which going on is worth nothing, before each stage; the index is the mean minus the first of them.

    What going on is worth is tabulated from its root up on panels half as wide as the narrowest stage, so that its
    bend is an edge; its expectation is a sum over the table, and beyond the table (a line by then) a closed form.
    """
    spread, narrow = float(np.sqrt(np.sum(np.square(stds)))), 0.5 * min(stds)
    low, high = -12.0 * spread, 9.0 * spread + 1.5 * sum(prices)

    def worth(u):
        return stds[-1] * h(u / stds[-1]) - prices[-1]

    roots = []
    for stage in range(len(stds) - 1, -1, -1):
        roots.insert(0, optimize.brentq(worth, low, high, xtol=1e-15, rtol=1e-15))
        if stage > 0:
            worth = _before(worth, roots[0], high, narrow, stds[stage - 1], prices[stage - 1], sum(prices[stage:]))
    return np.array(roots)


def _before(worth, root, high, narrow, std, price, remaining):
    edges = np.linspace(root, high, int((high - root) / narrow) + 2)
    half = 0.5 * np.diff(edges)[:, None]
    nodes = (0.5 * (edges[:-1] + edges[1:])[:, None] + half * NODES).ravel()
    weighted = np.concatenate([worth(some) for some in np.array_split(nodes, 1 + nodes.size // 500)])
    weighted = weighted * (half * WEIGHTS).ravel()

    def expected(u):
        u = np.asarray(u, dtype=float)
        density = np.exp(-0.5 * ((u[..., None] - nodes) / std) ** 2) / (std * np.sqrt(2 * np.pi))
        z = (u - high) / std
        line = (u - remaining) * special.ndtr(z) + std * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
        return density @ weighted + line - price

    return expected
