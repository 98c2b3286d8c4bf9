"""Numbers, texts and nestings at the edge of what can be written: a rule that is named, never a traceback."""

import io
import json
import sys

import optuna
import pytest
from cli_runs import ECHO, run, trials_in, write_job
from command_line import said

import pbgi
from pbgi.cli import main
from pbgi.cli.program.result import read_result

BEYOND = "1" + "0" * 400  # a whole number that no float holds
ENDLESS = "1" + "0" * 5000  # and one that Python does not even read
SPACE = "[parameters]\nx = { low = 0.0, high = 1.0 }\n"
TRUE = 'command = ["true"]\n'


def deep(n):
    return "[" * n + "]" * n


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"budget = {BEYOND}\n" + TRUE + SPACE, "job.toml:1: budget: this must be a positive, finite number"),
        (f"budget = {ENDLESS}\n" + TRUE + SPACE, "is not TOML: "),
        (f"timeout = {BEYOND}\n" + TRUE + SPACE, "timeout: this must be a positive, finite number"),
        (f"price_per_second = {BEYOND}\n" + TRUE + SPACE, "price_per_second: this must be a positive, finite number"),
        (f'policy = {{ kind = "PBGI", cost_scale = {BEYOND} }}\n' + TRUE + SPACE, "cost_scale must be a positive"),
        ('policy = { kind = ["PBGI"] }\n' + TRUE + SPACE, "policy: kind must be one of"),
        (TRUE + f"trials = 1\n[parameters]\nx = [1, {BEYOND}]\n", "parameters.x: a whole number must be within"),
        (TRUE + f"trials = 1\n[parameters]\nx = {BEYOND}\n", "parameters.x: a whole number must be within"),
        (TRUE + f"trials = 1\n[parameters]\nx = {{ low = 0, high = {BEYOND} }}\n", "parameters.x: high must fit"),
        (TRUE + f"trials = {deep(150)}\n" + SPACE, "trials: this must be a positive whole number"),
        (TRUE + f"trials = {deep(20000)}\n" + SPACE, "nested too deeply"),
        (TRUE + f"trials = 1\n[parameters]\nx = {deep(150)}\n", "parameters.x: each choice must be"),
        (TRUE + f"trials = 1\nfolder = '{'a' * 5000}'\n" + SPACE, "folder: must be a folder that exists"),
    ],
)
def test_jobs(tmp_path, capfd, text, says):
    err = said(capfd, "tune", write_job(tmp_path, text), status=2)
    assert says in err
    assert err.count("\n") == 1
    assert len(err) < 1200
    assert not (tmp_path / "job.db").exists()


@pytest.mark.parametrize(
    ("head", "cost", "spent"),
    [
        ("budget = 1.0\ntrials = 4\n", "1e-320", 4e-320),
        ("trials = 4\n", "1.7e308", sys.float_info.max),  # the sum is beyond the largest float, which stands for it
        ("budget = 1.7e308\ntrials = 2\n", "1", 2.0),
        ("timeout = 1e12\ntrials = 2\n", "1", 2.0),
    ],
)
def test_whole_runs(tmp_path, head, cost, spent):
    job = write_job(tmp_path, head + ECHO.replace("{y}", cost))
    done = run("tune", job)  # with warnings as errors
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["spent"] == pytest.approx(spent, rel=1e-3)
    for command in ("status", "best", "trials"):
        json.loads(run(command, job).stdout)


def test_a_price_beyond_the_largest_float_is_that_float(tmp_path):
    """It was charged as seconds: an infinite cost is none."""
    job = write_job(
        tmp_path, 'price_per_second = 1.7e308\ntrials = 1\ncommand = ["sh", "-c", "sleep 1.2; echo 1"]\n' + SPACE
    )
    run("tune", job)
    assert trials_in(tmp_path / "job.db")[0].user_attrs["cost"] == sys.float_info.max


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (f'{{"trial": 0, "value": 1, "cost": {BEYOND}}}', "cost must be a positive, finite number"),
        (f'{{"trial": {BEYOND}, "value": 1}}', "a trial must be one of this study"),
        (f'{{"trial": 0, "value": {ENDLESS}}}', "standard input must be JSON"),
        (f'{{"trial": 0, "value": {deep(900)}}}', "value must be a single JSON value; got a list of length 1"),
        ('{"trial": 0, "failed": true, "message": {}}', "message must be a single JSON value; got an object"),
        (deep(100_000), "standard input must be JSON"),
    ],
)
def test_what_is_told(tmp_path, capfd, monkeypatch, told, says):
    job = write_job(tmp_path, "trials = 2\n" + SPACE)
    said(capfd, "ask", job)
    monkeypatch.setattr("sys.stdin", io.StringIO(told))
    err = said(capfd, "tell", job, status=2)
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("depth", [10, 900, 950, 980, 990, 995, 50_000])
def test_nested_results(tmp_path, depth):
    """At some depth JSON can just be read, and no longer be shown."""
    path = tmp_path / "out"
    path.write_text(f'{{"value": {deep(depth)}, "cost": {deep(depth)}}}')
    found = read_result(path, None, "value", "cost")
    assert (found.value, found.cost) == (None, None)
    assert "must be a single JSON value" in found.problem or "there is none" in found.problem
    assert len(found.problem) < 1200


