"""Processes: the same results however many there are, and what happens when one fails, dies or is given up."""

import os
import signal
import time
from contextlib import closing

import numpy as np
import psutil
import pytest
from threadpoolctl import threadpool_info
from toy_runs import FEW, broken, numbers, toy

import pbgi
from paper.execution import execute
from paper.pool import _Processes, execute_all
from paper.specification import Run
from paper.worker import ONE_THREAD, answer

LONG = toy(pbgi.Thompson(), cost="uniform", dim=16)  # far longer than any test waits


def children() -> set[psutil.Process]:
    """Processes of the pool: not the one that looks after the semaphores of all."""
    return {child for child in psutil.Process().children() if "spawn_main" in " ".join(child.cmdline())}


def as_executed_here(run: Run) -> dict:
    return numbers(execute(run))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_do_not_depend_on_the_number_of_jobs(n_jobs):
    ended = list(execute_all(FEW, n_jobs=n_jobs))
    assert {done.run for done in ended} == set(FEW)
    assert [done.error for done in ended] == [None] * 4
    assert {done.run.key: numbers(done.record) for done in ended} == {run.key: as_executed_here(run) for run in FEW}


def test_an_error_comes_back_as_text_and_the_process_goes_on():
    failed, fine = execute_all([broken(), FEW[0]])
    assert failed.record is None
    assert "InvalidInputError: function must be a problem of pbgi.problems" in failed.error
    assert fine.error is None


def test_answers():
    record, error = answer(FEW[0])
    assert (numbers(record), error) == (as_executed_here(FEW[0]), None)
    assert answer(broken())[0] is None


def test_runs_are_taken_when_a_process_is_free():
    taken = []

    def waiting():
        for run in FEW:
            taken.append(run)
            yield run

    with closing(execute_all(waiting(), n_jobs=1)) as ended:
        first = next(ended)
        assert taken == [first.run]


@pytest.mark.skipif(os.name == "nt", reason="kills a process")
def test_process_that_dies_takes_no_other_run_with_it():
    before, started = children(), []

    def waiting():
        yield LONG
        started.extend(children() - before)
        yield FEW[0]
        os.kill(started[0].pid, signal.SIGKILL)
        yield FEW[1]
        yield FEW[2]

    ended = {done.run: done for done in execute_all(waiting(), n_jobs=2)}
    assert set(ended) == {LONG, *FEW[:3]}
    assert ended[LONG].record is None
    assert "the process of this run died" in ended[LONG].error
    assert [ended[run].error for run in FEW[:3]] == [None] * 3


def test_what_is_running_at_the_deadline_is_given_up():
    before = children()
    assert list(execute_all([LONG], deadline=time.monotonic() + 0.1)) == []
    assert children() <= before


def test_processes_end_when_nobody_waits_for_them_any_more():
    before = children()
    with closing(execute_all([FEW[0], LONG, LONG], n_jobs=2)) as ended:
        next(ended)
        assert children() - before
    assert children() <= before


def test_numerical_libraries_have_one_thread_in_a_process(monkeypatch):
    """As they were loaded there, whatever the environment of this process says."""
    for name in ONE_THREAD:
        monkeypatch.setenv(name, "2")
    with _Processes(1) as processes:
        (executor,) = processes._idle
        assert executor.submit(np.linalg.norm, [3.0, 4.0]).result(60.0) == 5.0
        pools = executor.submit(threadpool_info).result(60.0)
    assert {pool["num_threads"] for pool in pools} == {1}
