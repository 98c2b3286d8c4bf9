"""A run that is kept in a file: it goes on as if never stopped, whatever ended it."""

import json
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import pbgi
from pbgi import Float, InvalidInputError, MaxTrials, StopRun, minimize
from pbgi.history import TrialState
from pbgi.run.checkpoint import interrupt_running

SPACE = {"x": Float(0, 1), "kind": pbgi.Categorical(["a", "b"])}


def bowl(params):
    return (params["x"] - 0.3) ** 2 + (params["kind"] == "b"), 1.0 + params["x"]


def after(n):
    def callback(_, trial):
        if trial.number >= n - 1:
            raise StopRun("for now")

    return callback


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_a_run_goes_on_as_if_it_had_never_stopped(tmp_path, n):
    file = tmp_path / "run.json"
    arguments = {"budget": 20, "seed": 3, "x0": [{"x": 0.9, "kind": "a"}, ({"x": 0.5, "kind": "b"}, 1.04)]}
    whole = minimize(bowl, SPACE, **arguments)
    part = minimize(bowl, SPACE, **arguments, resume=file, callbacks=[after(n)])
    assert (part.message, len(part.trials)) == ("for now", max(n, 2))
    resumed = minimize(bowl, SPACE, **arguments, resume=file)
    assert resumed.trials == whole.trials
    assert resumed.stop_reason == whole.stop_reason


def test_a_run_that_has_ended_evaluates_nothing(tmp_path):
    calls = []
    arguments = {"stop": MaxTrials(5), "resume": str(tmp_path / "run.json"), "seed": 0}
    first = minimize(lambda p: calls.append(p) or bowl(p), SPACE, **arguments)
    again = minimize(lambda p: calls.append(p) or bowl(p), SPACE, **arguments)
    assert len(calls) == 5
    assert (again.trials, again.message) == (first.trials, first.message)


def test_it_goes_on_with_more_to_spend_and_the_seed_of_the_file(tmp_path):
    file = tmp_path / "run.json"
    first = minimize(bowl, SPACE, budget=6, resume=file)
    more = minimize(bowl, SPACE, budget=12, resume=file)
    assert more.trials[: first.nfev] == first.trials
    assert 6 < more.spent <= 12.1
    assert more.optimizer.settings.seed == first.optimizer.settings.seed


def other_arguments():
    return [
        ({"space": {"x": Float(0, 2), "kind": pbgi.Categorical(["a", "b"])}}, "space"),
        ({"direction": "maximize"}, "direction"),
        ({"seed": 1}, "seed"),
        ({"policy": pbgi.LogEI()}, "policy"),
        ({"cost": pbgi.UniformCost()}, "cost"),
        ({"model": pbgi.GPConfig.paper()}, "model"),
        ({"n_startup_trials": 7}, "n_startup_trials"),
        ({"x0": [{"x": 0.1, "kind": "a"}]}, "x0"),
    ]


@pytest.mark.parametrize(("other", "name"), other_arguments(), ids=lambda each: each if isinstance(each, str) else "")
def test_the_file_of_another_run_is_refused_before_anything_is_evaluated(tmp_path, other, name):
    file, calls = tmp_path / "run.json", []
    minimize(bowl, SPACE, budget=5, seed=0, resume=file)
    before = file.read_bytes()
    arguments = {"space": SPACE, "budget": 5, "seed": 0, **other}
    with pytest.raises(
        InvalidInputError, match=rf"a run with the same {name}; .*run.json' has .*, got .*; give another"
    ):
        minimize(lambda p: calls.append(p) or bowl(p), resume=file, **arguments)
    assert calls == []
    assert file.read_bytes() == before


@pytest.mark.parametrize("content", ["", "{", "[]", '{"x": 1}', "null", "[" * 100_000])
def test_a_file_of_something_else_is_refused_and_kept(tmp_path, content):
    file = tmp_path / "notes.json"
    file.write_text(content)
    with pytest.raises(InvalidInputError, match="resume must be a file that a run like this one has written"):
        minimize(bowl, SPACE, budget=5, resume=file)
    assert file.read_text() == content


def test_a_damaged_history_is_refused(tmp_path):
    file = tmp_path / "run.json"
    minimize(bowl, SPACE, stop=MaxTrials(3), seed=0, resume=file)
    data = json.loads(file.read_text())
    data["optimizer"]["history"]["trials"][1]["value"] = "good"
    file.write_text(json.dumps(data))
    with pytest.raises(InvalidInputError, match=r"in which value of trial 1 must be a real number"):
        minimize(bowl, SPACE, stop=MaxTrials(3), seed=0, resume=file)


