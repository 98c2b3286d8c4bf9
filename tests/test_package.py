"""What is built for others: a wheel and an sdist that hold what they should, say what is true, and can be installed."""

import os
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
USE = """
import pbgi
result = pbgi.minimize(lambda p: ((p["x"] - 0.3) ** 2, 1.0), {"x": pbgi.Float(0, 1)}, budget=10, seed=0)
assert result.spent == 10.0, result
assert abs(result.params["x"] - 0.3) < 0.2, result
print(pbgi.__file__)
"""

JOB = """
command = ["python3", "-c", "print((float('{x}') - 0.3) ** 2)"]
trials = 2
[parameters]
x = { low = 0.0, high = 1.0 }
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel, made of the sdist as an installer would, and the sdist."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def test_the_wheel_holds_the_package_and_nothing_else(built):
    names = set(zipfile.ZipFile(built[0]).namelist())
    files = subprocess.run(
        ["git", "ls-files", "pbgi"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert set(files) <= names
    assert {name.split("/")[0] for name in names - set(files)} <= {"pbgi", f"pbgi-{version()}.dist-info"}


def test_the_sdist_has_no_figures_results_or_rubbish(built):
    with tarfile.open(built[1]) as archive:
        sizes = {member.name.split("/", 1)[1]: member.size for member in archive.getmembers() if "/" in member.name}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "pbgi/py.typed"} <= set(sizes)
    assert {name.split("/")[0] for name in sizes if "/" in name} == {"pbgi"}
    assert sum(sizes.values()) < 5e6


def test_metadata_is_true(built):
    wheel = zipfile.ZipFile(built[0])
    about = Parser().parsestr(wheel.read(f"pbgi-{version()}.dist-info/METADATA").decode())
    classifiers = about.get_all("Classifier")
    assert about["Version"] == version()
    assert about["Requires-Python"] == ">=3.11"
    assert "Operating System :: OS Independent" not in classifiers  # the command line needs Linux or macOS
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)} <= set(classifiers)


def test_the_wheel_works_where_the_sources_are_not(built, tmp_path):
    with zipfile.ZipFile(built[0]) as wheel:
        wheel.extractall(tmp_path / "installed")  # noqa: S202 (our own)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed"), "OMP_NUM_THREADS": "1"}
    for command in ([sys.executable, "-c", USE], [sys.executable, "-m", "pbgi", "--version"]):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert str(tmp_path) in done.stdout or version() in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", [0, 1], ids=["wheel", "sdist"])
def test_installed_in_a_bare_environment(built, tmp_path, kind):
    """As `pipx install pbgi` and `uvx pbgi` do: an environment of its own, with what the package itself asks for."""
    venv.create(tmp_path / "bare", with_pip=True)
    binaries = tmp_path / "bare" / "bin"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*command):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=600
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(binaries / "python", "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", built[kind])
    assert str(tmp_path / "bare") in run(binaries / "python", "-c", USE)
    assert version() in run(binaries / "pbgi", "--version")
    (tmp_path / "job.toml").write_text(JOB)
    run(binaries / "pbgi", "tune", "job.toml")
    assert "x" in run(binaries / "pbgi", "best", "job.toml")


def test_floors_name_every_requirement():
    sys.path.insert(0, str(ROOT / "tests"))
    from floors import floors

    named = {line.partition("~=")[0] for line in floors()}
    assert {"numpy", "scipy", "optuna", "threadpoolctl", "scikit-learn", "plotly"} <= named


def version():
    namespace = {}
    (line,) = [line for line in (ROOT / "pbgi/__init__.py").read_text().splitlines() if line.startswith("__version__")]
    exec(line, namespace)  # noqa: S102 (our own line)
    return namespace["__version__"]


def test_optional_dependencies_have_floors():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(each for extra in project["optional-dependencies"].values() for each in extra)]
    assert [each for each in asked if ">=" not in each and not each.startswith("pbgi[")] == []
