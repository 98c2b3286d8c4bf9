"""The command line: `pbgi tune | ask | tell | status | best | trials | export | check | report | boxes`.

    arguments.py commands.py     what can be typed, and what it does
    toml_file.py job.py          what a job file says, and how a program gets its parameters
    command.py processes.py      running a program, and ending it; the guard; signals
    outcome.py private.py        what it reported and printed; files and passwords that are nobody else's business
    storage.py server.py         an Optuna storage; turns on a database server
    faults.py errors.py          which faults pass, and how long they are waited for; exit codes
    sound.py check.py            what the storage hands back is checked; what can be read of a damaged one
    study.py                     the trials in the storage
    settings.py suggest.py       what suggestions depend on; the next one
    widening.py                  ranges that have grown
    tune.py recovery.py          the loop, and what a crash left
    overrun.py                   trials under way, ended when a budget of seconds is used up
    scripts.py                   ask, tell and records of trials
    progress.py                  what people see while it runs
    report.py                    a page about a study, once or as its trials end
    boxes.py                     Pandora's Box in TOML

This module imports next to nothing, so that `pbgi --help` comes at once.
"""

import os
import sys
from collections.abc import Sequence

WINDOWS = (
    "pbgi: the command line runs on Linux and macOS, not on Windows; use it in WSL, or pbgi.minimize and the Optuna "
    "sampler from Python, which run there"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    if sys.platform == "win32":  # processes in groups, signals and locks on files are those of POSIX
        print(WINDOWS, file=sys.stderr)
        return 2
    from pbgi.cli.arguments import parser

    given = parser().parse_args(arguments)
    try:
        from pbgi.cli.commands import run

        return run(given)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read our output has enough; nor shall Python complain when it flushes the rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
