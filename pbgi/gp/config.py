"""What a Gaussian process is told before it sees data: kernel, priors, bounds, and the hyperparameters themselves."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pbgi.arrays import Floats
from pbgi.checks import as_float, checks_arguments, is_real, set_fields, unboxed
from pbgi.errors import InvalidInputError
from pbgi.gp.kernel import kernel_named

OUTPUTS = ("warped", "standardized", "plain")
LOG_2PI = math.log(2.0 * math.pi)


def _number(value: object) -> float:
    """The value as a float, NaN if it is no real number."""
    if type(value) is float:  # as a rule: models are made at every step
        return value
    plain = unboxed(value)
    return as_float(plain) if is_real(plain) else math.nan


def _require_positive(name: str, value: object) -> None:
    if not 0.0 < _number(value) < math.inf:
        raise InvalidInputError(f"{name} must be positive and finite; got {value}")


def _require_density(prior: "Prior") -> None:
    try:
        finite = all(map(math.isfinite, prior.coefficients()))
    except ArithmeticError:
        finite = False
    if not finite:
        raise InvalidInputError(f"a prior must have a density that floats can hold; got {prior}")


@checks_arguments
@dataclass(frozen=True)
class GammaPrior:
    """Gamma distribution of a positive parameter, with mean concentration / rate."""

    concentration: float
    rate: float

    def __post_init__(self) -> None:
        _require_positive("concentration", self.concentration)
        _require_positive("rate", self.rate)
        _require_density(self)

    def coefficients(self) -> tuple[float, float, float, float]:
        """Of the log density as a function of the log parameter, see `LogPrior`."""
        a, b = self.concentration, self.rate
        return a * math.log(b) - math.lgamma(a), a - 1.0, b, 0.0


@checks_arguments
@dataclass(frozen=True)
class LogNormalPrior:
    """Distribution of a positive parameter whose logarithm is N(location, scale^2)."""

    location: float
    scale: float

    def __post_init__(self) -> None:
        if not math.isfinite(_number(self.location)):
            raise InvalidInputError(f"location must be finite; got {self.location}")
        _require_positive("scale", self.scale)
        _require_density(self)

    def coefficients(self) -> tuple[float, float, float, float]:
        """Of the log density as a function of the log parameter, see `LogPrior`."""
        precision = 1.0 / self.scale**2
        constant = -0.5 * precision * self.location**2 - math.log(self.scale) - 0.5 * LOG_2PI
        return constant, precision * self.location - 1.0, 0.0, 0.5 * precision


Prior: TypeAlias = GammaPrior | LogNormalPrior


@checks_arguments
@dataclass(frozen=True)
class Hyperparameters:
    """Parameters of the covariance, in units of the standardized values.

    Attributes:
        length_scales: One per input, in units of the cube.
        output_scale: Variance of the function.
        noise: Variance of the noise.
    """

    length_scales: tuple[float, ...]
    output_scale: float
    noise: float

    def __post_init__(self) -> None:
        if isinstance(self.length_scales, str) or not isinstance(self.length_scales, Iterable):
            raise InvalidInputError(f"length_scales must be a tuple of numbers; got {self.length_scales!r}")
        scales = tuple(self.length_scales)
        for ell in scales:
            _require_positive("length_scales", ell)
        _require_positive("output_scale", self.output_scale)
        if not 0.0 <= _number(self.noise) < math.inf:
            raise InvalidInputError(f"noise must be finite and not negative; got {self.noise}")
        set_fields(self, length_scales=tuple(_number(ell) for ell in scales))
        set_fields(self, output_scale=_number(self.output_scale), noise=_number(self.noise))


@checks_arguments
@dataclass(frozen=True)
class GPConfig:
    """Settings of a Gaussian process: kernel, priors, bounds, noise.

    The default has the paper's priors, which are tight on length scales; broad ones come out no better. Unlike the
    paper it learns the noise. Its prior is nearly flat in the logarithm (a factor of a thousand less noise costs 0.7
    nats), so a deterministic objective reaches the lower bound, and it falls off exponentially above 1/20 of the
    variance, so that a few scattered values are not explained as noise alone.

    Attributes:
        kernel: "matern52", "matern32" or "rbf" (squared exponential).
        length_scale_prior: Of each length scale.
        output_scale_prior: Of the variance of the function.
        noise: Variance of the noise, or None to learn it.
        noise_prior: Of the learned noise.
        length_scale_bounds: Smallest and largest length scale.
        output_scale_bounds: Smallest and largest variance.
        noise_bounds: Smallest and largest learned noise.
        noisy: Whether one point may give different values: points of a finite space may then be tried again.
        hyperparameters: Known ones, which are then taken as they are and nothing is fitted but the constant mean.
        outputs: What the model sees of the values. "warped": an optimizer learns a monotone map that makes its values
            look Gaussian, see `pbgi.gp.warp`; `fit_gp` takes values as they come and standardizes them. "standardized":
            with mean zero and variance one. "plain": as they are, and all of the above is in their unit.
    """

    kernel: str = "matern52"
    length_scale_prior: Prior = GammaPrior(3.0, 6.0)
    output_scale_prior: Prior = GammaPrior(2.0, 0.15)
    noise: float | None = None
    noise_prior: Prior = GammaPrior(1.1, 20.0)
    length_scale_bounds: tuple[float, float] = (1e-2, 1e2)
    output_scale_bounds: tuple[float, float] = (1e-3, 1e3)
    noise_bounds: tuple[float, float] = (1e-6, 1e1)
    noisy: bool = False
    hyperparameters: Hyperparameters | None = None
    outputs: str = "warped"

    def __post_init__(self) -> None:
        kernel_named(self.kernel)
        if self.outputs not in OUTPUTS:
            raise InvalidInputError(f"outputs must be one of {', '.join(OUTPUTS)}; got {self.outputs!r}")
        if self.noise is not None and not 0.0 <= _number(self.noise) < math.inf:
            raise InvalidInputError(f"noise must be None, or finite and not negative; got {self.noise}")
        for name in ("length_scale_bounds", "output_scale_bounds", "noise_bounds"):
            bounds = getattr(self, name)
            pair = tuple(map(_number, bounds)) if isinstance(bounds, tuple | list) else ()
            if len(pair) != 2 or not 0.0 < pair[0] < pair[1] < math.inf:
                raise InvalidInputError(f"{name} must be finite with 0 < low < high; got {bounds!r}")
        for name in ("length_scale_prior", "output_scale_prior", "noise_prior"):
            if not isinstance(getattr(self, name), Prior):
                raise InvalidInputError(f"{name} must be a GammaPrior or LogNormalPrior; got {getattr(self, name)!r}")
        if not isinstance(self.hyperparameters, Hyperparameters | None):
            raise InvalidInputError(f"hyperparameters must be None or Hyperparameters; got {self.hyperparameters!r}")
        if type(self.noisy) is not bool:
            raise InvalidInputError(f"noisy must be true or false; got {self.noisy!r}")

    @classmethod
    def paper(cls) -> "GPConfig":
        """The model of the paper's experiments: Matern-5/2, Gamma priors, noise fixed at 1e-4, values not warped."""
        return cls(noise=1e-4, outputs="standardized")


