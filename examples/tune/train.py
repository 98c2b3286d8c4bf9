"""A small program to tune: a polynomial fitted by gradient descent, in plain Python.

It takes its settings as arguments and prints its result as the last line, in JSON. A higher degree and more epochs take
longer, and not always to a better end: that is what makes the choice worth thinking about.
"""

import argparse
import json
import math
import random


def sample(n: int, seed: int) -> list[tuple[float, float]]:
    """Noisy points of a curve."""
    rng = random.Random(seed)  # noqa: S311 (no secret)
    xs = [rng.uniform(-1.0, 1.0) for _ in range(n)]
    return [(x, math.sin(3.0 * x) + rng.gauss(0.0, 0.1)) for x in xs]


def features(x: float, degree: int) -> list[float]:
    """Chebyshev polynomials: T_k(x) = cos(k arccos x)."""
    angle = math.acos(x)
    return [math.cos(k * angle) for k in range(degree + 1)]


def error(weights: list[float], rows: list[tuple[list[float], float]]) -> float:
    """Mean squared error."""
    return sum((predict(weights, f) - y) ** 2 for f, y in rows) / len(rows)


def predict(weights: list[float], f: list[float]) -> float:
    return sum(w * v for w, v in zip(weights, f, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--degree", type=int, required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--schedule", choices=["constant", "cosine"], required=True)
    given = parser.parse_args()
    train = [(features(x, given.degree), y) for x, y in sample(60, seed=1)]
    check = [(features(x, given.degree), y) for x, y in sample(60, seed=2)]
    weights = [0.0] * (given.degree + 1)
    for epoch in range(given.epochs):
        share = 0.5 * (1.0 + math.cos(math.pi * epoch / given.epochs)) if given.schedule == "cosine" else 1.0
        for f, y in train:
            step = given.lr * share * (predict(weights, f) - y)
            weights = [w - step * v for w, v in zip(weights, f, strict=True)]
        if not all(abs(w) < 1e3 for w in weights):
            raise SystemExit(f"diverged in epoch {epoch} with lr {given.lr:g}")
    print("done")  # any other output is welcome; the last line of JSON counts
    print(json.dumps({"loss": error(weights, check), "epochs": given.epochs}))


if __name__ == "__main__":
    main()