def test_a_folder_must_exist_and_a_rule_must_be_writable(tmp_path):
    class Own:
        def note(self, *_):
            return {}

        def reason(self, _):
            return None

    with pytest.raises(InvalidInputError, match="resume must be a file in a folder that exists"):
        minimize(bowl, SPACE, budget=5, resume=tmp_path / "no" / "run.json")
    for name in (3, "", "a\0b", "a\ud800", b"", tmp_path):
        with pytest.raises(InvalidInputError, match=r"resume must be the name of a file; got "):
            minimize(bowl, SPACE, budget=5, resume=name)
    with pytest.raises(InvalidInputError, match=r"a stop rule of your own.*raise pbgi.StopRun in a callback"):
        minimize(bowl, SPACE, budget=5, stop=Own(), resume=tmp_path / "run.json")


def test_known_costs_are_given_again(tmp_path):
    arguments = {"cost": pbgi.KnownCost(lambda p: 1.0 + p["x"]), "budget": 12, "seed": 0}
    whole = minimize(lambda p: bowl(p)[0], SPACE, **arguments)
    file = tmp_path / "run.json"
    minimize(lambda p: bowl(p)[0], SPACE, **arguments, resume=file, callbacks=[after(3)])
    assert minimize(lambda p: bowl(p)[0], SPACE, **arguments, resume=file).trials == whole.trials


# What ends a program --------------------------------------------------------------------------------------------------


def interrupted_once(at):
    calls = []

    def fun(params):
        calls.append(dict(params))
        if len(calls) == at:
            raise KeyboardInterrupt
        return bowl(params)

    return fun, calls


def test_after_ctrl_c_the_interrupted_point_is_tried_again(tmp_path):
    fun, calls = interrupted_once(6)
    arguments = {"budget": 30, "seed": 0, "resume": tmp_path / "run.json"}
    stopped = minimize(fun, SPACE, **arguments)
    assert stopped.trials[-1].state is TrialState.INTERRUPTED
    resumed = minimize(fun, SPACE, **arguments)
    assert resumed.trials[:6] == stopped.trials
    assert resumed.trials[6].params == stopped.trials[5].params == calls[6]
    assert (resumed.trials[6].predicted_cost, resumed.trials[6].record) == (
        stopped.trials[5].predicted_cost,
        stopped.trials[5].record,
    )
    assert resumed.spent == pytest.approx(sum(t.charged for t in resumed.trials))
    assert resumed.spent <= 30.3


def test_a_point_at_which_the_program_ends_twice_has_failed():
    """Charged what was expected, both times."""
    optimizer = pbgi.Optimizer(SPACE, budget=30, seed=0)
    optimizer.tell(optimizer.ask(), 1.0, cost=3.0)
    killed = optimizer.enqueue({"x": 0.7, "kind": "a"})
    assert [trial.number for trial in interrupt_running(optimizer)] == [killed.number]
    assert optimizer.trials[1].state is TrialState.INTERRUPTED
    again = pbgi.Trial(2, killed.params, TrialState.RUNNING, predicted_cost=2.0)
    optimizer = pbgi.Optimizer.of(optimizer.space, "minimize", optimizer.settings, [*optimizer.trials, again])
    assert interrupt_running(optimizer) == []
    assert optimizer.trials[2].state is TrialState.FAILED
    assert optimizer.spent == pytest.approx(3.0 + killed.predicted_cost + 2.0)


def test_a_first_trial_that_was_killed_costs_nothing():
    optimizer = pbgi.Optimizer(SPACE, budget=30, seed=0)
    optimizer.ask()
    assert len(interrupt_running(optimizer)) == 1
    assert optimizer.spent == 0.0


def test_a_point_that_no_longer_fits_is_not_tried_again(tmp_path):
    """The interrupted trial is charged what was expected of it, 5 of 12: another one does not fit."""
    fun, calls = interrupted_once(2)
    arguments = {"budget": 12, "cost": pbgi.KnownCost(lambda _: 5.0), "seed": 0, "resume": tmp_path / "run.json"}
    minimize(lambda p: fun(p)[0], SPACE, **arguments)
    result = minimize(lambda p: fun(p)[0], SPACE, **arguments)
    assert result.spent == pytest.approx(10.0)
    assert len(calls) == 2


PROGRAM = """
    import os, pathlib, signal, sys
    import pbgi
    from pbgi.run import checkpoint

    space = {"x": pbgi.Float(0, 1), "kind": pbgi.Categorical(["a", "b"])}
    kill_at, steps = int(sys.argv[1]), [0]

    def step(function):
        def counted(*args, **kwargs):
            steps[0] += 1
            if steps[0] == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)
        return counted

    os.fsync, pathlib.Path.replace = step(os.fsync), step(pathlib.Path.replace)

    @step
    def fun(params):
        with open("calls", "a") as file:
            print(repr(params), file=file)
        return (params["x"] - 0.3) ** 2 + (params["kind"] == "b"), 1.0 + params["x"]

    result = pbgi.minimize(fun, space, stop=pbgi.MaxTrials(4), seed=3, resume="run.json")
    print(result.nfev)
"""


