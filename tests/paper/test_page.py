"""The pages, and the command that writes them."""

import shutil

import pytest
from toy_runs import on_ackley

from paper.page import DOCS, main, page, read_explanations
from paper.policies import SMALLER_SEARCH
from paper.results import RESULTS, Store
from paper.summary import summarize

PAGES = ("paper.md", "paper-tables.md", "paper-deviations.md")


def on_example(policy, finals, variant):
    """Runs of a 1-D example that end with these regrets."""
    example = {"problem": "hard_for_eipc", "dim": 1, "experiment": "hard_for_eipc", "budget": 40.0, "variant": variant}
    return [run | {"costs": [1.0, 1.0, 20.0, 20.0]} for run in on_ackley(policy, finals, **example)]


def text_of(records, tmp_path):
    return page(summarize(records), images=tmp_path / "images" / "paper")


def test_curves_are_counted(tmp_path):
    """PBGI was published with [0.349, 1.09] here, LogEIPC with 0.97 in the middle."""
    records = on_ackley("PBGI", (0.5,) * 8) + on_ackley("LogEIPC", (0.97, 0.97)) + on_ackley("RS", (0.1,) * 8)
    records += on_ackley("PBGI-D", (1.0,) * 4, search=SMALLER_SEARCH)
    text = " ".join(text_of(records, tmp_path).split())
    assert "4 of the 258 curves that are known as numbers (main text and appendix) have been run" in text
    assert "2 have 8 seeds or more: 1 of these (50%) end inside" in text
    assert "1 have one or two seeds, and are points" in text
    assert "1 curves have a smaller search" in text
    assert "254 published curves not at all" in text
    assert "2 curves with fewer than 8 seeds, by policy: LogEIPC 1, PBGI-D 1." in text


def test_the_counter_result_stands_first(tmp_path):
    records = on_example("LogEIPC", (0.1,) * 3, "as_described") + on_example("PBGI", (0.3,) * 3, "as_described")
    records += on_example("LogEIPC", (0.9,) * 3, "as_published") + on_example("PBGI", (0.2,) * 3, "as_published")
    text = " ".join(text_of(records, tmp_path).split())
    assert "LogEIPC does not fail on `hard_for_eipc`**: regret 0.1, and PBGI 0.3 (3 and 3 seeds)" in text
    assert "With the model of the published runs: 0.9, and PBGI 0.2 (3 and 3 seeds)" in text
    assert text.index("does not fail") < text.index("Claim by claim")
    failing = on_example("LogEIPC", (0.9,) * 3, "as_described") + records[3:]
    assert "LogEIPC fails with the described prior, too" in text_of(failing, tmp_path)


def test_32_dimensions_at_uniform_cost_are_told_with_single_runs_too(tmp_path):
    hard = {"problem": "GP sample (Matern-5/2, ls=0.1)", "dim": 32, "cost": "uniform", "budget": 800.0}
    records = on_ackley("PBGI", (1.5,), **hard) + on_ackley("RS", (2.5,) * 3, **hard)
    text = " ".join(text_of(records, tmp_path).split())
    assert "random search, PBGI is**: RS 2.5 (3 seeds), PBGI 1.5 (1 seed)." in text
    as_bad = on_ackley("PBGI", (2.4,), **hard) + records[1:]
    assert "In 32 dimensions at uniform cost" not in text_of(as_bad, tmp_path).partition("Claim by claim")[0]


def test_figures_that_are_there_are_shown_once(tmp_path):
    images = tmp_path / "images" / "paper"
    images.mkdir(parents=True)
    (images / "synthetic.png").touch()
    text = text_of(on_ackley("PBGI", (0.5,) * 3) + on_ackley("LogEIPC", (0.97,) * 3), tmp_path)
    assert text.count("![") == text.count("(images/paper/synthetic.png)") == 1


def test_a_page_without_results_says_so(tmp_path):
    assert "No results yet: 0 of 258 published curves" in text_of([], tmp_path)


def test_explanations_are_read(tmp_path):
    file = tmp_path / "explanations.toml"
    assert read_explanations(file) == {}
    file.write_text('["Levy d=16 varying"]\nPBGI-D = "why"\n')
    assert read_explanations(file) == {"Levy d=16 varying": {"PBGI-D": "why"}}


def test_the_command_writes_the_pages_and_nothing_else(tmp_path, capsys):
    results, docs = tmp_path / "results", tmp_path / "docs"
    for run in on_ackley("PBGI", (0.4, 0.5, 0.6)):
        Store(results).append(run)
    path = Store(results).path("synthetic")
    with path.open("a") as file:
        file.write('{"key": "torn')
    before = path.read_bytes()
    arguments = ["--results", str(results), "--docs", str(docs)]
    assert main(arguments) == 0
    first = {path.name: path.read_text() for path in docs.iterdir()}
    assert sorted(first) == sorted(PAGES)
    assert "0.5 [0.45, 0.55]" in first["paper-tables.md"]
    assert main(arguments) == 0
    assert {path.name: path.read_text() for path in docs.iterdir()} == first
    assert (list(results.iterdir()), path.read_bytes()) == ([path], before)
    assert "wrote" in capsys.readouterr().out


def test_the_pages_in_git_are_what_the_command_writes(tmp_path, monkeypatch):
    """On a clean clone, and run from anywhere; pictures are linked, so they are looked for where they are."""
    committed = {name: (DOCS / name).read_text(encoding="utf-8") for name in PAGES}
    clone = tmp_path / "results"
    shutil.copytree(RESULTS, clone, ignore=shutil.ignore_patterns("smoke"))
    before = {path: path.read_bytes() for path in clone.iterdir()}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").symlink_to(DOCS / "images")
    assert main(["--docs", str(tmp_path), "--results", str(clone)]) == 0
    assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in PAGES} == committed
    assert {path: path.read_bytes() for path in clone.iterdir()} == before


@pytest.mark.parametrize("name", PAGES)
def test_the_page_about_the_paper_is_short(name):
    lines = (DOCS / name).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= (80 if name == "paper.md" else 1200)
