"""The page, and the command that writes it."""

import pytest
from toy_runs import on_ackley, record

from paper.page import DOCS, NOT_EXPLAINED, duration, main, markdown_table, number, page, read_explanations
from paper.reference import DEFAULT, NEAR_BEST
from paper.results import TIMING, Store
from paper.summary import summarize


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.0, "0"),
        (0.0339, "0.0339"),
        (-11.82, "-11.8"),
        (505537.0, "506,000"),
        (3e-6, "3.00e-06"),
        (1.0, "1"),
        (20.0, "20"),
    ],
)
def test_numbers_can_be_read(x, text):
    assert number(x) == text


def test_durations_and_tables():
    assert [duration(seconds) for seconds in (1.5, 90.0, 300.0, 3 * 3600.0)] == ["1.5 s", "90 s", "5.0 min", "3.0 h"]
    assert markdown_table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | ---: |\n| 1 | 2 |\n"


def test_the_page_says_what_was_found(tmp_path):
    curves = summarize(
        on_ackley("PBGI", (0.4, 0.5, 0.6))
        + on_ackley("PBGI", (0.9,), variant="as_described")
        + on_ackley("LogEIPC", (0.97,))
        + [record(policy="PBGI, lambda = 0.1"), record(policy="RS")]
    )
    text = page(curves, variant="as_published", explanations={}, lessons="", images=tmp_path / "images" / "paper")
    assert "2 of 140 published curves have been run here, over 1 to 3 seeds" in text
    assert "2 of 2 medians (100%) lie inside" in text
    assert "| PBGI | 0.89 [0.349, 1.09] | 0.5 [0.45, 0.55] | 0.5 | 0.56 | yes | published | 3 |" in text
    assert "| PBGI (as described) | 0.89 [0.349, 1.09] | 0.9 [0.9, 0.9] | 0.9 | 1.01 | yes | published | 1 |" in text
    assert "| BMSEI | 1.05 [0.708, 2.01] | - | - | - | - | - | - |" in text
    assert "| Ackley d=16 varying | PBGI | PBGI | yes | 2 |" in text
    assert f"| Ackley d=16 varying | PBGI | 0.56 | inside the quartiles | {NOT_EXPLAINED} |" in text
    assert "| Sphere d=2 varying | PBGI, lambda = 0.1 | 1 [1, 1] | 1 |" in text
    assert "| Sphere d=2 varying | 1 | 1 |" in text
    assert "## Figures" not in text
    (tmp_path / "images" / "paper").mkdir(parents=True)
    (tmp_path / "images" / "paper" / "timing.png").touch()
    pictured = page(curves, variant="as_published", explanations={}, lessons="", images=tmp_path / "images" / "paper")
    assert pictured.count("![") == pictured.count("(images/paper/timing.png)") == 1
    why = {"Ackley d=16 varying": {"PBGI": "a better\nsearch"}}
    explained = page(curves, variant="as_published", explanations=why, lessons="## Lessons", images=tmp_path)
    assert "| a better search |" in explained
    assert "\n## Lessons\n" in explained


def test_a_page_without_results_says_so(tmp_path):
    text = page([], variant="as_published", explanations={}, lessons="", images=tmp_path)
    assert "No results yet: 0 of 140 published curves" in text


def test_explanations_are_read(tmp_path):
    file = tmp_path / "explanations.toml"
    assert read_explanations(file) == {}
    file.write_text('["Levy d=16 varying"]\nPBGI-D = "why"\n')
    assert read_explanations(file) == {"Levy d=16 varying": {"PBGI-D": "why"}}


def test_the_command_writes_the_page_and_nothing_else(tmp_path, capsys):
    results, docs = tmp_path / "results", tmp_path / "docs"
    for run in on_ackley("PBGI", (0.4, 0.5, 0.6)):
        Store(results).append(run)
    path = Store(results).path("synthetic")
    with path.open("a") as file:
        file.write('{"key": "torn')
    before = path.read_bytes()
    arguments = ["--results", str(results), "--docs", str(docs)]
    assert main(arguments) == 0
    first = (docs / "paper.md").read_text()
    assert "0.5 [0.45, 0.55]" in first
    assert main(arguments) == 0
    assert (docs / "paper.md").read_text() == first
    assert (list(results.iterdir()), path.read_bytes()) == ([path], before)
    assert "wrote" in capsys.readouterr().out


def test_the_page_in_git_is_what_the_command_writes(tmp_path, monkeypatch):
    """Run from anywhere, a checkout stays as it is; pictures are linked, so they are looked for where they are."""
    committed = (DOCS / "paper.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").symlink_to(DOCS / "images")
    assert main(["--docs", str(tmp_path)]) == 0
    assert (tmp_path / "paper.md").read_text(encoding="utf-8") == committed


def test_the_page_has_the_published_search_beside_the_other(tmp_path):
    """PBGI's published quartiles are 0.349 and 1.09: inside with one search, outside with the other."""
    published, other = on_ackley("PBGI", (0.8, 0.8, 0.9, 0.9)), on_ackley(f"PBGI{NEAR_BEST}", (1.5, 1.6, 1.6, 1.6, 1.7))
    curves = summarize(published + other + on_ackley("LogEIPC", (0.97,)))
    text = page(curves, variant="as_published", explanations={}, lessons="", images=tmp_path)
    assert "2 of 2 medians (100%) lie inside the published" in text.replace("\n", " ")
    assert "with a search around the best points, 1 (50%)" in text
    assert "| PBGI | 0.89 [0.349, 1.09] | 0.85 [0.8, 0.9] | 0.85 | 0.96 | yes | published | 4 |" in text
    row = "PBGI | 0.85 [0.8, 0.9] | 1.6 [1.6, 1.6] | yes | no | published | 4, 5 |"
    assert f"| Ackley d=16 varying | {row}" in text
    assert "On 1 of 1 curves the search from Sobol points alone ends better" in text
    assert "## Studies of settings" not in text


def test_the_page_has_the_default_beside_the_best_published_curve(tmp_path):
    eight = on_ackley(DEFAULT, (0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.7))
    small = {"problem": "Ackley", "dim": 4, "cost": "uniform", "policy": DEFAULT, "budget": 40.0}
    text = page(
        summarize([*eight, record(**small)]), variant="as_published", explanations={}, lessons="", images=tmp_path
    )
    assert "| Ackley d=16 varying | 0.6 [0.6, 0.6] | 0.89 | PBGI | yes | 8 |" in text
    assert "| Ackley d=4 uniform | 1 [1, 1] | 0.0161 | PBGI | no | 1 |" in text
    assert "On 1 of 2 panels the default is no worse" in text
    assert "on 1 of the 1 panels that have 8 seeds or more" in text
    assert "0 of 140 published curves" in text  # it is none of them
    assert "## Studies of settings" not in text


def test_the_page_says_how_seconds_were_measured(tmp_path):
    """Published: 82.8 s for the knowledge gradient, 4.92 s for log EI, averaged over the run. Ours by hand: 1 s."""
    panel = {"problem": "Ackley", "dim": 4, "cost": "uniform", "budget": 2.0, "suggest_seconds": [1.0, 1.0, 1.0]}
    runs = [record(policy="LogEI", experiment=TIMING, **panel), record(policy="KG", **panel)]
    text = page(summarize(runs), variant="as_published", explanations={}, lessons="", images=tmp_path)
    assert "| Ackley d=4 uniform | LogEI | 4.92 s | 1 s | 4.9 | alone |" in text
    assert "| Ackley d=4 uniform | KG | 82.8 s | 1 s | 83 | in passing |" in text
    assert "| Ackley d=4 uniform | TS |" not in text
