"""The result in words: each sentence where the trials call for it, and nowhere else."""

import pytest
from report_runs import ODD, SPACE, cost_of, ordinary, told, value_of

import pbgi
from pbgi.prediction import Recommendation
from pbgi.report.advice import standing, what_to_try
from pbgi.report.source import subject_of

LINE = {"x": pbgi.Float(0.0, 1.0), "kind": pbgi.Categorical(["a", "b", "c"])}


def run_of(*rows, space=LINE, **settings):
    """An optimizer with these trials: (params, value or None, cost)."""
    optimizer = pbgi.Optimizer(space, seed=0, **settings)
    for params, value, cost in rows:
        trial = optimizer.enqueue(params)
        if value is None:
            optimizer.fail(trial, cost=cost, message="it broke <b>")
        else:
            optimizer.tell(trial, value, cost=cost)
    return optimizer


def at(x, value=1.0, cost=1.0, kind="a"):
    return {"x": x, "kind": kind}, value, cost


def advice(optimizer, words):
    return [sentence for sentence in what_to_try(subject_of(optimizer, unit="euro")) if words in sentence]


def test_the_standing_of_an_ordinary_run():
    run = ordinary()
    said = standing(subject_of(run, unit="euro"))
    spent = sum(t.charged for t in run.trials)
    assert said[0].startswith(f"The lowest value is {run.best.value:.6g}"[:25])
    assert f"from trial {run.best.number}" in said[0]
    assert "ecommended" in said[1]
    assert said[2] == "15 trials: 12 complete, 2 failed, 1 running."
    assert said[3].replace("\N{NO-BREAK SPACE}", " ").startswith(f"Spent {spent:.4g} euro of 60 euro")
    lost = sum(t.charged for t in run.trials if t.value is None)
    assert said[4].replace("\N{NO-BREAK SPACE}", " ") == (
        f"Trials without a value cost {lost:.4g} euro of that ({100 * lost / spent:.0f} %)."
    )
    assert said[5] == "No rule has ended it: it goes on, or was interrupted."


def test_why_it_ended_is_said():
    result = pbgi.minimize(lambda p: (value_of(p), cost_of(p)), SPACE, budget=10, seed=0)
    assert standing(subject_of(result))[-1] == f"Why it ended: {result.stop_reason.message}."


def test_the_highest_is_called_so():
    said = standing(subject_of(run_of(at(0.5, 2.0), at(0.6, 3.0), direction="maximize")))
    assert said[0].startswith("The highest value is 3, from trial 1, found after spending 2")


# The trial to choose --------------------------------------------------------------------------------------------------


def recommendation(monkeypatch, run, number, low, high):
    """What the optimizer is made to recommend: the sentences are tested here, the choice is its own."""
    found = Recommendation(run.trials[number], (low + high) / 2, low, high)
    monkeypatch.setattr(pbgi.Optimizer, "recommended", found)
    return standing(subject_of(run))[1].replace("\N{NO-BREAK SPACE}", " ")


def test_another_trial_than_the_best_is_recommended_and_why(monkeypatch):
    rows = [at(0.2, 1.0), at(0.5, 0.5), at(0.6, 0.75)]
    said = "Recommended is trial 2, whose value without noise is between 0.625 and 0.875, with a probability of 80 %, "
    why = "rather than trial 1: values are noisy, and the lowest of many owes part of that to chance."
    assert recommendation(monkeypatch, run_of(*rows), 2, 0.625, 0.875) == said + why
    high = recommendation(monkeypatch, run_of(*rows, direction="maximize"), 2, 0.625, 0.875)
    assert "rather than trial 0: values are noisy, and the highest of many" in high


def test_the_best_trial_is_recommended(monkeypatch):
    run = run_of(at(0.2, 1.0), at(0.5, 0.5))
    noisy = "It is also the recommended trial; its value without noise is between 0.25 and 0.75, with a probability "
    assert recommendation(monkeypatch, run, 1, 0.25, 0.75) == noisy + "of 80 %."
    exact = "It is also the recommended trial: values show no noise."
    assert recommendation(monkeypatch, run, 1, 0.5, 0.5) == exact


def test_nothing_is_recommended_before_there_is_a_value():
    assert not [
        sentence
        for name in ("empty", "all failed")
        for sentence in standing(subject_of(ODD[name]()))
        if "ecommended" in sentence
    ]


def test_a_best_point_at_a_bound_asks_for_a_wider_range():
    high = advice(run_of(at(0.2, 3.0), at(0.999, 1.0), at(0.5, 2.0)), "at the upper bound")
    low = advice(run_of(at(0.2, 3.0), at(0.0, 1.0), at(0.5, 2.0)), "at the lower bound")
    assert [len(high), len(low)] == [1, 1]
    assert "x = 0.999" in high[0]
    assert advice(run_of(at(0.2, 3.0), at(0.9, 1.0)), "bound") == []


