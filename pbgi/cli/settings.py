"""The settings of a job, as they are kept in its study."""

import numpy as np

from pbgi.cli.job import Job, price_of_second
from pbgi.study.settings import StudySettings


def settings_of(job: Job) -> StudySettings:
    """The settings of a job; a seed is drawn if it has none."""
    seed = int(np.random.default_rng().integers(2**63)) if job.seed is None else job.seed
    price = None if job.cost else price_of_second(job)
    unit = job.cost or ("seconds" if price == 1.0 else "price")
    limits = (job.n_startup_trials, seed, job.trials)
    return StudySettings(job.space, job.direction, job.budget, job.policy, *limits, job.objective, unit, price)
