"""What the text and the published runs do to the numbers."""

from toy_runs import on_ackley

from paper.deviations import DEVIATIONS, deviations
from paper.evidence import Evidence
from paper.summary import summarize

VARYING = {"problem": "GP sample (Matern-5/2, ls=0.1)", "dim": 8, "experiment": "bayesian_regret"}


def test_each_deviation_is_told_and_its_numbers_stand_side_by_side():
    """Published: 3.07 for PBGI."""
    records = on_ackley("PBGI", (1.9,) * 3, variant="as_described", **VARYING)
    records += on_ackley("PBGI", (3.0,) * 4, **VARYING) + on_ackley("LogEIPC", (2.0,) * 4, **VARYING)
    text = deviations(Evidence(summarize(records)))
    assert all(deviation.title in text for deviation in DEVIATIONS)
    assert "| GP sample (Matern-5/2, ls=0.1) d=8 varying | PBGI | 1.9 | 3 | 3.07 | 3, 4 |" in text
    assert "LogEIPC |" not in text  # as published only: nothing to compare


def test_without_runs_there_are_no_tables():
    assert "|---" not in deviations(Evidence([])).replace(" ", "")
