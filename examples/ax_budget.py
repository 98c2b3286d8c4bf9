"""Tune in Ax with a budget of seconds, when what a trial costs depends on what it tries.

A model of a training run: more epochs and a larger network make the error smaller, and the run longer. How much longer
is not said beforehand. Each trial reports its seconds as a tracking metric beside the error, and the cost is learned
from these. Nothing is really trained, so the example itself takes only a few seconds.

    python examples/ax_budget.py --budget 120
"""

import argparse
import logging
import math
import sys

try:
    from ax.api.client import Client
    from ax.api.configs import RangeParameterConfig
    from ax.utils.common.logger import set_ax_logger_levels
except ImportError:
    sys.exit("This example needs Ax: pip install ax-platform")

from pbgi.integrations.ax import generation_strategy

SPACE = [
    RangeParameterConfig(name="rate", parameter_type="float", bounds=(1e-4, 1.0), scaling="log"),
    RangeParameterConfig(name="epochs", parameter_type="int", bounds=(1, 50), scaling="log"),
    RangeParameterConfig(name="width", parameter_type="int", bounds=(8, 256), scaling="log"),
]
N_STARTUP = 5  # trials before anything is known of error or seconds


def train(params: dict) -> dict[str, float]:
    """The error in percent, and the seconds it took."""
    rate, epochs, width = params["rate"], params["epochs"], params["width"]
    off = math.log10(rate / 0.02)
    error = 2.0 + 6.0 / epochs**0.7 + 20.0 / width**0.6 + 5.0 * off**2 / (1.0 + 0.2 * off**2)
    return {"error": error, "seconds": 0.5 + 0.004 * epochs * width}


def new_client(cost_scale: float, seed: int) -> Client:
    client = Client(random_seed=seed)
    client.configure_experiment(SPACE)
    client.configure_optimization("-error")
    client.configure_tracking_metrics(["seconds"])
    client.set_generation_strategy(
        generation_strategy(cost_scale=cost_scale, cost_metric="seconds", n_startup_trials=N_STARTUP, seed=seed)
    )
    return client


def fits(client: Client, params: dict, left: float) -> bool:
    """Whether a trial is expected to cost no more than what is left."""
    return client.predict([params])[0]["seconds"][0] <= left


def tune(client: Client, budget: float) -> float:
    """Try until the budget is spent, or the next trial is expected not to fit. What was spent."""
    spent, best = 0.0, math.inf
    while spent < budget:
        ((number, params),) = client.get_next_trials(max_trials=1).items()
        if number >= N_STARTUP and not fits(client, params, budget - spent):
            client.mark_trial_abandoned(number)
            print(f"  trial {number:2d} would cost more than the {budget - spent:.1f} s that are left")
            break
        outcome = train(params)
        client.complete_trial(number, raw_data=outcome)
        spent, best = spent + outcome["seconds"], min(best, outcome["error"])
        size = f"{params['epochs']:2d} epochs, width {params['width']:3d}"
        print(
            f"  trial {number:2d}: rate {params['rate']:.4f}, {size}: "
            f"error {outcome['error']:5.2f} % in {outcome['seconds']:4.1f} s; "
            f"best {best:.2f} %, {spent:.0f} s of {budget:g} s spent"
        )
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description="Tune in Ax within a budget of seconds that are learned.")
    parser.add_argument("--budget", type=float, default=120.0, help="seconds of (pretended) training")
    parser.add_argument("--cost-scale", type=float, default=1e-3, help="points of error that one second is worth")
    parser.add_argument("--save", help="file to save the client to, for Client.load_from_json_file")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    set_ax_logger_levels(logging.ERROR)

    print(f"Training runs for {args.budget:g} seconds:")
    client = new_client(args.cost_scale, args.seed)
    spent = tune(client, args.budget)
    params, outcome, number, _ = client.get_best_parameterization(use_model_predictions=False)
    print(f"\nBest: error {outcome['error'][0]:.2f} % in trial {number}, with")
    for name, value in params.items():
        print(f"  {name} = {value:.4g}")
    print(f"{(client.summarize()['trial_status'] == 'COMPLETED').sum()} trials took {spent:.1f} s.")
    if args.save:
        client.save_to_json_file(args.save)


if __name__ == "__main__":
    main()
