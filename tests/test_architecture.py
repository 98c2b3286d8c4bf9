"""What holds for the package as a whole: import direction, import weight, no global state."""

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from measures import Module, unnamed
from processor_seconds import median_seconds

import pbgi
from pbgi.pandora import Box, Gaussian, solve

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "optuna", "matplotlib", "plotly", "scipy.stats", "pandas", "sklearn")


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_imports_point_down():
    lint = Path(sys.executable).with_name("lint-imports")
    if not lint.exists():
        pytest.skip("import-linter is not installed beside this interpreter")
    result = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_import_is_light():
    loaded = json.loads(run_python("import json, sys, pbgi; print(json.dumps(sorted(sys.modules)))"))
    assert [name for name in HEAVY if name in loaded] == []


def test_import_is_quick():
    assert median_seconds([sys.executable, "-c", "import pbgi"]) < 0.5


def test_arrays_do_not_import_torch():
    code = "import sys, numpy as np, pbgi; pbgi.gittins_index(np.zeros(3), 1.0, -1.0); print('torch' in sys.modules)"
    assert run_python(code).strip() == "False"


def test_public_names_exist():
    assert sorted(pbgi.__all__) == pbgi.__all__
    assert all(hasattr(pbgi, name) for name in pbgi.__all__)


def test_no_global_state_is_touched():
    torch = pytest.importorskip("torch")

    def state():
        kind, keys, *rest = np.random.get_state()  # noqa: NPY002 (the global state is the subject)
        return (
            random.getstate(),
            (kind, keys.tolist(), *rest),
            torch.get_rng_state().tolist(),
            torch.get_default_dtype(),
            np.geterr(),
            np.get_printoptions()["precision"],
        )

    before = state()
    pbgi.gittins_index(np.linspace(-1, 1, 9), 1e-300, 300.0)
    pbgi.gittins_index(torch.zeros(3), torch.ones(3, requires_grad=True), -1.0).sum().backward()
    solve([Box(Gaussian(0, 1), 0.5), Box([1.0, 2.0], 0.2)], budget=0.4).play(np.random.default_rng(0))
    assert state() == before


def test_the_house_keeps_its_measures():
    """At the top level and in the command line people find their way, and tests by the names of modules."""
    assert len(list((ROOT / "pbgi").glob("[!_]*.py"))) <= 26
    assert len(list((ROOT / "pbgi" / "cli").glob("[!_]*.py"))) <= 19
    tests = list((ROOT / "tests").rglob("test_*.py"))
    assert len(unnamed(ROOT)) <= 0.1 * len(tests)
    for name in ("gp/kernel", "gp/fit", "search/grids", "search/climb"):
        module = Module(ROOT / "pbgi" / f"{name}.py")
        assert len(module.comments) >= 0.06 * len(module.code), name