class LogPrior:
    """Log density of the hyperparameters, in their logarithms t: the sum of c0 + c1 t - c2 exp(t) - c3 t^2.

    One form for Gamma and log-normal priors, so that all parameters take one pass.
    """

    def __init__(self, d: int, config: GPConfig) -> None:
        priors = [config.length_scale_prior] * d + [config.output_scale_prior]
        if config.noise is None:
            priors.append(config.noise_prior)
        constant, self._linear, self._rate, self._curvature = np.array([prior.coefficients() for prior in priors]).T
        self._constant = float(constant.sum())

    def __call__(self, t: Floats) -> tuple[float, Floats]:
        """Value, and gradient (p,) in t (p,)."""
        decay, bend = self._rate * np.exp(t), self._curvature * t
        value = self._constant + float((self._linear - bend) @ t) - float(decay.sum())
        return value, self._linear - decay - 2.0 * bend


def log_parameters(hyperparameters: Hyperparameters, config: GPConfig) -> Floats:
    """The logarithms that are searched over: length scales, output scale, and the noise if it is learned."""
    learned = [hyperparameters.noise] if config.noise is None else []
    with np.errstate(divide="ignore"):  # a noise of zero; the bounds lift it
        return np.log([*hyperparameters.length_scales, hyperparameters.output_scale, *learned])


def log_bounds(d: int, config: GPConfig) -> Floats:
    """(p, 2)."""
    rows = [config.length_scale_bounds] * d + [config.output_scale_bounds]
    return np.log(rows + ([config.noise_bounds] if config.noise is None else []))
