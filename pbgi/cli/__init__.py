"""The command line: `pbgi tune | ask | tell | status | best | trials | export | check | report | boxes`.

    arguments.py commands.py     what can be typed, and what it does
    toml_file.py job.py          what a job file says
    parameters.py                its table of parameters, and how a program gets them
    program/                     the program: run, listened to, and what it said
    processes.py                 told apart and ended; the guard; signals
    private.py                   files and passwords that are nobody else's business
    storage.py database.py       an Optuna storage; which faults pass; turns on a database server
    errors.py                    exit codes
    study.py                     the study of a job: its trials in the storage
    choosing.py                  the next trial, and whether one that runs goes on
    tune.py running.py           the loop; trials whose worker died, and a budget of seconds that holds
    scripts.py                   ask, tell and records of trials
    progress.py                  what people see while it runs
    report.py                    a page about a study, once or as its trials end
    check.py                     what can be read of a damaged storage
    boxes.py                     Pandora's Box in TOML

This module imports next to nothing, so that `pbgi --help` comes at once.
"""

import contextlib
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
    _open_closed_streams()
    try:
        from pbgi.cli.arguments import parser

        options = parser().parse_args(arguments)
        from pbgi.cli.commands import run

        return run(options)
    except SystemExit:  # argparse has said its part
        try:
            sys.stdout.flush()
        except OSError:
            forget_output()
        raise
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read our output has enough
        forget_output()
        return 1


def forget_output() -> None:
    """What could not be written is dropped: nor shall Python complain when it flushes the rest."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_closed_streams() -> None:
    """Open those standard streams that the shell has closed (`>&-`).

    Otherwise the next file opened, a database, say, would be the standard output of every program that is run. Standard
    input has nothing then, messages go nowhere, and a result that cannot be written is an error.
    """
    opened = (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))
    for number, (name, mode, flags) in enumerate(opened):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)  # it gets the lowest number that is free: this one
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
