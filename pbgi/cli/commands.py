"""What each command does, and which exit code an error becomes."""

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pbgi.cli.errors import ExitCode, InterruptedRunError, JobError, StartError, StorageError, shortened
from pbgi.cli.private import STORAGE_VARIABLE, masked
from pbgi.errors import InvalidInputError, NothingLeftError, PbgiError


def run(given: argparse.Namespace) -> int:
    """Run the command; errors become a line on stderr and an exit code."""
    urls = (getattr(given, "storage", None), os.environ.get(STORAGE_VARIABLE), str(getattr(given, "study", "")))
    try:
        return int(_COMMANDS[given.command](given))
    except (StorageError, StartError) as error:
        return _complain(error, ExitCode.STORAGE, urls)
    except InterruptedRunError as error:
        return _complain(error, error.code, urls)
    except NothingLeftError as error:
        return _complain(error, ExitCode.NOTHING_LEFT, urls)
    except PbgiError as error:
        return _complain(error, ExitCode.BAD_INPUT, urls)
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception:
        # A mistake of ours. Even then no password is shown.
        print(masked(traceback.format_exc(), *urls), file=sys.stderr)
        return ExitCode.INTERNAL


def _complain(error: Exception, code: int, urls: tuple[str | None, ...]) -> int:
    print(f"pbgi: {shortened(masked(str(error), *urls))}", file=sys.stderr)
    return code


def _tune(given: argparse.Namespace) -> int:
    from pbgi.checks import require_count, require_positive
    from pbgi.cli.job import read_job
    from pbgi.cli.progress import Display
    from pbgi.cli.scripts import standing_record
    from pbgi.cli.tune import Tuner, require_runnable

    job = read_job(given.job)
    if given.budget is not None:
        job = replace(job, budget=require_positive("--budget", given.budget))
    if given.parallel is not None:
        job = replace(job, parallel=require_count("--parallel", given.parallel))
    require_runnable(job)
    study = _study_of_job(job, given.storage)
    display = Display(quiet=given.quiet)
    ended = Tuner(job, study, display).run(reclaim=given.reclaim)
    display.say(f"ended: {ended.reason}")
    _print({"study": study.name, "stop_reason": ended.reason, **standing_record(ended.standing)})
    return ended.code


def _ask(given: argparse.Namespace) -> int:
    from pbgi.cli.scripts import ask

    _print(ask(_study(given)))
    return ExitCode.DONE


def _tell(given: argparse.Namespace) -> int:
    from pbgi.cli.scripts import read_told, tell

    if given.trial is None:
        told = read_told(sys.stdin.read())
    else:
        told = {"trial": given.trial, "failed": given.failed}
        told |= {key: value for key in ("value", "cost", "message") if (value := getattr(given, key)) is not None}
    _print(tell(_study(given, create=False), told))
    return ExitCode.DONE


def _status(given: argparse.Namespace) -> int:
    from pbgi.cli.scripts import status_record

    _print(status_record(_study(given, create=False)))
    return ExitCode.DONE


def _best(given: argparse.Namespace) -> int:
    from pbgi.cli.scripts import best_record

    best = best_record(_study(given, create=False))
    _print(best)
    return ExitCode.DONE if best is not None else ExitCode.NOTHING_FOUND


def _trials(given: argparse.Namespace) -> int:
    from pbgi.cli.scripts import trial_records

    _print(trial_records(_study(given, create=False).trials()))
    return ExitCode.DONE


def _export(given: argparse.Namespace) -> int:
    from pbgi.cli.scripts import exported

    # UTF-8 in every locale; half a character that a program has reported is written as its code.
    text = exported(_study(given, create=False), given.format).encode(errors="backslashreplace")
    if given.output is None:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
        return ExitCode.DONE
    _write(given.output, text)
    return ExitCode.DONE


def _check(given: argparse.Namespace) -> int:
    from pbgi.cli.check import as_lines, findings_in
    from pbgi.cli.storage import sqlite_path

    path = sqlite_path(_study_url(given)[0])
    if path is None:
        raise JobError("check reads SQLite files; a database server checks and dumps its own")
    found = findings_in(path)
    if given.output is not None:
        _write(given.output, as_lines(found).encode())
    _print(found.record(path, given.output))
    return ExitCode.STORAGE if found.problems else ExitCode.DONE


