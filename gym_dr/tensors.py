"""Torch's own defaults, which users may have changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def torch_defaults() -> Iterator[None]:
    """Torch's own defaults, for code of others in the block, which may not say what its tensors are."""
    import torch  # heavy

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
