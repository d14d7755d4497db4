"""Random streams in compiled code against numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from gym_dr.compiled import pcg64
from gym_dr.compiled.flags import ENTRY


@njit(**ENTRY)
def draw_integers(streams: Any, low: int, width: int, out: Any) -> None:
    for i in range(out.size):
        out[i] = pcg64.integer(streams, 0, low, width)


@njit(**ENTRY)
def draw_uniforms(streams: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = pcg64.uniform(streams, 0, -1.0, 2.0)


@njit(**ENTRY)
def draw_normals(streams: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = pcg64.standard_normal(streams, 0)


@pytest.mark.parametrize("width", [19998, 1, 2**31 + 1, 3_000_000_000], ids=lambda w: f"width {w}")
def test_the_random_stream_is_numpys_with_rejections_and_leftover_halves(width: int) -> None:
    # widths above 2**31 reject a good part of the draws, which leaves half of an output behind every other time
    generator, streams = np.random.default_rng(123), pcg64.seeded(123)[None].copy()
    for count in (1, 2, 501, 1000):
        integers, uniforms = np.zeros(count, np.int64), np.zeros(count)
        draw_integers(streams, -9999, width, integers)
        draw_uniforms(streams, uniforms)
        if width > 1:  # numpy draws nothing for one possible value
            assert (integers == [generator.integers(-9999, -9999 + width) for _ in range(count)]).all()
        else:
            return
        assert (uniforms == generator.uniform(-1.0, 1.0, count)).all()
    assert pcg64.unpack(streams[0]) == generator.bit_generator.state
    assert (pcg64.pack(generator.bit_generator.state) == streams[0]).all()


def test_normal_numbers_are_numpys_with_rejections_and_the_tail() -> None:
    # of a million, 1.2 % leave the first rectangle, and 258 lie beyond 3.654, where the tail begins
    generator, streams, found = np.random.default_rng(8), pcg64.seeded(8)[None].copy(), np.zeros(1_000_000)
    draw_normals(streams, found)
    expected = generator.standard_normal(len(found))
    assert (abs(expected) > 3.6542).sum() > 200
    assert found.tobytes() == expected.tobytes()
    assert pcg64.unpack(streams[0]) == generator.bit_generator.state
