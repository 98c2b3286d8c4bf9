"""Optuna's own test kit for samplers."""

from collections.abc import Callable

import pytest

pytest.importorskip("optuna.testing.pytest_samplers")

from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase

from pbgi.integrations.optuna import PBGISampler


class TestPBGISampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """All of it but the cases for several objectives, to which this sampler says no, as the last of these demands."""

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: PBGISampler(seed=0)
