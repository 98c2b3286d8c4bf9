"""Which exit code an error becomes, and what is shown of it."""

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_runs import ECHO, PBGI, run, write_job

from pbgi.cli import main
from pbgi.cli.toml_file import MOST_BYTES


def test_a_mistake_of_ours_shows_no_password(tmp_path, capfd, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("postgresql://me:s3cr3t@host/db")

    monkeypatch.setattr("pbgi.cli.job.read_job", broken)
    assert main(["status", str(tmp_path / "job.toml")]) == 70
    err = capfd.readouterr().err
    assert "ZeroDivisionError" in err
    assert "s3cr3t" not in err


def test_a_closed_pipe_is_no_drama(tmp_path):
    job = write_job(tmp_path, "trials = 1\n" + ECHO)
    run("tune", job)
    worker = subprocess.Popen([*PBGI, "trials", job], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    worker.stdout.close()
    time.sleep(0.05)
    assert "Traceback" not in worker.stderr.read()
    worker.stderr.close()
    worker.wait()


@pytest.mark.parametrize(
    ("command", "redirected", "status", "says"),
    [
        ("trials job.toml", "> /dev/full", 2, "pbgi: standard output must take the result; No space left on device\n"),
        ("export job.toml", "> /dev/full", 2, "pbgi: standard output must take the result; No space left on device\n"),
        ("export job.toml", ">&-", 2, "pbgi: standard output must take the result; Bad file descriptor\n"),
        ("tell job.toml", "<&-", 2, "pbgi: standard input must be JSON such as"),
        ("--version", ">&-", 0, ""),
        ("status none.toml", "2> /dev/full", 2, ""),
        ("tune job.toml", "<&- 2>&-", 0, ""),
    ],
)
def test_standard_streams_that_are_closed_or_full(tmp_path, command, redirected, status, says):
    job = write_job(tmp_path, "trials = 1\n" + ECHO)
    assert main(["tune", str(job)]) == 0
    line = f"{shlex.join(PBGI)} {command} {redirected}"
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == status, done.stderr
    assert done.stderr.startswith(says)
    assert bool(done.stderr) == bool(says)
    assert main(["check", str(tmp_path / "job.db")]) == 0  # no stream was mixed up with it


@pytest.mark.parametrize("study", ["/", "{tmp_path}", "sqlite:///{tmp_path}"])
def test_a_folder_is_no_study(tmp_path, capfd, study):
    assert main(["ask", study.format(tmp_path=tmp_path)]) == 3
    assert capfd.readouterr().err.endswith("must be a file, an SQLite database; it is a folder\n")


@pytest.mark.parametrize("name", [b"job\xff.toml", b"job\xff.db"])
def test_a_path_that_is_no_text(tmp_path, capfd, name):
    study = os.fsdecode(bytes(tmp_path) + b"/" + name)
    Path(study).write_text(ECHO)
    assert main(["status", study]) == 2
    assert "a path must be UTF-8, in this locale too; got " in capfd.readouterr().err


def test_a_job_without_end(tmp_path, capfd):
    endless = tmp_path / "job.toml"
    endless.symlink_to("/dev/zero")
    assert main(["ask", str(endless)]) == 2
    assert capfd.readouterr().err.endswith(f"a TOML file may have at most {MOST_BYTES} bytes\n")


def test_windows_is_told_what_runs_there(capfd, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert main(["status", "job.toml"]) == 2
    assert "runs on Linux and macOS" in capfd.readouterr().err
