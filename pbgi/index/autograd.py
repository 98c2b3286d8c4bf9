"""Lets torch differentiate a closed-form computation by its closed-form derivatives, any number of times.

Imported only when a torch tensor reaches `pbgi.index`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Compute = Callable[..., tuple[Tensor, ...]]
Partials = Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], tuple[tuple[Tensor, ...], ...]]


class _Closed(torch.autograd.Function):
    """Outputs whose derivatives are formulas in the inputs and the outputs themselves.

    `backward` evaluates the formulas on the saved inputs and outputs, which are part of the graph. Its own derivative
    is therefore again a call of `backward`: no order of differentiation is special.
    """

    @staticmethod
    def forward(ctx: Any, compute: Compute, partials: Partials, *inputs: Tensor) -> tuple[Tensor, ...]:
        outputs = compute(*inputs)
        ctx.partials = partials
        ctx.n_inputs = len(inputs)
        ctx.save_for_backward(*inputs, *outputs)
        return outputs

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        jacobian = ctx.partials(saved[: ctx.n_inputs], saved[ctx.n_inputs :])
        grads = (
            sum((g * d for g, d in zip(grad_outputs, column, strict=True)), torch.zeros_like(column[0]))
            for column in zip(*jacobian, strict=True)
        )
        return None, None, *grads


def closed(compute: Compute, partials: Partials, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Run `compute(*inputs)` so that torch differentiates it with `partials`.

    Args:
        compute: Maps the inputs, all of one shape, to a tuple of outputs of that shape, elementwise.
        partials: Maps `(inputs, outputs)` to one row per output: its partial derivative in each input.
        *inputs: Tensors of one shape, dtype and device.

    Returns:
        The outputs, differentiable any number of times as long as `partials` uses differentiable operations.
    """
    outputs: tuple[Tensor, ...] = _Closed.apply(compute, partials, *inputs)  # type: ignore[no-untyped-call]
    return outputs


def through_numpy(compute: Callable[..., tuple[Any, ...]]) -> Compute:
    """A computation on arrays as one on tensors, for `closed`; one copy each way where they are not in main memory."""

    def run(*tensors: Tensor) -> tuple[Tensor, ...]:
        arrays = torch.stack(tensors).detach().cpu().numpy()
        return torch.from_numpy(np.stack(compute(*arrays))).to(tensors[0].device).unbind()

    return run


class _Once(torch.autograd.Function):
    """One output per box of several inputs per box, computed together with its first derivatives."""

    @staticmethod
    def forward(ctx: Any, compute: Callable[..., tuple[Any, ...]], *inputs: Tensor) -> Tensor:
        like = inputs[0]
        wanted = any(ctx.needs_input_grad)
        arrays = [x.detach().to("cpu", torch.float64).numpy() for x in inputs]
        output, *slopes = (torch.as_tensor(x).to(like) for x in compute(*arrays, with_slopes=wanted))
        ctx.save_for_backward(*slopes)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        return None, *(grad_output[..., None] * slope for slope in ctx.saved_tensors)


def once(compute: Callable[..., tuple[Any, ...]], *inputs: Tensor) -> Tensor:
    """Run `compute(*arrays, with_slopes=...)`, which also returns its slopes in each input, so that torch uses these.

    Args:
        compute: Maps arrays (*batch, n) to an output (*batch) and, if asked for, one slope (*batch, n) per input.
        *inputs: Tensors of one shape, dtype and device.

    Returns:
        The output, differentiable once.
    """
    output: Tensor = _Once.apply(compute, *inputs)  # type: ignore[no-untyped-call]
    return output
