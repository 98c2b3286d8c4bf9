"""The plots say what the trials say, for every run that there may be."""

import json
import math
import subprocess
import sys

import numpy as np
import optuna
import plotly.graph_objects as go
import pytest
from report_runs import HOSTILE, ODD, SPACE, cost_of, hostile_study, lucky, ordinary, random_study, told, value_of
from scipy import stats

import pbgi
import pbgi.report
from pbgi.report.parallel import value_per_cost
from pbgi.report.plots import PLOTS
from pbgi.report.source import subject_of
from pbgi.report.style import BLUE, GREEN, GREY, PURPLE, VERMILLION, around, is_wide, log_axis

FUNCTIONS = {
    "Best value against cost": pbgi.report.plot_best_value,
    "What more budget is expected to buy": pbgi.report.plot_outlook,
    "Where the money went": pbgi.report.plot_spending,
    "Predicted cost against paid": pbgi.report.plot_costs,
    "Trials that were stopped early": pbgi.report.plot_stopped,
    "Stop gauge: is the next trial worth its price?": pbgi.report.plot_stop_gauge,
    "Exchange rate between value and cost": pbgi.report.plot_cost_scale,
    "Which parameters matter": pbgi.report.plot_importance,
    "Slices of the model through the best point": pbgi.report.plot_slices,
    "All trials: value per cost": pbgi.report.plot_parallel,
}


@pytest.fixture(scope="module")
def run():
    return ordinary(24)


def traces(figure):
    return {trace.name: trace for trace in figure.data if trace.name}


@pytest.mark.parametrize("name", ODD)
def test_every_plot_of_every_odd_run_is_a_figure_or_says_why_not(name):
    source = ODD[name]()
    subject = subject_of(source)
    shown = pbgi.report.figures(subject)
    for title, drawn in shown.items():
        assert isinstance(drawn, go.Figure)
        assert drawn.layout.title.text == title
        assert any(_has_points(trace) for trace in drawn.data), title
        json.loads(drawn.to_json())
    for plot in PLOTS:
        if plot.title not in shown:
            drawn = FUNCTIONS[plot.title](subject)
            assert not drawn.data
            assert drawn.layout.annotations[0].text.endswith(".")
    if "failed" not in name:
        assert ("Best value against cost" in shown) == (subject.best is not None)


def test_there_is_a_function_for_every_plot():
    assert [plot.title for plot in PLOTS] == list(FUNCTIONS)
    assert {function.__name__ for function in FUNCTIONS.values()} == {
        name for name in pbgi.report.__all__ if name.startswith("plot_")
    }
    empty = pbgi.Optimizer(SPACE)
    assert [function(empty).layout.title.text for function in FUNCTIONS.values()] == list(FUNCTIONS)


def _has_points(trace):
    return len(trace.x) > 0 and len(trace.y) > 0


def test_two_thousand_trials():
    shown = pbgi.report.figures(random_study(2000))
    assert len(shown["Best value against cost"].data[0].x) == 2000
    assert len(shown["All trials: value per cost"].data) < 10  # a trace per trial would be too slow to draw


def test_best_value_is_the_least_so_far_where_its_cost_was_paid(run):
    figure = pbgi.report.plot_best_value(run, unit="euro")
    line = traces(figure)["best so far"]
    spent, best, steps = 0.0, math.inf, {}
    for trial in run.trials:
        spent += trial.charged
        if trial.value is not None and trial.value < best:
            best = trial.value
            steps[spent] = best
    assert list(line.x)[:-1] == pytest.approx(list(steps))
    assert list(line.y)[:-1] == list(steps.values())
    assert line.x[-1] == pytest.approx(run.spent)
    assert line.line.shape == "hv"
    assert figure.layout.xaxis.title.text == "Spent (euro)"
    failed = traces(figure)["trial without a value"]
    assert len(failed.x) == 2
    assert any("budget 60" in note.text for note in figure.layout.annotations)
    assert figure.layout.shapes[0].x0 == 60.0


def test_the_forecast_goes_to_the_end_of_the_budget(run):
    figure = pbgi.report.plot_best_value(run)
    forecast = traces(figure)["forecast"]
    assert forecast.x[0] == pytest.approx(run.spent)
    assert forecast.x[-1] == pytest.approx(run.spent + run.remaining)
    assert forecast.y[0] == run.best.value
    assert "forecast" not in traces(pbgi.report.plot_best_value(told(pbgi.Optimizer(SPACE, seed=0), 9)))


