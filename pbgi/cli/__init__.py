"""The command line: `pbgi tune | ask | tell | status | best | trials | export | check | report | dashboard | boxes`.

    arguments.py commands.py              what can be typed, and what it does
    toml_file.py job.py placeholders.py   what a job file says
    command.py guard.py processes.py      running a program, and ending it
    outcome.py logs.py private_files.py   what it reported, what it printed; files that are nobody else's business
    storage.py study.py                   the trials, in an Optuna storage
    faults.py patience.py server.py       which faults pass, how long they are waited for, turns on a database server
    settings.py suggest.py widening.py    what suggestions depend on; the next one; ranges that have grown
    tune.py recovery.py interruption.py   the loop, what a crash left, signals
    running.py overrun.py                 trials under way, ended when a budget of seconds is used up
    ask_tell.py records.py                for scripts
    sound.py check.py                     what the storage hands back is checked; what can be read of a damaged one
    report.py                             a page about a study
    dashboard.py dashboard_pages.py       pages that follow a study, in optuna-dashboard
    live_plots.py plot_process.py         their plots, made by another process
    web_server.py                         who may ask for them
    boxes.py                              Pandora's Box in TOML
    progress.py masking.py errors.py      what people see; exit codes

This module imports next to nothing, so that `pbgi --help` comes at once.
"""

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
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
