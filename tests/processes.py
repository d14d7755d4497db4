"""Processes in which tests train."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Iterator
from multiprocessing.context import ForkContext, SpawnContext

import pytest
import torch


@contextlib.contextmanager
def training_processes() -> Iterator[ForkContext | SpawnContext]:
    """How to start processes that train: they are forked, so that they have imported everything already.

    Torch computes no gradients in the fork of a process that has computed some where there is a GPU. There, processes
    are new ones that see no GPU.
    """
    if not torch.cuda.is_available():
        yield multiprocessing.get_context("fork")
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        yield multiprocessing.get_context("spawn")
