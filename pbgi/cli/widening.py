"""Whether the parameters of a job are those of its study, or wider: then all its trials are points of the job's space.

Ranges may grow. Choices may not: Optuna, which keeps the trials, lets nobody add one.
"""

from pbgi.parameter import STEP_ROUNDING, Float, Integer, Parameter
from pbgi.plain import Value
from pbgi.space import Space


def holds_all_of(new: Space, old: Space) -> bool:
    """Whether every point of the old space is one of the new, of the same kind."""
    if new.parameters.keys() != old.parameters.keys():
        return False
    return all(_holds(new.parameters[name], parameter) for name, parameter in old.parameters.items())


def _holds(new: Parameter | Value, old: Parameter | Value) -> bool:
    if isinstance(new, Float) and isinstance(old, Float):
        same = (new.log, new.step) == (old.log, old.step) and new.low <= old.low and old.high <= new.high
        return same and (new.step is None or _is_whole((old.low - new.low) / new.step))
    if isinstance(new, Integer) and isinstance(old, Integer):
        same = (new.log, new.step) == (old.log, old.step) and (old.low - new.low) % new.step == 0
        return same and new.low <= old.low and old.high <= new.high
    return type(new) is type(old) and new == old


def _is_whole(steps: float) -> bool:
    return abs(steps - round(steps)) <= STEP_ROUNDING
