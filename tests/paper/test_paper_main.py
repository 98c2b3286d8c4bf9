"""The command line: selecting, listing, running, and handing on."""

import pytest

from paper.__main__ import main
from paper.experiments import EXPERIMENTS
from paper.results import Store
from paper.smoke import smoke

SIMULATORS = ("empirical", "robot_pushing_known")


@pytest.mark.parametrize("simulated", [False, True])
def test_smoke_runs_every_experiment(tmp_path, simulated):
    if simulated:
        pytest.importorskip("gymnasium")
        pytest.importorskip("Box2D")
    names = [name for name in EXPERIMENTS if (name in SIMULATORS) == simulated]
    assert main(["run", *names, "--smoke", "--jobs", "2", "--results", str(tmp_path)]) == 0
    expected = smoke(run for name in names for run in EXPERIMENTS[name](1))
    able = {run.key for run in expected if not run.lacks_botorch}
    assert {r["key"] for r in Store(tmp_path).load()} == able


def test_selection(tmp_path, capsys):
    pytest.importorskip("botorch.acquisition")
    arguments = ["--seeds", "2", "--policy", "RS", "LogEIPC", "--panel", "levy d=4 v", "--results", str(tmp_path)]
    assert main(["run", "synthetic", *arguments]) == 0
    names = ("problem", "dim", "cost", "policy", "seed")
    kinds = {tuple(r[name] for name in names) for r in Store(tmp_path).load()}
    assert kinds == {("Levy", 4, "varying", curve, seed) for curve in ("RS", "LogEIPC") for seed in (0, 1)}
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
    records = Store(tmp_path).load()
    assert {r["variant"] for r in records} == {"as_described"}
    assert {r["unit"] for r in records} == {1e-5}


@pytest.mark.parametrize("command", ["table", "figures"])
def test_other_commands_are_handed_on(command, capsys):
    pytest.importorskip("matplotlib")
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert f"python -m paper {command}" in capsys.readouterr().out
