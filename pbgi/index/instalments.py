"""The Gittins index of a box that is paid in instalments: after each one may go on, or stop and pay no more.

What stage r reveals moves the mean of the prize by N(0, stds[r]^2), at the price exp(log_costs[r]); after the last
stage the prize is known. The index is the sure prize that is worth as much as the box with all its stages left, each
of them paid only where the mean has not fallen too far. It is the mean plus an offset that depends on the stages
alone, and the ordinary index where there is one.

`boundaries.py` finds the offset of stages that matter, in units of what they reveal together. Here stages that reveal
nothing are paid together with the next one, and prices beyond all that could be revealed are simply paid.
"""

import numpy as np

from pbgi.arrays import Bools, Floats, Ints
from pbgi.errors import InvalidInputError
from pbgi.index.arguments import LOG_COST_RULE, Array, Backend, alike, common_shape, finish, require_finite
from pbgi.index.boundaries import Boundaries
from pbgi.index.gittins import gittins_index_and_grad
from pbgi.index.stage_gradient import Survivors

# A stage that reveals less than this share of the box counts as one that reveals nothing: it moves no index further.
NOTHING = 1e-11
# Where prices are this many deviations (as a logarithm), the index is the mean less all prices, to 12 digits.
HOPELESS = 30.0
# Prices below exp(-600) deviations count as that much.
LOWEST = -600.0
# Boxes computed at a time: few enough for the processor's cache, many enough for NumPy.
TOGETHER = 256
LARGEST = np.finfo(np.float64).max


def instalment_index(mean: Array, stds: Array, log_costs: Array) -> Array:
    """Gittins index of boxes that are paid in R stages and may be given up after each.

    Args:
        mean: Mean of the prize (larger is better), as it is known now; finite. Shape (*batch).
        stds: What each stage left reveals: the standard deviation by which it moves the mean; finite, not negative.
            The squares add up to the variance of the prize. Shape (*batch, R), the next stage first.
        log_costs: log(cost_scale * cost) of each stage: the logarithms of the prices in units of the prize; finite.
            Shape (*batch, R).

    Returns:
        The index, of the shape to which the batches broadcast. One stage gives `gittins_index`. Indices beyond the
        largest number of the dtype are that number. For tensors, differentiable once.

    Raises:
        InvalidInputError: An argument breaks its rule, or the shapes do not broadcast.
    """
    backend, (mean, stds, log_costs) = _checked(mean, stds, log_costs)
    if backend.xp is np:
        with np.errstate(all="ignore"):
            return finish(_saturated(mean, _offsets(stds, log_costs, with_slopes=False)[0]))
    from pbgi.index.autograd import once

    index = mean + once(_offsets, stds, log_costs)
    return index.clamp(min=-backend.largest, max=backend.largest)


def instalment_index_and_grad(mean: Array, stds: Array, log_costs: Array) -> tuple[Array, Array, Array]:
    """The index with its derivatives in `stds` and in `log_costs` (the one in `mean` is 1).

    Arguments and errors are those of `instalment_index`.

    Returns:
        `(index, dindex_dstds, dindex_dlog_costs)`: of the shape of the batch, and twice (*batch, R).
    """
    backend, (mean, stds, log_costs) = _checked(mean, stds, log_costs)
    if backend.xp is np:
        with np.errstate(all="ignore"):
            offset, by_std, by_log_cost = _offsets(stds, log_costs, with_slopes=True)
        return finish(_saturated(mean, offset)), by_std, by_log_cost
    place = {"dtype": stds.dtype, "device": stds.device}
    arrays = [x.detach().cpu().double().numpy() for x in (mean, stds, log_costs)]
    index, *slopes = (backend.xp.as_tensor(x, **place) for x in instalment_index_and_grad(*arrays))
    return index.clamp(min=-backend.largest, max=backend.largest), *slopes


def _checked(mean: Array, stds: Array, log_costs: Array) -> tuple[Backend, tuple[Array, Array, Array]]:
    """The arguments as arrays of one kind: mean of the shape of the batch, the others with the stages as last axis."""
    backend, (mean, stds, log_costs) = alike(mean=mean, stds=stds, log_costs=log_costs)
    shapes = {"mean": tuple(mean.shape), "stds": tuple(stds.shape), "log_costs": tuple(log_costs.shape)}
    n_stages = {shape[-1:] for name, shape in shapes.items() if name != "mean"}
    if len(n_stages) > 1 or not all(n for shape in n_stages for n in shape or (0,)):
        raise InvalidInputError(
            "stds and log_costs must have the stages, at least one, as their last axis; "
            f"got shapes {shapes['stds']} and {shapes['log_costs']}"
        )
    batch = common_shape({name: shape if name == "mean" else shape[:-1] for name, shape in shapes.items()})
    mean = backend.xp.broadcast_to(mean, batch)
    stds, log_costs = (backend.xp.broadcast_to(x, (*batch, x.shape[-1])) for x in (stds, log_costs))
    require_finite("mean", mean, backend)
    require_finite("stds", stds, backend, "finite and not negative", least=0.0)
    require_finite("log_costs", log_costs, backend, LOG_COST_RULE)
    return backend, (mean, stds, log_costs)


