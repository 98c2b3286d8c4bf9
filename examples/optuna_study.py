"""An Optuna study with a budget: train models of different sizes for at most so many dollars.

Larger models cost more per trial; some settings fail, which costs money too. With a SQLite file as storage, run the
script again with a larger budget and it goes on, run it several times at once and the processes share the budget.

    python examples/optuna_study.py --budget 40
    python examples/optuna_study.py --budget 60 --storage sqlite:///study.db
"""

import argparse
import math

import optuna

import pbgi
from pbgi.integrations.optuna import BudgetCallback, PBGISampler, cost_summary


class OutOfMemoryError(RuntimeError):
    """The model does not fit."""


def objective(trial: optuna.Trial) -> float:
    """The loss of a model; what its training costs is told as a user attribute."""
    layers = trial.suggest_int("layers", 1, 12)
    rate = trial.suggest_float("rate", 1e-5, 1e-1, log=True)
    schedule = trial.suggest_categorical("schedule", ["constant", "cosine"])
    trial.set_user_attr("cost", 0.2 * layers)  # dollars, also if it fails
    if layers > 10:
        raise OutOfMemoryError
    return 0.3 / layers + 0.1 * (math.log10(rate) + 2.5) ** 2 + 0.05 * (schedule == "constant")


def main() -> None:
    parser = argparse.ArgumentParser(description="Tune a model with Optuna within a budget of dollars.")
    parser.add_argument("--budget", type=float, default=40.0, help="dollars, over all workers and restarts")
    parser.add_argument("--storage", help="for example sqlite:///study.db; by default in memory")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        study_name="models",
        storage=args.storage,
        load_if_exists=True,
        sampler=PBGISampler(budget=args.budget, policy=pbgi.PBGID(), seed=args.seed),
    )
    study.optimize(objective, callbacks=[BudgetCallback()], catch=(OutOfMemoryError,))
    print(cost_summary(study))
    print(f"Best loss {study.best_value:.4f} with {study.best_params}")


if __name__ == "__main__":
    main()
