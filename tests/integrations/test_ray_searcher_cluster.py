"""Experiments on a real cluster of two nodes: one is killed, the driver is killed, nothing that was known is lost."""

import contextlib
import json
import math
import signal
import time
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
from ray_cluster import RayCluster

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="needs pbgi[ray]")

DRIVER, STAGES_DRIVER = (Path(__file__).with_name(name) for name in ("ray_driver.py", "ray_stages_driver.py"))
BUDGET, COST, N_BEFORE_GATE = 8.4, 1.0, 3  # as in the driver


@pytest.fixture(scope="module")
def cluster():
    cluster = RayCluster()
    yield cluster
    cluster.close()


@contextlib.contextmanager
def started(cluster, folder, *arguments, script=DRIVER):
    """The driver, while it runs."""
    with cluster.running(folder / "log", script, cluster.address, folder, *arguments) as driver:
        yield driver


def wait_for(condition, driver, folder):
    until = time.monotonic() + 240.0
    while not condition():
        assert driver.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < until, "the experiment does not get on: " + (folder / "log").read_text()
        time.sleep(0.05)


def finish(driver, folder):
    assert driver.wait(timeout=240) == 0, (folder / "log").read_text()


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def saved(folder):
    """The trials by Ray's ids, with what the engine knows of them, as the search saved them."""
    files = sorted((folder / "experiment").glob("searcher-state-*.json"))
    text = files[-1].read_text() if files else ""
    if not text.endswith("}"):  # Ray is writing it
        return {}
    experiment = json.loads(text)["experiment"]
    trials = experiment["optimizer"]["history"]["trials"]
    return {trial_id: trials[entry["number"]] for trial_id, entry in experiment["trials"].items()}


def point(trial):
    return [trial["params"]["model/x"], trial["params"]["k"]]


def charged(trials):
    return sum(trial["cost"] for trial in trials.values())


def completed(trials):
    return {trial_id: trial for trial_id, trial in trials.items() if trial["state"] == "complete"}


def assert_nothing_is_lost(folder, lost=0.0):
    """What was acknowledged is known, each trial was evaluated once, at a point of its own, within the budget.

    What a retry costs beyond a trial is not foreseen: the budget may be exceeded by what is `lost` that way, and by
    what trials cost beyond their prediction, for the cost is learned, from retries too.
    """
    trials, acknowledged = saved(folder), lines(folder / "acknowledged")
    assert len(acknowledged) == len({trial_id for trial_id, *_ in acknowledged}) >= 5
    assert {trial_id: trial["value"] for trial_id, trial in completed(trials).items()} == {
        trial_id: loss for trial_id, loss, _ in acknowledged
    }
    evaluated = lines(folder / "evaluated")
    assert sorted(evaluated) == sorted(point(trial) for trial in completed(trials).values())
    assert len({tuple(point) for point in evaluated}) == len(evaluated)
    assert not [trial for trial in trials.values() if trial["state"] == "running"]
    beyond = sum(max(trial["cost"] - (trial["predicted_cost"] or math.inf), 0.0) for trial in trials.values())
    assert charged(trials) <= BUDGET + lost + beyond
    assert charged(trials) > BUDGET - 1.5 * COST  # it went on until nothing fitted, be it a trial that is retried


def assert_on_loopback(*process_ids):
    """None of these processes and their children can be reached from another machine."""
    addresses = []
    for parent in map(psutil.Process, process_ids):
        for process in (parent, *parent.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):  # Ray ends those that it does not need
                connections = process.net_connections("inet")
                addresses += [c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN]
    assert len(addresses) >= 6  # the head, two nodes, two trials, the driver
    assert {address.removeprefix("::ffff:") for address in addresses} == {"127.0.0.1"}


def kill_a_node(cluster, folder, max_failures):
    with started(cluster, folder, "fit", max_failures, cluster.second_node) as driver:
        wait_for((folder / "doom").exists, driver, folder)
        assert_on_loopback(cluster.process_id, driver.pid)
        cluster.kill_second_node()
        finish(driver, folder)
    assert_nothing_is_lost(folder, lost=COST / 2 * max_failures)
    return saved(folder)


def test_trial_on_a_lost_node_is_tried_again(cluster, tmp_path):
    """And both attempts are charged: half of the first, all of the second."""
    trials = kill_a_node(cluster, tmp_path, max_failures=1)
    assert {trial["state"] for trial in trials.values()} == {"complete"}
    costs = sorted(trial["cost"] for trial in trials.values())
    assert costs == [COST] * (len(costs) - 1) + [1.5 * COST]
    cluster.replace_second_node()


