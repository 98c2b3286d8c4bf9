"""What is installed: pins that are whole, and floors above versions with known holes."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {name: [Requirement(line) for line in lines] for name, lines in PROJECT["optional-dependencies"].items()}
DECLARED = [Requirement(line) for line in PROJECT["dependencies"]] + [r for extra in EXTRAS.values() for r in extra]
# The last version with the hole, as the advisory has it.
HOLES = [
    ("ray", "2.51.2", "no authentication by token"),
    ("ray", "2.51.2", "CVE-2025-62593: code runs through a browser"),
    ("ray", "2.53.0", "CVE-2026-27482: a page deletes jobs"),
    ("ray", "2.54.0", "CVE-2026-41486: a Parquet file runs code"),
    ("ray", "2.55.1", "CVE-2026-57516: a tar file runs code"),
    ("torch", "2.5.1", "CVE-2025-32434: a checkpoint runs code"),
    ("torch", "2.9.1", "CVE-2026-24747: a checkpoint corrupts memory"),
    ("torch", "2.10.0", "CVE-2026-4538: loading runs code"),
    ("torch", "2.12.1", "CVE-2025-3000: memory is corrupted"),
    ("pillow", "12.2.0", "CVE-2026-59199 and others: writes out of bounds"),
    ("scikit-learn", "1.4.2", "CVE-2024-5206: training data are kept"),
    ("mpmath", "1.2.1", "CVE-2021-29063: a text takes for ever"),
    ("pytest", "9.0.2", "CVE-2025-71176: folders that others can make"),
    ("playwright", "1.55.0", "CVE-2025-59288: browsers are downloaded unchecked"),
]


def pins():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)  # versions: no paths, no URLs, no builds
    return {canonicalize_name(line.split("==")[0]): line.split("==")[1] for line in lines}


def needed(requirements, seen):
    """All packages that these bring along here, by their own word."""
    for requirement in requirements:
        for extra in ("", *requirement.extras):
            key = canonicalize_name(requirement.name), extra
            if key in seen or not (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
                continue
            seen.add(key)
            needed(_required_by(*key), seen)
    return {name for name, _ in seen} - {"pbgi"}


def _required_by(name, extra):
    if name == "pbgi":
        return EXTRAS.get(extra, [Requirement(line) for line in PROJECT["dependencies"]])
    try:
        found = [Requirement(line) for line in requires(name) or []]
    except PackageNotFoundError:
        return []
    return [r for r in found if r.marker is None or r.marker.evaluate({"extra": extra})]


def test_the_test_environment_is_pinned_whole():
    everything = needed([Requirement("pbgi[dev]")], set())
    assert {"ray", "torch", "certifi", "jinja2", "sqlalchemy"} <= everything
    assert everything - set(pins()) == set()
    assert pins()["torch"] == "2.13.0"


def test_pins_keep_to_what_users_may_have():
    found = pins()
    for requirement in DECLARED:
        if requirement.name != "pbgi":
            assert requirement.specifier.contains(found[canonicalize_name(requirement.name)]), requirement


@pytest.mark.parametrize(("name", "last", "why"), HOLES)
def test_floors_exclude_known_holes(name, last, why):
    declared = [r for r in DECLARED if r.name == name]
    assert declared
    assert not any(r.specifier.contains(last) for r in declared), why
