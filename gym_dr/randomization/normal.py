"""The standard normal distribution on arrays, with numpy only.

scipy and torch have these functions too, but importing either takes longer than importing this whole package.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array

# Coefficients of Wichura (1988), "Algorithm AS 241: The Percentage Points of the Normal Distribution",
# Applied Statistics 37(3), routine PPND16 (relative error about 1e-16). Highest power first, as np.polyval expects.
CENTER_NUM = (
    2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
    13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608,
)  # fmt: skip
CENTER_DEN = (
    5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
    5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0,
)  # fmt: skip
TAIL_NUM = (
    7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
    3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734,
)  # fmt: skip
TAIL_DEN = (
    1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
    0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0,
)  # fmt: skip
FAR_NUM = (
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
    0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772,
)  # fmt: skip
FAR_DEN = (
    2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
    0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0,
)  # fmt: skip


def normal_ppf(p: npt.ArrayLike) -> Array:
    """Quantile function of the standard normal distribution (Wichura 1988, AS 241).

    Args:
        p: Probabilities in [0, 1], any shape; 0 and 1 give minus and plus infinity.

    Returns:
        float64 array of the shape of ``p``.
    """
    p = np.asarray(p, dtype=np.float64)
    q = p - 0.5
    r = 0.180625 - q * q
    x = np.asarray(q * np.polyval(CENTER_NUM, r) / np.polyval(CENTER_DEN, r))
    outer = np.abs(q) > 0.425
    if outer.any():
        x = np.array(x)
        tail = np.minimum(p[outer], 1.0 - p[outer])
        with np.errstate(divide="ignore"):
            r = np.sqrt(-np.log(tail))
        near, far = r - 1.6, np.where(np.isinf(r), 1.0, r) - 5.0
        magnitude = np.where(
            r <= 5.0,
            np.polyval(TAIL_NUM, np.minimum(near, 3.4)) / np.polyval(TAIL_DEN, np.minimum(near, 3.4)),
            np.polyval(FAR_NUM, far) / np.polyval(FAR_DEN, far),
        )
        x[outer] = np.copysign(np.where(np.isinf(r), np.inf, magnitude), q[outer])
    return x


def normal_cdf(x: npt.ArrayLike) -> Array:
    """Distribution function of the standard normal distribution, through the C library's ``erfc``.

    Args:
        x: Any shape.

    Returns:
        float64 array of the shape of ``x``.
    """
    x = np.asarray(x, dtype=np.float64)
    # Python's product, unlike numpy's, is never an error where it is tiny
    shares = (0.5 * math.erfc(value * -math.sqrt(0.5)) for value in x.ravel().tolist())
    return np.fromiter(shares, dtype=np.float64, count=x.size).reshape(x.shape)
