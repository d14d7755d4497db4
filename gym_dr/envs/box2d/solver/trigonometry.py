"""Sine and cosine of a float32 angle, equal bit for bit to the C library's ``sincosf`` and free of branches.

Box2D turns every angle into a rotation with ``sinf`` and ``cosf``. A call to the C library inside a loop over lanes
keeps LLVM from vectorizing that loop, so this reimplements the method of glibc 2.28 and later (``sysdeps/ieee754``,
contributed by ARM from its Optimized Routines, MIT license, the source of the coefficients): reduce the angle to
``[-pi/4, pi/4]`` in float64, evaluate a polynomial of degree 7 (sine) and 8 (cosine), and round once to float32.

At run time glibc picks a build that fuses multiplications and additions if the processor can, so this does too.
The tests compare every float32 angle up to 120 rad and a dense sample above.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.flags import INLINE
from gym_dr.compiled.fused import multiply_add

SIN_3 = float.fromhex("-0x1.555545995a603p-3")
SIN_5 = float.fromhex("0x1.1107605230bc4p-7")
SIN_7 = float.fromhex("-0x1.994eb3774cf24p-13")
COS_2 = float.fromhex("-0x1.ffffffd0c621cp-2")
COS_4 = float.fromhex("0x1.55553e1068f19p-5")
COS_6 = float.fromhex("-0x1.6c087e89a359dp-10")
COS_8 = float.fromhex("0x1.99343027bf8c3p-16")

HALF_PI = float.fromhex("0x1.921FB54442D18p0")
TWO_TO_24_OVER_HALF_PI = float.fromhex("0x1.45F306DC9C883p+23")  # 2**24 * 2/pi
TWO_TO_23 = float(2**23)
TWO_TO_MINUS_24 = 2.0**-24
LARGE_ANGLE = 120.0  # rad; from here on the reduction needs more bits of pi

# pi/2 in three parts; the first two have 29 bits, so that their products with a quadrant number below 2**24 are exact.
HALF_PI_1 = float.fromhex("0x1.921fb54p0")
HALF_PI_2 = float.fromhex("0x1.10b4611p-30")
HALF_PI_3 = float.fromhex("0x1.4c4c6628b80dcp-59")


@njit(**INLINE)
def sin_cos(angle):
    """Sine and cosine of a float32 ``angle`` in rad, as float32."""
    x = np.float64(angle)
    size = abs(x)
    # Quadrant as glibc rounds it: truncate at 24 fractional bits, then round half up.
    scaled = np.trunc(x * TWO_TO_24_OVER_HALF_PI)
    quadrant = np.floor((scaled + TWO_TO_23) * TWO_TO_MINUS_24)
    y = multiply_add(-quadrant, HALF_PI, x)
    # The same for large angles, on the absolute value and with pi/2 to 110 bits.
    large = size >= LARGE_ANGLE
    large_quadrant = np.floor(size * (TWO_TO_24_OVER_HALF_PI * TWO_TO_MINUS_24) + 0.5)
    large_y = ((size - large_quadrant * HALF_PI_1) - large_quadrant * HALF_PI_2) - large_quadrant * HALF_PI_3
    flip = large and x < 0.0
    quadrant = large_quadrant if large else quadrant
    y = large_y if large else y

    y2 = y * y
    y3 = y2 * y
    y4 = y2 * y2
    s = multiply_add(y3 * y2, multiply_add(y2, SIN_7, SIN_5), multiply_add(y3, SIN_3, y))
    low = multiply_add(y4, COS_4, multiply_add(y2, COS_2, 1.0))
    c = multiply_add(y4 * y2, multiply_add(y2, COS_8, COS_6), low)

    n = np.int32(quadrant)
    sine = c if (n & 1) != 0 else s
    cosine = s if (n & 1) != 0 else c
    sine = -sine if ((n & 2) != 0) != flip else sine
    cosine = -cosine if ((n + 1) & 2) != 0 else cosine
    return np.float32(sine), np.float32(cosine)