def _write(path: Path, text: bytes) -> None:
    from pbgi.cli.private import open_private

    try:
        with open_private(path, os.O_TRUNC) as file:  # the user has named it: a link is meant
            file.write(text)
    except OSError as error:
        raise JobError.at(path, None, f"cannot be written: {error.strerror}") from None


def _report(given: argparse.Namespace) -> int:
    from pbgi.checks import require_positive
    from pbgi.cli.progress import Display
    from pbgi.cli.report import EVERY, Follower, Request, report

    if given.every is not None and not given.follow:
        raise InvalidInputError(f"--every must go with --follow; got --every {given.every:g} alone")
    every = EVERY if given.every is None else require_positive("--every", given.every)
    asked = Request(*_found(given), given.output, given.unit)
    record, code = Follower(asked, every, Display()).run() if given.follow else (report(asked), ExitCode.DONE)
    _print(record)
    return code


def _boxes(given: argparse.Namespace) -> int:
    from pbgi.cli.boxes import solve_file

    _print(solve_file(given.file, budget=given.budget, play=given.play))
    return ExitCode.DONE


def _print(value: Any) -> None:
    print(json.dumps(value, allow_nan=False), flush=True)


# Finding the study ---------------------------------------------------------------------------------------------------


def _study(given: argparse.Namespace, *, create: bool = True) -> Any:
    """The study that an argument names."""
    from pbgi.cli.job import read_job
    from pbgi.cli.storage import Storage, url_of_file
    from pbgi.cli.study import JobStudy

    if given.study.endswith(".toml"):
        job = read_job(Path(given.study))
        job = job if given.study_name is None else replace(job, name=given.study_name)
        return _study_of_job(job, given.storage, create=create)
    url = given.study if "://" in given.study else url_of_file(Path(given.study))
    return JobStudy.existing(_quiet(lambda: Storage(url, create=False)), given.study_name)


def _found(given: argparse.Namespace) -> tuple[Any, str]:
    """The storage of a study and its name, whichever program made it with Optuna."""
    from pbgi.cli.storage import Storage

    url, name = _study_url(given)
    storage = _quiet(lambda: Storage(url, create=False))
    return storage, storage.name_of(given.study_name or name)


def _study_url(given: argparse.Namespace) -> tuple[str, str | None]:
    """Where the study that an argument names is, and its name if a job says it."""
    from pbgi.cli.job import read_job
    from pbgi.cli.storage import url_of_file

    if not given.study.endswith(".toml"):
        return given.study if "://" in given.study else url_of_file(Path(given.study)), None
    job = read_job(Path(given.study))
    return _url(job, given.storage), job.name


def _study_of_job(job: Any, storage: str | None, *, create: bool = True) -> Any:
    from pbgi.cli.storage import Storage
    from pbgi.cli.study import JobStudy

    url = _url(job, storage)
    opened = _quiet(lambda: Storage(url, create=create))
    return JobStudy.of_job(job, opened) if create else JobStudy.existing(opened, job.name)


def _url(job: Any, storage: str | None) -> str:
    """Where the study of a job is; a relative SQLite file lies beside the job, wherever the command is run."""
    from pbgi.cli.storage import sqlite_path, url_of_file

    url = storage or os.environ.get(STORAGE_VARIABLE) or job.storage
    if url is None:
        return url_of_file(job.database)
    path = sqlite_path(url)
    return url if path is None else url_of_file(path if url is not job.storage else job.path.parent / path)


def _quiet(open_storage: Callable[[], Any]) -> Any:
    """Optuna reports every study it makes, and its storages what they then raise; our own lines say more."""
    import logging

    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.getLogger("optuna.storages").setLevel(logging.CRITICAL)
    return open_storage()


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "tune": _tune,
    "ask": _ask,
    "tell": _tell,
    "status": _status,
    "best": _best,
    "trials": _trials,
    "export": _export,
    "check": _check,
    "report": _report,
    "boxes": _boxes,
}
