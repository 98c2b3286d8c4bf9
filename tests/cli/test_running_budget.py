"""Budgets of seconds: what becomes of the trials that run when one is used up."""

import json
import math
import os
import time

import optuna
import pytest
from cli_runs import processes_with, start, trials_in, wait_for, write_job
from command_line import said

from pbgi.cli import main
from pbgi.cli.choosing import optimizer_of
from pbgi.cli.job import read_job
from pbgi.cli.processes import identity
from pbgi.cli.running import Share, noted_seconds, seconds_left
from pbgi.cli.storage import Storage, url_of_file
from pbgi.cli.study import JobStudy
from pbgi.history import TrialState

PARAMETERS = "[parameters]\nx = { low = 0.0, high = 1.0 }\n"
LONG = 60  # seconds that no test waits for
SLACK = 10.0  # seconds that a busy machine may take to end a command
USED_UP = "the command was ended because the budget of {} was used up"


def sh(script):
    """The command that runs a shell script; `$1` is the number of the trial."""
    return f"command = ['sh', '-c', '{script}', 'sh', '{{pbgi.trial}}']\n"


def tune(folder, head, *arguments, status=0):
    job = write_job(folder, head + PARAMETERS)
    code = main(["tune", str(job), *arguments])
    assert code == status
    return trials_in(folder / "job.db")


# One process ---------------------------------------------------------------------------------------------------------


def test_a_trial_is_ended_when_the_budget_is_used_up(tmp_path, capfd):
    (trial,) = tune(tmp_path, sh(f"sleep {LONG}") + "budget = 0.5\nretries = 2\nmax_failures = 1\n", status=1)
    out, err = capfd.readouterr()
    assert trial.state is optuna.trial.TrialState.FAIL
    assert trial.user_attrs["pbgi:message"] == USED_UP.format(0.5)
    assert 0.5 <= trial.user_attrs["cost"] == trial.user_attrs["pbgi:seconds"] < 0.5 + SLACK
    assert json.loads(out)["spent"] == trial.user_attrs["cost"]
    assert json.loads(out)["stop_reason"].startswith("the budget of 0.5 is spent: ")  # not that trials failed
    assert "trying again" not in err


def test_its_price_counts(tmp_path):
    (trial,) = tune(tmp_path, sh(f"sleep {LONG}") + "budget = 30.0\nprice_per_second = 100.0\n", status=1)
    assert 0.3 <= trial.user_attrs["pbgi:seconds"] < 0.3 + SLACK
    assert trial.user_attrs["cost"] == pytest.approx(100.0 * trial.user_attrs["pbgi:seconds"])


def test_earlier_attempts_count(tmp_path):
    script = f"test -e $PBGI_FOLDER/seen && sleep {LONG}; touch $PBGI_FOLDER/seen; sleep 0.4; exit 1"
    (trial,) = tune(tmp_path, sh(script) + "budget = 0.7\nretries = 1\n", status=1)
    (first,) = trial.user_attrs["pbgi:attempts"]
    assert trial.user_attrs["pbgi:message"] == USED_UP.format(0.7)
    assert 0.7 <= trial.user_attrs["cost"] < 0.7 + SLACK
    assert trial.user_attrs["cost"] > first["cost"] >= 0.4


def test_one_that_may_finish_does(tmp_path, capfd):
    (trial,) = tune(tmp_path, sh("sleep 0.6; echo 2.5") + 'budget = 0.2\noverrun = "finish"\n')
    assert (trial.value, trial.user_attrs["cost"] >= 0.6) == (2.5, True)
    assert json.loads(capfd.readouterr().out)["stop_reason"].startswith("the budget of 0.2 is spent: ")


def test_reported_costs_are_not_seconds(tmp_path):
    report = 'sleep 0.4; echo "{{\\"value\\": 1, \\"cost\\": 0.3}}"'
    (trial,) = tune(tmp_path, sh(report) + 'cost = "cost"\nbudget = 0.3\nprice_per_second = 1.0\n')
    assert (trial.value, trial.user_attrs["cost"]) == (1.0, 0.3)


def test_a_value_printed_before_the_end_does_not_count(tmp_path):
    """As with a timeout: a program that was killed may have meant to print a better one."""
    (trial,) = tune(tmp_path, sh(f"echo 1; sleep {LONG}") + "budget = 0.4\n", status=1)
    assert trial.value is None
    assert trial.user_attrs["pbgi:message"] == USED_UP.format(0.4)