def test_a_few_levels_have_no_bounds_to_speak_of():
    space = {"n": pbgi.Integer(1, 3), "m": pbgi.Integer(1, 100)}
    run = run_of(({"n": 3, "m": 100}, 1.0, 1.0), ({"n": 1, "m": 5}, 2.0, 1.0), space=space)
    assert [sentence.split(" =")[0] for sentence in advice(run, "bound")] == ["The best trial has m"]


def test_failures_in_one_region_are_named():
    rows = [at(x / 20, 1.0 + x) for x in range(1, 12)] + [at(0.9 + i / 100, None, kind="b") for i in range(5)]
    found = advice(run_of(*rows), "failures have")
    assert any("have x at 0.83 to 1" in sentence for sentence in found)
    assert any("have kind at b" in sentence for sentence in found)
    assert all(sentence.startswith("5 of 5 failures") for sentence in found)
    assert "100\N{NO-BREAK SPACE}% of trials fail" in found[0]


def test_failures_all_over_are_not_blamed_on_a_region():
    rows = [at(i / 20, None if i % 3 == 0 else 1.0 + i, kind="abc"[(i // 3) % 3]) for i in range(20)]
    run = run_of(*rows)
    assert advice(run, "failures have") == []
    assert len(advice(run, "all over the space")) == 1


def test_where_the_money_went_without_being_worth_it():
    rows = [at(0.1 + i / 40, 1.0 + 0.1 * i, 1.0) for i in range(8)] + [at(0.95, 9.0, 20.0), at(0.96, 8.0, 20.0)]
    found = advice(run_of(*rows), "of the money went to 2 trials with x at 0.83 to 1")
    assert len(found) == 1
    assert "where the best is 8:" in found[0]
    good = [at(0.1 + i / 40, 1.0 + 0.1 * i, 1.0) for i in range(8)] + [at(0.95, 0.0, 20.0), at(0.96, 8.0, 20.0)]
    assert advice(run_of(*good), "of the money went to") == []  # it bought the best


def test_a_long_time_without_anything_better_is_said():
    rows = [at(0.1, 1.0), *(at(0.2 + i / 20, 2.0 + i) for i in range(9))]
    assert "The last 90" in advice(run_of(*rows), "found nothing better")[0]
    assert advice(run_of(*reversed(rows)), "found nothing better") == []


def test_no_value_at_all_gives_the_last_message():
    assert "it broke" in what_to_try(subject_of(ODD["all failed"]()))[0]


def test_the_outlook_is_in_the_advice():
    run = ordinary()
    subject = subject_of(run, unit="euro")
    (said,) = [sentence for sentence in what_to_try(subject) if "The model expects" in sentence]
    assert "that is left" in said
    assert f"{subject.outlook.extra[-1]:.4g}" in said


def test_before_the_first_trial_there_is_no_best_point_to_speak_of():
    assert what_to_try(subject_of(ODD["empty"]())) == ["Start the search: there are no trials yet."]


def test_nothing_to_say_is_said():
    run = told(pbgi.Optimizer({"x": pbgi.Categorical(["a", "b"])}, seed=0), 2, value=lambda _: 1.0, cost=None)
    assert what_to_try(subject_of(run))


@pytest.mark.parametrize("name", ["empty", "one trial", "all failed", "huge values", "nothing varies", "overspent"])
def test_odd_runs_are_put_in_words(name):
    subject = subject_of(ODD[name]())
    for sentence in [*standing(subject), *what_to_try(subject)]:
        assert sentence.endswith(".")
        assert "nan" not in sentence


def test_values_that_are_all_equal_are_told():
    said = what_to_try(subject_of(ODD["constant values"]()))
    assert said[0].startswith("All 10 values are equal")
    assert not any("expects" in sentence for sentence in said)


def test_what_is_left_beside_a_rate_at_which_nothing_is_worth_its_price():
    rate = 0.02
    run = pbgi.minimize(lambda p: (value_of(p), cost_of(p)), SPACE, budget=60.0, policy=pbgi.PBGI(rate), seed=0)
    assert run.stop_reason.rule == "GittinsStop"
    (said,) = [sentence for sentence in what_to_try(subject_of(run)) if "The model expects" in sentence]
    left = 60.0 - run.spent
    assert said.endswith(f", a gain below the {rate * left:.4g} that it must bring at the exchange rate.")
    assert not advice(ordinary(), "exchange rate")
