"""What can be typed: help, bad usage, and the page about it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from cli_runs import PBGI, write_job
from command_line import said
from processor_seconds import median_seconds

from pbgi.cli import main
from pbgi.cli.arguments import parser
from pbgi.cli.errors import ExitCode
from pbgi.cli.job import RULES, read_job

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def test_help_needs_next_to_nothing():
    code = "import sys, pbgi.cli\ntry: pbgi.cli.main(['--help'])\nexcept SystemExit: print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"numpy", "optuna", "scipy", "sqlalchemy"} & set(loaded)


def test_help_is_quick():
    assert median_seconds([*PBGI, "--help"]) < 0.5


@pytest.mark.parametrize(
    "command", ["tune", "ask", "tell", "status", "best", "trials", "export", "check", "report", "boxes"]
)
def test_every_command_has_help(command, capfd):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert "usage: pbgi" in capfd.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["tun"], ["tune"], ["status", "a", "b"], ["tell", "a", "x"]])
def test_bad_usage(arguments, capfd):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: pbgi" in capfd.readouterr().err


def test_the_page_knows_every_key_and_exit_code():
    text = PAGE.read_text()
    assert [key for key in ("parameters", *RULES) if not re.search(rf"^\| `{key}` ", text, re.MULTILINE)] == []
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert codes == {int(code) for code in ExitCode} | {129}


def test_pages_name_commands_and_files_that_are_there():
    pages = [
        *PAGE.parent.glob("*.md"),
        *(PAGE.parents[1] / name for name in ("README.md", "SECURITY.md", "CHANGELOG.md")),
    ]
    said = "\n".join(page.read_text() for page in pages)
    named = set(re.findall(r"(?:^|`|\$ )pbgi ([a-z]+)", said, re.MULTILINE))
    known = set(next(action for action in parser()._actions if action.dest == "command").choices)
    assert named == known
    project = tomllib.loads((PAGE.parents[1] / "pyproject.toml").read_text())["project"]
    assert set(re.findall(r"pbgi\[(\w+)\]", said)) <= set(project["optional-dependencies"])
    site = (PAGE.parents[1] / "mkdocs.yml").read_text()
    assert [gone for gone in ("dashboard.md", "images/dashboard", "optuna_dashboard") if gone in said + site] == []


def test_the_jobs_and_problems_of_the_page_are_good(tmp_path, capfd):
    blocks = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    jobs = [block for block in blocks if "[parameters]" in block]
    assert len(blocks) - len(jobs) == 1
    for text in jobs:
        read_job(write_job(tmp_path, text))
    (problem,) = [block for block in blocks if block not in jobs]
    assert said(capfd, "boxes", write_job(tmp_path, problem, "boxes.toml"))["order"]
    assert (PAGE.parent.parent / "examples" / "tune" / "job.toml").read_text() in blocks
