"""What is known already: results of an earlier run, taken where they fit the space of this one.

    a parameter that the earlier run did not have     takes the value that the user gives it, or its fixed value
    a parameter that only the earlier run had         must be told to be ignored, or have had one value in all trials
    a value outside the space                         leaves the trial out

Whatever is taken informs, and is not charged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pbgi.checks import checks_arguments, set_fields
from pbgi.errors import InvalidInputError
from pbgi.history import Trial, TrialState
from pbgi.parameter import Parameter
from pbgi.serialization import Value
from pbgi.space import Space


@checks_arguments
@dataclass(frozen=True)
class WarmStart:
    """Trials of an earlier run, and how their points become points of another space.

    Args:
        trials: The trials; those with a value count.
        filled: Values of parameters that the earlier run did not have: what its program did.
        ignored: Names of parameters that only the earlier run had, and that make no difference.
    """

    trials: Iterable[Trial]
    filled: Mapping[str, Value] = field(default_factory=dict, hash=False)
    ignored: Iterable[str] = ()

    def __post_init__(self) -> None:
        trials = tuple(self.trials)
        if not all(isinstance(trial, Trial) for trial in trials):
            raise InvalidInputError(f"trials of a warm start must be pbgi.Trial; got {self.trials!r}")
        if isinstance(self.ignored, str):
            raise InvalidInputError(f"ignored must be a list of names; got {self.ignored!r}")
        set_fields(self, trials=trials, filled=dict(self.filled), ignored=tuple(self.ignored))

    def fitting(self, space: Space) -> tuple[Trial, ...]:
        """The trials with a value whose points lie in a space, as observations from elsewhere.

        Raises:
            InvalidInputError: A value that is to be filled in, or a name to be ignored, does not go with the space.
        """
        self._require_sense(space)
        done = [trial for trial in self.trials if trial.state is TrialState.COMPLETE]
        points = [self._point(space, trial.params, self._constants(done)) for trial in done]
        return tuple(
            replace(t, params=point, external=True, record={}, predicted_cost=None, charge=None)
            for t, point in zip(done, points, strict=True)
            if point is not None
        )

    def _require_sense(self, space: Space) -> None:
        for name, value in self.filled.items():
            if name not in space.parameters:
                raise InvalidInputError(f"filled must name parameters of the space; got {name!r}")
            found = space.parameters[name]
            if isinstance(found, Parameter):
                found.check(value)
        in_space = [name for name in self.ignored if name in space.parameters]
        if in_space:
            raise InvalidInputError(f"ignored must name parameters that the space does not have; got {in_space[0]!r}")

    @staticmethod
    def _constants(done: Iterable[Trial]) -> frozenset[str]:
        """Parameters that all of the trials have, with one value."""
        seen = [trial.params for trial in done]
        return frozenset(
            name for name in (seen[0] if seen else ()) if all(name in p and p[name] == seen[0][name] for p in seen)
        )

    def _point(self, space: Space, params: Mapping[str, Value], constants: frozenset[str]) -> dict[str, Value] | None:
        """The point of the space; None if there is none."""
        extra = params.keys() - space.parameters.keys()
        if extra - set(self.ignored) - constants:
            return None
        fixed = {name: found for name, found in space.parameters.items() if not isinstance(found, Parameter)}
        own = {name: value for name, value in params.items() if name in space.parameters}
        try:
            return space.check({**fixed, **self.filled, **own})
        except InvalidInputError:
            return None
