"""Ray Tune within a budget: fit a curve by random features, for at most so many seconds of training.

More features and more sweeps make a trial better, and slower. Nothing is said about that beforehand: what a trial costs
is the time that Ray measures, learned along the way. Some trials fail, which takes time too.

    python examples/ray_tune.py --budget 6
    python examples/ray_tune.py --budget 6 --folder /tmp/experiment     # killed? The same again goes on

Everything Ray opens for the example is on 127.0.0.1 of this machine.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

# Before Ray is imported: keep to this machine, and send nothing home.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
try:
    import ray
    from ray import tune
except ImportError:
    sys.exit("This example needs Ray Tune: pip install 'ray[tune]'")

from pbgi.integrations.ray import PBGISearch, PBGIStopper

SPACE = {
    "model": {"features": tune.lograndint(10, 400), "scale": tune.loguniform(0.1, 100.0)},
    "ridge": tune.loguniform(1e-8, 1.0),
    "sweeps": tune.randint(1, 9),
}


def train(config: dict) -> None:
    """Reports the error after each sweep; the last one counts."""
    model, rng = config["model"], np.random.default_rng(0)
    x = np.linspace(0.0, 1.0, 400)
    y = np.sin(20.0 * x**2) + 0.1 * rng.normal(size=len(x))
    if config["ridge"] < 1e-7 and model["features"] > 200:
        raise MemoryError("this one fails")
    frequencies, phases = (
        model["scale"] * rng.normal(size=model["features"]),
        rng.uniform(0, 2 * np.pi, model["features"]),
    )
    features = np.cos(np.outer(x, frequencies) + phases)
    fitted = np.zeros_like(y)
    for _ in range(config["sweeps"]):
        seen = rng.random(len(x)) < 0.5
        A, residual = features[seen], (y - fitted)[seen]
        weights = np.linalg.solve(A.T @ A + config["ridge"] * np.eye(model["features"]), A.T @ residual)
        fitted += 0.5 * features @ weights
        time.sleep(2e-4 * model["features"])  # as if there were more to do
        tune.report({"error": float(np.mean((fitted - np.sin(20.0 * x**2)) ** 2))})


def tuner(budget: float, folder: Path) -> tune.Tuner:
    """A new experiment, or the one in the folder."""
    if tune.Tuner.can_restore(folder):
        return tune.Tuner.restore(str(folder), train)
    search = PBGISearch(budget=budget, seed=0)
    return tune.Tuner(
        train,
        param_space=SPACE,
        tune_config=tune.TuneConfig(
            metric="error", mode="min", search_alg=search, num_samples=-1, max_concurrent_trials=2, reuse_actors=True
        ),
        run_config=tune.RunConfig(
            name=folder.name, storage_path=str(folder.parent), stop=PBGIStopper(search), verbose=0
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Tune a model with Ray within a budget of seconds.")
    parser.add_argument("--budget", type=float, default=6.0, help="seconds of training, of all trials together")
    parser.add_argument("--folder", type=Path, help="of the experiment, to go on with it; by default a temporary one")
    args = parser.parse_args()
    folder = (args.folder or Path(tempfile.mkdtemp()) / "experiment").resolve()
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    results = tuner(args.budget, folder).fit()

    search = PBGISearch()
    search.restore_from_dir(str(folder))  # Tune saves it with the experiment
    for trial in search.optimizer.trials:
        outcome = trial.state.value.ljust(12) if trial.value is None else f"error {trial.value:.4f}"
        expected = "nothing known" if trial.predicted_cost is None else f"{trial.predicted_cost:.2f} s expected"
        print(f"  {outcome} in {trial.charged:.2f} s ({expected}): {trial.params['model/features']} features")
    print(f"{len(search.optimizer.trials)} trials took {search.spent:.2f} s of {args.budget:g} s")
    if any(trial.value is not None for trial in search.optimizer.trials):
        best = results.get_best_result()
        print(f"Best error {best.metrics['error']:.4f} with {best.config}")
    else:
        print(f"No trial has ended with an error to report: {args.budget:g} s were not enough")
    print(f"Stopped: {search.stop_reason}")


if __name__ == "__main__":
    main()