def test_its_children_are_ended_too(tmp_path):
    marker = "329.0625"
    (trial,) = tune(tmp_path, sh(f"sleep {marker} & sleep {marker}") + "budget = 0.4\n", status=1)
    assert trial.user_attrs["cost"] < 0.4 + SLACK
    wait_for(lambda: not processes_with(f"sleep {marker}"), 5)


def test_trials_beside_each_other_share_the_budget(tmp_path):
    """Nothing is known of costs, so nothing is held: what they use together counts."""
    trials = tune(tmp_path, sh(f"sleep {LONG}") + "budget = 1.0\nparallel = 2\n", status=1)
    assert 1.0 <= math.fsum(t.user_attrs["cost"] for t in trials) < 1.0 + SLACK
    assert all(t.user_attrs["pbgi:message"].startswith(USED_UP.format(1)) for t in trials)


def test_a_study_with_such_a_trial_can_be_read(tmp_path, capfd):
    head = sh(f"test $1 = 1 && sleep {LONG}; echo $1") + "budget = 2.0\nseed = 0\n"
    trials = tune(tmp_path, head)
    capfd.readouterr()
    assert [t.value for t in trials] == [0.0, None]
    job, spent = tmp_path / "job.toml", math.fsum(t.user_attrs["cost"] for t in trials)
    status = said(capfd, "status", job)
    assert (status["spent"], status["left"], status["trials"]["failed"]) == (spent, 0.0, 1)
    assert said(capfd, "best", job)["trial"] == 0
    assert said(capfd, "trials", job)[1]["cost"] == trials[1].user_attrs["cost"]
    report = said(capfd, "report", job, "-o", tmp_path / "report.html")
    assert report["spent"] == spent
    assert USED_UP.format(2) in (tmp_path / "report.html").read_text()
    # With more to spend the search goes on, and the trial that was ended stays charged.
    assert len(tune(tmp_path, head.replace("budget = 2.0", "budget = 60.0\ntrials = 4"))) == 4
    assert json.loads(capfd.readouterr().out)["spent"] > spent


# What is learned from it ---------------------------------------------------------------------------------------------


def test_it_does_not_say_what_a_trial_costs(tmp_path):
    """Of what a success costs a failure says nothing, and a trial that was ended says what was left."""
    tune(tmp_path, sh("test $1 = 0 && exit 1; sleep 60") + "budget = 0.6\n", status=1)
    job = read_job(tmp_path / "job.toml")
    storage = Storage(url_of_file(job.database), create=False)
    study = JobStudy.existing(storage, None)
    optimizer = optimizer_of(study.settings, study.trials())
    failed, ended = (trial.user_attrs["cost"] for trial in study.trials())
    storage.close()
    assert optimizer.typical_cost is None
    assert [trial.state for trial in optimizer.trials] == [TrialState.FAILED, TrialState.INTERRUPTED]
    assert [trial.charged for trial in optimizer.trials] == [failed, ended]
    assert optimizer.spent == math.fsum([failed, ended])
    assert optimizer.trials[1].message == USED_UP.format(0.6)


def test_a_larger_budget_may_try_the_point_again(tmp_path):
    """Two choices: the one that was ended is neither done nor a failure."""
    job = 'command = ["sh", "-c", "test -e ready && echo 1.0 || sleep 60"]\nbudget = {}\n[parameters]\nk = [1, 2]\n'
    assert main(["tune", str(write_job(tmp_path, job.format(0.4)))]) == 1
    (ended,) = trials_in(tmp_path / "job.db")
    (tmp_path / "ready").touch()
    assert main(["tune", str(write_job(tmp_path, job.format(60.0)))]) == 0
    _, *others = trials_in(tmp_path / "job.db")
    assert {trial.params["k"] for trial in others} == {1, 2}
    assert ended.params["k"] in {trial.params["k"] for trial in others if trial.value == 1.0}


# Several processes ---------------------------------------------------------------------------------------------------


def test_two_processes_hold_one_budget(tmp_path):
    job = write_job(tmp_path, sh(f"sleep {LONG}") + "budget = 3.0\n" + PARAMETERS)
    workers = [start("tune", job) for _ in range(2)]
    shown = [worker.communicate(timeout=300) for worker in workers]
    assert [worker.returncode for worker in workers] == [1, 1], shown
    costs = [trial.user_attrs["cost"] for trial in trials_in(tmp_path / "job.db")]
    assert 3.0 <= math.fsum(costs) < 4.5  # each would have had 3 of its own


