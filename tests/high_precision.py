"""The index in 50-digit arithmetic: what the float64 code is tested against."""

from typing import NamedTuple

import mpmath as mp

# h(z) = phi + z Phi loses 2 log10|z| digits far below zero: 13 at z = -1.4e6, the lowest root tested.
DIGITS = 50
GUARD_DIGITS = 30


class Exact(NamedTuple):
    z: mp.mpf
    lam: mp.mpf  # phi / Phi = dindex/dstd
    r: mp.mpf  # h / Phi = dz/dlog_ratio = -dindex/dlog_cost / std


def h(z: mp.mpf) -> mp.mpf:
    with mp.workdps(DIGITS + GUARD_DIGITS):
        z = mp.mpf(z)
        return mp.npdf(z) + z * mp.ncdf(z)


def log_h(z: float) -> mp.mpf:
    with mp.workdps(DIGITS + GUARD_DIGITS):
        return mp.log(h(z))


def root(log_ratio: float, guess: float) -> Exact:
    """The exact root of log h(z) = log_ratio, by Newton's method from any guess within its (global) basin."""
    with mp.workdps(DIGITS + GUARD_DIGITS):
        z, target = mp.mpf(guess), mp.mpf(log_ratio)
        for _ in range(200):
            step = (mp.log(h(z)) - target) * h(z) / mp.ncdf(z)
            z -= step
            if abs(step) <= mp.mpf(10) ** -DIGITS * max(1, abs(z)):
                cdf = mp.ncdf(z)
                return Exact(z, mp.npdf(z) / cdf, h(z) / cdf)
    raise AssertionError(f"no root found for log_ratio = {log_ratio}")
