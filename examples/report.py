"""A search and its report: one HTML page with the result in words, the plots and all trials.

A network is tuned within a budget of dollars. Large batches in deep networks run out of memory, which costs money too.

    python examples/report.py --out report.html
"""

import argparse
import math
import warnings
from pathlib import Path

import pbgi

SPACE = {
    "rate": pbgi.Float(1e-5, 1e-1, log=True),
    "layers": pbgi.Integer(1, 12),
    "batch": pbgi.Integer(16, 256, log=True),
    "schedule": pbgi.Categorical(["constant", "cosine", "linear"]),
}


def train(params: dict) -> tuple[float, float]:
    """The loss of a network, and what training it costs; formulas stand for both."""
    layers, batch = params["layers"], params["batch"]
    if layers > 7 and batch > 128:
        raise MemoryError(f"{layers} layers with batches of {batch} do not fit")
    loss = 0.3 / layers + 0.1 * (math.log10(params["rate"]) + 2.5) ** 2 + 0.02 * abs(math.log2(batch / 64))
    return loss + 0.05 * (params["schedule"] == "constant"), 0.3 * layers * (1.0 + batch / 256)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a search and write a report on it.")
    parser.add_argument("--budget", type=float, default=100.0, help="dollars")
    parser.add_argument(
        "--trials", type=int, default=24, help="the most trials; what is left of the budget is forecast"
    )
    parser.add_argument("--out", type=Path, default=Path("report.html"))
    args = parser.parse_args()
    try:
        from pbgi.report import write_report
    except ImportError as error:
        raise SystemExit(str(error)) from None
    warnings.filterwarnings("ignore", "trial .* failed and is charged")
    result = pbgi.minimize(train, SPACE, budget=args.budget, stop=pbgi.MaxTrials(args.trials), seed=0)
    written = write_report(result, args.out, unit="dollars", title="Tuning a network")
    print(f"Best loss {result.fun:.4f} after {result.spent:.2f} dollars; {written} says the rest.")


if __name__ == "__main__":
    main()
