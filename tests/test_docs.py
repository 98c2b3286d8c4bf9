"""The documentation runs: every python block of README.md and of docs/, page by page, with warnings as errors.

Blocks of a page share a namespace. A block with `if __name__ == "__main__":` is a script, and is run as one. A text
block right after a python block is what that block prints, and is compared.
"""

import contextlib
import importlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NEEDED = {
    "ax.md": "ax",
    "botorch.md": "botorch",
    "ray.md": "ray.tune",
    "report.md": "plotly.graph_objects",
    "scikit-learn.md": "sklearn",
    "tracking.md": "tensorboardX",
}
PUBLIC = {  # every module whose names the reference has, and what it needs
    "pbgi": None,
    "pbgi.index": None,
    "pbgi.pandora": None,
    "pbgi.problems": None,
    "pbgi.report": "plotly",
    "pbgi.botorch": "botorch",
    "pbgi.integrations.ax": "ax",
    "pbgi.integrations.optuna": None,
    "pbgi.integrations.ray": "ray.tune",
    "pbgi.integrations.sklearn": "sklearn",
    "pbgi.integrations.tracking": None,
}
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One python block: its code, the line of the page it starts on, and what it should print (None: anything)."""

    code: str
    line: int
    prints: str | None


def blocks_of(text: str) -> list[Block]:
    return [Block(m[1], text.count("\n", 0, m.start(1)), m[2]) for m in BLOCK.finditer(text)]


def run(block: Block, name: str, namespace: dict[str, object], folder: Path) -> str:
    if 'if __name__ == "__main__":' in block.code:
        script = folder / f"line_{block.line}.py"
        script.write_text(block.code)
        command = [sys.executable, "-W", "error", script]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, f"{name}, line {block.line}: {done.stderr}"
        return done.stdout
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        # Empty lines in front: a traceback then names the line of the page.
        exec(compile("\n" * block.line + block.code, name, "exec"), namespace)  # noqa: S102 (our own pages)
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page, tmp_path, monkeypatch):
    if page.name in NEEDED:
        pytest.importorskip(NEEDED[page.name])
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    blocks = blocks_of(text)
    assert len(blocks) == text.count("```python"), "a python block that is indented or not closed would be skipped"
    namespace: dict[str, object] = {"__name__": f"docs_{page.stem.replace('-', '_')}"}
    for block in blocks:
        printed = run(block, page.name, namespace, tmp_path)
        if block.prints is not None:
            assert printed == block.prints, f"{page.name}, line {block.line} prints something else"


def test_a_wrong_page_is_noticed(tmp_path):
    good, bad = blocks_of("```python\nprint(1)\n```\n\n```text\n1\n```\n\n```python\n1 / 0\n```\n")
    assert run(good, "page.md", {}, tmp_path) == good.prints
    with pytest.raises(ZeroDivisionError):
        run(bad, "page.md", {}, tmp_path)


def test_tables_have_a_name_for_every_column():
    for page in PAGES:
        heads = re.findall(r"^(\|.*\|) *\n\| ?:?---", page.read_text(), re.MULTILINE)
        assert [head for head in heads if re.search(r"\| *\|", head)] == [], page.name


def test_headings_stand_by_themselves():
    """Right under the row of a table a heading is one more row."""
    for page in PAGES:
        assert re.findall(r"^\|.*\|\n#+ .*", page.read_text(), re.MULTILINE) == [], page.name


def test_links_lead_somewhere():
    for page in PAGES:
        targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
        assert [target for target in targets if not (page.parent / target).exists()] == [], page.name


def test_the_front_page_prints_what_it_shows_under_every_block():
    assert all(block.prints for block in blocks_of((ROOT / "README.md").read_text()))


def test_ranks_on_the_front_page_are_those_of_the_results():
    ranks = json.loads((ROOT / "benchmarks/results/real.json").read_text())["ranks"]
    mean = max(ranks, key=lambda group: len(group["mean_rank"]))["mean_rank"]
    names = {"random search": "random", "SMAC3": "smac", "Optuna, TPE": "optuna-tpe", "Optuna, GP": "optuna-gp"}
    page = (ROOT / "README.md").read_text().replace("*", "")
    rows = re.findall(r"^\| (.+) \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE)
    shown = {names.get(name, name.lower()): [float(half), float(whole)] for name, half, whole in rows}
    assert shown == {name: [round(each, 1) for each in rank[1:]] for name, rank in mean.items()}


def test_nothing_advises_what_fails_before_the_first_release():
    """An extra of a package that is not there yet cannot be installed by name."""
    files = [
        *PAGES,
        *(ROOT / "pbgi").rglob("*.py"),
        *(ROOT / "examples").glob("*.py"),
        *(ROOT / "benchmarks").glob("*.py"),
    ]
    asks = re.compile(r"pip install ['\"]?pbgi\b")
    assert [str(f) for f in files if f.name != "releases.md" and asks.search(f.read_text())] == []


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference_with_an_example(module):
    if PUBLIC[module] is not None:
        pytest.importorskip(PUBLIC[module])
    pages = [page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md")]
    index = (ROOT / "docs" / "reference" / "index.md").read_text()
    for name in importlib.import_module(module).__all__:
        described = [page for page in pages if re.search(rf"^::: pbgi(\.\w+)*\.{name}$", page, re.MULTILINE)]
        assert described, f"{module}.{name} is in no page of docs/reference"
        examples = "".join(block.code for page in described for block in blocks_of(page))
        assert re.search(rf"\b{name}\b", examples), f"{module}.{name} has no example"
        assert f"[`{name}`](" in index, f"{module}.{name} is not in the table of docs/reference/index.md"
