"""Named tuples as tables of words, and the jobs that read them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from gym_dr.compiled.flags import KERNEL
from gym_dr.compiled.structs import Job, Struct
from gym_dr.compiled.threads import Threads


class Inner(NamedTuple):
    scale: np.float32
    flag: bool
    words: npt.NDArray[np.uint64]


class Outer(NamedTuple):
    numbers: npt.NDArray[np.float64]
    turned: npt.NDArray[np.float32]
    offset: int
    inner: Inner
    ratio: float


@njit(**KERNEL)
def _fill(args, slot, chunk):
    for j in range(args.turned.shape[1]):
        args.turned[chunk, j] = args.inner.scale * np.float32(10 * chunk + j)
    args.numbers[args.offset + chunk] = args.ratio if args.inner.flag else args.numbers.shape[0]
    args.inner.words[chunk] += np.uint64(1)


def test_a_job_reads_and_writes_arrays_of_any_layout_and_numbers_of_any_kind() -> None:
    numbers, base, words = np.zeros(6), np.zeros((3, 4), np.float32), np.full(3, 2**64 - 2, np.uint64)
    turned = base[:, ::-2]  # columns 3 and 1
    args = Struct(Outer(numbers, turned, 2, Inner(np.float32(0.1), True, words), -0.25))
    Threads(1).run(Job(_fill, args.kind, "a test"), args, 3)

    def rows(column: int) -> list[Any]:
        return [np.float32(0.1) * np.float32(10 * chunk + column) for chunk in range(3)]

    assert numbers.tolist() == [0.0, 0.0, -0.25, -0.25, -0.25, 0.0]
    assert base[:, 3].tolist() == rows(0)
    assert base[:, 1].tolist() == rows(1)
    assert not base[:, [0, 2]].any()
    assert words.tolist() == [2**64 - 1] * 3


def test_numbers_are_copied_and_arrays_are_shared() -> None:
    numbers = np.zeros(1)
    values = Outer(numbers, np.zeros((1, 1), np.float32), 0, Inner(np.float32(1), False, np.zeros(1, np.uint64)), 1.0)
    args = Struct(values)
    del values
    Threads(1).run(Job(_fill, args.kind, "a test"), args, 1)
    assert numbers.tolist() == [1.0]  # its length
