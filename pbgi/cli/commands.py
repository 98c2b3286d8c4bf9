"""What each command does, and which exit code an error becomes."""

import argparse
import contextlib
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pbgi.cli import forget_output
from pbgi.cli.errors import ExitCode, InterruptedRunError, JobError, StartError, StorageError, shortened
from pbgi.cli.private import STORAGE_VARIABLE, masked
from pbgi.errors import InvalidInputError, NothingLeftError, PbgiError


def run(options: argparse.Namespace) -> int:
    """Run the command; errors become a line on stderr and an exit code."""
    urls = (getattr(options, "storage", None), os.environ.get(STORAGE_VARIABLE), str(getattr(options, "study", "")))
    try:
        return int(_COMMANDS[options.command](options))
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
    with contextlib.suppress(OSError):  # where nobody can be told, the exit code still says it
        print(f"pbgi: {shortened(masked(str(error), *urls))}", file=sys.stderr)
    return code


def _tune(options: argparse.Namespace) -> int:
    from pbgi.checks import require_count, require_positive
    from pbgi.cli.job import read_job
    from pbgi.cli.progress import Display
    from pbgi.cli.scripts import standing_record
    from pbgi.cli.tune import Tuner, require_runnable
    from pbgi.study.earlier import take_over

    if options.earlier is None and (options.fill or options.ignore or options.from_name):
        raise InvalidInputError("--fill, --ignore and --from-name must go with --from; got none")
    job = read_job(options.job)
    if options.budget is not None:
        job = replace(job, budget=require_positive("--budget", options.budget))
    if options.parallel is not None:
        job = replace(job, parallel=require_count("--parallel", options.parallel))
    require_runnable(job)
    earlier = None if options.earlier is None else _earlier(options)
    study = _study_of_job(job, options.storage)
    display = Display(quiet=options.quiet)
    if earlier is not None:
        display.say(take_over(study, earlier, fill=options.fill, ignore=options.ignore).in_words)
    ended = Tuner(job, study, display).run(reclaim=options.reclaim)
    display.say(f"ended: {ended.reason}")
    _print({"study": study.name, "stop_reason": ended.reason, **standing_record(ended.standing)})
    return ended.code


def _ask(options: argparse.Namespace) -> int:
    from pbgi.cli.scripts import ask

    _print(ask(_study(options)))
    return ExitCode.DONE


def _tell(options: argparse.Namespace) -> int:
    from pbgi.cli.scripts import outcomes_in, parsed_result, tell

    if options.trial is None:
        if options.outcome:
            raise InvalidInputError(
                "--outcome must go with the number of a trial; in JSON outcomes are keys of the result"
            )
        result = parsed_result(sys.stdin.read())
    else:
        result = {"trial": options.trial, "failed": options.failed}
        told = {key: getattr(options, key) for key in ("step", "value", "cost", "message")}
        result |= {key: value for key, value in told.items() if value is not None}
    _print(tell(_study(options, create=False), result, outcomes_in(options.outcome)))
    return ExitCode.DONE


def _status(options: argparse.Namespace) -> int:
    from pbgi.cli.scripts import status_record
    from pbgi.display.tables import status_table

    _show(status_record(_study(options, create=False)), status_table, options)
    return ExitCode.DONE


def _best(options: argparse.Namespace) -> int:
    from pbgi.cli.scripts import best_record
    from pbgi.display.tables import best_table

    best = best_record(_study(options, create=False))
    _show(best, best_table, options)
    return ExitCode.DONE if best is not None else ExitCode.NOTHING_FOUND


def _trials(options: argparse.Namespace) -> int:
    from pbgi.cli.scripts import trial_records
    from pbgi.display.tables import trials_table

    _show(trial_records(_study(options, create=False).trials()), trials_table, options)
    return ExitCode.DONE


def _export(options: argparse.Namespace) -> int:
    from pbgi.cli.scripts import exported

    # UTF-8 in every locale; half a character that a program has reported is written as its code.
    text = exported(_study(options, create=False), options.format).encode(errors="backslashreplace")
    if options.output is None:
        with _to_standard_output():
            sys.stdout.buffer.write(text)
            sys.stdout.buffer.flush()
        return ExitCode.DONE
    _write(options.output, text)
    return ExitCode.DONE


