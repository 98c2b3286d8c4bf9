"""What a run says besides its result: warnings at the caller's line, and Python's logging under `pbgi.run`."""

import inspect
import logging
import warnings

LOG = logging.getLogger("pbgi.run")
# Whoever wants the log configures it; without a handler of our own Python would print every failure to stderr.
logging.getLogger("pbgi").addHandler(logging.NullHandler())


def warn(message: str) -> None:
    """Warn at the line that called this package."""
    depth, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == __name__.partition(".")[0]:
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, RuntimeWarning, stacklevel=depth)
