"""`pbgi boxes FILE`: a Pandora's Box problem in TOML, solved exactly.

budget = 400.0                  # or cost_scale = 0.1; neither: one unit of cost is worth one of prize

[[box]]
name = "Steady & Sons"
cost = 90.0
reward = { gaussian = [62.0, 4.0] }                     # mean and standard deviation

[[box]]
cost = 180.0
reward = { values = [20.0, 105.0], probabilities = [0.8, 0.2] }

[[box]]
cost = 60.0
reward = { samples = [48.0, 57.0, 61.0] }               # each as likely as the next

[[box]]
cost = { gamma = { a = 2.0, scale = 0.1 } }             # a random cost counts by its mean
reward = { lognorm = { s = 0.45, scale = 50.0 } }       # any distribution of scipy.stats, by its name
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from pbgi.cli.toml_file import TomlFile
from pbgi.errors import InvalidInputError
from pbgi.pandora import Box, Discrete, Game, Gaussian, Solution, solve

_KEYS, _BOX_KEYS = ("budget", "cost_scale", "box"), ("name", "cost", "reward")


def solve_file(path: Path, *, budget: float | None = None, play: int | None = None) -> dict[str, Any]:
    """The solution of the problem in a file, as JSON.

    Args:
        path: The TOML file.
        budget: Instead of the file's.
        play: Also play a game with this seed.

    Raises:
        JobError: The file breaks a rule; the message has the line and the key.
    """
    if play is not None and play < 0:
        raise InvalidInputError(f"--play must be a seed, a whole number that is not negative; got {play}")
    file = TomlFile.read(path)
    _require_known(file, (), file.data, _KEYS)
    entries = file.data.get("box")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise file.error(("box",), "there must be at least one [[box]] with a cost and a reward")
    boxes = [_box(file, i, entry) for i, entry in enumerate(entries)]
    names = [entry.get("name", f"box {i}") for i, entry in enumerate(entries)]
    limits = {key: file.data[key] for key in ("budget", "cost_scale") if key in file.data}
    if budget is not None:
        limits = {"budget": budget}
    try:
        solution = solve(boxes, **limits)
    except (InvalidInputError, TypeError) as error:
        raise file.error(tuple(limits)[:1], str(error)) from None
    record = solution_record(solution, names)
    if play is not None:
        record["game"] = _game_record(solution.play(np.random.default_rng(play)), names)
    return record


def solution_record(solution: Solution, names: list[str]) -> dict[str, Any]:
    """A solution as JSON: the boxes in the order of opening."""
    order = [int(box) for box in solution.order]
    return {
        "order": [
            {
                "box": box,
                "name": names[box],
                "cost": solution.boxes[box].expected_cost,
                "index": _finite(float(solution.indices[box])),
            }
            for box in order
        ],
        "value": solution.value,
        "spend": solution.spend,
        "net": solution.net,
        "cost_scale": solution.cost_scale,
        "go_on_probability": solution.go_on_probability,
        "slack": solution.slack,
    }


def _finite(index: float) -> float | None:
    """JSON knows no infinity: where money is no object, a prize without bound has no finite index."""
    return index if math.isfinite(index) else None


def _game_record(game: Game, names: list[str]) -> dict[str, Any]:
    openings = [{"box": o.box, "name": names[o.box], "reward": o.reward, "cost": o.cost} for o in game.openings]
    return {"openings": openings, "best": game.best, "spent": game.spent, "stop_reason": game.stop_reason}


def _box(file: TomlFile, number: int, entry: Mapping[str, Any]) -> Box:
    keys = ("box", number)
    _require_known(file, keys, entry, _BOX_KEYS)
    for key in ("cost", "reward"):
        if key not in entry:
            raise file.error(keys, f"needs a {key}")
    if not isinstance(entry.get("name", ""), str):
        raise file.error((*keys, "name"), f"must be a text; got {entry['name']!r}")
    cost = entry["cost"] if not isinstance(entry["cost"], Mapping) else _prize(file, (*keys, "cost"), entry["cost"])
    reward = _prize(file, (*keys, "reward"), entry["reward"])
    try:
        return Box(reward, cost)
    except (InvalidInputError, TypeError, ValueError, OverflowError) as error:
        raise file.error(keys, str(error)) from None


def _prize(file: TomlFile, keys: tuple[str | int, ...], entry: Any) -> Any:
    """What is written as a prize or a random cost."""
    try:
        return _distribution(entry)
    except (InvalidInputError, TypeError, ValueError, OverflowError) as error:
        raise file.error(keys, str(error)) from None


def _distribution(entry: Any) -> Any:
    if not isinstance(entry, Mapping):
        raise InvalidInputError(f"must be a table such as {{ gaussian = [0.0, 1.0] }}; got {entry!r}")
    if set(entry) == {"gaussian"}:
        return Gaussian(*entry["gaussian"])
    if set(entry) == {"samples"}:
        return entry["samples"]
    if set(entry) == {"values", "probabilities"}:
        return Discrete(entry["values"], entry["probabilities"])
    if len(entry) != 1:
        raise InvalidInputError(f"must name one distribution; got {sorted(entry)}")
    ((name, arguments),) = entry.items()
    family = getattr(stats, name, None)
    if not isinstance(family, stats.rv_continuous | stats.rv_discrete):
        known = "gaussian, samples, values with probabilities, or a distribution of scipy.stats"
        raise InvalidInputError(f"must be {known}; got {name!r}")
    return family(**arguments) if isinstance(arguments, Mapping) else family(*arguments)


def _require_known(
    file: TomlFile, keys: tuple[str | int, ...], table: Mapping[str, Any], known: tuple[str, ...]
) -> None:
    for key in table:
        if key not in known:
            raise file.error((*keys, key), f"no such key; there are {', '.join(known)}")
