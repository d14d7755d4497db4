"""Sine, cosine and remainder in float64 without branches: SIMD, where a C library takes one number at a time.

Sine and cosine follow the method of glibc 2.28 and later (its IBM Accurate Mathematical Library, the source of the
coefficients), operation by operation, and so equal those of Python's ``math`` and numpy on x86-64 Linux bit for bit; on
other systems they are as accurate, to within 0.55 units in the last place:

- an angle is reduced to ``a + da`` in about [-pi/4, pi/4] by multiples of pi/2;
- ``|a|`` is split into the nearest multiple of 1/128, whose sine and cosine are in a table with double precision's
  digits twice over, and a remainder, for which short polynomials suffice; angles below 0.126 have their own polynomial.

At run time glibc picks a build that fuses multiplications and additions if the processor can, so this does too.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numba import njit

from gym_dr.arrays import Array
from gym_dr.compiled.fused import HAS_FMA, multiply_add
from gym_dr.compiled.options import INLINE

PARTS = 128  # steps of the table per rad
_ENTRIES = 128  # the last ones are never read: a power of 2 lets a mask keep any index in range


def _exact(numerator: int, terms: int = 24) -> tuple[Fraction, Fraction]:
    """Sine and cosine of a multiple of 1/128 up to 1 rad, by series, to far more digits than two doubles have."""
    x, term, sums = Fraction(numerator, PARTS), Fraction(1), [Fraction(0), Fraction(0)]
    for n in range(terms):
        sums[n % 2] += term if n % 4 < 2 else -term
        term *= x / (n + 1)
    return sums[1], sums[0]


def _table() -> Array:
    """Sine and cosine of each multiple, each as the nearest number and its error: shape ``(4 * _ENTRIES,)``."""
    rows: list[float] = []
    for numerator in range(_ENTRIES):
        for value in _exact(numerator):
            rows += [float(value), float(value - Fraction(float(value)))]
    return np.array(rows)


_TABLE = _table()
_SIN_3, _SIN_5 = -1.66666666666664880952546298448555e-01, 8.33333214285722277379541354343671e-03
_COS_2, _COS_4, _COS_6 = 0.5, -4.16666666666664434524222570944589e-02, 1.38888874007937613028114285595617e-03
_S1, _S2, _S3 = -0.16666666666666666, 0.0083333333333323288, -0.00019841269834414642
_S4, _S5 = 2.755729806860771e-06, -2.5022014848318398e-08
_BIG = 1.5 * 2.0**45  # adding a number to this rounds it to a multiple of 1/128
_HALF_PI, _HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
# pi/2 in four parts; the first ones have few bits, so that their products with a quadrant number are exact
_PI_1, _PI_2 = float.fromhex("0x1.921fb58p0"), float.fromhex("-0x1.dde973cp-27")
_PI_3, _PI_4 = float.fromhex("-0x1.cb3b398p-55"), float.fromhex("-0x1.d747f23e32ed7p-83")
_TWO_OVER_PI = float.fromhex("0x1.45f306dc9c883p-1")
_TO_INT = 1.5 * 2.0**52  # adding a number to this rounds it to an integer
_SMALL = 0.126
_FIRST, _SECOND = 0.85546875, float.fromhex("0x1.368fdp1")  # up to these: no reduction, and a simple one


@njit(**INLINE)
def _sine(a, da):
    """Sine of ``a + da``."""
    square = a * a
    taylor = multiply_add(_S5, square, _S4)
    taylor = multiply_add(taylor, square, _S3)
    taylor = multiply_add(taylor, square, _S2)
    taylor = multiply_add(taylor, square, _S1)
    small = a + multiply_add(multiply_add(taylor, a, -(0.5 * da)), square, da)

    d = -da if a <= 0.0 else da
    near = _BIG + abs(a)
    x = abs(a) - (near - _BIG)
    sn, sn_low, cs, cs_low = _look_up(near)
    xx = x * x
    s = x + multiply_add(x * xx, multiply_add(xx, _SIN_5, _SIN_3), d)
    c = multiply_add(x, d, xx * multiply_add(xx, multiply_add(xx, _COS_6, _COS_4), _COS_2))
    rest = multiply_add(cs, s, multiply_add(-sn, c, multiply_add(s, cs_low, sn_low)))
    large = math.copysign(sn + rest, a)
    return small if abs(a) < _SMALL else large


@njit(**INLINE)
def _cosine(a, da):
    """Cosine of ``a + da``."""
    d = -da if a < 0.0 else da
    near = _BIG + abs(a)
    x = abs(a) - (near - _BIG) + d
    sn, sn_low, cs, cs_low = _look_up(near)
    xx = x * x
    s = multiply_add(x * xx, multiply_add(xx, _SIN_5, _SIN_3), x)
    c = xx * multiply_add(xx, multiply_add(xx, _COS_6, _COS_4), _COS_2)
    return cs + multiply_add(-sn, s, multiply_add(-cs, c, multiply_add(-s, sn_low, cs_low)))


@njit(**INLINE)
def _look_up(near):
    """The table's entry for a number rounded with ``_BIG``."""
    k = 4 * (np.int64((near - _BIG) * PARTS) & (_ENTRIES - 1))
    return _TABLE[k], _TABLE[k + 1], _TABLE[k + 2], _TABLE[k + 3]


