"""What one trial has cost so far, over all its attempts; and how far it has come.

A trial reports a total that grows: its seconds (`time_total_s`) or a metric of the user's. Ray may run it again, after
a node was lost or a scheduler paused it, and then the total begins at 0, or where the last checkpoint was. What was
paid between that point and the last report before is paid twice; it is lost, and counts.

    attempt 1    0 ---- 3 ---- 6 (its node dies)
    attempt 2                       3 (from a checkpoint) ---- 8          latest 8, lost 6 - 3, in all 11
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pbgi.checks import check_cost, unboxed
from pbgi.errors import InvalidInputError
from pbgi.serialization import require_fields

SECONDS = "time_total_s"
STEP = "training_iteration"
# Names under which Ray says how long an attempt has been going on, in seconds and in reports.
ATTEMPT_SECONDS, ATTEMPT_REPORTS = "time_since_restore", "iterations_since_restore"
FIELDS = ("latest", "lost", "seconds")


@dataclass(frozen=True)
class Meter:
    """What one trial has cost so far.

    Attributes:
        latest: The total that it reported last; None if it has reported none.
        lost: What attempts that came to nothing have cost beside that.
        seconds: Those of the last report, by which it is known again.
    """

    latest: float | None = None
    lost: float = 0.0
    seconds: float | None = None

    @property
    def total(self) -> float | None:
        """All of it; None if nothing is known."""
        return None if self.latest is None else self.latest + self.lost

    def read(self, result: Mapping[str, Any], name: str) -> "Meter":
        """The meter after a report. A cost that is not a positive, finite number says nothing."""
        seconds, cost = _cost(result.get(SECONDS)), _cost(result.get(name))
        if cost is None:
            return replace(self, seconds=seconds)
        # The last report of a trial may come twice.
        if self.latest is None or (cost, seconds) == (self.latest, self.seconds):
            return Meter(cost, self.lost, seconds)
        is_new_attempt = result.get(ATTEMPT_REPORTS) == 1 or cost < self.latest
        begun_at = _begun_at(result, name, cost, self.latest) if is_new_attempt else self.latest
        return Meter(cost, self.lost + max(self.latest - begun_at, 0.0), seconds)

    def to_plain(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def from_plain(cls, where: str, data: Any) -> "Meter":
        """The meter that `to_plain` wrote."""
        require_fields(where, data, FIELDS)
        latest, lost, seconds = (data[name] for name in FIELDS)
        if type(lost) is not float or not 0.0 <= lost < math.inf:
            raise InvalidInputError(f"lost of {where} must be a number that is not negative; got {lost!r}")
        return cls(check_cost(latest, f"latest of {where}"), lost, check_cost(seconds, f"seconds of {where}"))


def _cost(reported: Any) -> float | None:
    try:
        return check_cost(reported)
    except InvalidInputError:
        return None


def _begun_at(result: Mapping[str, Any], name: str, cost: float, latest: float) -> float:
    """The total at which an attempt began: 0 unless it went on from a checkpoint.

    Ray says it of its seconds. A metric of the user's that has not fallen went on from where it was; of one that has,
    as large a share is taken to be from before the checkpoint as of the seconds.
    """
    seconds, fresh = _cost(result.get(SECONDS)), result.get(ATTEMPT_SECONDS)
    if seconds is None or not isinstance(fresh, int | float) or fresh >= seconds:
        return 0.0
    return latest if name != SECONDS and cost >= latest else cost * (1.0 - fresh / seconds)


def step_of(result: Mapping[str, Any], name: str) -> int | None:
    """How far a trial says that it has come; None if it does not say, or has not begun.

    Raises:
        InvalidInputError: What it reports under that name is no whole number.
    """
    step: Any = unboxed(result.get(name))
    if step is None:
        return None
    if isinstance(step, bool) or not isinstance(step, int | float) or step != math.floor(step):
        raise InvalidInputError(f"trials must report whole numbers as {name!r}; got {step!r}")
    return int(step) if step > 0 else None
