"""`pbgi report STUDY -o report.html`: one page about a study, whichever program made it with Optuna."""

from pathlib import Path
from typing import Any

import optuna

from pbgi.cli.errors import JobError
from pbgi.cli.storage import Storage
from pbgi.errors import InvalidInputError


def report(storage: Storage, name: str, output: Path, *, unit: str) -> dict[str, Any]:
    """Write the page, which takes the place of one that is there.

    Args:
        storage: Where the study is.
        name: The study.
        output: The HTML file.
        unit: Of costs; by default what is known of the study.

    Returns:
        What was written, as JSON.

    Raises:
        InvalidInputError: Plotly is missing, or the study has several objectives.
        JobError: The file cannot be written.
    """
    try:
        from pbgi.report import write_report
    except ImportError as error:
        raise InvalidInputError(str(error)) from None
    from pbgi.report.source import subject_of

    study = storage.patiently(lambda: _load(storage, name))
    subject = storage.patiently(lambda: subject_of(study, unit=unit))
    try:
        written = write_report(subject, output)
    except OSError as error:
        raise JobError.at(output, None, f"cannot be written: {error.strerror}") from None
    best = None if subject.best is None else subject.best.value
    standing = {"trials": len(subject.trials), "spent": subject.spent, "best_value": best}
    return {"study": name, "report": str(written), **standing}


def _load(storage: Storage, name: str) -> optuna.Study:
    # Its sampler is never asked for a trial; one that knows nothing is the quickest to make.
    return optuna.load_study(study_name=name, storage=storage.backend, sampler=optuna.samplers.RandomSampler())
