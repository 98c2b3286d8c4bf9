"""What is kept of results: one summary per curve, in files from which every table and every figure is made.

Raw results are too large to keep; `results/runs/` holds the runs condensed (`paper.condensed`), and
`results/<experiment>.json` statistics over seeds on the paper's grid. Numbers are rounded to six significant digits,
keys are sorted, and a list stays on one line, so that a new run shows as a small difference.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from paper.curves import Band
from paper.reference import Panel, Quantity
from pbgi.arrays import Floats

RESULTS = Path(__file__).parent / "results"
DIGITS = 6


@dataclass(frozen=True, eq=False)
class CurveSummary:
    """One policy on one panel over its seeds.

    Attributes:
        experiment: The experiment that ran it.
        panel: The plot it belongs to.
        policy: As the reference names it.
        variant: "as_published" or "as_described" in the paper.
        quantity: "regret" or "best".
        grid: Amounts spent.
        step: Statistics of the best value so far, as it was.
        linear: The same with straight lines between evaluations, as published.
        seeds: Sorted.
        wall_seconds: Of all its runs together.
        suggest_seconds: Median over all suggestions of all seeds.
        iterations: Grid of `seconds`; empty unless the paper's timing figure has this panel.
        seconds: Statistics of seconds per suggestion.
    """

    experiment: str
    panel: Panel
    policy: str
    variant: str
    quantity: Quantity
    grid: Floats
    step: Band
    linear: Band
    seeds: tuple[int, ...]
    wall_seconds: float
    suggest_seconds: float
    iterations: Floats
    seconds: Band | None

    @property
    def n_seeds(self) -> int:
        """How many runs it stands for."""
        return len(self.seeds)

    @property
    def key(self) -> tuple[Panel, str, str]:
        """What makes two summaries of an experiment the same curve."""
        return self.panel, self.policy, self.variant


def merge(old: Iterable[CurveSummary], new: Iterable[CurveSummary]) -> list[CurveSummary]:
    """Both, where a curve with more seeds replaces one with fewer; of equals the new one stays."""
    merged = {curve.key: curve for curve in old}
    for curve in new:
        if curve.key not in merged or curve.n_seeds >= merged[curve.key].n_seeds:
            merged[curve.key] = curve
    return [merged[key] for key in sorted(merged)]


def best_of_panel(
    curves: Iterable[CurveSummary], panel: Panel, variant: str = "as_published"
) -> dict[str, CurveSummary]:
    """The curve to show for each policy of a panel, that with most seeds.

    Where the paper's text and its figures agree there are only runs "as_published"; they serve for both variants.
    """
    chosen: dict[str, CurveSummary] = {}
    for curve in sorted(curves, key=lambda c: (c.variant == variant, c.n_seeds)):
        if curve.panel == panel and curve.variant in (variant, "as_published"):
            chosen[curve.policy] = curve
    return chosen


def rounded(x: Any) -> Any:
    """Numbers with six significant digits, in lists and mappings too; null stands for "not a number"."""
    if isinstance(x, Mapping):
        return {key: rounded(value) for key, value in x.items()}
    if isinstance(x, list | tuple | np.ndarray):
        return [rounded(value) for value in x]
    if isinstance(x, float):
        return float(f"{x:.{DIGITS}g}") if math.isfinite(x) else None
    return x


def _to_json(curve: CurveSummary) -> dict[str, Any]:
    data = {field.name: getattr(curve, field.name) for field in fields(CurveSummary)}
    for name in ("step", "linear", "seconds"):
        data[name] = None if data[name] is None else dict(vars(data[name]))
    data["panel"] = curve.panel._asdict()
    data["n_seeds"] = curve.n_seeds
    return dict(rounded(data))


def _array(numbers: Iterable[float | None]) -> Floats:
    return np.array([math.nan if number is None else number for number in numbers], dtype=np.float64)


def _from_json(data: Mapping[str, Any]) -> CurveSummary:
    own = dict(data)
    for name in ("step", "linear", "seconds"):
        own[name] = None if own[name] is None else Band(**{key: _array(part) for key, part in own[name].items()})
    own["panel"] = Panel(**own["panel"])
    own["suggest_seconds"] = math.nan if own["suggest_seconds"] is None else own["suggest_seconds"]
    return CurveSummary(
        **(own | {name: _array(own[name]) for name in ("grid", "iterations")} | {"seeds": tuple(own["seeds"])})
    )


def _lines(x: Any, indent: str = "") -> str:
    """JSON with a line per entry of a mapping and lists on one line: a changed curve is a few changed lines."""
    if not isinstance(x, dict) or not x:
        return json.dumps(x, allow_nan=False)
    inner = indent + " "
    entries = (f"{inner}{json.dumps(key)}: {_lines(x[key], inner)}" for key in sorted(x))
    return "{\n" + ",\n".join(entries) + f"\n{indent}}}"


def write_summaries(curves: Iterable[CurveSummary], folder: Path = RESULTS) -> list[Path]:
    """Write one file per experiment, merged with what is there; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    by_experiment: dict[str, list[CurveSummary]] = defaultdict(list)
    for curve in curves:
        by_experiment[curve.experiment].append(curve)
    paths = []
    for experiment, own in sorted(by_experiment.items()):
        path = folder / f"{experiment}.json"
        both = merge(_read_file(path) if path.exists() else [], own)
        named = {f"{c.panel.name} | {c.policy} | {c.variant}": _to_json(c) for c in both}
        path.write_text(_lines({"experiment": experiment, "curves": named}) + "\n", encoding="utf-8")
        paths.append(path)
    return paths


def _read_file(path: Path) -> list[CurveSummary]:
    curves = json.loads(path.read_text(encoding="utf-8"))["curves"]
    return [_from_json({k: v for k, v in data.items() if k != "n_seeds"}) for data in curves.values()]


def read_summaries(folder: Path = RESULTS) -> list[CurveSummary]:
    """All summaries of a folder."""
    return [curve for path in sorted(folder.glob("*.json")) for curve in _read_file(path)]
