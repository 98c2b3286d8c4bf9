"""A training that tells how it comes along and goes on from where it stood."""

import json
import math
import os
import random
from pathlib import Path

USUAL = '{"lr": 0.1, "decay": 0.01}'  # where it is not run by `pbgi tune`


def sample(n: int, rng: random.Random) -> list[tuple[list[float], float]]:
    """Points with five coordinates, and on which side of a plane they seem to lie."""
    points = [[1.0, *(rng.gauss(0.0, 1.0) for _ in range(4))] for _ in range(n)]
    sides = [x[1] - 2.0 * x[2] + rng.gauss(0.0, 0.5) > 0.0 for x in points]
    return [(x, 1.0 if side else -1.0) for x, side in zip(points, sides, strict=True)]


def margin(weights: list[float], x: list[float], side: float) -> float:
    return max(side * sum(w * v for w, v in zip(weights, x, strict=True)), -50.0)


def main() -> None:
    params = json.loads(os.environ.get("PBGI_PARAMS", USUAL))
    checkpoint = Path(os.environ.get("PBGI_CHECKPOINT", ".")) / "weights.json"
    done, weights = 0, [0.0] * 5
    if checkpoint.exists():
        done, weights = json.loads(checkpoint.read_text())
    rng = random.Random(0)  # noqa: S311 (no secret)
    train, check = sample(16000, rng), sample(4000, rng)
    for epoch in range(done + 1, 28):
        rate = params["lr"] / epoch
        for x, side in train:
            pull = rate * side / (1.0 + math.exp(margin(weights, x, side)))
            shrink = 1.0 - 1e-4 * rate * params["decay"]
            weights = [shrink * w + pull * v for w, v in zip(weights, x, strict=True)]
        loss = sum(math.log1p(math.exp(-margin(weights, *row))) for row in check)
        draft = checkpoint.with_suffix(".draft")
        draft.write_text(json.dumps([epoch, weights]))
        draft.replace(checkpoint)  # whole, whenever the program is ended
        print(json.dumps({"step": epoch, "loss": loss / len(check)}), flush=True)


if __name__ == "__main__":
    main()
