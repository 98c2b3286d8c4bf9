"""Small data, an estimator that is quick and may fail, and prices that can be pickled."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

import pbgi

X = np.linspace(-1.0, 1.0, 24)[:, None]
Y = 3.0 * X[:, 0]


class Line(RegressorMixin, BaseEstimator):
    """Predicts slope * x, and refuses steep slopes: its score is known, and no fit takes any time."""

    def __init__(self, slope=1.0, steepest=np.inf, fails_from=np.inf, idle=0):
        self.slope, self.steepest, self.fails_from, self.idle = slope, steepest, fails_from, idle

    def fit(self, X, y, sample_weight=None):  # noqa: ARG002 (nothing is learned)
        if self.slope > self.steepest:
            raise RuntimeError("too steep")
        if X[:, 0].max() >= self.fails_from:  # on some folds
            raise RuntimeError("too far")
        self.n_features_in_, self.weight_ = X.shape[1], None if sample_weight is None else float(np.sum(sample_weight))
        return self

    def predict(self, X):
        return self.slope * X[:, 0]


SLOPES = {"slope": pbgi.Float(0.1, 10.0, log=True)}


def price(params):
    return params["slope"]


def price_of_model(params):
    return 1.0 + len(type(params["model"]).__name__)


def prices_of_models(columns):
    return np.array([price_of_model({"model": model}) for model in columns["model"]])
