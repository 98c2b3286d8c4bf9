"""The small version of experiments."""

from paper.execution import execute
from paper.experiments import EXPERIMENTS
from paper.smoke import N_EVALUATIONS, N_START, smoke


def test_smoke_has_every_experiment_and_policy():
    runs = [run for experiment in EXPERIMENTS.values() for run in experiment()]
    small = smoke(runs)
    assert {r.specification.experiment for r in small} == set(EXPERIMENTS)
    assert {r.curve for r in small} == {r.curve for r in runs}
    assert {r.key for r in small}.isdisjoint(r.key for r in runs)


def test_a_small_run_has_few_evaluations():
    (run,) = [run for run in smoke(EXPERIMENTS["synthetic"](1)) if (run.panel, run.curve) == ("Levy d=4 varying", "RS")]
    record = execute(run)
    assert (record["n_start"], len(record["values"])) == (N_START, N_START + N_EVALUATIONS)
