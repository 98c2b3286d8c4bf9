"""One worker process of a study: python optuna_worker.py STORAGE CASE BUDGET N_TRIALS."""

import sys
import time

import optuna

import pbgi
from pbgi.integrations.optuna import BudgetCallback, PBGISampler

optuna.logging.set_verbosity(optuna.logging.ERROR)
GRID = {"i": optuna.distributions.IntDistribution(0, 6), "j": optuna.distributions.IntDistribution(0, 6)}


def grid(trial):
    i, j = trial.suggest_int("i", 0, 6), trial.suggest_int("j", 0, 6)
    time.sleep(0.02)
    return (i - 3) ** 2 + (j - 2) ** 2


def told(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    time.sleep(0.02)
    trial.set_user_attr("cost", 1.0 + x)
    return (x - 0.3) ** 2


def known_price(params):
    return 1.0 + params["i"]


CASES = {
    "grid": (grid, {"cost": pbgi.KnownCost(known_price), "search_space": GRID}),
    "told": (told, {}),
}


def main(storage, case, budget, n_trials):
    objective, settings = CASES[case]
    sampler = PBGISampler(budget=budget, seed=0, **settings)
    study = optuna.load_study(study_name="shared", storage=storage, sampler=sampler)
    study.optimize(objective, n_trials=n_trials, callbacks=[BudgetCallback()])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
