"""Trials that were stopped early: where that was and what it saved, in words and in figures."""

import optuna
import pytest
from report_runs import SPACE, cost_of, value_of

import pbgi
from pbgi.report import plot_best_value, plot_costs, plot_parallel, plot_stopped
from pbgi.report.advice import standing
from pbgi.report.page import draw_page
from pbgi.report.source import subject_of
from pbgi.report.stopped import last_step, saved, stopped_early, total_saved

LINE = {"x": pbgi.Float(0.0, 1.0), "y": pbgi.Float(0.0, 1.0)}


def steps_run():
    """Two whole trials of four steps at 1 each, and one that was stopped after the second; whole, it was to cost 4."""
    optimizer = pbgi.Optimizer(LINE, steps=4, budget=40, seed=0)
    for x, end in ((0.2, 4), (0.4, 4), (0.9, 2)):
        trial = optimizer.enqueue({"x": x, "y": 0.5})
        for step in range(1, end + 1):
            optimizer.report(trial, step, x + 1.0 / step, cost=step)
        if end < 4:
            optimizer.stop(trial)
    return optimizer


def pruned_study(first=0):
    """As above in Optuna, whose steps may begin anywhere; one trial was pruned without a word."""
    study = optuna.create_study()
    dist = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in LINE}
    states = optuna.trial.TrialState
    for x, end, state in (
        (0.2, 4, states.COMPLETE),
        (0.4, 4, states.COMPLETE),
        (0.9, 2, states.PRUNED),
        (0.8, 0, states.PRUNED),
    ):
        said = {first + 10 * i: x + 1.0 / (i + 1) for i in range(end)}
        value = x + 0.25 if state == states.COMPLETE else None
        study.add_trial(
            optuna.trial.create_trial(
                state=state,
                value=value,
                params={"x": x, "y": 0.5},
                distributions=dist,
                intermediate_values=said,
                user_attrs={"cost": float(max(end, 1))},
            )
        )
    return study


def test_what_was_expected_and_not_spent_is_saved():
    subject = subject_of(steps_run())
    (trial,) = stopped_early(subject)
    assert last_step(subject, trial) == 2
    assert trial.predicted_cost is not None
    assert saved(subject, trial) == pytest.approx(trial.predicted_cost - 2.0)
    assert total_saved(subject) == saved(subject, trial) > 0.0


@pytest.mark.parametrize("first", [0, 10, 1000])
def test_without_an_expectation_steps_cost_alike(first):
    """After two steps of four it has cost 2, so the rest would have cost 2, wherever steps begin."""
    subject = subject_of(pruned_study(first))
    (trial,) = stopped_early(subject)  # not the one that said nothing
    assert last_step(subject, trial) == first + 10
    assert saved(subject, trial) == pytest.approx(2.0)


def test_nothing_is_known_of_savings_before_a_trial_has_ended():
    study = pruned_study()
    early = optuna.create_study()
    early.add_trial(study.trials[2])
    subject = subject_of(early)
    assert len(stopped_early(subject)) == 1
    assert total_saved(subject) == 0.0


@pytest.mark.parametrize("make", [steps_run, pruned_study])
def test_the_figure_has_every_curve_and_the_bar(make):
    source = make()
    subject = subject_of(source)
    figure = plot_stopped(source, unit="euro")
    names = {trace.name: trace for trace in figure.data}
    (trial,) = stopped_early(subject)
    curve = subject.curves[trial.number]
    assert list(zip(names["stopped early"].x, names["stopped early"].y, strict=True))[:-1] == list(curve)
    assert len(curve) == 2
    assert len(names["ran to the end"].x) == len(names["best trial"].x) == 5  # four steps and a gap
    dots = next(trace for trace in figure.data if trace.mode == "markers")
    assert (dots.x[0], dots.y[0]) == curve[-1]
    bars = [trace.x[0] for trace in figure.data if trace.type == "bar"]
    assert bars == pytest.approx([subject.spent - 2.0, 2.0, total_saved(subject)])
    assert any(name.startswith("saved: about 2\N{NO-BREAK SPACE}euro") for name in names if name) == (
        make is pruned_study
    )


def test_words_and_table_say_where_it_was_and_what_it_saved():
    subject = subject_of(pruned_study(), unit="euro")
    said = [sentence.replace("\N{NO-BREAK SPACE}", " ") for sentence in standing(subject)]
    assert "1 trial stopped early cost 2 euro of that; run to the end, they would have cost about 2 euro more." in said
    assert "Other trials without a value cost 1 euro of that (9 %)." in said
    assert "pruned at step 10" in draw_page(subject).html()


def test_they_do_not_look_like_failures():
    run = steps_run()
    run.fail(run.enqueue({"x": 0.1, "y": 0.1}), cost=1.0)
    for figure, plain in ((plot_best_value(run), "trial without a value"), (plot_parallel(run), "without a value")):
        names = {trace.name: trace for trace in figure.data}
        assert names["stopped early"].to_plotly_json() != names[plain].to_plotly_json()
        assert len([y for y in names["stopped early"].y if y is not None]) in (1, 2)
    costs = {trace.name: trace for trace in plot_costs(run).data}
    assert costs["stopped early"].marker.symbol == "square"


def test_without_any_there_is_no_figure():
    optimizer = pbgi.Optimizer(SPACE, seed=0)
    trial = optimizer.ask()
    optimizer.tell(trial, value_of(trial.params), cost=cost_of(trial.params))
    assert not plot_stopped(optimizer).data
