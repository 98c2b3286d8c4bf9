"""An experiment of Ray Tune, for tests that kill a node under it or the driver itself.

    python ray_driver.py ADDRESS FOLDER fit MAX_FAILURES NODE    a trial that gets to NODE waits to be killed
    python ray_driver.py ADDRESS FOLDER restore

A trial reports twice: half of its cost, and all of it. In the folder it leaves a line in `evaluated` when it is done;
the driver leaves one in `acknowledged` when the search has recorded it.
"""

import contextlib
import json
import sys
import time
from pathlib import Path

import ray
from ray import tune

from pbgi.integrations.ray import PBGISearch, PBGIStopper

BUDGET, COST = 8.4, 1.0
# Just so many trials are done before the others wait, if there is a file named `gate`: for a file named `go`, which the
# restored driver writes. Trials of the driver before, which Ray ends in its own time, never see their name in it.
N_BEFORE_GATE = 3


def train(config):
    folder, doomed = Path(config["folder"]), config["doomed"]
    loss = (config["model"]["x"] - 0.3) ** 2 + 0.1 * config["k"]
    tune.report({"loss": loss + 1.0, "dollars": COST / 2})
    if ray.get_runtime_context().get_node_id() == doomed and not (folder / "doom").exists():
        (folder / "doom").touch()
        time.sleep(600.0)
    while doomed and not (folder / "doom").exists():  # leave something to do for the other node
        time.sleep(0.05)
    if (folder / "gate").exists() and not has_ticket(folder):
        while not is_let_go(folder):
            time.sleep(0.05)
    with (folder / "evaluated").open("a") as lines:
        lines.write(json.dumps([config["model"]["x"], config["k"]]) + "\n")
    tune.report({"loss": loss, "dollars": COST})


def has_ticket(folder):
    """Whether this trial passes the gate: a ticket is a file that only one trial can make, however many ask at once."""
    for number in range(N_BEFORE_GATE):
        with contextlib.suppress(FileExistsError):
            (folder / f"ticket-{number}").touch(exist_ok=False)
            return True
    return False


def is_let_go(folder):
    path = folder / "go"
    return path.exists() and path.read_text() == ray.get_runtime_context().get_job_id()


class Acknowledge(tune.Callback):
    """Notes what the search has recorded."""

    def __init__(self, folder):
        self._folder = folder

    def on_trial_complete(self, iteration, trials, trial, **info):  # noqa: ARG002 (Ray's signature)
        result = trial.last_result
        with (self._folder / "acknowledged").open("a") as lines:
            lines.write(json.dumps([trial.trial_id, result["loss"], result["dollars"]]) + "\n")


def main(address, folder, how, max_failures=0, doomed=""):
    folder = Path(folder)
    ray.init(address=address, log_to_driver=False)
    if how == "restore":
        (folder / "go").write_text(ray.get_runtime_context().get_job_id())
        tuner = tune.Tuner.restore(str(folder / "experiment"), train)
    else:
        search = PBGISearch(budget=BUDGET, cost="dollars", seed=0)
        tuner = tune.Tuner(
            train,
            param_space={
                "model": {"x": tune.uniform(0.0, 1.0)},
                "k": tune.randint(0, 3),
                "folder": str(folder),
                "doomed": doomed,
            },
            tune_config=tune.TuneConfig(
                metric="loss", mode="min", search_alg=search, num_samples=-1, max_concurrent_trials=2, reuse_actors=True
            ),
            run_config=tune.RunConfig(
                name="experiment",
                storage_path=str(folder),
                stop=PBGIStopper(search),
                failure_config=tune.FailureConfig(max_failures=int(max_failures)),
                callbacks=[Acknowledge(folder)],
                verbose=0,
            ),
        )
    tuner.fit()


if __name__ == "__main__":
    main(*sys.argv[1:])
