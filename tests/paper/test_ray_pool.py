"""The paper's runs on a real Ray cluster of two nodes."""

import json
from importlib.util import find_spec

import pytest
from integrations.ray_cluster import RayCluster

from paper.execution import execute
from paper.experiments import EXPERIMENTS
from paper.smoke import smoke

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="needs pbgi[ray]")


@pytest.fixture
def cluster():
    cluster = RayCluster()
    yield cluster
    cluster.close()


def test_a_cluster_executes_the_same_runs(cluster, tmp_path):
    command = ("-m", "paper", "run", "hard_for_ei", "--smoke", "--ray", cluster.address, "--results", tmp_path)
    with cluster.running(tmp_path / "log", *command) as runner:
        assert runner.wait(timeout=240) == 0, (tmp_path / "log").read_text()
    records = [json.loads(line) for line in (tmp_path / "hard_for_ei.jsonl").read_text().splitlines()]
    here = {run.key: execute(run) for run in smoke(EXPERIMENTS["hard_for_ei"](1))}
    assert {record["key"]: record["values"] for record in records} == {
        key: record["values"] for key, record in here.items()
    }
    assert "2 runs finished" in (tmp_path / "log").read_text()
