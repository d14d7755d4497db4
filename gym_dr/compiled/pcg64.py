"""Each sub-environment's random stream: numpy's ``Generator(PCG64(seed))``, held as integers and advanced in place.

``streams[env]`` is six uint64: state (high, low), increment (high, low), whether half of an output is left over, and
that half. The generator is O'Neill's PCG XSL RR 128/64 (https://www.pcg-random.org). Bounded integers use Lemire's
method ("Fast random integer generation in an interval", 2019) on 32-bit halves of its output, normal numbers the
ziggurat of Marsaglia and Tsang ("The ziggurat method for generating random variables", 2000), both as in numpy.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from numba import njit
from numba.np.random import _constants as tables  # numpy's, which no public module has

from gym_dr.compiled.flags import KERNEL
from gym_dr.errors import EnvStateError

u64 = np.uint64
STATE_HIGH, STATE_LOW, INCREMENT_HIGH, INCREMENT_LOW, HAS_HALF, HALF = range(6)
STREAM = 6

_LOW_32 = u64(0xFFFFFFFF)
_32 = u64(32)
_MULTIPLIER_HIGH = u64(2549297995355413924)
_MULTIPLIER_LOW = u64(4865540595714422341)
_TO_UNIT = 1.0 / 9007199254740992.0  # 2**-53

# the ziggurat's 256 layers: inner widths in units of 2**-52, widths of such a unit, and heights
_INNER, _WIDTH, _HEIGHT = (np.array(table) for table in (tables.ki_double, tables.wi_double, tables.fi_double))
_TAIL, _INVERSE_TAIL = float(tables.ziggurat_nor_r), float(tables.ziggurat_nor_inv_r)  # where the tail begins


def seeded(seed: int) -> npt.NDArray[np.uint64]:
    """The stream (6,) of ``np.random.default_rng(seed)`` before its first draw."""
    return pack(np.random.PCG64(seed).state)


def pack(state: Any) -> npt.NDArray[np.uint64]:
    """The stream (6,) from ``Generator.bit_generator.state``.

    Raises:
        EnvStateError: It is not a PCG64, as ``numpy.random.default_rng`` makes.
    """
    if state["bit_generator"] != "PCG64":
        raise EnvStateError(
            f"Expected np_random to be a generator on PCG64, got one on {state['bit_generator']}. Use "
            "np.random.default_rng(seed), or reset(seed=...)."
        )
    mask = (1 << 64) - 1
    value, increment = state["state"]["state"], state["state"]["inc"]
    words = (value >> 64, value & mask, increment >> 64, increment & mask, state["has_uint32"], state["uinteger"])
    return np.array(words, np.uint64)


def unpack(stream: npt.NDArray[np.uint64]) -> dict[str, Any]:
    """``Generator.bit_generator.state`` from a stream (6,)."""
    high, low, increment_high, increment_low, has_half, half = (int(word) for word in stream)
    return {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": increment_high << 64 | increment_low},
        "has_uint32": has_half,
        "uinteger": half,
    }


def generator(stream: npt.NDArray[np.uint64]) -> np.random.Generator:
    """A generator in the state of a stream (6,); drawing from it does not change the stream."""
    bits = np.random.PCG64()
    bits.state = cast(Any, unpack(stream))
    return np.random.Generator(bits)


@njit(**KERNEL)
def next_word(streams, env):
    """The next 64 bits: state = state * multiplier + increment (mod 2**128), then xor and rotate."""
    high = streams[env, STATE_HIGH]
    low = streams[env, STATE_LOW]
    # low * multiplier_low to 128 bits, in halves of 32 bits
    a0 = low & _LOW_32
    a1 = low >> _32
    b0 = _MULTIPLIER_LOW & _LOW_32
    b1 = _MULTIPLIER_LOW >> _32
    p00 = a0 * b0
    p01 = a0 * b1
    p10 = a1 * b0
    middle = (p00 >> _32) + (p01 & _LOW_32) + (p10 & _LOW_32)
    product_low = (p00 & _LOW_32) | (middle << _32)
    product_high = a1 * b1 + (p01 >> _32) + (p10 >> _32) + (middle >> _32)
    product_high += high * _MULTIPLIER_LOW + low * _MULTIPLIER_HIGH
    new_low = product_low + streams[env, INCREMENT_LOW]
    carry = u64(1) if new_low < product_low else u64(0)
    new_high = product_high + streams[env, INCREMENT_HIGH] + carry
    streams[env, STATE_HIGH] = new_high
    streams[env, STATE_LOW] = new_low
    word = new_high ^ new_low
    rotation = new_high >> u64(58)
    return (word >> rotation) | (word << ((u64(64) - rotation) & u64(63)))


@njit(**KERNEL)
def _unit(streams, env):
    """``Generator.random()``, float64 in [0, 1)."""
    return np.float64(next_word(streams, env) >> u64(11)) * _TO_UNIT


@njit(**KERNEL)
def uniform(streams, env, low, width):
    """``Generator.uniform(low, low + width)``, float64."""
    return low + width * _unit(streams, env)


@njit(**KERNEL)
def standard_normal(streams, env):
    """``Generator.standard_normal()``, float64; may reject and draw again."""
    while True:
        word = next_word(streams, env)
        layer = np.int64(word & u64(0xFF))
        sign = -1.0 if (word >> u64(8)) & u64(1) else 1.0
        place = (word >> u64(9)) & u64(0x000FFFFFFFFFFFFF)
        x = np.float64(place) * _WIDTH[layer]
        if place < _INNER[layer]:  # 99 %
            return sign * x
        if layer > 0:
            height = (_HEIGHT[layer - 1] - _HEIGHT[layer]) * _unit(streams, env) + _HEIGHT[layer]
            if height < math.exp(-0.5 * x * x):
                return sign * x
            continue
        while True:
            beyond = -_INVERSE_TAIL * math.log1p(-_unit(streams, env))
            depth = -math.log1p(-_unit(streams, env))
            if depth + depth > beyond * beyond:
                return -(_TAIL + beyond) if (place >> u64(8)) & u64(1) else _TAIL + beyond


@njit(**KERNEL)
def _next_half(streams, env):
    """The next 32 bits; numpy uses the low half of an output first and keeps the high half."""
    if streams[env, HAS_HALF] != u64(0):
        streams[env, HAS_HALF] = u64(0)
        return streams[env, HALF]
    word = next_word(streams, env)
    streams[env, HAS_HALF] = u64(1)
    streams[env, HALF] = word >> _32
    return word & _LOW_32


@njit(**KERNEL)
def integer(streams, env, low, width):
    """``Generator.integers(low, low + width)`` for a ``width`` below 2**32, int64; may reject and draw again."""
    span = u64(width)
    product = _next_half(streams, env) * span
    if (product & _LOW_32) < span:
        threshold = (_LOW_32 - (span - u64(1))) % span
        while (product & _LOW_32) < threshold:
            product = _next_half(streams, env) * span
    return low + np.int64(product >> _32)
