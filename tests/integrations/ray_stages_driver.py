"""An experiment of Ray Tune whose trials are stopped early, for tests; it may be killed and restored.

python ray_stages_driver.py ADDRESS FOLDER fit SECONDS_PER_STEP
python ray_stages_driver.py ADDRESS FOLDER restore
"""

import sys
import time
from pathlib import Path

import ray
from ray import tune

from pbgi.integrations.ray import PBGIScheduler, PBGISearch, PBGIStopper

BUDGET, STEPS = 70.0, 9
# Four to learn from, and four of which each is so bad that it is stopped once three have come to their end.
GOOD, BAD = (0.3, 0.4, 0.2, 0.5), (0.97, 0.99, 0.96, 0.98)
POINTS = [{"model": {"x": x}, "k": 0} for x in GOOD] + [{"model": {"x": x}, "k": 2} for x in BAD]


def train(config):
    for step in range(1, STEPS + 1):
        time.sleep(config["seconds"])
        loss = (config["model"]["x"] - 0.3) ** 2 + 0.1 * config["k"] + 2.0 * 0.5 ** (step / 2)
        tune.report({"loss": loss, "dollars": float(step)})


def main(address, folder, how, seconds=0.0):
    ray.init(address=address, log_to_driver=False)
    if how == "restore":
        tuner = tune.Tuner.restore(str(Path(folder) / "experiment"), train)
    else:
        search = PBGISearch(budget=BUDGET, cost="dollars", seed=0, steps=[3, STEPS], points_to_evaluate=POINTS)
        tuner = tune.Tuner(
            train,
            param_space={
                "model": {"x": tune.uniform(0.0, 1.0)},
                "k": tune.randint(0, 3),
                "seconds": float(seconds),
            },
            tune_config=tune.TuneConfig(
                metric="loss",
                mode="min",
                search_alg=search,
                scheduler=PBGIScheduler(search),
                num_samples=-1,
                max_concurrent_trials=2,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(name="experiment", storage_path=str(folder), stop=PBGIStopper(search), verbose=0),
        )
    tuner.fit()


if __name__ == "__main__":
    main(*sys.argv[1:])