def test_trial_on_a_lost_node_fails_and_is_charged(cluster, tmp_path):
    trials = kill_a_node(cluster, tmp_path, max_failures=0)
    (failed,) = [trial for trial in trials.values() if trial["state"] == "failed"]
    assert failed["cost"] == COST / 2
    assert {trial["cost"] for trial in completed(trials).values()} == {COST}
    cluster.replace_second_node()


def is_saved(cluster, folder):
    """Whether the experiment's folder holds all that Ray has put together to be copied there."""
    staged = sorted(cluster.folder.glob("ray/session_2*/artifacts/*/experiment/driver_artifacts"))[-1]
    names = [path.name for path in staged.iterdir() if path.suffix in (".json", ".pkl")]
    copies = [folder / "experiment" / name for name in names]
    return all(copy.exists() and copy.read_bytes() == (staged / copy.name).read_bytes() for copy in copies)


def kill_between_two_savings(cluster, driver, folder):
    """Ray copies its files one by one, so kill the driver when it does not."""
    while True:
        driver.send_signal(signal.SIGSTOP)
        while psutil.Process(driver.pid).status() != psutil.STATUS_STOPPED:
            time.sleep(0.01)
        if is_saved(cluster, folder):
            return driver.kill()
        driver.send_signal(signal.SIGCONT)
        time.sleep(0.3)


def test_killed_driver_goes_on_with_what_was_known(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("TUNE_GLOBAL_CHECKPOINT_S", "1")  # save every second
    (tmp_path / "gate").touch()
    with started(cluster, tmp_path, "fit") as driver:
        wait_for(lambda: len(completed(saved(tmp_path))) >= N_BEFORE_GATE, driver, tmp_path)
        kill_between_two_savings(cluster, driver, tmp_path)
    before = saved(tmp_path)
    assert N_BEFORE_GATE <= len(completed(before)) < len(before)
    with started(cluster, tmp_path, "restore") as driver:
        finish(driver, tmp_path)
    assert_nothing_is_lost(tmp_path)
    after = saved(tmp_path)
    assert {trial_id: after[trial_id] for trial_id in completed(before)} == completed(before)
    # Those that were running have been run again, as the same trials.
    assert {trial_id: point(after[trial_id]) for trial_id in before} == {i: point(t) for i, t in before.items()}


# Trials that are stopped early ---------------------------------------------------------------------------------------


def in_state(trials, state):
    return {trial_id: trial for trial_id, trial in trials.items() if trial["state"] == state}


def assert_stopped_in_time(trials, lost=0.0):
    """Each trial came to its end or was stopped after the first of two stages, and was charged its steps."""
    stopped, whole = in_state(trials, "stopped"), completed(trials)
    assert len(stopped) + len(whole) == len(trials)
    assert {trial["reports"][-1][0] for trial in stopped.values()} == {3}
    assert {trial["reports"][-1][0] for trial in whole.values()} == {8}  # the ninth is the value
    assert 3.0 * len(stopped) + 9.0 * len(whole) <= charged(trials) <= 3.0 * len(stopped) + 9.0 * len(whole) + lost
    assert charged(trials) <= 70.0 + lost  # the budget of the driver
    # Three come to their end; then of three trials, which pay 3 + 3 + 9, at least two are stopped.
    assert len(stopped) >= 2 * ((70 - 3 * 9 - lost) // 15)


def test_trials_are_stopped_early(cluster, tmp_path):
    with started(cluster, tmp_path, "fit", 0.0, script=STAGES_DRIVER) as driver:
        finish(driver, tmp_path)
    assert_stopped_in_time(saved(tmp_path))


@pytest.mark.slow
def test_a_killed_driver_goes_on_stopping_trials(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("TUNE_GLOBAL_CHECKPOINT_S", "1")  # save every second
    with started(cluster, tmp_path, "fit", 0.3, script=STAGES_DRIVER) as driver:
        wait_for(lambda: in_state(saved(tmp_path), "stopped"), driver, tmp_path)
        kill_between_two_savings(cluster, driver, tmp_path)
    before = saved(tmp_path)
    with started(cluster, tmp_path, "restore", script=STAGES_DRIVER) as driver:
        finish(driver, tmp_path)
    after = saved(tmp_path)
    assert len(after) > len(before)
    ended = in_state(before, "stopped") | completed(before)
    assert {trial_id: after[trial_id] for trial_id in ended} == ended
    assert_stopped_in_time(after, lost=2 * 9.0)  # what ran when the driver was killed ran again
