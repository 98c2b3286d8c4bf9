"""Worker processes on a database server: python postgresql_worker.py URL BUDGET (patient|plain) N_WORKERS.

A patient worker does what docs/postgresql.md advises; a plain one leaves everything to `study.optimize`. For each
result that the study has taken, a line is printed: the number of the trial and its value.
The exit status is the number of workers that ended with an error.
"""

import multiprocessing
import sys
import time

import optuna
from optuna.distributions import IntDistribution

import pbgi
from pbgi.integrations.optuna import BudgetCallback, PBGISampler
from pbgi.study import storage as study_storage
from pbgi.study.storage import patiently

optuna.logging.set_verbosity(optuna.logging.ERROR)
GRID = {"i": IntDistribution(0, 7), "j": IntDistribution(0, 7)}


def price(params):
    return 1.0 + params["i"]


def suggest(trial):
    return trial.suggest_int("i", 0, 7), trial.suggest_int("j", 0, 7)


def train(params):
    time.sleep(0.05)
    return (params["i"] - 3) ** 2 + (params["j"] - 2) ** 2


def acknowledge(trial, value):
    # In one piece: print writes several, between which other workers write where PYTHONUNBUFFERED is set.
    sys.stdout.write(f"{trial.number} {value}\n")
    sys.stdout.flush()


def work_patiently(study):
    stop = BudgetCallback()
    while stop.reason(study) is None:
        trial = patiently(study.ask)
        try:
            patiently(lambda trial=trial: suggest(trial))
        except optuna.TrialPruned:  # nothing fits any more
            patiently(
                lambda trial=trial: study.tell(trial, state=optuna.trial.TrialState.PRUNED, skip_if_finished=True)
            )
            return
        value = train(trial.params)
        patiently(lambda trial=trial, value=value: study.tell(trial, value, skip_if_finished=True))
        acknowledge(trial, value)


def work_plainly(study):
    study_storage.SERVER_PATIENCE = 0.5  # for the sake of a fast test

    def objective(trial):
        i, j = suggest(trial)
        return train({"i": i, "j": j})

    callbacks = [lambda _, trial: acknowledge(trial, trial.value) if trial.values else None, BudgetCallback()]
    study.optimize(objective, callbacks=callbacks)


def work(url, budget, how):
    storage = optuna.storages.RDBStorage(url, engine_kwargs={"pool_pre_ping": True})
    sampler = PBGISampler(budget=budget, cost=pbgi.KnownCost(price), search_space=GRID, seed=0)
    study = optuna.load_study(study_name="shared", storage=storage, sampler=sampler)
    {"patient": work_patiently, "plain": work_plainly}[how](study)


def main(url, budget, how, n_workers):
    fork = multiprocessing.get_context("fork")  # before anything is opened: importing once saves the test half a minute
    workers = [fork.Process(target=work, args=(url, budget, how)) for _ in range(n_workers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sys.exit(sum(worker.exitcode != 0 for worker in workers))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