def _check(options: argparse.Namespace) -> int:
    from pbgi.cli.check import as_lines, findings_in
    from pbgi.cli.storage import sqlite_path

    path = sqlite_path(_study_url(options)[0])
    if path is None:
        raise JobError("check reads SQLite files; a database server checks and dumps its own")
    found = findings_in(path)
    if options.output is not None:
        _write(options.output, as_lines(found).encode())
    _print(found.record(path, options.output))
    return ExitCode.STORAGE if found.problems else ExitCode.DONE


def _write(path: Path, text: bytes) -> None:
    from pbgi.cli.private import open_private

    try:
        with open_private(path, os.O_TRUNC) as file:  # the user has named it: a link is meant
            file.write(text)
    except OSError as error:
        raise JobError.at(path, None, f"cannot be written: {error.strerror}") from None


def _report(options: argparse.Namespace) -> int:
    from pbgi.checks import require_positive
    from pbgi.cli.progress import Display
    from pbgi.cli.report import EVERY, Follower, Request, report

    if options.every is not None and not options.follow:
        raise InvalidInputError(f"--every must go with --follow; got --every {options.every:g} alone")
    every = EVERY if options.every is None else require_positive("--every", options.every)
    asked = Request(*_found(options), options.output, options.unit)
    record, code = Follower(asked, every, Display()).run() if options.follow else (report(asked), ExitCode.DONE)
    _print(record)
    return code


def _boxes(options: argparse.Namespace) -> int:
    from pbgi.cli.boxes import solve_file

    _print(solve_file(options.file, budget=options.budget, play=options.play))
    return ExitCode.DONE


def _print(value: Any) -> None:
    with _to_standard_output():
        print(json.dumps(value, allow_nan=False), flush=True)


@contextlib.contextmanager
def _to_standard_output() -> Iterator[None]:
    """A result that cannot be written is an error, unless its reader has gone, who has enough of it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        forget_output()
        raise InvalidInputError(f"standard output must take the result; {error.strerror}") from None


def _show(record: Any, as_table: Callable[[Any, int], str], options: argparse.Namespace) -> None:
    """A table for people at a terminal; JSON for programs."""
    if options.json or not sys.stdout.isatty():
        _print(record)
    else:
        print(as_table(record, shutil.get_terminal_size().columns), flush=True)


# Finding the study ---------------------------------------------------------------------------------------------------


def _study(options: argparse.Namespace, *, create: bool = True) -> Any:
    """The study that an argument names."""
    from pbgi.cli.job import read_job
    from pbgi.cli.storage import Storage, url_of_file
    from pbgi.cli.study import JobStudy

    if options.study.endswith(".toml"):
        job = read_job(Path(options.study))
        job = job if options.study_name is None else replace(job, name=options.study_name)
        return _study_of_job(job, options.storage, create=create)
    url = options.study if "://" in options.study else url_of_file(Path(options.study))
    return JobStudy.existing(_quiet(lambda: Storage(url, create=False)), options.study_name)


def _earlier(options: argparse.Namespace) -> Any:
    """The study whose trials are known already."""
    from pbgi.cli.storage import Storage, url_of_file
    from pbgi.cli.study import load_study, sound_trials
    from pbgi.study.earlier import EarlierStudy

    url = options.earlier if "://" in options.earlier else url_of_file(Path(options.earlier))
    storage = _quiet(lambda: Storage(url, create=False))
    name = storage.name_of(options.from_name)
    study = storage.patiently(lambda: load_study(storage, name))
    directions = tuple(direction.name.lower() for direction in study.directions)
    return EarlierStudy(name, directions, storage.patiently(lambda: sound_trials(study)))


def _found(options: argparse.Namespace) -> tuple[Any, str]:
    """The storage of a study and its name, whichever program made it with Optuna."""
    from pbgi.cli.storage import Storage

    url, name = _study_url(options)
    storage = _quiet(lambda: Storage(url, create=False))
    return storage, storage.name_of(options.study_name or name)


def _study_url(options: argparse.Namespace) -> tuple[str, str | None]:
    """Where the study that an argument names is, and its name if a job says it."""
    from pbgi.cli.job import read_job
    from pbgi.cli.storage import url_of_file

    if not options.study.endswith(".toml"):
        return options.study if "://" in options.study else url_of_file(Path(options.study)), None
    job = read_job(Path(options.study))
    return _url(job, options.storage), job.name


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
