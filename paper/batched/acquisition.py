"""What the climbs of many runs maximize: the closed-form acquisition functions, runs of one form after another."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from paper.batched.posterior import Posterior
from pbgi.acquisition import LOWEST_Z
from pbgi.index import gittins_index_and_grad, log_h_and_grad
from pbgi.problems.unit_cube import BASE_PRICE, MEAN_PRICE

LARGEST = 1e100
Form = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
"""Mean, deviation, log cost and the run's parameter, all (b, m): the value and its derivatives in std and log cost.

That in the mean is the first of three numbers that follow the value, see `FORMS`.
"""


def _index(mean: Tensor, std: Tensor, log_cost: Tensor, log_scale: Tensor) -> tuple[Tensor, ...]:
    value, by_std, by_cost = gittins_index_and_grad(mean, std, log_scale + log_cost)
    return value, torch.ones_like(value), by_std, by_cost


def _bound(mean: Tensor, std: Tensor, log_cost: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    return mean + weight * std, torch.ones_like(mean), weight.expand_as(mean), torch.zeros_like(log_cost)


def _log_improvement(mean: Tensor, std: Tensor, log_cost: Tensor, power: Tensor) -> tuple[Tensor, ...]:
    """Log EI - power log c; the mean comes in less the best value."""
    z = (mean / std).clamp(LOWEST_Z, LARGEST)
    value, slope = log_h_and_grad(z)
    value = value + std.log() - power * log_cost
    return value, slope / std, (1.0 - slope * z) / std, -power.expand_as(mean)


def _improvement(mean: Tensor, std: Tensor, log_cost: Tensor, power: Tensor) -> tuple[Tensor, ...]:
    """The exponential of the same."""
    log_value, *slopes = _log_improvement(mean, std, log_cost, power)
    value = log_value.exp()
    return value, *(value * slope for slope in slopes)


def _textbook(mean: Tensor, std: Tensor, log_cost: Tensor, _: Tensor) -> tuple[Tensor, ...]:
    """EI as it is written, with the digits that are lost."""
    z = mean / std
    density = torch.exp(-0.5 * z * z) / (2.0 * torch.pi) ** 0.5
    mass = torch.special.ndtr(z)
    return mean * mass + std * density, mass, density, torch.zeros_like(log_cost)


def _log_textbook(mean: Tensor, std: Tensor, log_cost: Tensor, offset: Tensor) -> tuple[Tensor, ...]:
    """log(EI + offset)."""
    value, *slopes = _textbook(mean, std, log_cost, offset)
    return (value + offset).log(), *(slope / (value + offset) for slope in slopes)


# In the order in which runs are sorted. Those that begin with the best value subtract it from the mean.
FORMS: tuple[Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, ...]], ...] = (
    _index,
    _bound,
    _log_improvement,
    _improvement,
    _textbook,
    _log_textbook,
)
INDEX, BOUND, LOG_IMPROVEMENT, IMPROVEMENT, TEXTBOOK, LOG_TEXTBOOK = range(len(FORMS))
OVER_THE_BEST = (LOG_IMPROVEMENT, IMPROVEMENT, TEXTBOOK, LOG_TEXTBOOK)


@dataclass(frozen=True, eq=False)
class Acquisition:
    """One function per run; runs are in ascending order of their forms.

    Attributes:
        posterior: Of each run.
        form: (b,) Positions in `FORMS`, on the processor.
        parameter: (b,) Of the form.
        best: (b,) Best values so far.
        slope: (b,) Of the cost 1 + slope * sum(x).
    """

    posterior: Posterior
    form: Tensor
    parameter: Tensor
    best: Tensor
    slope: Tensor

    def take(self, runs: Tensor) -> "Acquisition":
        """Of these runs."""
        return replace(
            self,
            posterior=self.posterior.take(runs),
            form=self.form[runs.cpu()],
            parameter=self.parameter[runs],
            best=self.best[runs],
            slope=self.slope[runs],
        )

    def value(self, X: Tensor) -> Tensor:
        """Values (b, m)."""
        mean, std = self.posterior.predict(X)
        return self._formed(mean, std, self._cost(X).log())[0]

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Values (b, m) and gradients (b, m, d)."""
        mean, std, dmean, dstd = self.posterior.predict_with_grad(X)
        cost = self._cost(X)
        value, by_mean, by_std, by_cost = self._formed(mean, std, cost.log())
        dcost = (by_cost * self.slope[:, None] / cost)[..., None]
        return value, by_mean[..., None] * dmean + by_std[..., None] * dstd + dcost

    def _cost(self, X: Tensor) -> Tensor:
        return BASE_PRICE + self.slope[:, None] * X.sum(-1)

    def _formed(self, mean: Tensor, std: Tensor, log_cost: Tensor) -> tuple[Tensor, ...]:
        pieces, begin = [], 0
        for form, count in enumerate(torch.bincount(self.form, minlength=len(FORMS)).tolist()):
            if count:
                rows = slice(begin, begin + count)
                shift = self.best[rows, None] if form in OVER_THE_BEST else 0.0
                parts = (mean[rows] - shift, std[rows], log_cost[rows], self.parameter[rows, None])
                pieces.append(FORMS[form](*parts))
                begin += count
        return tuple(torch.cat(part) for part in zip(*pieces, strict=True))


def price_slope(price: str, dimension: int) -> float:
    """Of the cost 1 + slope * sum(x): "uniform", "own" (20 mean(x)) or "norm" (20 |x|_1)."""
    return {"uniform": 0.0, "own": MEAN_PRICE / dimension, "norm": MEAN_PRICE}[price]
