"""Reports of all sorts of runs in a folder, and how they look: light, dark, and on a phone.

    python tests/report/take_report_pages.py /tmp/pages        needs Playwright and Chromium; takes some minutes

For looking at: 1, 2, 12 and 500 trials, one parameter and twenty, all failed, all equal, noisy, maximized, wild values.
"""

import argparse
import math
import shutil
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
from report_runs import ODD, cost_of, lucky, ordinary, told, value_of  # noqa: E402

import pbgi  # noqa: E402
from pbgi.report import write_report  # noqa: E402

LOOKS = {"light": ("light", 1000), "dark": ("dark", 1000), "phone": ("light", 390)}
DRAWN = "document.querySelectorAll('.plot').length === document.querySelectorAll('.plot[data-drawn]').length"


def scattered(space, n, value, cost, **settings):
    """A run of points at random, which takes no time to choose."""
    optimizer, rng = pbgi.Optimizer(space, seed=0, **settings), np.random.default_rng(0)
    for i in range(n):
        trial = optimizer.enqueue(optimizer.space.from_unit(rng.random(optimizer.space.dimension)))
        if i % 17 == 11:
            optimizer.fail(trial, cost=cost(trial.params), message="it broke")
        else:
            optimizer.tell(trial, value(trial.params), cost=cost(trial.params))
    return optimizer


def wild(params):
    """Values of which a few are a thousand times as large as the others."""
    return value_of(params) * (1000.0 if params["depth"] == 12 else 1.0)


ONE = {"x": pbgi.Float(0.0, 1.0)}
TWENTY = {f"parameter {i}": pbgi.Float(0.0, 1.0) for i in range(20)}
RUNS = {
    "1": lambda: ordinary(1),
    "2": lambda: ordinary(2),
    "12": lambda: ordinary(12),
    "spent": lambda: pbgi.minimize(lambda p: (value_of(p), cost_of(p)), ordinary(0).space, budget=30.0, seed=0),
    "500": lambda: scattered(ordinary(0).space, 500, value_of, cost_of),
    "one": lambda: told(
        pbgi.Optimizer(ONE, budget=30, seed=0), 12, value=lambda p: (p["x"] - 0.3) ** 2, cost=lambda p: 1.0 + p["x"]
    ),
    "twenty": lambda: scattered(
        TWENTY, 60, lambda p: sum(math.sin(3 * v) * (i < 4) for i, v in enumerate(p.values())), lambda _: 2.0
    ),
    "all_failed": ODD["all failed"],
    "all_equal": ODD["constant values"],
    "noisy": lucky,
    "maximized": ODD["maximized"],
    "exchange_rate": ODD["exchange rate"],
    "wild": lambda: told(ordinary(0, budget=120.0), 20, fails=(7,), value=wild),
    "huge": ODD["huge values"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the folder")
    parser.add_argument("--only", nargs="+", choices=RUNS, default=list(RUNS))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    from browser import FLAGS
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        for name in arguments.only:
            path = write_report(RUNS[name](), arguments.out / f"{name}.html", unit="euro", title=f"Trials: {name}")
            for look, (scheme, width) in LOOKS.items():
                context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
                page = context.new_page()
                page.goto(path.as_uri())
                page.wait_for_function(DRAWN, timeout=60_000)
                page.screenshot(path=arguments.out / f"{name}_{look}.png", full_page=True)
                context.close()
            print(name, flush=True)
        browser.close()


if __name__ == "__main__":
    main()
