"""Fields that follow from parameters, against MuJoCo's own functions and its compiler."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gym_dr.envs.mujoco.derived import before_set_const, bounds_of, pseudo_inertia, rotated

RNG = np.random.default_rng(0)
NAMES = ["alpha", "d1", "d2", "d3", "s12", "s23", "s13", "t1", "t2", "t3"]


def model_of(geoms: str) -> Any:
    return mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")


def unit_quats(n: int) -> Any:
    quats = RNG.normal(size=(n, 4))
    return quats / np.linalg.norm(quats, axis=1, keepdims=True)


# --- rotations ---


def test_a_rotation_is_about_the_axes_of_the_parents_frame_as_mujoco_rotates() -> None:
    quats, rotations = unit_quats(4), RNG.normal(size=(6, 4, 3))
    rotations[0] *= 1e-9
    for row, given_row in zip(rotated(quats, rotations), rotations, strict=True):
        for found, quat, rotation in zip(row, quats, given_row, strict=True):
            turn, expected, angle = np.zeros(4), np.zeros(4), np.linalg.norm(rotation)
            mujoco.mju_axisAngle2Quat(turn, rotation / angle, angle)
            mujoco.mju_mulQuat(expected, turn, quat)
            np.testing.assert_allclose(found, expected, atol=1e-15)


def test_where_a_rotation_is_zero_the_orientation_is_nominal_bit_for_bit() -> None:
    quats, rotations = unit_quats(3), np.zeros((2, 3, 3))
    rotations[1, 2] = 0.1
    found = rotated(quats, rotations)
    assert found[0].tobytes() == quats.tobytes()
    assert found[1, :2].tobytes() == quats[:2].tobytes()
    assert (found[1, 2] != quats[2]).all()


# --- pseudo-inertia ---

POINTS, MASSES = RNG.normal(size=(7, 3)), RNG.uniform(0.5, 2.0, 7)


def body_of(points: Any, masses: Any) -> tuple[Any, ...]:
    """Mass, center, moments and axes of a body of points, as MuJoCo compiles it."""
    geoms = "".join(
        f'<geom size="1e-4" mass="{mass!r}" pos="{p[0]!r} {p[1]!r} {p[2]!r}"/>'
        for mass, p in zip(masses.tolist(), points.tolist(), strict=True)
    )
    model = model_of(f'<body pos="1 2 3"><freejoint/>{geoms}</body>')
    return tuple(getattr(model, f"body_{name}")[1:].copy() for name in ("mass", "ipos", "inertia", "iquat"))


def matrices(inertia: Any, iquat: Any) -> Any:
    """Moments of inertia about the center in the body's frame."""
    found = np.zeros((len(iquat), 9))
    for row, quat in zip(found, iquat, strict=True):
        mujoco.mju_quat2Mat(row, quat)
    axes = found.reshape(-1, 3, 3)
    return axes * inertia[:, None] @ axes.swapaxes(1, 2)