def test_spending_adds_up_in_every_panel(run):
    figure = pbgi.report.plot_spending(run)
    panels = {}
    for bar in figure.data:
        panels[bar.xaxis] = panels.get(bar.xaxis, 0.0) + math.fsum(bar.x)
    assert len(panels) == 4  # states and three parameters
    for total in panels.values():
        assert total == pytest.approx(run.spent + run.reserved)
    by_depth = next(bar for bar in figure.data if bar.xaxis == "x3" and bar.name == "complete")
    for words, paid in zip(by_depth.y, by_depth.x, strict=True):
        low, high = (int(end) for end in (words.split(" to ") * 2)[:2])
        inside = [t.charged for t in run.trials if t.value is not None and low <= t.params["depth"] <= high]
        assert paid == pytest.approx(math.fsum(inside))


def test_costs_are_predicted_against_paid(run):
    figure = pbgi.report.plot_costs(run)
    dots = traces(figure)["complete"]
    both = [(t.predicted_cost, t.cost) for t in run.trials if t.value is not None and t.predicted_cost is not None]
    assert list(zip(dots.x, dots.y, strict=True)) == both
    diagonal = next(trace for trace in figure.data if trace.name.startswith("as predicted"))
    ratios = sorted(
        max(t.cost / t.predicted_cost, t.predicted_cost / t.cost) for t in run.trials if t.cost and t.number
    )
    within = float(diagonal.name.split("\N{MULTIPLICATION SIGN}")[1])
    assert sum(ratio <= 1.01 * within for ratio in ratios) >= len(ratios) / 2 >= sum(r < 0.99 * within for r in ratios)
    assert list(diagonal.x) == list(diagonal.y)
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_gauge_crosses_where_no_trial_was_worth_its_price(direction):
    sign = 1.0 if direction == "maximize" else -1.0
    rate = 0.02
    result = pbgi.minimize(
        lambda p: (-sign * ((p["x"] - 0.3) ** 2), 1.0),
        {"x": pbgi.Float(0, 1)},
        policy=pbgi.PBGI(rate),
        direction=direction,
        seed=0,
    )
    assert result.stop_reason.rule == "GittinsStop"
    figure = pbgi.report.plot_stop_gauge(result)
    index = traces(figure)["best index"]
    assert index.y[-1] == result.stop_reason.numbers["index"]
    noted = [trial for trial in result.trials if "index" in trial.record]
    assert list(index.y)[:-1] == [sign * trial.record["index"] for trial in noted]
    crossed, best = [], None
    for trial in result.trials:
        if "index" in trial.record and trial.record["index"] < sign * best:
            crossed.append(float(trial.number))  # each cost one
        best = trial.value if best is None else sign * max(sign * best, sign * trial.value)
    crossed.append(result.spent)
    assert list(traces(figure)["not worth its price"].x) == pytest.approx(crossed)
    assert figure.layout.shapes[0].x0 == pytest.approx(crossed[0])


def test_the_gauge_of_another_policy_with_the_rule_is_the_index_at_its_rate():
    run = ordinary(16, policy=pbgi.LogEIPC(), stop=pbgi.GittinsStop(0.05))
    index = traces(pbgi.report.plot_stop_gauge(run))["best index"]
    noted = [t.record for t in run.trials if "worth" in t.record]
    assert len(index.y) == len(noted) > 0
    assert list(index.y) == [-record["worth_index"] for record in noted]


def test_cost_scale_is_what_trials_have_noted():
    run = told(pbgi.Optimizer({"x": pbgi.Float(0, 1)}, seed=0), 25, value=lambda p: p["x"], cost=lambda _: 1.0)
    rates = [t.record["cost_scale"] for t in run.trials if "cost_scale" in t.record]
    assert len(set(rates)) > 1
    line = pbgi.report.plot_cost_scale(run).data[0]
    assert list(line.y)[:-1] == rates
    assert "Exchange rate between value and cost" not in pbgi.report.figures(ordinary(12, policy=pbgi.PBGI(0.1)))