# Starting Python and importing takes longer than the program: one process has done both, and forks for each run.
FORKS = """
    import os, runpy, sys
    import pbgi
    from pbgi.run import checkpoint
    pbgi.minimize(lambda p: p["x"], {"x": pbgi.Float(0, 1)}, stop=pbgi.MaxTrials(4), seed=0)

    for line in sys.stdin:
        folder, step = line.rstrip("\\n").split("\\t")
        child = os.fork()
        if child == 0:
            os.chdir(folder)
            sys.argv = ["program.py", step]
            runpy.run_path("program.py", run_name="__main__")
            os._exit(0)
        print("exit code", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def run_program():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(FORKS)], **pipes) as forks:

        def run(folder, step):
            print(folder, step, sep="\t", file=forks.stdin, flush=True)
            return int(next(line for line in forks.stdout if line.startswith("exit code")).split()[-1])

        yield run


@pytest.mark.parametrize("kill_at", [*range(1, 17, 2), 10, 12, 14])
def test_a_kill_at_any_step_loses_at_most_the_trial_that_ran(tmp_path, run_program, kill_at):
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    assert run_program(tmp_path, kill_at) == -signal.SIGKILL
    assert run_program(tmp_path, 0) == 0
    calls = (tmp_path / "calls").read_text().splitlines()
    trials = json.loads((tmp_path / "run.json").read_text())["optimizer"]["history"]["trials"]
    interrupted = [trial for trial in trials if trial["state"] == "interrupted"]
    assert len(trials) == 4
    assert len(interrupted) <= 1
    assert len(calls) - len(set(calls)) <= len(interrupted)
    assert sum(trial["state"] == "complete" for trial in trials) == 4 - len(interrupted)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["calls", "program.py", "run.json"]


def test_a_full_disk_keeps_what_there_is(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    def break_disk(_, trial):
        if trial.number == 3:
            monkeypatch.setattr("pbgi.run.checkpoint.os.fsync", full)

    with pytest.warns(RuntimeWarning, match="No space left"):
        result = minimize(bowl, SPACE, budget=50, seed=0, resume=tmp_path / "run.json", callbacks=[break_disk])
    monkeypatch.undo()
    assert "No space left" in result.message
    assert sum(t.state is TrialState.COMPLETE for t in result.trials) == 4
    assert minimize(bowl, SPACE, budget=50, seed=0, resume=tmp_path / "run.json").trials[:4] == result.trials[:4]


def test_another_program_on_the_same_file_is_refused(tmp_path):
    program = (
        "import pbgi\nprint(1)\npbgi.minimize(lambda p: p['x'], {'x': pbgi.Float(0, 1)}, budget=1, resume='run.json')"
    )
    seen = []

    def callback(*_):
        if not seen:
            command = [sys.executable, "-c", program]
            seen.append(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stderr)

    minimize(bowl, SPACE, stop=MaxTrials(2), seed=0, resume=tmp_path / "run.json", callbacks=[callback])
    assert "resume must be a file that no other program uses" in seen[0]
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


def test_no_link_leads_to_a_file_of_somebody_else(tmp_path):
    """The folder may be one that others write to, and the names beside the file can be guessed."""
    theirs = tmp_path / "theirs"
    theirs.write_text("precious")
    (tmp_path / "run.json.draft").symlink_to(theirs)
    minimize(bowl, SPACE, stop=MaxTrials(2), seed=0, resume=tmp_path / "run.json")
    assert theirs.read_text() == "precious"
    (tmp_path / "run.json.lock").symlink_to(tmp_path / "made")
    with pytest.raises(InvalidInputError, match=r"no link is the lock; got '.*run.json.lock'"):
        minimize(bowl, SPACE, stop=MaxTrials(4), seed=0, resume=tmp_path / "run.json")
    assert not (tmp_path / "made").exists()


def test_a_link_of_the_users_stays_one(tmp_path):
    (tmp_path / "disk").mkdir()
    link, file = tmp_path / "run.json", tmp_path / "disk" / "run.json"
    link.symlink_to(file)
    minimize(bowl, SPACE, stop=MaxTrials(2), seed=0, resume=link)
    assert link.is_symlink()
    assert minimize(bowl, SPACE, stop=MaxTrials(3), seed=0, resume=file).nfev == 3


def test_workers_resume_too(tmp_path):
    """A run of two workers is stopped: what was running is interrupted, and nothing that ended is evaluated again."""
    calls, lock = [], threading.Lock()

    def fun(params):
        with lock:
            calls.append(repr(params))
        return bowl(params)

    arguments = {"stop": MaxTrials(14), "seed": 0, "n_workers": 2, "resume": tmp_path / "run.json"}
    minimize(fun, SPACE, **arguments, callbacks=[after(5)])
    result = minimize(fun, SPACE, **arguments)
    n_interrupted = sum(t.state is TrialState.INTERRUPTED for t in result.trials)
    assert result.nfev == 14
    assert len(calls) - len(set(calls)) <= n_interrupted <= 1
