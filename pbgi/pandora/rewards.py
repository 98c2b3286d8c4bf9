"""What may be inside a box: Gaussian prizes, any frozen scipy.stats distribution, finite supports, samples."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from pbgi.arrays import Floats, Ints
from pbgi.checks import checks_arguments
from pbgi.errors import InvalidInputError
from pbgi.pandora.families import AtomsFamily, ContinuousFamily, Family, GaussianFamily

# Of a discrete scipy distribution with infinite support, what lies beyond this tail probability is left out.
TAIL = 1e-30
MOST_ATOMS = 1_000_000


@checks_arguments
@dataclass(frozen=True, slots=True)
class Gaussian:
    """A prize N(mean, std^2): the same as scipy.stats.norm(mean, std), without its half millisecond and 12 kB."""

    mean: float
    std: float

    def __post_init__(self) -> None:
        # Compared with the largest float: a whole number may be beyond it, and NaN is nowhere.
        if not abs(self.mean) <= sys.float_info.max:
            raise InvalidInputError(f"mean must be finite; got {self.mean}")
        if not 0 < self.std <= sys.float_info.max:
            raise InvalidInputError(f"std must be positive and finite; got {self.std}")


@checks_arguments
@dataclass(frozen=True, eq=False)
class Discrete:
    """A prize with finitely many possible values.

    Args:
        values: Finite numbers, in any order; repeated values add up.
        probabilities: One for each value, not negative, summing to one (to 1e-9; the rest is scaled away).
    """

    values: Floats
    probabilities: Floats

    def __init__(self, values: ArrayLike, probabilities: ArrayLike) -> None:
        v, p = finite_vector("values", values), finite_vector("probabilities", probabilities)
        if v.shape != p.shape:
            raise InvalidInputError(f"values and probabilities must have one length; got {v.size} and {p.size}")
        if np.any(p < 0):
            raise InvalidInputError(f"probabilities must not be negative; got {p[p < 0][0]}")
        if abs(p.sum() - 1.0) > 1e-9:
            raise InvalidInputError(f"probabilities must sum to one; got a sum of {p.sum()}")
        object.__setattr__(self, "values", v)
        object.__setattr__(self, "probabilities", p / p.sum())


class Rewards:
    """The prizes of all boxes, by family."""

    def __init__(self, rewards: Sequence[Any]) -> None:
        self.size = len(rewards)
        self._families: list[tuple[Ints, Family]] = list(_families(rewards))
        self._family_of, self._member_of = np.empty(self.size, np.intp), np.empty(self.size, np.intp)
        for number, (boxes, _) in enumerate(self._families):
            self._family_of[boxes], self._member_of[boxes] = number, np.arange(boxes.size)
        self.mean, self.sup, self.spread = (self._gather(name) for name in ("mean", "sup", "spread"))
        self.corners = np.unique(np.concatenate([family.corners() for _, family in self._families]))

    def _gather(self, name: str) -> Floats:
        out = np.empty(self.size)
        for boxes, family in self._families:
            out[boxes] = getattr(family, name)
        return out

    def index(self, price: Floats) -> Floats:
        """The index of every box at its price."""
        out = np.empty(self.size)
        for boxes, family in self._families:
            out[boxes] = family.index(price[boxes])
        return out

    def log_cdf(self, boxes: Ints, x: Floats) -> Floats:
        """Logarithm of P(prize < x), with shape (len(x), len(boxes))."""
        if len(self._families) == 1:
            return self._families[0][1].log_cdf(boxes, x)
        out = np.empty((x.size, boxes.size))
        family_of = self._family_of[boxes]
        for number, (_, family) in enumerate(self._families):
            here = np.flatnonzero(family_of == number)
            if here.size:
                out[:, here] = family.log_cdf(self._member_of[boxes[here]], x)
        return out

    def sample(self, box: int, rng: np.random.Generator) -> float:
        """One prize of one box."""
        family: Family = self._families[self._family_of[box]][1]
        return family.sample(int(self._member_of[box]), rng)


def _families(rewards: Sequence[Any]) -> Iterator[tuple[Ints, Family]]:
    """Sort prizes into families: (which boxes, their family)."""
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for i, reward in enumerate(rewards):
        kinds.setdefault(_kind(reward), []).append(i)
    for kind, members in kinds.items():
        own = [rewards[i] for i in members]
        yield np.array(members, np.intp), _family(kind, own)


def _family(kind: tuple[Any, ...], rewards: list[Any]) -> Family:
    if kind[0] == "atoms":
        values, probabilities, sup = zip(*map(_atoms, rewards), strict=True)
        return AtomsFamily(list(values), list(probabilities), list(sup))
    if kind[0] == "gaussian":
        mean, std = np.array([(reward.mean, reward.std) for reward in rewards], dtype=float).T
        return GaussianFamily(mean.copy(), std.copy())
    # scipy's own object takes stacked parameters; a frozen object of another maker speaks for itself.
    known = getattr(stats, kind[0], None)
    return ContinuousFamily(known if type(known) is type(rewards[0].dist) else rewards[0].dist, rewards)


def _kind(reward: Any) -> tuple[Any, ...]:
    """What a prize must share with another to be in its family."""
    if isinstance(reward, Gaussian):
        return ("gaussian",)
    if isinstance(reward, Discrete) or isinstance(reward.dist, stats.rv_discrete):
        return ("atoms",)
    distribution = reward.dist
    signature = (distribution.name, len(reward.args), tuple(sorted(reward.kwds)))
    known = type(getattr(stats, distribution.name or "", None)) is type(distribution)
    return signature if known else (*signature, id(reward))


def _atoms(reward: Any) -> tuple[Floats, Floats, float]:
    """Sorted values of positive probability, their probabilities, and the supremum of the support."""
    if isinstance(reward, Discrete):
        values, probabilities = reward.values, reward.probabilities
    else:
        values = _support(reward)
        probabilities = reward.pmf(values)
    values, where = np.unique(values[probabilities > 0], return_inverse=True)
    probabilities = np.bincount(where, weights=probabilities[probabilities > 0]).astype(np.float64)
    sup = float(values[-1]) if isinstance(reward, Discrete) else float(reward.support()[1])
    return values, probabilities / probabilities.sum(), sup


def _support(frozen: Any) -> Floats:
    """The values of a frozen discrete distribution, without tails lighter than TAIL."""
    low, high = frozen.support()
    middle = np.rint(frozen.mean())
    low = low if np.isfinite(low) else _where_light(frozen.cdf, middle, -1.0)
    high = high if np.isfinite(high) else _where_light(frozen.sf, middle, 1.0)
    if high - low >= MOST_ATOMS:
        name = frozen.dist.name
        raise InvalidInputError(
            f"a discrete reward must have at most {MOST_ATOMS} values of probability above {TAIL}; "
            f"{name} has {high - low + 1:.3g}: give a coarser Discrete or an array of samples"
        )
    return np.arange(low, high + 1)


def _where_light(tail: Callable[[float], float], start: float, direction: float) -> float:
    """A point at which the tail probability is at most TAIL, found by doubling the distance."""
    distance = 1.0
    while tail(start + direction * distance) > TAIL and distance < 2.0 * MOST_ATOMS:
        distance *= 2.0
    return start + direction * distance


def as_reward(reward: Any) -> Any:
    """A `Gaussian`, a `Discrete` or a frozen scipy.stats distribution from what a user gave."""
    if isinstance(reward, Gaussian | Discrete):
        return reward
    if hasattr(reward, "dist") and isinstance(reward.dist, stats.rv_continuous | stats.rv_discrete):
        return _checked_frozen(reward)
    if isinstance(reward, list | tuple | np.ndarray):
        samples = finite_vector("samples of a reward", reward)
        return Discrete(samples, np.full(samples.size, 1.0 / samples.size))
    raise InvalidInputError(
        "reward must be a frozen scipy.stats distribution such as scipy.stats.norm(0, 1), Gaussian(mean, std), "
        f"Discrete(values, probabilities) or an array of samples; got {reward!r}"
    )


def _checked_frozen(frozen: Any) -> Any:
    parameters = [*frozen.args, *frozen.kwds.values()]
    if any(np.ndim(p) for p in parameters):
        raise InvalidInputError(f"a reward must be one distribution, with scalar parameters; got {parameters}")
    if not np.isfinite(frozen.mean()):
        raise InvalidInputError(
            f"a reward must have a finite mean; that of {frozen.dist.name} with parameters {parameters} "
            f"is {frozen.mean()}"
        )
    if frozen.dist.name == "norm" and type(frozen.dist) is type(stats.norm):
        return Gaussian(float(frozen.mean()), float(frozen.std()))
    return frozen


def finite_vector(name: str, x: ArrayLike) -> Floats:
    """A copy of `x` as a vector of at least one finite float64, read-only."""
    try:
        array = np.array(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{name} must be numbers; got {x!r}") from None
    except OverflowError:
        raise InvalidInputError(f"{name} must be finite; got a number beyond the largest float") from None
    if array.ndim != 1 or array.size == 0:
        raise InvalidInputError(f"{name} must be a list of at least one number; got shape {array.shape}")
    if not np.all(np.isfinite(array)):
        raise InvalidInputError(f"{name} must be finite; got {array[~np.isfinite(array)][0]}")
    array.flags.writeable = False
    return array
