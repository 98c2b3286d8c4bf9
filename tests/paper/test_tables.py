"""The tables: every number in them by hand."""

import pytest
from toy_runs import on_ackley, record

from paper.policies import SMALLER_SEARCH
from paper.reference import DEFAULT, NEAR_BEST
from paper.results import ENGINES, TIMING
from paper.summary import summarize
from paper.tables import NOT_EXPLAINED, tables

EIGHT = (0.4, 0.4, 0.5, 0.5, 0.5, 0.5, 0.6, 0.6)


def text_of(records, explanations=None):
    return tables(summarize(records), "as_published", explanations or {})


def test_a_panel_beside_the_published_one():
    """PBGI was published with 0.89 [0.349, 1.09]."""
    text = text_of(on_ackley("PBGI", EIGHT) + on_ackley("PBGI", (0.9,), variant="as_described"))
    assert "| PBGI | 0.89 [0.349, 1.09] | 0.5 [0.475, 0.525] | 0.5 | 0.56 | yes | 200 d / 10 d | 8 |" in text
    assert "| PBGI (as described) | 0.89 [0.349, 1.09] | 0.9 | 0.9 | 1.01 | - | 200 d / 10 d | 1 |" in text
    assert "| BMSEI | 1.05 [0.708, 2.01] | - | - | - | - | - | - |" in text
    assert f"| Ackley d=16 varying | PBGI | 0.56 | inside the quartiles | 200 d / 10 d | 8 | {NOT_EXPLAINED} |" in text
    why = {"Ackley d=16 varying": {"PBGI": "by\nchance"}}
    assert "| 200 d / 10 d | 8 | by chance |" in text_of(on_ackley("PBGI", EIGHT), why)
    few = text_of(on_ackley("PBGI", (0.4, 0.5, 0.6)))
    assert f"| Ackley d=16 varying | PBGI | 0.56 | better | 200 d / 10 d | 3 | {NOT_EXPLAINED} |" in few


def test_one_or_two_seeds_are_points():
    text = text_of(on_ackley("PBGI", (0.4, 0.6)) + on_ackley("LogEIPC", (0.7, 0.8, 0.9)))
    assert "| PBGI | 0.89 [0.349, 1.09] | 0.5 | 0.5 | 0.56 | - | 200 d / 10 d | 2 |" in text
    assert "| 0.8 [0.75, 0.85] | 0.8 |" in text  # three have a median, and are too few for "inside"
    assert "## Who wins" not in text  # one policy with a median is no contest
    assert "Medians off by more than a factor of 1.5\n\nNone." in text


def test_who_wins_among_medians():
    text = text_of(on_ackley("PBGI", (1.2, 1.2, 1.2)) + on_ackley("LogEIPC", (0.7, 0.7, 0.7)) + on_ackley("RS", (0.1,)))
    assert "| Ackley d=16 varying | PBGI | LogEIPC | no | 2 |" in text


def test_the_published_search_beside_others():
    records = on_ackley("PBGI", (0.8,) * 8) + on_ackley(f"PBGI{NEAR_BEST}", (1.5,) * 8, search="pbgi's")
    records += on_ackley("PBGI", (0.7,) * 16, search=SMALLER_SEARCH)
    text = text_of(records)
    assert (
        "| Ackley d=16 varying | PBGI | 0.8 [0.8, 0.8] | near the best too | 1.5 [1.5, 1.5] | published | 8, 8 |"
        in text
    )
    assert "| Ackley d=16 varying | PBGI | 0.8 [0.8, 0.8] | smaller | 0.7 [0.7, 0.7] | smaller | 8, 16 |" in text
    assert 'Against "smaller" the published search ends better on 0 of 1 curves.' in text
    assert "| PBGI | 0.89 [0.349, 1.09] | 0.8 [0.8, 0.8] | 0.8 | 0.90 | yes | 200 d / 10 d | 8 |" in text


def test_a_smaller_search_is_shown_and_said_where_the_published_one_has_few_seeds():
    text = text_of(on_ackley("PBGI", (0.8,) * 3) + on_ackley("PBGI", (0.7,) * 8, search=SMALLER_SEARCH))
    assert f"| 0.7 [0.7, 0.7] | 0.7 | 0.79 | yes | {SMALLER_SEARCH} | 8 |" in text


def test_the_default_beside_the_best_published_curve():
    eight = on_ackley(DEFAULT, (0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.7))
    small = {"problem": "Ackley", "dim": 4, "cost": "uniform", "policy": DEFAULT, "budget": 40.0}
    text = text_of([*eight, *on_ackley("PBGI", (0.5,)), record(**small)])
    assert "| Ackley d=16 varying | 0.6 [0.6, 0.6] | 0.89 | PBGI | yes | 8 |" in text
    assert "| Ackley d=4 uniform | 1 | 0.0161 | PBGI | no | 1 |" in text
    assert "Today's default: 0.6 [0.6, 0.6], 8 seeds." in text


def test_what_is_not_run_and_other_tables():
    records = [record(policy="RS"), record(policy="PBGI, lambda = 0.1"), *on_ackley("PBGI", (0.5,))]
    text = text_of(records)
    assert "| Sphere d=2 varying | PBGI, lambda = 0.1 | 1 | 200 d / 10 d | 1 |" in text  # a study
    assert "| Sphere d=2 varying | 1 | 200 d / 10 d | 1 |" in text  # nothing published
    (row,) = [line for line in text.splitlines() if line.startswith("| LogEICC | ") and " d=" in line]
    assert "Ackley d=16 varying" in row
    (row,) = [line for line in text.splitlines() if line.startswith("| PBGI | ") and "uniform, " in line]
    assert "Ackley d=16 varying" not in row


def test_two_engines_side_by_side():
    torch = on_ackley("PBGI", (0.8,) * 3, engine="torch")
    text = text_of(torch + on_ackley("PBGI", (0.7,) * 3, experiment=ENGINES))
    assert "| Ackley d=16 varying | PBGI | 0.7 [0.7, 0.7] | 0.8 [0.8, 0.8] | 3, 3 |" in text
    assert "| 0.8 [0.8, 0.8] | 0.8 | 0.90 |" in text  # the panel shows those of the experiment
    assert "| synthetic | 1 | 3 | 3 |" in text


def test_seconds_are_those_of_the_experiment_of_time():
    """Published: 4.92 s for log EI, averaged over the run. Ours by hand: 1 s."""
    panel = {"problem": "Ackley", "dim": 4, "cost": "uniform", "budget": 2.0, "suggest_seconds": [1.0, 1.0, 1.0]}
    runs = [record(policy="LogEI", experiment=TIMING, **panel), record(policy="KG", **panel)]
    text = text_of(runs)
    assert "| Ackley d=4 uniform | LogEI | 4.92 s | 1 s | 200 d / 10 d |" in text
    assert "times as fast" not in text
    assert "| Ackley d=4 uniform | KG |" not in text


@pytest.mark.parametrize("records", [[], [record()]])
def test_without_results_there_is_a_page_too(records):
    assert text_of(records).startswith("# The paper's experiments, in tables")
