"""Verdicts on claims, for runs that bear them out and for runs that do not."""

import pytest
from toy_runs import on_ackley

from paper.claims import findings
from paper.evidence import Evidence
from paper.summary import summarize

GP8 = {"problem": "GP sample (Matern-5/2, ls=0.1)", "dim": 8, "cost": "uniform", "budget": 200.0}
GP16, GP32 = GP8 | {"dim": 16, "budget": 400.0}, GP8 | {"dim": 32, "budget": 800.0}
EXAMPLE = {"problem": "hard_for_eipc", "dim": 1, "budget": 40.0}


def ending(final, **labels):
    """Three runs that end with this regret, reached at half the budget."""
    policy, half = labels.pop("policy"), labels["budget"] / 2
    return [run | {"costs": [1.0, 1.0, half, half]} for run in on_ackley(policy, (final,) * 3, **labels)]


def verdicts(records):
    return {finding.claim.split(" ")[0]: finding.verdict for finding in findings(Evidence(summarize(records)))}


def test_without_runs_nothing_is_found():
    assert findings(Evidence([])) == []


@pytest.mark.parametrize(("described", "verdict"), [(0.1, "partly"), (0.9, "yes")])
def test_an_example_is_judged_with_both_models(described, verdict):
    finals = {("LogEIPC", "as_described"): described, ("PBGI", "as_described"): 0.3}
    finals |= {("LogEIPC", "as_published"): 0.9, ("PBGI", "as_published"): 0.2}
    records = [r for (p, v), f in finals.items() for r in ending(f, policy=p, variant=v, **EXAMPLE)]
    (found,) = findings(Evidence(summarize(records)))
    assert (found.verdict, found.figure) == (verdict, "hard_for_eipc")
    assert f"as described LogEIPC {described:g}, PBGI 0.3; as published LogEIPC 0.9, PBGI 0.2" in found.found


@pytest.mark.parametrize(("pbgi", "verdict"), [(0.5, "yes"), (0.9, "yes"), (1.5, "partly")])
def test_panels_are_counted(pbgi, verdict):
    records = ending(pbgi, policy="PBGI", **GP8) + ending(0.8, policy="LogEI", **GP8)
    records += ending(0.5, policy="PBGI-D", **GP16) + ending(0.8, policy="UCB", **GP16)
    assert verdicts(records)["On"] == verdict


@pytest.mark.parametrize(("pbgi", "verdict"), [(0.99, "yes"), (0.1, "no")])
def test_too_hard_is_as_bad_as_random(pbgi, verdict):
    records = ending(1.0, policy="RS", **GP32) + ending(pbgi, policy="PBGI", **GP32)
    assert verdicts(records)["In"] == verdict


@pytest.mark.parametrize(("spread", "verdict"), [(1.1, "yes"), (3.0, "no")])
def test_settings_of_the_decay(spread, verdict):
    finals = {"PBGI-D, lambda_0 = 0.1, beta = 2": 1.0, "PBGI-D, lambda_0 = 0.1, beta = 10": spread}
    finals |= {"PBGI, lambda = 0.01": 1.0, "PBGI, lambda = 1e-05": 2.0}
    found = findings(Evidence(summarize([r for p, f in finals.items() for r in ending(f, policy=p, **GP8)])))
    assert {finding.figure: finding.verdict for finding in found}["decay"] == verdict


def test_the_study_of_logarithms():
    """The order of the paper is yes; with log EI last the second comparison alone holds."""
    order = {"LogEI": 1.0, "Log(Unst. EI)": 2.0, "Exp(LogEI)": 4.0, "Unst. EI": 4.0}

    def judged(finals):
        return verdicts([r for p, f in finals.items() for r in ending(f, policy=p, **GP16)])["LogEI"]

    assert judged(order) == "yes"
    assert judged(order | {"LogEI": 9.0}) == "partly"
    assert judged({"LogEI": 9.0, "Log(Unst. EI)": 8.0, "Exp(LogEI)": 3.0, "Unst. EI": 1.0}) == "no"