@njit(**INLINE)
def sin_cos(angle):
    """Sine and cosine of an ``angle`` in rad, below 1e8 in magnitude."""
    size = abs(angle)
    shifted = multiply_add(angle, _TWO_OVER_PI, _TO_INT)
    n = shifted - _TO_INT
    y = multiply_add(-n, _PI_2, multiply_add(-n, _PI_1, angle))
    t = multiply_add(-n, _PI_3, y)
    low = multiply_add(-n, _PI_3, y - t)
    a = multiply_add(-n, _PI_4, t)
    da = low + multiply_add(-n, _PI_4, t - a)
    quadrant = np.int64(n) & 3

    first, second = size < _FIRST, size < _SECOND
    # the simple reduction: the sine is the cosine of the difference to pi/2, and the cosine its sine
    lack = _HALF_PI - size
    rounded = lack + _HALF_PI_LOW
    sine = _sine(
        angle if first else rounded if second else a,
        0.0 if first else (lack - rounded) + _HALF_PI_LOW if second else da,
    )
    cosine = _cosine(angle if first else lack if second else a, 0.0 if first else _HALF_PI_LOW if second else da)
    odd = not first and (second or (quadrant & 1) != 0)
    sin_value, cos_value = cosine if odd else sine, sine if odd else cosine
    sin_value = math.copysign(sin_value, angle) if second else -sin_value if (quadrant & 2) != 0 else sin_value
    cos_value = -cos_value if not second and ((quadrant + 1) & 2) != 0 else cos_value
    return sin_value, cos_value


@njit(**INLINE)
def sin(angle):
    """Sine of an ``angle`` in rad, below 1e8 in magnitude."""
    return sin_cos(angle)[0]


@njit(**INLINE)
def cos(angle):
    """Cosine of an ``angle`` in rad, below 1e8 in magnitude."""
    return sin_cos(angle)[1]


if HAS_FMA:

    @njit(**INLINE)
    def fmod(x, y):
        """The C library's ``fmod``, which is exact, for ``x / y`` below 1e15 in magnitude."""
        size, y = abs(x), abs(y)
        rest = multiply_add(-np.floor(size / y), y, size)  # exact, and too small or large by one y at most
        rest = rest + y if rest < 0.0 else rest
        rest = rest - y if rest >= y else rest
        return math.copysign(rest, x)

else:

    @njit(**INLINE)
    def fmod(x, y):
        """The C library's ``fmod``."""
        return math.fmod(x, y)
