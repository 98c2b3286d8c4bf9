"""What the tests of costs, policies and stopping rules build on: a snapshot made of points and values."""

import math

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_limits

from pbgi.cost import UniformCost
from pbgi.gp.config import GPConfig
from pbgi.gp.fit import fit_gp
from pbgi.history import History
from pbgi.parameter import Categorical, Float, Integer
from pbgi.snapshot import Snapshot
from pbgi.space import Space

LINE = Space({"x": Float(0.0, 1.0)})
SQUARE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
MIXED = Space(
    {
        "lr": Float(1e-5, 1e-1, log=True),
        "layers": Integer(1, 8),
        "width": Integer(8, 512, log=True),
        "act": Categorical(["relu", "tanh", "gelu"]),
        "fixed": 7,
    }
)
FINITE = Space({"n": Integer(1, 4), "act": Categorical(["relu", "tanh", "gelu"])})

# Values of points in the square that a policy must live with.
awkward_values = pytest.mark.parametrize(
    ("X", "values"),
    [
        ([[0.3, 0.6]], [2.0]),
        ([[0.3, 0.6], [0.9, 0.1]], [2.0, -1.0]),
        ([[0.3, 0.6], [0.9, 0.1], [0.5, 0.5], [0.1, 0.2]], [4.0] * 4),
        ([[0.3, 0.6]] * 20, list(range(20))),
        ([[0.3, 0.6], [0.9, 0.1], [0.5, 0.5]], [1e300, -1e300, 0.0]),
        ([[0.3, 0.6], [0.9, 0.1], [0.5, 0.5]], [1e-300, 3e-300, 2e-300]),
        ([[0.3, 0.6], [0.9, 0.1], [0.5, 0.5]], [1.0, 2.0, 1e30]),
        ([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]], [1e12, 1e12 + 1, 1e12 + 2]),
    ],
    ids=["one", "two", "constant", "copies", "huge", "tiny", "outlier", "offset"],
)


def cube(n_floats):
    return Space({f"x{k}": Float(0.0, 1.0) for k in range(n_floats)})


def add_trial(history, params, value, cost=1.0, record=None):
    number = history.add_running(params, 1.0, record).number
    return history.complete(number, value, cost)


def build_snapshot(
    space,
    X,
    values,
    *,
    cost=None,
    costs=None,
    failed=(),
    pending=(),
    sign=1.0,
    records=None,
    budget=None,
    spent=None,
    excluded=None,
    affordable=math.inf,
    config=None,
):
    """A snapshot of completed points X with values (larger is better), then failed ones, then running ones."""
    values = np.asarray(values, dtype=float)
    X, failed, pending = (
        space.snap(np.reshape(np.asarray(points, dtype=float), (-1, space.dimension)))
        for points in (X, failed, pending)
    )
    costs = np.ones(len(values)) if costs is None else np.asarray(costs, dtype=float)
    history = History()
    for k, params in enumerate(space.from_unit_many(X)):
        add_trial(history, params, sign * float(values[k]), float(costs[k]), records[k] if records else None)
    for params in space.from_unit_many(failed):
        history.fail(history.add_running(params, 1.0).number, 1.0)
    for params in space.from_unit_many(pending):
        history.add_running(params, 1.0)
    model = fit_gp(X, values, config or GPConfig(), categorical=space.categorical)
    return Snapshot(
        space=space,
        X=X,
        warped=values,
        model=model.condition_on_pending(pending),
        cost=(cost or UniformCost()).fit(space, X, costs, GPConfig(), None),
        trials=history.trials,
        sign=sign,
        failed=failed,
        excluded=excluded,
        spent=history.spent if spent is None else spent,
        budget=budget,
        affordable=affordable,
    )


# Textbook formulas, from SciPy's normal distribution ------------------------------------------------------------------


def expected_improvement(mean, std, threshold):
    z = (mean - threshold) / std
    return std * stats.norm.pdf(z) + (mean - threshold) * stats.norm.cdf(z)


def index_by_bisection(mean, std, price):
    """The g with EI(g) = price: EI falls from infinity to zero, and EI(g) >= mean - g."""
    low, high = mean - price - 10 * std, mean + 10 * std
    for _ in range(200):
        middle = 0.5 * (low + high)
        above = expected_improvement(mean, std, middle) > price
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return 0.5 * (low + high)


def central_difference(f, X, step=1e-6):
    """Gradient (m, d) of f: (m, d) -> (m,)."""
    gradient = np.empty(X.shape)
    for k in range(X.shape[1]):
        e = step * np.eye(X.shape[1])[k]
        gradient[:, k] = (f(X + e) - f(X - e)) / (2 * step)
    return gradient


@pytest.fixture(autouse=True)
def one_thread():
    """As the optimizer does: small linear algebra on two threads takes many times as long on a busy machine."""
    with threadpool_limits(1):
        yield
