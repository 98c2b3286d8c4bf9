"""Writes botorch_values.json: BoTorch's Ackley, Levy and Rosenbrock at random points of the paper's domains.

Run once with an interpreter that has botorch (0.18 was used); the tests read the table and need no botorch.
"""

import json
from pathlib import Path

import numpy as np
import torch
from botorch.test_functions import Ackley, Levy, Rosenbrock

DOMAINS = {"ackley": (Ackley, -1.0, 1.0), "levy": (Levy, -10.0, 10.0), "rosenbrock": (Rosenbrock, -5.0, 10.0)}


def main() -> None:
    rng = np.random.default_rng(2024)
    table = []
    for name, (make, low, high) in DOMAINS.items():
        for dimension in (2, 4, 8, 16):
            unit = rng.random((3, dimension)).round(6)
            points = torch.tensor(low + (high - low) * unit, dtype=torch.float64)
            values = make(dim=dimension, dtype=torch.float64).evaluate_true(points)
            for x, value in zip(unit.tolist(), values.tolist(), strict=True):
                table.append({"function": name, "x": x, "value": value})
    lines = ",\n".join(json.dumps(row) for row in table)
    Path(__file__).with_name("botorch_values.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
