import numpy as np
import pytest

from pbgi.pandora.quadrature import GAUSS_WEIGHTS, KRONROD_WEIGHTS, NODES, graded, integrate_panels


@pytest.mark.parametrize(("weights", "degree"), [(GAUSS_WEIGHTS, 5), (KRONROD_WEIGHTS, 11)])
def test_rules_are_exact_to_their_degree(weights, degree):
    for power in range(degree + 1):
        assert weights @ NODES**power == pytest.approx((1 + (-1) ** power) / (power + 1), abs=2e-15)


def test_jumps_and_bends_at_the_edges_cost_nothing():
    def f(x):
        return np.where(x < 1, 2.0, np.where(x < 3, np.abs(x - 2), np.exp(-x)))

    expected = 2 * 1 + 1 + np.exp(-3) - np.exp(-10)
    assert integrate_panels(f, np.array([0.0, 1.0, 2.0, 3.0, 10.0])) == pytest.approx(expected, rel=1e-14)


def test_a_peak_narrow_beside_its_panel_is_found():
    edges = graded(np.array([-50.0, 0.0, 1e6]), 1.0)
    assert integrate_panels(lambda x: np.exp(-0.5 * x * x), edges) == pytest.approx(np.sqrt(2 * np.pi), rel=1e-13)


def test_grading_keeps_the_ends_and_the_edges():
    edges = np.array([-3.0, 0.0, 0.5, 1e3])
    fine = graded(edges, 1.0)
    assert set(edges) <= set(fine)
    assert np.all(np.diff(fine) > 0)
    assert (fine[0], fine[-1]) == (-3.0, 1e3)
    assert fine[fine > 0.5][0] == 1.5


def test_a_jump_inside_a_panel_ends():
    assert integrate_panels(lambda x: (x > 1 / 3).astype(float), np.array([0.0, 1.0])) == pytest.approx(
        2 / 3, abs=1e-13
    )
