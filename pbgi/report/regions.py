"""A parameter cut into a few regions, and which trials lie in each."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pbgi.arrays import Floats
from pbgi.display.wording import number, text
from pbgi.history import Trial
from pbgi.parameter import Categorical, Parameter, levels_of
from pbgi.report.subject import Subject

N_PIECES, MOST_LEVELS, MOST_CHOICES = 6, 8, 10
# Away from the border between two pieces, so that no level is taken for one of both.
INSIDE = 1e-9


@dataclass(frozen=True)
class Region:
    """A part of a parameter's range, in words, and the trials there."""

    words: str
    trials: tuple[Trial, ...]

    @property
    def paid(self) -> float:
        """What its trials cost, charged or held."""
        return sum(trial.charged + trial.reserved for trial in self.trials)


def regions_of(subject: Subject, name: str, trials: Iterable[Trial] | None = None) -> list[Region]:
    """The regions of a parameter, empty ones included, from its lowest values to its highest."""
    parameter = subject.parameters[name]
    inside, units = subject.coordinates(name, subject.trials if trials is None else trials)
    words = _words(parameter)
    piece = np.clip(np.floor(_stretched(parameter, units) * len(words)), 0, len(words) - 1).astype(int)
    found = [
        Region(written, tuple(trial for trial, p in zip(inside, piece, strict=True) if p == i))
        for i, written in enumerate(words)
    ]
    return _fewer(found) if isinstance(parameter, Categorical) else found


def _n_pieces(parameter: Parameter) -> int:
    """As many as there are levels, if these are few."""
    is_few = isinstance(parameter, Categorical) or parameter.n_levels <= MOST_LEVELS
    return int(parameter.n_levels) if is_few else N_PIECES


def _stretched(parameter: Parameter, units: Floats) -> Floats:
    """Coordinates in which the regions are equally wide: few levels are counted, even on a logarithmic scale."""
    if _n_pieces(parameter) != parameter.n_levels or not len(units):
        return units
    grid = _grid(parameter)
    return (np.searchsorted(grid, units - INSIDE) + 0.5) / len(grid)


def _grid(parameter: Parameter) -> Floats:
    levels = levels_of(parameter)
    return np.array([0.5]) if levels is None else levels.grid()


def _words(parameter: Parameter) -> list[str]:
    n = _n_pieces(parameter)
    if n == parameter.n_levels:
        return [text(value) for value in parameter.from_unit(_grid(parameter))]
    edges = np.linspace(0.0, 1.0, n + 1)
    low, high = parameter.from_unit(edges[:-1]), parameter.from_unit(edges[1:])
    levels = levels_of(parameter)
    if levels is not None and not isinstance(parameter, Categorical):  # the levels whose middle is in the piece
        step, middle = parameter.step or 1, levels.snap(edges)
        low = [v + step * bool(m < e) for v, m, e in zip(low, middle, edges, strict=False)]
        high = [v - step * bool(m >= e) for v, m, e in zip(high, middle[1:], edges[1:], strict=True)]
    return [_range(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def _range(low: float, high: float) -> str:
    short = [number(x, 2 if abs(x) < 10.0 else 4) for x in (low, high)]
    return short[0] if low == high else f"{short[0]} to {short[1]}"


def _fewer(regions: list[Region]) -> list[Region]:
    """The choices that took the most, in their order, and all others together."""
    if len(regions) <= MOST_CHOICES:
        return regions
    shown = set(sorted(range(len(regions)), key=lambda i: -regions[i].paid)[: MOST_CHOICES - 1])
    others = [regions[i] for i in range(len(regions)) if i not in shown]
    rest = Region(f"{len(others)} others", tuple(trial for region in others for trial in region.trials))
    return [*(regions[i] for i in sorted(shown)), rest]