@pytest.mark.parametrize("changed", [*NAMES, "all"])
def test_a_changed_body_is_the_one_whose_points_have_moved(changed: str) -> None:
    change = RNG.uniform(-0.5, 0.5, 10) * [changed in (name, "all") for name in NAMES]
    alpha, d1, d2, d3, s12, s23, s13 = change[:7]
    affine = np.array([[np.exp(d1), s12, s13], [0, np.exp(d2), s23], [0, 0, np.exp(d3)]])
    moved = POINTS @ affine.T + change[7:]
    expected = body_of(moved, MASSES * np.exp(2 * alpha))
    mass, ipos, inertia, iquat = pseudo_inertia(*body_of(POINTS, MASSES), change[None, None])
    np.testing.assert_allclose(mass[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(ipos[0], expected[1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(inertia[0], expected[2], rtol=1e-7)
    np.testing.assert_allclose(matrices(inertia[0], iquat[0]), matrices(*expected[2:]), rtol=1e-5, atol=1e-5)


def bodies() -> tuple[Any, ...]:
    """One that is general, one that is flat, and one that is a rod."""
    inertia = np.array([[2.0, 1.9, 1.0], [2.0, 1.2, 0.8], [1.5, 1.5, 0.0]])
    return np.array([3.0, 1e-6, 100.0]), RNG.normal(size=(3, 3)), inertia, unit_quats(3)


def test_where_nothing_changes_inertias_are_nominal_bit_for_bit() -> None:
    nominal, changes = bodies(), np.zeros((2, 3, 10))
    nominal[1][0] = [-0.0, 0.0, 1.0]
    changes[1, 1] = 0.1
    for found, expected in zip(pseudo_inertia(*nominal, changes), nominal, strict=True):
        assert found[0].tobytes() == expected.tobytes()
        assert found[1, [0, 2]].tobytes() == expected[[0, 2]].tobytes()


def test_alpha_scales_mass_and_moments_and_keeps_center_and_axes() -> None:
    nominal, changes = bodies(), np.zeros((1, 3, 10))
    changes[..., 0] = 0.3
    mass, ipos, inertia, iquat = pseudo_inertia(*nominal, changes)
    np.testing.assert_allclose(mass[0], nominal[0] * np.exp(0.6))
    np.testing.assert_allclose(inertia[0], nominal[2] * np.exp(0.6))
    assert (ipos[0] == nominal[1]).all()
    assert (iquat[0] == nominal[3]).all()


@settings(deadline=None)  # the first call imports scipy
@given(arrays(np.float64, 10, elements=st.floats(-3, 3)))
def test_whatever_changes_inertias_are_those_of_a_body(changes: Any) -> None:
    mass, ipos, inertia, iquat = pseudo_inertia(*bodies(), np.tile(changes, (1, 3, 1)))
    assert (mass > 0).all()
    assert np.isfinite(ipos).all()
    assert (inertia >= 0).all()
    assert (2 * inertia.max(axis=-1) <= inertia.sum(axis=-1) * (1 + 1e-15)).all()
    np.testing.assert_allclose(np.linalg.norm(iquat, axis=-1), 1.0)


# --- bounds ---

SHAPES = {"sphere": 1, "capsule": 2, "ellipsoid": 3, "cylinder": 2, "box": 3}


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_bounds_of_geoms_are_the_compilers(margin: float) -> None:
    rows = []
    for sizes in RNG.uniform(0.1, 1.0, (5, 3)).tolist():
        numbers = {shape: " ".join(map(repr, sizes[:count])) for shape, count in SHAPES.items()}
        geoms = (f'<geom type="{shape}" size="{text}" margin="{margin}"/>' for shape, text in numbers.items())
        rows.append(model_of("".join(geoms)))
    rbound, aabb = bounds_of(rows[0].geom_type, np.stack([model.geom_size for model in rows]))
    assert (rbound == [model.geom_rbound for model in rows]).all()
    assert (aabb == [model.geom_aabb for model in rows]).all()


# --- what follows a change ---

STANDING = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body name="trunk" pos="0 0 0.4">
      <freejoint/>
      <inertial pos="0 0 0" mass="3" diaginertia="0.05 0.06 0.07"/>
      <geom name="trunk" type="box" size="0.2 0.1 0.1"/>
      <geom name="pack" type="capsule" size="0.05 0.1" pos="0 0 0.1"/>
      <geom name="bumper" type="sphere" size="0.05" pos="0.2 0 0"/>
      <site name="imu"/>
      <body name="leg" pos="0.1 0 -0.1">
        <joint axis="0 1 0" damping="0.1"/>
        <inertial pos="0 0 -0.1" mass="0.5" diaginertia="0.005 0.005 0.001"/>
        <geom name="leg" type="capsule" size="0.02 0.1" pos="0 0 -0.1"/>
        <geom name="foot" type="sphere" size="0.03" pos="0 0 -0.22"/>
        <site name="sole" pos="0 0 -0.22"/>
      </body>
    </body>
  </worldbody>
  <sensor><accelerometer site="imu"/><gyro site="imu"/><framepos objtype="site" objname="sole"/></sensor>
</mujoco>
"""
TURNED = [0.8, 0.0, 0.6, 0.0]
MOVES = [
    ("body", "trunk", "ipos", [0.02, 0.01, 0.03]),
    ("body", "trunk", "iquat", TURNED),
    ("body", "leg", "ipos", [0.02, 0.01, 0.03]),
    ("geom", "trunk", "pos", [0.02, 0.01, -0.03]),
    ("geom", "trunk", "quat", TURNED),
    ("geom", "trunk", "size", [0.25, 0.2, 0.05]),
    ("geom", "leg", "pos", [0.02, 0.01, -0.2]),
    ("geom", "foot", "size", [0.1, 0.0, 0.0]),
    ("geom", "foot", "margin", 0.05),
    ("geom", "floor", "pos", [0.0, 0.0, 0.03]),
    ("site", "imu", "pos", [0.1, 0.0, 0.2]),
    ("site", "imu", "quat", TURNED),
]


def fall(model: Any) -> Any:
    """What a model does, with contacts: positions and sensors over time."""
    data, seen = mujoco.MjData(model), []
    data.qvel[:] = 0.5
    for _ in range(250):
        mujoco.mj_step(model, data)
        seen.append(np.concatenate([data.qpos, data.sensordata]))
    return np.array(seen)


@pytest.mark.parametrize(("kind", "name", "what", "value"), MOVES)
def test_a_written_field_acts_as_a_compiled_one(kind: str, name: str, what: str, value: Any) -> None:
    spec = mujoco.MjSpec.from_string(STANDING)
    nominal = spec.compile()
    setattr(getattr(spec, kind)(name), what, value)
    field = f"{kind}_{what}"
    written = mujoco.MjModel.from_xml_string(STANDING)
    getattr(written, field)[getattr(written, kind)(name).id] = value
    before_set_const(written, [field])
    mujoco.mj_setConst(written, mujoco.MjData(written))
    expected = fall(spec.compile())
    np.testing.assert_allclose(fall(written), expected, rtol=1e-6, atol=1e-6)
    assert not np.allclose(fall(nominal), expected, rtol=1e-3, atol=1e-3)
