"""Take the pictures of docs/report.md anew: `python tests/report/take_report_pictures.py`; needs Playwright, Chromium.

The run is that of examples/report.py; for the stop gauge and the exchange rate it goes on until its budget is spent.
Trials that are stopped early are those of a network whose loss falls with every epoch.
"""

import math
import runpy
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import pbgi
from pbgi.report import write_report

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests"))
PLOTS = {  # by title, the names of the pictures
    "Best value against cost": "best_value",
    "What more budget is expected to buy": "outlook",
    "Where the money went": "spending",
    "Predicted cost against paid": "costs",
    "Which parameters matter": "importance",
    "Slices of the model through the best point": "slices",
    "All trials: value per cost": "parallel",
}
LATER = {
    "Stop gauge: is the next trial worth its price?": "stop_gauge",
    "Exchange rate between value and cost": "cost_scale",
}


EARLY = {"Trials that were stopped early": "stopped"}
EPOCHS = 27


def stopping_run():
    """An optimizer whose trials report after every epoch, one dollar each."""
    space = {"rate": pbgi.Float(1e-4, 1.0, log=True), "dropout": pbgi.Float(0.0, 0.5)}
    optimizer = pbgi.Optimizer(space, budget=10 * EPOCHS, steps=EPOCHS, seed=0)
    while optimizer.should_stop() is None:
        trial = optimizer.ask()
        end = 0.1 + 0.08 * math.log10(trial.params["rate"] / 0.02) ** 2 + (trial.params["dropout"] - 0.2) ** 2
        for epoch in range(1, EPOCHS + 1):
            optimizer.report(trial, epoch, end + 0.8 * 0.5 ** (epoch / 3), cost=epoch)
            if not optimizer.should_continue(trial):
                optimizer.stop(trial)
                break
    return optimizer


def main():
    from browser import FLAGS
    from PIL import Image
    from playwright.sync_api import sync_playwright

    def save(taken, name):
        picture = Image.open(taken).convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE)
        picture.save(IMAGES / f"report_{name}.png", optimize=True)

    def show(browser, path, scheme="light", width=1000, height=900):
        page = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme).new_page()
        page.goto(path.as_uri())
        drawn = "document.querySelectorAll('.plot').length === document.querySelectorAll('.plot[data-drawn]').length"
        page.wait_for_function(drawn)
        return page

    def take_plots(page, folder, names):
        for title, name in names.items():
            section = page.locator("section", has=page.get_by_role("heading", name=title, exact=True))
            section.locator(".scroll").screenshot(path=folder / f"{name}.png")
            save(folder / f"{name}.png", name)

    example = runpy.run_path(str(ROOT / "examples" / "report.py"))
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder, browser = (
            Path(made),
            playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS)),
        )
        runs = {}
        for name, stop in (("part", pbgi.MaxTrials(24)), ("whole", None)):
            result = pbgi.minimize(example["train"], example["SPACE"], budget=100, stop=stop, seed=0)
            runs[name] = write_report(result, folder / f"{name}.html", unit="dollars", title="Tuning a network")
        take_plots(show(browser, runs["part"]), folder, PLOTS)
        take_plots(show(browser, runs["whole"]), folder, LATER)
        early = write_report(stopping_run(), folder / "early.html", unit="dollars")
        take_plots(show(browser, early), folder, EARLY)
        for scheme, width in (("light", 1000), ("dark", 1000), ("dark", 390)):
            name = "phone" if width < 500 else scheme
            show(browser, runs["part"], scheme, width, 1250).screenshot(path=folder / f"{name}.png")
            save(folder / f"{name}.png", name)
        browser.close()


if __name__ == "__main__":
    main()
