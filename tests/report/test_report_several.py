"""Several runs as one curve: medians and quartiles, against brute force."""

import numpy as np
import pytest

import pbgi
from pbgi.report import draw_best_value, draw_regret

matplotlib = pytest.importorskip("matplotlib")
SPACE = {"x": pbgi.Float(0.0, 1.0)}


@pytest.fixture
def ax():
    from matplotlib.figure import Figure

    return Figure().subplots()


def run_of(*rows, **settings):
    optimizer = pbgi.Optimizer(SPACE, seed=0, **settings)
    for value, cost in rows:
        trial = optimizer.ask()
        if value is None:
            optimizer.fail(trial, cost=cost)
        else:
            optimizer.tell(trial, value, cost=cost)
    return optimizer


def random_runs(direction="minimize"):
    rng = np.random.default_rng(0)
    return [
        run_of(*zip(rng.normal(size=8).tolist(), rng.uniform(1, 3, 8).tolist(), strict=True), direction=direction)
        for _ in range(5)
    ]


def best_at(run, spent, better):
    """The best value of the trials that had been paid for by then."""
    paid, best = 0.0, None
    for trial in run.trials:
        paid += trial.charged
        if paid <= spent + 1e-9 and trial.value is not None:
            best = trial.value if best is None else better(best, trial.value)
    return best


@pytest.mark.parametrize(("direction", "better"), [("minimize", min), ("maximize", max)])
def test_median_and_quartiles(ax, direction, better):
    runs = random_runs(direction)
    draw_best_value(ax, runs, label="ours", unit="s")
    (line,) = ax.lines
    for x, y in zip(*line.get_data(), strict=True):
        assert y == np.median([best_at(run, x, better) for run in runs])
    vertices = ax.collections[0].get_paths()[0].vertices
    x = float(line.get_xdata()[-1])
    ends = np.quantile([best_at(run, x, better) for run in runs], [0.25, 0.75])
    assert sorted({round(v, 9) for v in vertices[vertices[:, 0] == x][:, 1]}) == pytest.approx(sorted(set(ends)))
    assert (ax.get_xlabel(), ax.get_ylabel(), line.get_label()) == ("Spent (s)", "Best value", "ours")


def test_regret_is_the_distance_to_the_optimum(ax):
    runs = random_runs()
    draw_regret(ax, runs, optimum=-5.0)
    (line,) = ax.lines
    for x, y in zip(*line.get_data(), strict=True):
        assert y == pytest.approx(np.median([best_at(run, x, min) + 5.0 for run in runs]))
    assert ax.get_yscale() == "log"


def test_a_run_begins_with_its_first_value_and_stays_at_its_last(ax):
    draw_best_value(ax, [run_of((None, 5.0), (2.0, 1.0)), run_of((4.0, 1.0), (3.0, 9.0))])
    x, y = ax.lines[0].get_data()
    assert list(x) == [6.0, 10.0]
    assert list(y) == [3.0, 2.5]


def test_without_costs_trials_are_counted(ax):
    draw_best_value(ax, [run_of((4.0, None), (3.0, None))])
    assert ax.get_xlabel() in ("Trials finished", "Spent")
    assert list(ax.lines[0].get_ydata())[-1] == 3.0


@pytest.mark.parametrize("runs", [[], [run_of((None, 1.0))]])
def test_runs_without_values_are_refused(ax, runs):
    with pytest.raises(pbgi.InvalidInputError, match="each with a value"):
        draw_best_value(ax, runs)


def test_a_dollar_is_a_dollar(ax, tmp_path):
    draw_best_value(ax, [run_of((4.0, 1.0))], label="$5 and $6", unit="$")
    ax.legend()
    ax.figure.savefig(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 1000
    assert ax.get_legend().get_texts()[0].get_text() == r"\$5 and \$6"
    assert ax.get_xlabel() == r"Spent (\$)"
