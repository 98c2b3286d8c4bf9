"""What the functions of the index take and give: arrays or tensors of one kind, dtype and shape, checked."""

import math
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pbgi.errors import InvalidInputError

Array: TypeAlias = Any
"""A NumPy array or a torch tensor: whatever came in comes out."""

LOG_COST_RULE = "finite, that is, the logarithm of a positive, finite cost times a positive, finite cost_scale"


class Backend(NamedTuple):
    """The module whose functions apply (`numpy` or `torch`), what it calls erfcx, and its largest number."""

    xp: Any
    erfcx: Callable[[Array], Array]
    largest: float


def prepare(**arguments: Array) -> tuple[Backend, tuple[Array, ...]]:
    """Turn the arguments into arrays of one kind, dtype and shape."""
    given = tuple(arguments.values())
    if all(type(x) is np.ndarray and x.dtype == np.float64 and x.shape == given[0].shape for x in given):
        return numpy_backend(), given
    backend, arrays = alike(**arguments)
    if all(x.shape == arrays[0].shape for x in arrays):
        return backend, arrays
    shapes = {name: tuple(x.shape) for name, x in zip(arguments, arrays, strict=True)}
    shape = common_shape(shapes)
    return backend, tuple(backend.xp.broadcast_to(x, shape) for x in arrays)


def alike(**arguments: Array) -> tuple[Backend, tuple[Array, ...]]:
    """Turn the arguments into arrays of one kind and dtype."""
    torch = sys.modules.get("torch")
    if torch is not None and any(isinstance(x, torch.Tensor) for x in arguments.values()):
        backend, arrays = _as_tensors(torch, arguments)
        return backend, tuple(arrays)
    return numpy_backend(), tuple(_as_float64(name, x) for name, x in arguments.items())


def common_shape(shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The shape to which arrays of these shapes broadcast; the names are for the error."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise InvalidInputError(f"shapes must broadcast against each other; got {listed}") from None


@cache
def numpy_backend() -> Backend:
    """NumPy as a backend."""
    # Imported late: scipy.special takes three times as long to import as the rest of the package.
    from scipy import special

    return Backend(np, special.erfcx, float(np.finfo(np.float64).max))


def _as_float64(name: str, x: Array) -> Array:
    try:
        array = np.asarray(x)
    except ValueError:  # a ragged list
        array = np.asarray(None)
    if array.dtype.kind not in "iuf":
        raise InvalidInputError(f"{name} must be a real number or an array of them; got {x!r}")
    return array.astype(np.float64, copy=False)


def _as_tensors(torch: Any, arguments: dict[str, Array]) -> tuple[Backend, list[Array]]:
    """Bring all arguments to the widest float dtype and the device of the tensors among them."""
    tensors = {name: x for name, x in arguments.items() if isinstance(x, torch.Tensor)}
    for name, x in tensors.items():
        if x.dtype not in (torch.float32, torch.float64):
            raise InvalidInputError(f"{name} must be a float32 or float64 tensor; got dtype {x.dtype}")
    devices = {x.device for x in tensors.values()}
    if len(devices) > 1:
        raise InvalidInputError(f"tensors must be on one device; got {', '.join(sorted(map(str, devices)))}")
    dtype = torch.float64 if any(x.dtype == torch.float64 for x in tensors.values()) else torch.float32
    place = {"dtype": dtype, "device": devices.pop()}
    arrays = [
        x.to(**place) if name in tensors else torch.as_tensor(_as_float64(name, x), **place)
        for name, x in arguments.items()
    ]
    return Backend(torch, torch.special.erfcx, torch.finfo(dtype).max), arrays


def require_finite(name: str, x: Array, backend: Backend, rule: str = "finite", least: float = -math.inf) -> None:
    """Raise unless all of x is finite and at least `least`, showing the first value that breaks the rule."""
    # On small arrays a sum of squares takes a fifth of the time of a comparison; that it overflows proves nothing.
    if backend.xp is np and x.size and math.isfinite(np.vdot(x, x)) and (least == -math.inf or x.min() >= least):
        return
    holds = backend.xp.isfinite(x) & (x >= least)
    if bool(holds.all()):
        return
    position = int((~holds).reshape(-1).nonzero()[0][0])
    value = x.reshape(-1)[position].item()
    where = f" at {tuple(map(int, np.unravel_index(position, tuple(x.shape))))}" if x.ndim else ""
    raise InvalidInputError(f"{name} must be {rule}; got {value}{where}")


def finish(x: Array) -> Array:
    """NumPy scalars for scalar input, as NumPy's own functions return; tensors as they are."""
    return x[()] if isinstance(x, np.ndarray) else x
