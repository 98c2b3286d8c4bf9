"""The tests' own way to run the command line: as from a terminal, however the tests were started."""

import signal
import subprocess
import sys
from pathlib import Path

ASK = "import signal; print(signal.getsignal(signal.SIGHUP) is signal.SIG_DFL)"
CHILD = f"""
import subprocess, sys
import cli_runs
line = [*cli_runs.PBGI[: -len(["-m", "pbgi"])], "-c", {ASK!r}]
sys.exit(subprocess.run(line, check=True).returncode)
"""


def test_commands_hear_a_hangup_under_nohup():
    """What is ignored is inherited, so ignore it here for a moment, as nohup does."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        inherits = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
        options = {"cwd": Path(__file__).parent, "capture_output": True, "text": True, "check": True}
        hears = subprocess.run([sys.executable, "-c", CHILD], **options)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (inherits.stdout, hears.stdout) == ("False\n", "True\n")
