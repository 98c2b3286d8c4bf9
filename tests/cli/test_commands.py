"""Which exit code an error becomes, and what is shown of it."""

import subprocess
import sys
import time

from cli_runs import ECHO, PBGI, run, write_job

from pbgi.cli import main


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


def test_windows_is_told_what_runs_there(capfd, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert main(["status", "job.toml"]) == 2
    assert "runs on Linux and macOS" in capfd.readouterr().err
