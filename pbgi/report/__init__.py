"""What came of a run, for people: plots, a page, and curves for papers.

    figures            all plots of a run that have something to show, by title
    plot_...           one of them: best_value, outlook, spending, costs, stopped, stop_gauge, cost_scale, importance,
                       slices, parallel
    write_report       one HTML page with the result in words, the plots and all trials; needs nothing to be read
    draw_best_value    median and quartiles of several runs on axes of Matplotlib, for papers
    draw_regret        the same of the distance to a known optimum

    palette            colors, fonts and labels of all figures, for figures of your own

Each plot takes a `pbgi.Result`, a `pbgi.Optimizer` or an Optuna study. Needs Plotly (`pip install plotly`). Names are
imported when they are first used.
"""

from typing import TYPE_CHECKING, Any

from pbgi.errors import MissingPackageError
from pbgi.lazy import names_from

if TYPE_CHECKING:
    from pbgi.report.page import write_report
    from pbgi.report.plots import (
        figures,
        plot_best_value,
        plot_cost_scale,
        plot_costs,
        plot_importance,
        plot_outlook,
        plot_parallel,
        plot_slices,
        plot_spending,
        plot_stop_gauge,
        plot_stopped,
    )
    from pbgi.report.several import draw_best_value, draw_regret

__all__ = [
    "draw_best_value",
    "draw_regret",
    "figures",
    "plot_best_value",
    "plot_cost_scale",
    "plot_costs",
    "plot_importance",
    "plot_outlook",
    "plot_parallel",
    "plot_slices",
    "plot_spending",
    "plot_stop_gauge",
    "plot_stopped",
    "write_report",
]

_HOMES = {
    "page": ("write_report",),
    "plots": ("figures", *(name for name in __all__ if name.startswith("plot_"))),
    "several": ("draw_best_value", "draw_regret"),
}
_get = names_from("pbgi.report", _HOMES)


def __getattr__(name: str) -> Any:
    try:
        return _get(name)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "plotly":
            raise
        raise MissingPackageError(f"pbgi.report.{name} draws with Plotly: pip install plotly") from error


def __dir__() -> list[str]:
    return __all__
