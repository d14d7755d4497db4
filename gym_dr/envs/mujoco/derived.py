"""Fields of a model that follow from parameters that MuJoCo does not have: rotations, pseudo-inertia, bounds of geoms.

All arrays are float64; n is a number of sub-environments and k one of elements (bodies, geoms, ...). Quaternions are
unit quaternions in MuJoCo's order w, x, y, z.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from packaging.version import Version

from gym_dr.arrays import Array

_SPHERE, _CAPSULE, _CYLINDER, _BOX = 2, 3, 5, 6  # mjtGeom
_DERIVES_BOUNDS = Version("3.16")
_PLACED = {
    *("body_ipos", "body_iquat", "geom_pos", "geom_quat", "geom_size", "geom_margin", "geom_gap"),
    *("site_pos", "site_quat"),
}


def rotated(quats: Array, rotations: Array) -> Array:
    """Turns elements about the axes of the frame of their parent, in which their positions are given too.

    That is why the rotation multiplies from the left: from the right it would turn about the element's own axes, which
    a user of a nominal orientation that is not the identity would have to work out.

    Args:
        quats: Nominal orientations in the parent's frame, shape ``(k, 4)``.
        rotations: Rotation vectors, axis times angle in rad, shape ``(n, k, 3)``.

    Returns:
        Orientations, shape ``(n, k, 4)``; where a rotation is 0, the nominal ones bit for bit.
    """
    angles = np.linalg.norm(rotations, axis=-1, keepdims=True)
    w, v = np.cos(0.5 * angles), 0.5 * np.sinc(angles / (2.0 * np.pi)) * rotations  # exp of half the vector
    w0, v0 = quats[:, :1], np.broadcast_to(quats[:, 1:], rotations.shape)
    scalar = w * w0 - (v * v0).sum(axis=-1, keepdims=True)
    cross = v[..., [1, 2, 0]] * v0[..., [2, 0, 1]] - v[..., [2, 0, 1]] * v0[..., [1, 2, 0]]  # np.cross is slow
    product = np.concatenate([scalar, w * v0 + w0 * v + cross], axis=-1)
    return np.where(angles == 0.0, quats, product)


def pseudo_inertia(
    mass: Array, ipos: Array, inertia: Array, iquat: Array, changes: Array
) -> tuple[Array, Array, Array, Array]:
    """Inertias of bodies whose 4 x 4 pseudo-inertia matrix J becomes ``U J U^T``.

    ``U = e^alpha [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]]`` is the log-Cholesky
    parameterization of Rucker and Wensing (2022, "Smooth Parameterization of Rigid-Body Inertia", IEEE Robotics and
    Automation Letters 7(2)). A body of points of mass dm at x, in the body's frame, becomes one of points of mass
    e^(2 alpha) dm at A x + t, where A is the upper left part of U without e^alpha. So alpha multiplies mass and moments
    of inertia by e^(2 alpha), as in mjlab's ``dr.pseudo_inertia``, and leaves the center of mass where it is; d
    stretches the body along its frame's axes by e^d, s shears it, and t shifts it, in m. Whatever the changes, some
    body has this inertia: the mass is positive, and no moment exceeds the sum of the other two.

    Args:
        mass: Nominal, kg, shape ``(k,)``.
        ipos: Centers of mass in the body's frame, m, shape ``(k, 3)``.
        inertia: Principal moments of inertia, kg m^2, shape ``(k, 3)``.
        iquat: Orientations of the principal axes in the body's frame, shape ``(k, 4)``.
        changes: alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3, shape ``(n, k, 10)``.

    Returns:
        The same four with a first axis n. Where a body keeps its shape (d and s are 0) so do its axes, and where all
        changes are 0 everything is nominal bit for bit; elsewhere moments are in descending order, as MuJoCo's compiler
        sorts them.
    """
    affine = np.zeros((*changes.shape[:2], 3, 3))
    affine[..., range(3), range(3)] = np.exp(changes[..., 1:4])
    affine[..., [0, 1, 0], [1, 2, 2]] = changes[..., 4:7]
    moved = (affine @ ipos[..., None])[..., 0] + changes[..., 7:]
    center = np.where(changes[..., 1:].any(axis=-1, keepdims=True), moved, ipos)
    moments, axes = np.tile(inertia, (len(changes), 1, 1)), np.tile(iquat, (len(changes), 1, 1))
    deformed = np.nonzero(changes[..., 1:7].any(axis=-1))
    if len(deformed[0]):
        from scipy.spatial.transform import Rotation  # heavy

        # second moments of mass about the center, along principal axes; the others are 0
        second = np.maximum(0.5 * inertia.sum(axis=-1, keepdims=True) - inertia, 0.0)[deformed[1]]
        new_axes = affine[deformed] @ Rotation.from_quat(iquat[deformed[1]], scalar_first=True).as_matrix()
        squares, frames = np.linalg.eigh((new_axes * second[:, None]) @ new_axes.swapaxes(-1, -2))  # ascending
        squares = np.maximum(squares, 0.0)  # of a flat body, rounded
        frames *= np.sign(np.linalg.det(frames))[:, None, None]  # rotations, not reflections
        moments[deformed] = squares[:, [1, 0, 0]] + squares[:, [2, 2, 1]]
        axes[deformed] = Rotation.from_matrix(frames).as_quat(scalar_first=True)
    growth = np.exp(2.0 * changes[..., 0])
    return growth * mass, center, growth[..., None] * moments, axes


def bounds_of(geom_types: npt.NDArray[np.int32], sizes: Array) -> tuple[Array, Array]:
    """Bounds of geoms, as MuJoCo's compiler computes them; they do not include margins.

    Args:
        geom_types: Spheres, capsules, ellipsoids, cylinders and boxes, numbers of ``mjtGeom``, shape ``(k,)``.
        sizes: Their ``geom_size``, m, shape ``(n, k, 3)``.

    Returns:
        ``geom_rbound``, radii of bounding spheres, ``(n, k)``, and ``geom_aabb``, centers and half sizes of bounding
        boxes, ``(n, k, 6)``.
    """
    kinds = geom_types[:, None]
    radius, half = sizes[..., :1], sizes[..., 1:2]
    turned = np.concatenate([radius, radius, half + np.where(kinds == _CAPSULE, radius, 0.0)], axis=-1)
    boxes = np.where(kinds == _SPHERE, radius, np.where((kinds == _CAPSULE) | (kinds == _CYLINDER), turned, sizes))
    corners = np.where(kinds == _CYLINDER, boxes * [0.0, 1.0, 1.0], boxes)  # of a cylinder, a point of its edge
    farthest = np.where(geom_types >= _CYLINDER, np.sqrt((corners**2).sum(axis=-1)), boxes.max(axis=-1))
    return farthest, np.concatenate([np.zeros_like(boxes), boxes], axis=-1)


def before_set_const(model: Any, fields: Iterable[str]) -> None:
    """Updates flags and bounds as ``mj_setConst`` does from MuJoCo 3.16 on; call it before.

    Older versions skip the relative pose of what had none when the model was compiled, and find contacts with the
    bounds of geoms then. So an element may move but have no effect.

    Args:
        model: An ``MjModel`` in which fields have been written.
        fields: Their names.
    """
    import mujoco  # type: ignore[import-untyped]  # heavy

    if _PLACED.isdisjoint(fields) or Version(mujoco.__version__) >= _DERIVES_BOUNDS:
        return
    for frames in (model.body_sameframe, model.geom_sameframe, model.site_sameframe):
        frames[:] = 0
    bounded = (model.geom_type >= _SPHERE) & (model.geom_type <= _BOX)
    rbound, aabb = bounds_of(model.geom_type[bounded], model.geom_size[None, bounded])
    model.geom_rbound[bounded], model.geom_aabb[bounded] = rbound[0], aabb[0]
    np.maximum.at(model.body_margin, model.geom_bodyid, model.geom_margin + model.geom_gap)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)  # its trees of bounds are not updated
