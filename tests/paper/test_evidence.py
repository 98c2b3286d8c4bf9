"""Questions asked of runs whose medians are known by hand."""

import pytest
from toy_runs import on_ackley, record

from paper.evidence import Evidence, loss, no_worse, spread, told
from paper.reference import Panel
from paper.summary import summarize

ACKLEY = Panel("Ackley", 16, "varying")


def evidence(**finals):
    records = [run for policy, values in finals.items() for run in on_ackley(policy, values)]
    return Evidence(summarize(records))


def test_policies_with_one_or_two_seeds_are_not_heard():
    asked = evidence(PBGI=(0.5,) * 3, LogEIPC=(0.1, 0.1))
    assert list(asked.on(ACKLEY)) == ["PBGI"]
    assert asked.leads(ACKLEY) == "PBGI"
    assert asked.matches(ACKLEY, ["PBGI"], ["LogEIPC"]) is None
    assert asked.leads(Panel("Levy", 16, "varying")) is None


@pytest.mark.parametrize(("final", "answer"), [(0.5, True), (1.14, True), (1.16, False)])
def test_within_15_percent_is_a_match(final, answer):
    asked = evidence(PBGI=(final,) * 3, LogEIPC=(1.0,) * 3, RS=(0.1,) * 3)
    assert asked.matches(ACKLEY, ["PBGI", "PBGI-D"], ["LogEI", "LogEIPC"]) is answer
    assert asked.leads(ACKLEY) == ("PBGI" if final < 1.0 else "LogEIPC")  # random search is no rival


def test_best_values_match_by_progress():
    """From -50 to 150 are 200: within 30 of the top is within 15 percent."""
    changes = {"problem": "Lunar Lander", "dim": 12, "cost": "uniform", "direction": "maximize", "optimum": None}
    curves = {
        top: summarize([record((-50.0, top), (1.0, 1.0), n_start=1, budget=200.0, **changes)])[0]
        for top in (150.0, 121.0, 119.0)
    }
    assert loss(curves[150.0]) == -150.0
    assert no_worse(curves[121.0], curves[150.0])
    assert not no_worse(curves[119.0], curves[150.0])
    assert told(curves[121.0]) == "121"


def test_variants_are_kept_apart():
    described = on_ackley("PBGI", (0.2,) * 3, variant="as_described")
    asked = Evidence(summarize(on_ackley("PBGI", (0.5,) * 3) + described))
    assert told(asked.on(ACKLEY)["PBGI"]) == told(asked.on(ACKLEY, "as_published")["PBGI"]) == "0.5"
    assert told(asked.on(ACKLEY, "as_described")["PBGI"]) == "0.2"
    assert evidence(PBGI=(0.5,) * 3).on(ACKLEY, "as_described") == {}


def test_the_spread_of_finals():
    curves = evidence(PBGI=(0.5,) * 3, LogEIPC=(1.0,) * 3, RS=(2.0,) * 3).curves
    assert spread(curves) == pytest.approx(4.0)