def test_slices_hold_mean_std_cost_and_index(run):
    figure = pbgi.report.plot_slices(run)
    values = [0.001, 0.1]
    asked = run.predict([{**run.best.params, "rate": value} for value in values])
    mean, index, cost = (
        next(t for t in figure.data if t.name == name and t.xaxis in ("x", "x2"))
        for name in ("median, 80 % interval", "index", "expected cost")
    )
    at = np.log10(np.array(mean.x))
    assert np.interp(np.log10(values), at, mean.y) == pytest.approx(asked.median, rel=0.02, abs=0.02)
    assert np.interp(np.log10(values), at, cost.y) == pytest.approx(asked.cost, rel=0.02)
    rate = [t.record["cost_scale"] for t in run.trials if "cost_scale" in t.record][-1]
    spread = (asked.median - asked.low) / stats.norm.ppf(0.9)  # on the better side
    expected = -pbgi.gittins_index(-asked.median, spread, np.log(rate * asked.cost))
    assert np.interp(np.log10(values), at, index.y) == pytest.approx(expected, rel=0.02, abs=0.02)
    categories = next(t for t in figure.data if t.name == "median, 80 % interval" and t.xaxis == "x5")
    assert categories.mode == "markers"
    assert len(categories.error_y.array) == 3


def test_value_per_cost_does_not_reward_the_expensive():
    run = pbgi.Optimizer({"x": pbgi.Float(0, 1)}, seed=0)
    for value, cost in [(1.0, 1.0), (1.0, 2.0), (5.0, 1.0), (9.0, 1.0), (9.0, 100.0)]:
        run.tell(run.ask(), value, cost=cost)
    assert list(value_per_cost(subject_of(run)).values()) == [4.0, 2.0, 0.0, 0.0, 0.0]


def test_parallel_shows_every_trial_that_ended(run):
    figure = pbgi.report.plot_parallel(run)
    best = traces(figure)["best trial"]
    coordinates = run.space.to_unit(run.best.params)
    assert list(best.y)[:-1] == pytest.approx(coordinates)
    lines = [trace for trace in figure.data if trace.name != "best trial"]
    assert (
        sum(list(trace.y).count(None) for trace in lines) == len(run.trials) - 2
    )  # all but the running and the best one
    assert list(traces(figure)["without a value"].y).count(None) == 2
    assert list(figure.layout.xaxis.ticktext) == ["rate", "depth", "kind"]


def test_nothing_in_a_figure_is_markup():
    texts = []

    def collect(part):
        if isinstance(part, dict):
            for key, value in part.items():
                collect(value)
                texts.append(str(key))
        elif isinstance(part, list):
            for value in part:
                collect(value)
        elif isinstance(part, str):
            texts.append(part)

    for figure in pbgi.report.figures(hostile_study(), unit=HOSTILE[1]).values():
        collect(json.loads(figure.to_json()))
    assert len(texts) > 500
    ours = [text for text in texts if "<" in text or "$" in text or "\x1b" in text or "\u202e" in text]
    assert ours == []
    assert any("&lt;img src=x" in text for text in texts)


def test_missing_plotly_says_what_to_install():
    code = "import sys; sys.modules['plotly'] = None; from pbgi.report import figures"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "MissingPackageError: pbgi.report.figures draws with Plotly: pip install plotly" in done.stderr


def test_importing_the_package_imports_no_plotly():
    code = "import sys, pbgi.report, pbgi.report.subject; print('plotly' in sys.modules, 'matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"]


# Axes and colors ----------------------------------------------------------------------------------------------------


def test_outliers_do_not_stretch_an_axis():
    low, high = around([1.0, 2.0], outliers=[*np.linspace(1.0, 3.0, 50), 1e9])
    assert low < 1.0
    assert 2.0 < high < 10.0
    assert around([-1e308, 1e308]) is None
    assert around() is None
    assert around([5.0]) == [4.5, 5.5]


@pytest.mark.parametrize("values", [[1e-300, 1e300], [1.0, 1.0], [0.3, 0.5], [1e-4, 2.0], [3.0, 900.0]])
def test_a_logarithmic_axis_has_a_few_ticks_inside(values):
    axis = log_axis(values)
    inside = [tick for tick in axis["tickvals"] if axis["range"][0] <= math.log10(tick) <= axis["range"][1]]
    assert 1 <= len(inside) <= 12
    assert len(axis["tickvals"]) == len(axis["ticktext"])


