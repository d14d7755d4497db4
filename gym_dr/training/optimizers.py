"""Torch's optimizers without torch's compiler, whose import takes nearly as long as that of the rest.

The methods of torch's optimizers are marked as not for ``torch.compile``, and mark themselves when they are first
called, for which they import it. Trainers compile no torch, so their optimizers have these methods without the marks.
With the CUDA builds of torch, the compiler brings Triton along, which ends the process with a segmentation fault if a
picture of a robot has been rendered in software before (Triton 3.7, Mesa 22): both have a copy of LLVM.
"""

from __future__ import annotations

import inspect
from typing import TypeVar, cast

import torch

OptimizerClass = TypeVar("OptimizerClass", bound=type[torch.optim.Optimizer])

_MARKED = ("add_param_group", "state_dict", "load_state_dict", "zero_grad")


def without_compiler(optimizer: OptimizerClass) -> OptimizerClass:
    """A subclass of an optimizer that computes the same and imports no compiler; it cannot be pickled."""
    methods = {name: inspect.unwrap(getattr(optimizer, name)) for name in _MARKED}
    step = torch.no_grad()(inspect.unwrap(optimizer.step))  # the mark of this one turns gradients off too
    return cast(OptimizerClass, type(optimizer.__name__, (optimizer,), {**methods, "step": step}))
