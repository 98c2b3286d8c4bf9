"""Prints the lowest versions that pyproject.toml accepts, as constraints for pip: what `make test-floors` installs."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
EXTRAS = ("plot", "postgresql", "sklearn")  # of what the light tests use
FLOOR = re.compile(r"([A-Za-z0-9_.-]+)(?:\[[^]]*\])?>=([0-9][0-9a-z.]*)")


def floors() -> Iterator[str]:
    """Every requirement of the engine and these extras, at its lowest version."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    asked = [*project["dependencies"], *(each for extra in EXTRAS for each in project["optional-dependencies"][extra])]
    for requirement in asked:
        found = FLOOR.fullmatch(requirement)
        if found is None:
            raise SystemExit(f"a requirement must be NAME>=VERSION; got {requirement!r}")
        name, version = found.groups()
        # The last patch of it: the first may lack a build for an interpreter that came later.
        yield f"{name}~={'.'.join([*version.split('.'), '0', '0'][:3])}"


if __name__ == "__main__":
    print("\n".join(floors()))