@pytest.mark.parametrize("text", [json.dumps({str(i): 1 for i in range(60_000)}), '"' + "a" * 10**6 + '"'])
def test_long_results_are_not_quoted_in_full(tmp_path, text):
    path = tmp_path / "out.json"
    path.write_text(text)
    for cost in ("cost", None):
        assert 0 < len(read_result(tmp_path / "none", path, "value", cost).problem) < 1200


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            f"budget = {BEYOND}\n[[box]]\ncost = 1.0\nreward = {{ gaussian = [0.0, 1.0] }}\n",
            "budget must be a positive",
        ),
        (
            f"cost_scale = {BEYOND}\n[[box]]\ncost = 1.0\nreward = {{ samples = [1.0] }}\n",
            "cost_scale must be a positive",
        ),
        (f"[[box]]\ncost = {BEYOND}\nreward = {{ gaussian = [0.0, 1.0] }}\n", "cost must be positive and finite"),
        (f"[[box]]\ncost = 1.0\nreward = {{ gaussian = [{BEYOND}, 1.0] }}\n", "mean must be finite"),
        (f"[[box]]\ncost = 1.0\nreward = {{ gaussian = [0.0, {BEYOND}] }}\n", "std must be positive and finite"),
        (f"[[box]]\ncost = 1.0\nreward = {{ samples = [{BEYOND}, 1] }}\n", "samples of a reward must be finite"),
        (f"[[box]]\ncost = 1.0\nreward = {{ values = [1.0], probabilities = [{BEYOND}] }}\n", "probabilities must be"),
        (f"[[box]]\ncost = {{ gamma = {{ a = {BEYOND} }} }}\nreward = {{ samples = [1.0] }}\n", "box[0]"),
    ],
)
def test_boxes(tmp_path, capfd, text, says):
    err = said(capfd, "boxes", write_job(tmp_path, text), status=2)
    assert says in err
    assert err.count("\n") == 1


def test_boxes_that_cost_next_to_nothing(tmp_path):
    text = "budget = 1e-320\n[[box]]\ncost = 1e-320\nreward = { gaussian = [0.0, 1.0] }\n"
    solved = json.loads(run("boxes", write_job(tmp_path, text)).stdout)
    assert solved["spend"] == 1e-320  # one box, which must be opened
    assert "--play must be a seed" in run("boxes", tmp_path / "job.toml", "--play=-1", status=2).stderr


@pytest.mark.parametrize("params", [{"x": 0.5}, {"x": 10**400}, {"x": float("nan")}, {"z": "no such parameter"}, {}])
def test_points_that_another_tool_has_queued(tmp_path, capfd, params):
    """Optuna's queue belongs to Optuna: they are shown as waiting, and are in nobody's way."""
    job = write_job(tmp_path, "trials = 3\n" + ECHO)
    said(capfd, "ask", job)
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'job.db'}")
    optuna.load_study(study_name="job", storage=storage).enqueue_trial(params)
    storage.engine.dispose()
    said(capfd, "tell", job, 0, "--value", 1, "--cost", 1)
    assert main(["tune", str(job), "--quiet"]) == 0
    assert json.loads(capfd.readouterr().out)["trials"]["complete"] == 3
    assert [trial["state"] for trial in said(capfd, "trials", job)].count("waiting") == 1
    assert said(capfd, "status", job)["best"]["value"] <= 1.0


@pytest.mark.parametrize("cost", [5e-324, 1e-320, 1.7e308])
def test_a_point_of_the_users_choice_has_a_cost_that_can_be_kept(cost):
    """What a model extrapolates may be beyond any float, and is then the nearest one."""
    optimizer = pbgi.Optimizer({"x": pbgi.Float(0.0, 1.0)}, stop=pbgi.MaxTrials(9), seed=0)
    for x, factor in ((0.4, 1.0), (0.6, 0.1 if cost > 1 else 10.0), (0.5, 0.3 if cost > 1 else 3.0)):
        optimizer.tell(optimizer.enqueue({"x": x}), x, cost=cost * factor)
    for x in (0.0, 1.0):
        assert 0.0 < optimizer.enqueue({"x": x}).predicted_cost <= sys.float_info.max
