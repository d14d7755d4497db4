"""Coordinates in which combinations of parameters are straight: logarithms, where a parameter has one sign.

Physics determines ratios and products more often than sums, such as thrust over mass. In logarithms these are straight
lines, so that a quadratic likelihood and a random walk of particles can follow them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gym_dr.arrays import Array, Mask
from gym_dr.fitting.prior import Prior

_POINTS = 4001  # of the table


@dataclass(frozen=True, kw_only=True, eq=False)
class Straight:
    """A monotone map of each of p numbers in (0, 1), by linear interpolation in a table."""

    uniforms: Array  # (points,)
    images: Array  # (p, points), rising

    def there(self, u: Array) -> Array:
        """Coordinates of points ``(count, p)``."""
        columns = [np.interp(u[:, k], self.uniforms, images) for k, images in enumerate(self.images)]
        return np.stack(columns, axis=1) if columns else u

    def back(self, coordinates: Array) -> Array:
        """The points of coordinates ``(count, p)``."""
        columns = [np.interp(coordinates[:, k], images, self.uniforms) for k, images in enumerate(self.images)]
        return np.stack(columns, axis=1) if columns else coordinates

    def slope(self, u: Array) -> Array:
        """Derivative of points by coordinates, ``(count, p)``."""
        found = np.empty_like(u)
        for k, images in enumerate(self.images):
            place = np.clip(np.searchsorted(self.uniforms, u[:, k]) - 1, 0, len(self.uniforms) - 2)
            rise = images[place + 1] - images[place]
            found[:, k] = (self.uniforms[place + 1] - self.uniforms[place]) / np.maximum(rise, 1e-300)
        return found

    def inside(self, coordinates: Array) -> Mask:
        """Which of ``(count, p)`` are images of points."""
        found: Mask = np.all((coordinates > self.images[:, 0]) & (coordinates < self.images[:, -1]), axis=1)
        return found


def straightened(prior: Prior) -> Straight:
    """Logarithms of the parameters of one sign; the parameters themselves otherwise, or where the prior is correlated.

    Falling logarithms are turned around, so that all rise with u.
    """
    uniforms = np.linspace(0.0, 1.0, _POINTS)
    size = len(prior.names)
    if prior.randomization.correlation is not None:
        return Straight(uniforms=uniforms, images=np.repeat(uniforms[None], size, axis=0))
    values = prior.values(np.repeat(uniforms[:, None], size, axis=1))
    images = np.empty((size, _POINTS))
    for k, found in enumerate(values.values()):
        same = (found > 0).all() or (found < 0).all()
        image = np.log(np.abs(found)) if same else found
        image = image if image[-1] >= image[0] else -image
        rising = bool((np.diff(image) > 0).all())
        images[k] = image if rising else uniforms
    return Straight(uniforms=uniforms, images=images)
