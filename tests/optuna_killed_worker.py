"""A worker process that never comes to an end of choosing, to be killed: python optuna_killed_worker.py STORAGE."""

import sys
import time

import optuna
from optuna_fixtures import MIXED, suggest_mixed

from pbgi.integrations.optuna import PBGISampler


class Endless(PBGISampler):
    """Says that it chooses, and goes on forever."""

    def _choose(self, *_arguments):
        print("choosing", flush=True)
        time.sleep(3600.0)


if __name__ == "__main__":
    study = optuna.load_study(study_name="shared", storage=sys.argv[1], sampler=Endless(search_space=MIXED))
    suggest_mixed(study.ask())
