"""The notebooks of the docs: they run, with fewer seconds than a reader has, and are kept with their outputs."""

import json
import os
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
SECONDS = "8"  # of a budget, in the place of a minute


def code_cells(notebook):
    return [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["optuna_workers", "priced_simulation", "tune_scikit_learn"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_as_it_was_run(notebook):
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))  # once, from top to bottom
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert [o["text"] for o in outputs if o.get("name") == "stderr"] == []
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert str(ROOT) not in notebook.read_text()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_line_of_code_is_wider_than_the_page(notebook):
    lines = [line.rstrip("\n") for cell in code_cells(notebook) for line in cell["source"]]
    assert max(map(len, lines)) <= 88


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(notebook, tmp_path, monkeypatch):
    if notebook.stem == "tune_scikit_learn":
        pytest.importorskip("sklearn")
    monkeypatch.setenv("TUTORIAL_SECONDS", SECONDS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    read = nbformat.read(notebook, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(read, timeout=300, kernel_name="python3", resources=resources).execute()
    said = "".join(output.get("text", "") for cell in read.cells for output in cell.get("outputs", []))
    assert "that is left of the budget" in said or "is spent" in said or "worth its price" in said