def _saturated(mean: Floats, offset: Floats) -> Floats:
    index: Floats = np.clip(mean + offset, -LARGEST, LARGEST)
    return index


def _offsets(stds: Floats, log_costs: Floats, *, with_slopes: bool) -> tuple[Floats, ...]:
    """Index minus mean, (*batch); with its slopes in both arguments, (*batch, R), if asked for."""
    batch, n_stages = stds.shape[:-1], stds.shape[-1]
    with np.errstate(all="ignore"):
        boxes = _Boxes(stds.reshape(-1, n_stages), log_costs.reshape(-1, n_stages), with_slopes)
    offset = np.clip(boxes.offset, -LARGEST, LARGEST).reshape(batch)
    if not with_slopes:
        return (offset,)
    by_log_cost = np.clip(boxes.by_log_cost, -LARGEST, LARGEST)
    return offset, boxes.by_std.reshape(stds.shape), by_log_cost.reshape(stds.shape)


class _Boxes:
    """Sorts boxes by how many of their stages matter, and has each kind computed."""

    def __init__(self, stds: Floats, log_costs: Floats, with_slopes: bool) -> None:
        self._stds, self._log_costs, self._with_slopes = stds, log_costs, with_slopes
        self.offset = np.empty(len(stds))
        self.by_std, self.by_log_cost = np.zeros(stds.shape), np.zeros(stds.shape)
        widest = stds.max(axis=1)
        shares = stds / np.where(widest > 0, widest, 1.0)[:, None]
        length = np.sqrt(np.sum(shares * shares, axis=1))
        self._spread = widest * length
        self._shares = shares / np.where(widest > 0, length, 1.0)[:, None]
        self._log_prices = log_costs - np.log(self._spread)[:, None]
        matters = self._shares > NOTHING
        n_mattering = matters.sum(axis=1)
        hopeless = (n_mattering > 1) & (_log_sum(self._log_prices) > HOPELESS)
        n_mattering[hopeless | (n_mattering == 0)] = 0
        for n in np.unique(n_mattering):
            boxes = np.flatnonzero(n_mattering == n)
            if n == 0:
                self._simply_paid(boxes)
            elif n == 1:
                self._one_payment(boxes, matters[boxes])
            else:
                self._stages(boxes, matters[boxes], int(n))

    def _simply_paid(self, boxes: Ints) -> None:
        prices = np.exp(self._log_costs[boxes])
        self.offset[boxes] = -prices.sum(axis=1)
        self.by_log_cost[boxes] = -prices

    def _one_payment(self, boxes: Ints, matters: Bools) -> None:
        """One stage reveals the prize: the ordinary index, at the price of all stages up to it, less those after it."""
        log_costs = self._log_costs[boxes]
        after = np.cumsum(matters, axis=1) - matters > 0
        log_price = _log_sum(np.where(after, -np.inf, log_costs))
        offset, by_std, by_log_price = gittins_index_and_grad(0.0, self._stds[boxes][matters], log_price)
        prices = np.where(after, np.exp(log_costs), 0.0)
        self.offset[boxes] = offset - prices.sum(axis=1)
        self.by_std[boxes] = np.where(matters, by_std[:, None], 0.0)
        self.by_log_cost[boxes] = np.where(
            after, -prices, by_log_price[:, None] * np.exp(log_costs - log_price[:, None])
        )

    def _stages(self, boxes: Ints, matters: Bools, n: int) -> None:
        """Several stages matter: each is paid together with those before it that do not."""
        columns = np.argsort(~matters, axis=1, kind="stable")[:, :n]
        stds = np.take_along_axis(self._shares[boxes], columns, axis=1)
        prices = np.exp(np.maximum(self._log_prices[boxes], LOWEST))
        paid_with: Ints = np.cumsum(matters, axis=1) - matters
        joint = np.stack([np.sum(prices * (paid_with == k), axis=1) for k in range(n + 1)], axis=1)
        # Boxes that are alike need alike numbers of points.
        order = np.argsort(stds.min(axis=1))
        for first in range(0, order.size, TOGETHER):
            some = order[first : first + TOGETHER]
            boundaries = Boundaries(stds[some], joint[some, :n])
            here = boxes[some]
            self.offset[here] = -self._spread[here] * (boundaries.places[:, 0] + joint[some, n])
            if self._with_slopes:
                by_std, by_price = Survivors(boundaries).slopes(stds[some])
                self.by_std[here[:, None], columns[some]] = by_std
                by_price = np.concatenate([by_price, np.ones((some.size, 1))], axis=1)
                slope = prices[some] * np.take_along_axis(by_price, paid_with[some], axis=1)
                self.by_log_cost[here] = -self._spread[here, None] * slope


def _log_sum(log_terms: Floats) -> Floats:
    """Logarithm of the sum along the last axis."""
    highest = log_terms.max(axis=-1)
    total: Floats = highest + np.log(np.sum(np.exp(log_terms - highest[:, None]), axis=-1))
    return total
