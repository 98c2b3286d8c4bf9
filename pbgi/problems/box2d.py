"""Box2D, the physics of both simulators: an optional dependency, imported when a simulator is made."""

import sys
import warnings
from importlib import import_module
from typing import Any

from pbgi.errors import MissingPackageError


def import_with_box2d(module: str, problem: str) -> Any:
    """The module, after Box2D.

    Box2D's bindings cannot bear warnings as errors: Python's about their types ends the process with a segmentation
    fault. So warnings are off while they are imported for the first time.

    Raises:
        MissingPackageError: One of the two is not installed; says what to install for the problem.
    """
    try:
        if not sys.modules.get("Box2D"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                import_module("Box2D")
        return import_module(module)
    except ImportError as error:
        raise MissingPackageError(f"{problem} needs a simulator: pip install 'gymnasium[box2d]'") from error
