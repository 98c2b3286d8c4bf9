"""What can be typed after `pbgi`. Nothing but argparse is imported here: help must come at once."""

import argparse
from pathlib import Path
from typing import Protocol

from pbgi import __version__

STUDY_HELP = "a job file (.toml), an SQLite study (.db), or a storage URL"


class Commands(Protocol):
    """Where argparse keeps the commands; its own name for it is private."""

    def add_parser(self, name: str, *, help: str, description: str) -> argparse.ArgumentParser:  # noqa: A002
        """Add a command."""


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="pbgi",
        description="Search when trying something costs money or time: spend a budget where it pays.",
        epilog="Results are JSON on standard output, in a terminal those of status, best and trials are tables; "
        "everything else is on standard error. Exit codes: 0 done, 1 "
        "nothing found, 2 bad input, 3 storage trouble, 4 nothing left to ask, 130 interrupted, 143 terminated.",
    )
    top.add_argument("--version", action="version", version=f"pbgi {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _tune(commands)
    _ask_and_tell(commands)
    _records(commands)
    _check(commands)
    _report(commands)
    _boxes(commands)
    return top


def _tune(commands: Commands) -> None:
    tune = _command(commands, "tune", "run a job: any program, within a budget; run it again to go on")
    tune.add_argument("job", type=Path, help="the job file (.toml)")
    _storage(tune)
    tune.add_argument("--budget", type=float, help="instead of the job's")
    tune.add_argument("--parallel", type=int, help="instead of the job's")
    tune.add_argument("--reclaim", action="store_true", help="fail trials of other machines silent for ten minutes")
    tune.add_argument(
        "--from", dest="earlier", metavar="STUDY", help="an earlier study (.db, URL): it informs, for free"
    )
    tune.add_argument("--from-name", metavar="NAME", help="which study, where the earlier storage holds several")
    tune.add_argument(
        "--fill", action="append", default=[], metavar="NAME=VALUE", help="of a parameter that --from did not have"
    )
    tune.add_argument(
        "--ignore", action="append", default=[], metavar="NAME", help="a parameter that only --from had, to be left out"
    )
    tune.add_argument("--quiet", action="store_true", help="say nothing while it runs")


def _ask_and_tell(commands: Commands) -> None:
    _study(_command(commands, "ask", "hand out the next trial"))
    tell = _command(commands, "tell", "record how a trial ended; without a number, read JSON from standard input")
    _study(tell)
    tell.add_argument("trial", type=int, nargs="?", help="the number that `ask` gave")
    outcome = tell.add_mutually_exclusive_group()
    outcome.add_argument("--value", type=float, help="what the trial gave")
    outcome.add_argument("--failed", action="store_true", help="it ended without a value")
    tell.add_argument("--step", type=int, help="how far it has come; the answer says whether it goes on")
    tell.add_argument("--cost", type=float, help="what it cost, with --step so far; by default what was expected")
    tell.add_argument(
        "--outcome",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="what a constraint is about, as it came out",
    )
    tell.add_argument("--message", help="why it failed")


def _records(commands: Commands) -> None:
    for name, says in (
        ("status", "where a study stands: spent, left, best, running"),
        ("best", "the best trial, and the one to choose where values are noisy"),
        ("trials", "all trials"),
    ):
        shown = _command(commands, name, says)
        _study(shown)
        shown.add_argument("--json", action="store_true", help="JSON in a terminal too, as it is when piped")
    export = _command(commands, "export", "all trials as JSON, JSON lines or CSV")
    _study(export)
    export.add_argument("--format", choices=("json", "jsonl", "csv"), default="csv")
    export.add_argument("--output", type=Path, help="a file instead of standard output")


def _check(commands: Commands) -> None:
    check = _command(commands, "check", "say what can be read of a study in an SQLite file, however damaged")
    check.add_argument("study", help="a job file (.toml), or an SQLite study (.db)")
    _storage(check)
    check.add_argument("-o", "--output", type=Path, help="write all trials that can be read there, as JSON lines")


def _report(commands: Commands) -> None:
    report = _command(commands, "report", "write one HTML page about a study: the result in words, plots, all trials")
    _study(report)
    report.add_argument(
        "-o", "--output", type=Path, default=Path("report.html"), help="the file; by default report.html"
    )
    report.add_argument("--unit", default="", help="the unit of costs, such as s or USD")
    report.add_argument("--follow", action="store_true", help="write it again as trials end; Ctrl-C ends it")
    report.add_argument(
        "--every", type=float, metavar="SECONDS", help="with --follow: between two looks; 10 by default"
    )


def _boxes(commands: Commands) -> None:
    boxes = _command(commands, "boxes", "solve a Pandora's Box problem")
    boxes.add_argument("file", type=Path, help="the problem (.toml)")
    boxes.add_argument("--budget", type=float, help="instead of the file's budget or cost_scale")
    boxes.add_argument("--play", type=int, metavar="SEED", help="also play a game")


def _command(commands: Commands, name: str, says: str) -> argparse.ArgumentParser:
    return commands.add_parser(name, help=says, description=says[0].upper() + says[1:] + ".")


def _study(command: argparse.ArgumentParser) -> None:
    command.add_argument("study", help=STUDY_HELP)
    _storage(command)
    command.add_argument("--study-name", help="which study, where the storage holds several")


def _storage(command: argparse.ArgumentParser) -> None:
    command.add_argument("--storage", help="URL, instead of the job's; also read from PBGI_STORAGE")