def _linear(color):
    channels = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def _luminance(color):
    return float(_linear(color) @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("color", [BLUE, GREEN, VERMILLION, PURPLE, GREY])
def test_colors_stand_out_from_light_and_dark(color):
    for background in ("#ffffff", "#12161b"):
        pair = sorted((_luminance(color), _luminance(background)))
        assert (pair[1] + 0.05) / (pair[0] + 0.05) > 2.9  # WCAG asks 3 of graphics


def test_the_color_blind_can_tell_colors_apart():
    # Machado, Oliveira and Fernandes (2009), full strength, in linear RGB.
    eyes = {
        "protanopia": [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        "deuteranopia": [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.01182, 0.04294, 0.968881],
        ],
    }
    colors = [BLUE, GREEN, VERMILLION]  # those that meet in one panel without a legend beside them
    for matrix in eyes.values():
        seen = [np.clip(np.array(matrix) @ _linear(color), 0.0, 1.0) for color in colors]
        distances = [np.linalg.norm(a - b) for i, a in enumerate(seen) for b in seen[:i]]
        assert min(distances) > 0.15


def test_optuna_logging_is_left_alone():
    before = optuna.logging.get_verbosity()
    pbgi.report.figures(random_study(5))
    assert optuna.logging.get_verbosity() == before


# Nothing on the wrong axis, nothing cut without a mark ---------------------------------------------------------------


def test_trials_without_a_value_have_a_strip_of_their_own_below_the_values(run):
    figure = pbgi.report.plot_best_value(run)
    failed = traces(figure)["trial without a value"]
    assert failed.yaxis == "y2"
    strip, values = figure.layout.yaxis2, figure.layout.yaxis
    assert strip.domain[1] < values.domain[0]
    assert strip.range[0] < 0.0 < strip.range[1]
    assert set(failed.y) == {0.0}
    assert figure.layout.xaxis.anchor == "y2"
    assert values.range != strip.range


def test_what_is_beyond_the_axis_has_a_mark():
    optimizer = told(pbgi.Optimizer(SPACE, budget=90.0, seed=0), 14, value=lambda p: p["depth"] - 6.5)
    optimizer.tell(optimizer.enqueue({"rate": 0.1, "depth": 1, "kind": "a", "fixed": 7}), 1e6, cost=1.0)
    figure = pbgi.report.plot_best_value(optimizer)
    low, high = figure.layout.yaxis.range
    cut = [trial for trial in optimizer.trials if trial.value is not None and not low <= trial.value <= high]
    marks = traces(figure)["beyond the axis"]
    assert len(cut) == len(marks.x) >= 1
    assert all(low < y < high for y in marks.y)
    assert any(f"trial {cut[-1].number}:" in text for text in marks.hovertext)


def test_importance_is_that_of_the_optimizer(run):
    figure = pbgi.report.plot_importance(run)
    found = sorted(run.importance(), key=lambda each: -each.share)
    (bars,) = figure.data
    assert list(bars.y) == [each.name for each in found]
    assert list(bars.x) == [each.share for each in found]
    assert [x + up for x, up in zip(bars.x, bars.error_x.array, strict=True)] == pytest.approx([e.high for e in found])
    assert len(figure.layout.annotations) == len(found)
    one = told(pbgi.Optimizer({"x": pbgi.Float(0, 1)}, seed=0), 6, value=lambda p: p["x"], cost=lambda _: 1.0)
    assert not pbgi.report.plot_importance(one).data


def test_the_recommended_trial_is_drawn_beside_the_best():
    subject = subject_of(lucky())
    star = traces(pbgi.report.plot_best_value(subject))["recommended, 80 % interval without noise"]
    chosen = subject.recommended
    assert chosen.trial.number != subject.best.number
    assert list(star.y) == [chosen.median]
    assert star.y[0] + star.error_y.array[0] == pytest.approx(chosen.high)


def test_what_cannot_be_spent_is_not_forecast():
    result = pbgi.minimize(lambda p: (value_of(p), cost_of(p)), SPACE, budget=12.0, seed=0)
    subject = subject_of(result)
    assert subject.stop_reason.rule == "BudgetSpent"
    assert subject.spendable == 0.0
    assert "forecast" not in traces(pbgi.report.plot_best_value(subject))


def test_legends_are_below_and_no_two_axes_share_a_place(run):
    for title, figure in pbgi.report.figures(run).items():
        assert figure.layout.legend.y < 0.0, title
        assert all(axis.overlaying is None for axis in figure.select_yaxes()), title


def _constrained():
    """The best value breaks the condition; it is feasible from depth 5 on."""
    optimizer = pbgi.Optimizer(SPACE, budget=60.0, constraints={"memory": pbgi.AtMost(4.0)}, seed=0)
    for depth in (3, 8, 2, 5, 9):
        params = {"rate": 0.01, "depth": depth, "kind": "b", "fixed": 7}
        optimizer.tell(optimizer.enqueue(params), value_of(params), cost=1.0, constraints={"memory": 0.7 * depth})
    return optimizer


def test_only_what_keeps_all_conditions_is_the_best_so_far():
    run = _constrained()
    names = traces(pbgi.report.plot_best_value(run))
    at = [value_of({"rate": 0.01, "depth": depth, "kind": "b"}) for depth in (3, 8, 2, 5, 9)]
    assert list(names["best so far"].y) == pytest.approx([at[0], at[3], at[3]])
    assert list(names["trial"].y) == [at[0], at[2], at[3]]
    assert list(names["breaks a condition"].y) == [at[1], at[4]]
    assert value_per_cost(subject_of(run))[1] == 0.0


def test_the_outlook_pays_for_trials_that_break_a_condition():
    """Where a condition is kept half of the time, a trial that keeps it costs two."""
    run = _constrained()
    beliefs = subject_of(run).beliefs
    asked = run.predict(run.space.from_unit_many(beliefs.X))
    assert beliefs.cost == pytest.approx(asked.cost / np.maximum(asked.chance, np.finfo(float).tiny))
    assert asked.chance.min() < 0.5 < asked.chance.max()


def test_values_that_are_all_equal_have_no_outlook():
    shown = pbgi.report.figures(ODD["constant values"]())
    assert "What more budget is expected to buy" not in shown
    assert "forecast" not in traces(shown["Best value against cost"])


def test_many_parameters_are_slanted_chosen_by_importance_and_moved_sideways_on_a_phone():
    space = {f"parameter {i}": pbgi.Float(0.0, 1.0) for i in range(16)}
    optimizer, rng = pbgi.Optimizer(space, seed=0), np.random.default_rng(0)
    for _ in range(4):
        params = {name: float(rng.random()) for name in space}
        optimizer.tell(optimizer.enqueue(params), params["parameter 15"], cost=1.0)
    subject = subject_of(optimizer)
    shares = {name: 0.01 * i for i, name in enumerate(space)}  # told here; how they are worked out is tested elsewhere
    vars(subject)["importance"] = tuple(pbgi.Importance(name, s, s, s) for name, s in shares.items())
    figure, few = pbgi.report.plot_parallel(subject), pbgi.report.plot_parallel(ODD["maximized"]())
    assert list(figure.layout.xaxis.ticktext) == list(space)[2:]
    assert is_wide(figure)
    assert not is_wide(few)
    assert figure.layout.margin.b > few.layout.margin.b  # the legend is below the slanted names
    assert (figure.layout.xaxis.tickangle, few.layout.xaxis.tickangle) == (35, 0)
    plot = next(plot for plot in PLOTS if plot.title == "All trials: value per cost")
    assert plot.note(subject_of(optimizer)) == "Shown are the 14 of 16 parameters that matter the most."
    assert plot.note(subject_of(ODD["maximized"]())) == ""


def test_costs_that_are_nearly_equal_have_ticks_too():
    axis = log_axis([1.0, 1.03])
    inside = [tick for tick in axis["tickvals"] if axis["range"][0] <= math.log10(tick) <= axis["range"][1]]
    assert inside == pytest.approx([1.0, 1.01, 1.02, 1.03])


def test_panels_beside_each_other_are_too_wide_for_a_phone(run):
    wide = {title for title, figure in pbgi.report.figures(run).items() if is_wide(figure)}
    assert wide == {"Where the money went", "Slices of the model through the best point"}