def test_what_others_have_used_is_known_by_their_signs_of_life(tmp_path, capfd):
    """A trial of another machine, whose clock is ahead, has used all but a second of the budget."""
    head = sh(f"sleep {LONG}") + "budget = 9.0\n"
    said(capfd, "ask", write_job(tmp_path, head + PARAMETERS))
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'job.db'}")
    trial_id = storage.get_trial_id_from_study_id_trial_number(storage.get_study_id_from_name("job"), 0)
    who = {**identity(os.getpid()), "host": "elsewhere"}
    for key, note in {
        "pbgi:worker": who,
        "pbgi:command": {**who, "time": time.time()},
        "pbgi:beat": {"seconds": 8.0, "time": time.time() + 600.0},
    }.items():
        storage.set_trial_user_attr(trial_id, key, note)
    storage.engine.dispose()
    other, own = tune(tmp_path, head, status=1)
    assert other.state is optuna.trial.TrialState.RUNNING
    counted = ", with what other running trials have used or are expected to"
    assert own.user_attrs["pbgi:message"] == USED_UP.format(9) + counted
    assert 1.0 <= own.user_attrs["cost"] < 8.0
    # What the other has used is held for it, so nothing more is begun.
    assert "and 8 held for running trials" in json.loads(capfd.readouterr().out)["stop_reason"]


@pytest.mark.parametrize(
    ("notes", "now", "found"),
    [
        ({}, 100.0, (0.0, False)),
        ({"pbgi:command": {"time": 100.0}}, 100.5, (0.5, True)),
        # The first sign of life is due after a second; a worker that is silent twice as long may be gone.
        ({"pbgi:command": {"time": 100.0}}, 107.0, (2.0, False)),
        ({"pbgi:command": {"time": 100.0}, "pbgi:beat": {"seconds": 100.0, "time": 200.0}}, 205.0, (105.0, True)),
        # Due after a tenth of the time run so far.
        ({"pbgi:command": {"time": 100.0}, "pbgi:beat": {"seconds": 100.0, "time": 200.0}}, 290.0, (120.0, False)),
        # A sign of life of an earlier attempt says nothing of this one.
        ({"pbgi:command": {"time": 300.0}, "pbgi:beat": {"seconds": 100.0, "time": 200.0}}, 301.0, (1.0, True)),
        # A clock that is ahead.
        ({"pbgi:command": {"time": 100.0}}, 90.0, (0.0, False)),
    ],
)
def test_how_long_a_command_elsewhere_has_run(notes, now, found):
    trial = optuna.trial.create_trial(state=optuna.trial.TrialState.RUNNING, user_attrs=notes)
    assert noted_seconds(trial, now) == found


# The rule ------------------------------------------------------------------------------------------------------------


def share(used, expected=0.0, grows=True):
    return Share(used, expected, grows)


@pytest.mark.parametrize(
    ("left", "price", "own", "others", "seconds"),
    [
        (10.0, 1.0, share(4.0), [], 6.0),
        (10.0, 2.0, share(4.0), [], 3.0),
        (10.0, 1.0, share(12.0), [], 0.0),
        # It may take longer than expected while there is room, and is ended within what was expected if there is none.
        (10.0, 1.0, share(4.0, 5.0), [], 6.0),
        (10.0, 1.0, share(4.0, 50.0), [], 6.0),
        # Two that nothing was expected of use what is left together.
        (10.0, 1.0, share(4.0), [share(2.0)], 2.0),
        (10.0, 1.0, share(4.0), [share(2.0, grows=False)], 4.0),
        # One that takes longer than expected leaves the others what is held for them: 10 - 4 - 5.
        (10.0, 1.0, share(4.0, 3.0), [share(1.0, 5.0)], 1.0),
        # The other one, within what was expected, may use what there is: they reach 10 together in 2.5 seconds.
        (10.0, 1.0, share(1.0, 5.0), [share(4.0, 3.0)], 2.5),
        # More is held than there is: within what was expected of it, a trial goes on.
        (10.0, 1.0, share(1.0, 3.0), [share(1.0, 20.0)], 2.0),
        (10.0, 1.0, share(3.5, 3.0), [share(1.0, 20.0)], 0.0),
    ],
)
def test_seconds_left(left, price, own, others, seconds):
    assert seconds_left(left, price, own, others) == pytest.approx(seconds)
