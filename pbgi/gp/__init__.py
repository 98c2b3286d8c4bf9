"""Gaussian processes on the unit cube: what is assumed (`config`), fitted (`fit`) and believed (`posterior`).

config.py      priors, bounds and presets
kernel.py      Matern and squared exponential with gradients, Hamming distance for categories
algebra.py     standardized values, and the linear algebra of covariance matrices
predictor.py   mean and standard deviation of points, with gradients
posterior.py   GP: predictions, pending points, function draws
fit.py         the maximum a posteriori fit
warp.py        the monotone map between values and what the model sees
trend.py       a straight line through logarithms of costs
"""

from pbgi.gp.config import GammaPrior, GPConfig, Hyperparameters, LogNormalPrior
from pbgi.gp.fit import fit_gp, fit_hyperparameters
from pbgi.gp.posterior import GP, Pair, PosteriorWithGrad, Training
from pbgi.gp.trend import Trend, fit_trend
from pbgi.gp.warp import Warp, fit_warp

__all__ = [
    "GP",
    "GPConfig",
    "GammaPrior",
    "Hyperparameters",
    "LogNormalPrior",
    "Pair",
    "PosteriorWithGrad",
    "Training",
    "Trend",
    "Warp",
    "fit_gp",
    "fit_hyperparameters",
    "fit_trend",
    "fit_warp",
]
