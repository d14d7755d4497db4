"""What tensors are, whatever torch's defaults are, which users may set."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

PLAIN: dict[str, Any] = {"dtype": torch.float32, "device": "cpu"}


@contextlib.contextmanager
def torch_defaults() -> Iterator[None]:
    """Torch's own defaults, for code of others in the block, which may not say what its tensors are."""
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    torch.set_default_dtype(torch.float32)
    try:
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            # the context of a device makes each call of torch slower
            contextlib.nullcontext() if device.type == "cpu" else torch.device("cpu"),
        ):
            yield
    finally:
        torch.set_default_dtype(dtype)
