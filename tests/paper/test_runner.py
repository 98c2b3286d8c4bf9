"""Running: what a record holds, resuming, failing, interrupting, and the same results however they are computed."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import pbgi
from paper import execution
from paper.__main__ import main
from paper.execution import execute
from paper.experiments import EXPERIMENTS
from paper.pool import Finished, LocalPool
from paper.progress import Durations, Queue, in_words
from paper.runner import Runner
from paper.smoke import smoke
from paper.specification import FittedModel, ProblemSpec, Run, Specification
from paper.store import Store, load
from paper.worker import answer
from pbgi.botorch.policies import KnowledgeGradient

ROOT = Path(__file__).parents[2]
SIMULATORS = ("empirical", "robot_pushing_known")
TIMES = ("suggest_seconds", "evaluate_seconds", "wall_seconds", "finished")


def toy(policy=None, *, cost: str = "varying", seed: int = 0, curve: str = "RS", **limits) -> Run:
    problem = ProblemSpec("ackley", (("dimension", 2), ("cost", cost)))
    spec = Specification("toy", problem, policy or pbgi.RandomSearch(), FittedModel(), seed, **limits)
    return Run(spec, "Ackley", 2, cost, curve)


def broken() -> Run:
    return replace(toy(), specification=replace(toy().specification, problem=ProblemSpec("no_such_problem")))


class HerePool:
    """Executes in this process, when waited for."""

    size = 1

    def __init__(self):
        self.waiting = []

    @property
    def n_running(self):
        return len(self.waiting)

    @property
    def n_free(self):
        return 1 - len(self.waiting)

    def start(self, run):
        self.waiting.append(run)

    def wait(self, timeout):  # noqa: ARG002 (as long as it takes)
        run = self.waiting.pop()
        found = answer(run.to_json())
        return [Finished(run, found.get("record"), found.get("error"))]

    def close(self):
        self.waiting.clear()


def run_all(runs, directory, pool=None, **settings):
    log = io.StringIO()
    report = Runner(Store(directory), log=log, **settings).run(runs, pool or HerePool())
    return report, log.getvalue()


def numbers(record):
    return {name: value for name, value in record.items() if name not in TIMES}


# One run ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [pbgi.RandomSearch(), pbgi.PBGI(1e-4)])
def test_evaluates_while_anything_is_left_and_may_overshoot(policy):
    record = execute(toy(policy))
    paid = record["costs"][record["n_start"] :]
    assert record["n_start"] == 6
    assert record["budget"] == 50.0
    assert sum(paid[:-1]) < 50.0 <= sum(paid)
    assert all(1.0 <= cost <= 21.0 for cost in record["costs"])


def test_uniform_cost_is_a_number_of_evaluations():
    record = execute(toy(pbgi.LogEI(), cost="uniform"))
    assert len(record["values"]) == 6 + 20
    assert record["costs"] == [1.0] * 26


def test_index_policy_does_not_stop_by_itself():
    """With so high a price no trial is worth it; the budget is spent all the same."""
    assert len(execute(toy(pbgi.PBGI(100.0), cost="uniform"))["values"]) == 26


def test_record():
    record = execute(toy(pbgi.LogEIPC(), curve="LogEIPC", n_evaluations=3))
    assert record["key"] == toy(pbgi.LogEIPC(), n_evaluations=3).key
    assert record["spec"]["policy"] == {"kind": "LogEIPC"}
    labels = {"experiment": "toy", "panel": "Ackley d=2 varying", "problem": "Ackley", "dim": 2, "cost": "varying"}
    labels |= {"policy": "LogEIPC", "variant": "as_published", "seed": 0, "direction": "maximize"}
    assert {name: record[name] for name in labels} == labels
    assert (record["optimum"], record["unit"]) == (0.0, 1.0)
    assert len(record["values"]) == len(record["costs"]) == record["n_start"] + len(record["suggest_seconds"]) == 9
    assert all(value < 0 for value in record["values"])
    assert record["versions"]["pbgi"] == pbgi.__version__
    assert record["wall_seconds"] >= record["evaluate_seconds"] > 0
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_start_is_shared_by_policies():
    records = [execute(toy(policy, n_evaluations=1)) for policy in (pbgi.RandomSearch(), pbgi.UCB(), pbgi.PBGID(0.1))]
    assert len({tuple(record["values"][:6]) for record in records}) == 1
    assert len({record["values"][6] for record in records}) == 3


def test_same_run_same_numbers():
    assert numbers(execute(toy(pbgi.Thompson()))) == numbers(execute(toy(pbgi.Thompson())))
    assert execute(toy())["values"] != execute(toy(seed=1))["values"]


def test_random_search_does_not_look_at_its_model(monkeypatch):
    cheap = execute(toy())["values"]
    monkeypatch.setattr(execution, "build_model", lambda *_: pbgi.GPConfig.paper())
    assert execute(toy())["values"] == cheap


def test_failure_of_an_evaluation_is_an_error(monkeypatch):
    problem = execution.build_problem(toy().specification.problem)
    monkeypatch.setattr(execution, "build_problem", lambda _: replace(problem, evaluate=lambda _: (float("nan"), 1.0)))
    with pytest.raises(pbgi.InvalidInputError, match="must be finite; got nan"):
        execute(toy())


# Results on the disk ----------------------------------------------------------------------------------------------


def record(key: str, **fields) -> dict:
    return {"experiment": "toy", "key": key, "seed": 0, **fields}


def test_store_keeps_records_in_order(tmp_path):
    store = Store(tmp_path / "new")
    assert store.load() == []
    for key in "abc":
        store.append(record(key))
    store.append(record("d") | {"experiment": "another"})
    assert [r["key"] for r in store.load(["toy"])] == ["a", "b", "c"]
    assert [r["key"] for r in load(tmp_path / "new")] == ["d", "a", "b", "c"]


def test_torn_line_is_ignored_and_written_again(tmp_path, capsys):
    store = Store(tmp_path)
    store.append(record("a"))
    store.append(record("b", values=[1.0, 2.0]))
    whole = store.path("toy").read_bytes()
    for n_lost in (1, 5, 30):
        store.path("toy").write_bytes(whole[:-n_lost])
        kept = [r["key"] for r in store.load()]
        assert kept == (["a", "b"] if n_lost == 1 else ["a"])  # without its newline a line is still whole
        store.append(record("b", values=[1.0, 2.0]))
        store.append(record("c"))
        assert [(r["key"], r.get("values")) for r in store.load()] == [("a", None), ("b", [1.0, 2.0]), ("c", None)]
    assert "line 2 is torn and ignored" in capsys.readouterr().err


def test_merging_is_concatenation(tmp_path):
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    for key in "ab":
        here.append(record(key, machine="here"))
    for key in "bc":
        there.append(record(key, machine="there"))
    with here.path("toy").open("ab") as file:
        file.write(there.path("toy").read_bytes())
    assert [(r["key"], r["machine"]) for r in here.load()] == [("a", "here"), ("b", "here"), ("c", "there")]


# Many runs --------------------------------------------------------------------------------------------------------

FEW = [toy(policy, seed=seed, n_evaluations=2) for policy in (pbgi.RandomSearch(), pbgi.LogEI()) for seed in (0, 1)]


def test_results_do_not_depend_on_the_number_of_jobs(tmp_path):
    for n_jobs in (1, 2):
        report, _ = run_all(FEW, tmp_path / str(n_jobs), LocalPool(n_jobs))
        assert (report.n_finished, report.exit_status) == (4, 0)
    one, two = ({r["key"]: numbers(r) for r in load(tmp_path / str(n_jobs))} for n_jobs in (1, 2))
    assert one == two == {run.key: numbers(execute(run)) for run in FEW}


def test_nothing_is_repeated(tmp_path):
    run_all(FEW[:3], tmp_path)
    lines = (tmp_path / "toy.jsonl").read_bytes()
    report, log = run_all(FEW, tmp_path)
    assert (report.n_finished, report.n_before) == (1, 3)
    assert "[1/1] toy | Ackley d=2 varying | RS | seed 1" in log
    report, _ = run_all(FEW, tmp_path)
    assert (report.n_finished, report.n_before, report.exit_status) == (0, 4, 0)
    assert (tmp_path / "toy.jsonl").read_bytes().startswith(lines)
    assert len((tmp_path / "toy.jsonl").read_text().splitlines()) == 4


def test_failure_is_reported_with_its_specification_and_stops_nothing(tmp_path):
    report, log = run_all([broken(), *FEW[:2]], tmp_path)
    assert (report.n_finished, len(report.failed), report.exit_status) == (2, 1, 1)
    assert '"function": "no_such_problem"' in log
    assert "InvalidInputError: function must be a problem of pbgi.problems" in log
    assert len(load(tmp_path)) == 2
    report, _ = run_all([broken()], tmp_path)  # no result, so it is tried again
    assert len(report.failed) == 1


def test_process_that_dies_takes_no_other_run_with_it():
    pool = LocalPool(2)
    long, short = toy(pbgi.Thompson(), cost="uniform"), FEW[0]
    try:
        pool.start(long)
        while not pool.process_ids:
            time.sleep(0.01)
        (victim,) = pool.process_ids
        pool.start(short)
        os.kill(victim, signal.SIGKILL)
        ended = []
        while pool.n_running:
            ended += pool.wait(10.0)
        by_run = {done.run: done for done in ended}
        assert by_run[long].record is None
        assert by_run[long].error == f"its process ended with exit status {-signal.SIGKILL}"
        assert by_run[short].error is None
        assert pool.n_free == 2
        pool.start(FEW[1])
        pool.start(FEW[2])  # one of them in a new process
        ended = [*pool.wait(30.0), *pool.wait(30.0)]
        assert [done.error for done in ended] == [None, None]
    finally:
        pool.close()


def test_botorch_policies_are_skipped_with_a_message(tmp_path, monkeypatch):
    monkeypatch.setattr("paper.specification.find_spec", lambda _: None)
    report, log = run_all([toy(KnowledgeGradient(), curve="KG"), FEW[0]], tmp_path)
    assert (report.n_skipped, report.n_finished, report.exit_status) == (1, 1, 0)
    assert "skipped 1 runs of KG: pip install pbgi[botorch]" in log


def test_time_is_up(tmp_path):
    report, log = run_all(FEW, tmp_path, max_seconds=0.0)
    assert (report.n_finished, report.n_left, report.exit_status) == (0, 4, 0)
    assert "4 left" in log


def test_what_is_running_when_time_is_up_is_given_up(tmp_path):
    pool = LocalPool(1)
    report, log = run_all([toy(pbgi.Thompson(), cost="uniform")], tmp_path, pool, max_seconds=0.1)
    assert (report.n_finished, report.n_left, report.failed) == (0, 1, [])
    assert "1 left" in log
    assert pool.process_ids == []
    assert load(tmp_path) == []


def test_workers_have_one_thread(monkeypatch):
    """As a worker sees it: its environment is that of the process, and the answer is what a worker would say."""
    environments = []

    def popen(_, env, **__):
        environments.append(env)
        raise OSError

    monkeypatch.setattr("paper.pool.subprocess.Popen", popen)
    pool = LocalPool(1)
    pool.start(FEW[0])
    (ended,) = pool.wait(10.0)
    pool.close()
    assert ended.record is None
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        assert environments[0][name] == "1"


def test_answers_are_plain():
    found = answer(FEW[0].to_json())
    assert numbers(found["record"]) == numbers(execute(FEW[0]))
    assert "InvalidInputError: run must have exactly 'specification'" in answer("{}")["error"]
    assert "JSONDecodeError" in answer("no json")["error"]


# Killed and interrupted -------------------------------------------------------------------------------------------

COMMAND = [sys.executable, "-m", "paper", "run", "synthetic", "--seeds", "4", "--panel", "Ackley d=4 varying"]
COMMAND += ["--policy", "LogEIPC"]
N_RUNS = 4


def n_lines(directory: Path) -> int:
    path = directory / "synthetic.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def started(directory: Path, n_finished: int) -> "subprocess.Popen[str]":
    """The command, once it has finished so many runs."""
    process = subprocess.Popen([*COMMAND, "--results", directory], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    while n_lines(directory) < n_finished:
        assert process.poll() is None
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT])
def test_goes_on_after_it_was_ended(tmp_path, signal_number):
    process = started(tmp_path, 1)
    process.send_signal(signal_number)
    # Its standard error is held by its workers too: it closes when they have ended as well.
    _, log = process.communicate(timeout=300)
    before = {r["key"] for r in load(tmp_path)}
    assert 1 <= len(before) < N_RUNS
    if signal_number == signal.SIGINT:
        assert process.returncode == 130
        assert "interrupted: run the same again to go on" in log
        assert "Traceback" not in log
    again = subprocess.run([*COMMAND, "--results", tmp_path], cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"{N_RUNS - len(before)} runs finished, {len(before)} were before" in again.stderr
    assert n_lines(tmp_path) == len({r["key"] for r in load(tmp_path)}) == N_RUNS


# What comes next, and how long it takes ---------------------------------------------------------------------------


def taken(curve: str, seconds: float) -> dict:
    return {"panel": "Ackley d=2 varying", "policy": curve, "variant": "as_published", "wall_seconds": seconds}


def test_unknown_curves_first_then_the_longest():
    runs = [toy(curve=curve, seed=seed) for curve in ("short", "new", "long") for seed in (0, 1)]
    durations = Durations([taken("short", 1.0), taken("short", 3.0), taken("long", 50.0)])
    queue = Queue(runs, durations)
    order = [queue.take() for _ in range(3)]
    assert [(run.curve, run.specification.seed) for run in order] == [("new", 0), ("long", 0), ("long", 1)]
    durations.add(taken("new", 1.0))
    assert [queue.take().curve for _ in range(3)] == ["short", "short", "new"]
    assert queue.take() is None


def test_runs_that_would_not_end_in_time_are_not_taken():
    queue = Queue([toy(curve="long"), toy(curve="short")], Durations([taken("long", 50.0), taken("short", 2.0)]))
    assert queue.take(10.0).curve == "short"
    assert queue.take(10.0) is None
    assert [run.curve for run in queue.runs] == ["long"]


def test_estimate_of_what_is_left():
    durations = Durations([taken("short", 1.0), taken("short", 3.0), taken("long", 50.0)])
    assert durations.total([toy(curve="short"), toy(curve="long")]) == 2.0 + 50.0
    assert durations.total([toy(curve="unknown")]) == (2.0 + 50.0) / 2
    assert durations.total([toy(curve="long", cost="uniform")]) == 50.0  # as the same policy took on another panel
    assert Durations().total([toy()]) is None


@pytest.mark.parametrize(
    ("seconds", "words"), [(None, "unknown"), (4.2, "4.2 s"), (200.0, "3 min"), (5399.0, "90 min"), (9000.0, "2.5 h")]
)
def test_durations_in_words(seconds, words):
    assert in_words(seconds) == words


# The command line -------------------------------------------------------------------------------------------------


def test_smoke_has_every_experiment_and_policy():
    runs = [run for experiment in EXPERIMENTS.values() for run in experiment()]
    small = smoke(runs)
    assert {r.specification.experiment for r in small} == set(EXPERIMENTS)
    assert {r.curve for r in small} == {r.curve for r in runs}
    assert {r.key for r in small}.isdisjoint(r.key for r in runs)


@pytest.mark.parametrize("simulated", [False, True])
def test_smoke_runs_every_experiment(tmp_path, simulated):
    if simulated:
        pytest.importorskip("gymnasium")
        pytest.importorskip("Box2D")
    names = [name for name in EXPERIMENTS if (name in SIMULATORS) == simulated]
    assert main(["run", *names, "--smoke", "--jobs", "2", "--results", str(tmp_path)]) == 0
    expected = smoke(run for name in names for run in EXPERIMENTS[name](1))
    able = {run.key for run in expected if not run.lacks_botorch}
    records = load(tmp_path)
    assert {r["key"] for r in records} == able
    assert {len(r["values"]) - r["n_start"] for r in records} == {2}


def test_selection(tmp_path, capsys):
    pytest.importorskip("botorch.acquisition")
    arguments = ["--seeds", "2", "--policy", "RS", "LogEIPC", "--panel", "levy d=4 v", "--results", str(tmp_path)]
    assert main(["run", "synthetic", *arguments]) == 0
    kinds = {(r["panel"], r["policy"], r["seed"]) for r in load(tmp_path)}
    assert kinds == {("Levy d=4 varying", curve, seed) for curve in ("RS", "LogEIPC") for seed in (0, 1)}
    assert main(["list", "synthetic", "--results", str(tmp_path), "--seeds", "2", "--panel", "Levy d=4"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed[1].split()[:9] == ["Levy", "d=4", "uniform", "18", "runs", "0", "done", "0", "lack"]
    assert listed[2].split()[:9] == ["Levy", "d=4", "varying", "14", "runs", "4", "done", "0", "lack"]
    assert listed[2].endswith(" s left")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "no_such"], "experiment must be one of synthetic"),
        (["run", "timing", "--panel", "Levy"], "the selection must hold a run"),
        (["run", "timing", "--policy", "no_such"], "the selection must hold a run"),
    ],
)
def test_wrong_selection(arguments, message, capsys):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_described_runs_on_demand(tmp_path):
    command = ["run", "synthetic", "--smoke", "--variant", "as_described", "--results", str(tmp_path)]
    assert main([*command, "--panel", "Rosenbrock", "--policy", "PBGI-D"]) == 0
    records = load(tmp_path)
    assert {r["variant"] for r in records} == {"as_described"}
    assert {r["unit"] for r in records} == {1e-5}


@pytest.mark.parametrize("command", ["table", "figures"])
def test_other_commands_are_handed_on(command, capsys):
    pytest.importorskip("matplotlib")
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert f"python -m paper {command}" in capsys.readouterr().out


# Ray --------------------------------------------------------------------------------------------------------------


def test_missing_ray_is_said(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["run", "timing", "--ray", "auto"]) == 2
    assert "--ray needs Ray; got 'auto' without it; pip install" in capsys.readouterr().err


def fake_ray(calls: list) -> ModuleType:
    """What is used of Ray, executed on the spot."""
    ray = ModuleType("ray")

    class Task:
        def __init__(self, function):
            self.function = function

        def remote(self, *arguments):
            return len(calls.append(self.function(*arguments)) or calls) - 1

    ray.init = lambda address, **_: calls.append(address)
    ray.remote = lambda **_: Task
    ray.cluster_resources = lambda: {"CPU": 2.0}
    ray.wait = lambda references, num_returns, **_: (references[:num_returns], references[num_returns:])
    ray.get = lambda reference: calls[reference]
    ray.cancel = lambda *_, **__: None
    ray.shutdown = lambda: calls.append("shutdown")
    return ray


def test_ray_executes_the_same_runs(tmp_path, monkeypatch):
    calls: list = []
    monkeypatch.setitem(sys.modules, "ray", fake_ray(calls))
    from paper.ray_pool import RayPool

    log = io.StringIO()
    report = Runner(Store(tmp_path), log=log).run([*FEW, broken()], RayPool("ray://somewhere"))
    assert (report.n_finished, len(report.failed)) == (4, 1)
    assert {r["key"]: numbers(r) for r in load(tmp_path)} == {run.key: numbers(execute(run)) for run in FEW}
    assert (calls[0], calls[-1]) == ("ray://somewhere", "shutdown")
