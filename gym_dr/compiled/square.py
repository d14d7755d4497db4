"""``x ** 2`` as the C library computes it, without branches.

Python and numpy square with the C library's ``pow``, whose result is not the nearest number in one case of a thousand.
This follows the method of glibc 2.28 and later (from ARM's Optimized Routines, MIT license, which are also the source
of the coefficients), operation by operation: a logarithm with 68 bits, doubled, and its exponential.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, types
from numba.extending import intrinsic

from gym_dr.arrays import Array
from gym_dr.compiled.fused import multiply_add
from gym_dr.compiled.options import INLINE

_PARTS = 128  # of an octave, in both tables
_MANTISSA = 52  # bits
_LOWEST = 0x3FE6955500000000  # bits of the number, near sqrt(1/2), at which the octave of the logarithms begins


def _logarithms() -> Array:
    """1/c for a number c of 8 bits near the middle of each part, and -log(1/c) in two numbers: (3 * _PARTS,)."""
    rows: list[float] = []
    for part in range(_PARTS):
        middle = float(np.int64(_LOWEST + (2 * part + 1 << _MANTISSA - 8)).view(np.float64))
        steps = 128 if middle < 1.0 else 256
        inverse = round(steps / middle) / steps
        exact = -Decimal(inverse).ln()
        high = float((exact * 2**43).to_integral_value()) / 2**43
        rows += [inverse, high, float(exact - Decimal(high))]
    return np.array(rows)


def _exponentials() -> npt.NDArray[np.int64]:
    """2^(k/128): bits of the nearest number's relative error, and of that number; shape ``(2 * _PARTS,)``."""
    rows: list[float] = []
    for part in range(_PARTS):
        exact = Decimal(2) ** (Decimal(part) / _PARTS)
        rows += [float(exact / Decimal(float(exact)) - 1), float(exact)]
    words = np.array(rows).view(np.int64)
    words[1::2] -= np.arange(_PARTS) << _MANTISSA - 7
    return words


with decimal.localcontext() as _context:
    _context.prec = 60
    _LOGARITHMS, _EXPONENTIALS = _logarithms(), _exponentials()

_hex = float.fromhex
_LN2, _LN2_LOW = _hex("0x1.62e42fefa3800p-1"), _hex("0x1.ef35793c76730p-45")
_A0, _A1, _A2 = -0.5, _hex("-0x1.5555555555560p-1"), _hex("0x1.0000000000006p-1")
_A3, _A4 = _hex("0x1.999999959554ep-1"), _hex("-0x1.555555529a47ap-1")
_A5, _A6 = _hex("-0x1.2495b9b4845e9p+0"), _hex("0x1.0002b8b263fc3p+0")
_STEPS = _hex("0x1.71547652b82fep0") * _PARTS  # 128 / log(2)
_STEP, _STEP_LOW = _hex("-0x1.62e42fefa0000p-8"), _hex("-0x1.cf79abc9e3b3ap-47")  # -log(2) / 128
_C2, _C3 = _hex("0x1.ffffffffffdbdp-2"), _hex("0x1.555555555543cp-3")
_C4, _C5 = _hex("0x1.55555cf172b91p-5"), _hex("0x1.1111167a4d017p-7")
_TO_INT = 1.5 * 2.0**52  # adding a number to this rounds it to an integer
_TINY, _HUGE = 2.0**-510, 2.0**511


def _as(kind: Any, other: Any) -> Any:
    """A compiled function that reads the bits of one type as another's."""

    @intrinsic
    def reading(typing_context: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(kind))

        return kind(other), generate

    return reading


_number, _bits = _as(types.float64, types.int64), _as(types.int64, types.float64)


@njit(**INLINE)
def square(x):
    """``x ** 2``; if the square is not a normal number, ``x * x``."""
    size = abs(x)
    usual = size > _TINY and size < _HUGE
    word = _bits(size if usual else 1.0)
    shifted = word - _LOWEST
    part = 3 * ((shifted >> (_MANTISSA - 7)) & (_PARTS - 1))
    exponent = shifted >> _MANTISSA
    z = _number(word - (exponent << _MANTISSA))
    k = np.float64(exponent)
    inverse, log_c, log_c_low = _LOGARITHMS[part], _LOGARITHMS[part + 1], _LOGARITHMS[part + 2]
    # the logarithm as high + low
    r = multiply_add(z, inverse, -1.0)
    t1 = multiply_add(k, _LN2, log_c)
    t2 = t1 + r
    low1 = multiply_add(k, _LN2_LOW, log_c_low)
    low2 = t1 - t2 + r
    ar = _A0 * r
    ar2 = r * ar
    ar3 = r * ar2
    sum_ = t2 + ar2
    low3 = multiply_add(ar, r, -ar2)
    low4 = t2 - sum_ + ar2
    inner = multiply_add(ar2, multiply_add(r, _A6, _A5), multiply_add(r, _A4, _A3))
    polynomial = multiply_add(ar2, inner, multiply_add(r, _A2, _A1))
    low = multiply_add(ar3, polynomial, low1 + low2 + low3 + low4)
    log = sum_ + low
    log_low = sum_ - log + low
    # the exponential of twice that
    double, double_low = 2.0 * log, 2.0 * log_low
    turned = multiply_add(_STEPS, double, _TO_INT)
    n = turned - _TO_INT
    r = multiply_add(n, _STEP_LOW, multiply_add(n, _STEP, double)) + double_low
    whole = np.int64(n)
    place = 2 * (whole & (_PARTS - 1))
    scale = _number(_EXPONENTIALS[place + 1] + (whole << (_MANTISSA - 7)))
    rr = r * r
    series = multiply_add(rr, multiply_add(r, _C3, _C2), _number(_EXPONENTIALS[place]) + r)
    series = multiply_add(rr * rr, multiply_add(r, _C5, _C4), series)
    return multiply_add(scale, series, scale) if usual else x * x
