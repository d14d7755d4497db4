"""The unconstrained transform: coordinates in which a likelihood is about quadratic.

Physics often determines ratios and products, such as thrust over mass. In logarithms these are straight lines, which a
quadratic likelihood and a random walk of particles can follow. A coefficient near 0, such as friction, is better as it
is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gym_dr.arrays import Array, Mask
from gym_dr.fitting.prior import Prior

_POINTS = 4001  # of the table


@dataclass(frozen=True, kw_only=True, eq=False)
class UnconstrainedTransform:
    """A monotone map of each of p numbers in (0, 1), by linear interpolation in a table."""

    uniforms: Array  # (points,)
    images: Array  # (p, points), rising

    def forward(self, u: Array) -> Array:
        """Coordinates of points ``(count, p)``."""
        columns = [np.interp(u[:, k], self.uniforms, images) for k, images in enumerate(self.images)]
        return np.stack(columns, axis=1) if columns else u

    def inverse(self, coordinates: Array) -> Array:
        """Points at coordinates ``(count, p)``."""
        columns = [np.interp(coordinates[:, k], images, self.uniforms) for k, images in enumerate(self.images)]
        return np.stack(columns, axis=1) if columns else coordinates

    def slope(self, u: Array) -> Array:
        """Derivatives of points by coordinates, ``(count, p)``."""
        slopes = np.empty_like(u)
        for k, images in enumerate(self.images):
            place = np.clip(np.searchsorted(self.uniforms, u[:, k]) - 1, 0, len(self.uniforms) - 2)
            rise = images[place + 1] - images[place]
            slopes[:, k] = (self.uniforms[place + 1] - self.uniforms[place]) / np.maximum(rise, 1e-300)
        return slopes

    def inside(self, coordinates: Array) -> Mask:
        """Which of the coordinates ``(count, p)`` belong to points."""
        return np.asarray(np.all((coordinates > self.images[:, 0]) & (coordinates < self.images[:, -1]), axis=1))


def unconstrained(prior: Prior, logarithms: bool = True) -> UnconstrainedTransform:
    """The logarithm of each parameter of one sign, and other parameters as they are; u itself for correlated priors.

    Falling logarithms change their sign, so all rise with u.

    Args:
        prior: Of the parameters.
        logarithms: False for parameters as they are, also those of one sign.
    """
    uniforms = np.linspace(0.0, 1.0, _POINTS)
    size = len(prior.names)
    if prior.randomization.correlation is not None:
        return UnconstrainedTransform(uniforms=uniforms, images=np.repeat(uniforms[None], size, axis=0))
    table = prior.values(np.repeat(uniforms[:, None], size, axis=1))
    images = np.empty((size, _POINTS))
    for k, values in enumerate(table.values()):
        one_sign = logarithms and bool((values > 0).all() or (values < 0).all())
        image = np.log(np.abs(values)) if one_sign else values
        image = image if image[-1] >= image[0] else -image
        rising = bool((np.diff(image) > 0).all())
        images[k] = image if rising else uniforms
    return UnconstrainedTransform(uniforms=uniforms, images=images)
