"""Torch's optimizers without torch's compiler, whose import takes nearly as long as that of all else.

Torch excludes the methods of optimizers from ``torch.compile`` with a decorator that imports the compiler at the first
call. gym_dr compiles no torch code, so its optimizers have these methods without the decorator. In CUDA builds of
torch, the compiler also imports Triton, which causes a segmentation fault if a robot has been rendered in software
before (Triton 3.7, Mesa 22): both contain a copy of LLVM.
"""

from __future__ import annotations

import inspect
from typing import TypeVar, cast

import torch

from gym_dr.tensors import torch_defaults

OptimizerClass = TypeVar("OptimizerClass", bound=type[torch.optim.Optimizer])

_MARKED = ("add_param_group", "state_dict", "load_state_dict", "zero_grad")


def without_compiler(optimizer: OptimizerClass) -> OptimizerClass:
    """A subclass of an optimizer with the same results that imports no compiler; it cannot be pickled."""
    methods = {name: inspect.unwrap(getattr(optimizer, name)) for name in _MARKED}
    # the removed decorator also turns gradients off; some make their state with torch's defaults
    step = torch_defaults()(torch.no_grad()(inspect.unwrap(optimizer.step)))
    return cast(OptimizerClass, type(optimizer.__name__, (optimizer,), {**methods, "step": step}))
