"""What compares our models with stock ones sees differences that a user would care about."""

from __future__ import annotations

from typing import Any

import mujoco  # type: ignore[import-untyped]
import pytest

from tests.zoo.stock import Differences, Place, differences, only_joints

LEG = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="trunk"><freejoint name="base"/><geom size="0.1" mass="{trunk}"/>
      <body name="{leg}" pos="0 {hip} 0">
        <joint name="{leg}" axis="0 1 0" range="{low} 1" armature="{armature}"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02" mass="1"/><site name="foot" pos="0 0 -0.3"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
OURS = {"trunk": "5", "leg": "leg", "hip": "0.1", "low": "-1", "armature": "0.01"}


def compared(**changed: str) -> Differences:
    ours, other = (mujoco.MjModel.from_xml_string(LEG.format(**OURS | each)) for each in ({}, changed))
    return differences(ours, other, places={"foot": (Place(kind="site", name="foot"),) * 2}, configurations=10)


def test_a_model_does_not_differ_from_itself() -> None:
    found = compared()
    assert found.inertia < 1e-12
    assert (found.places, found.ranges) == ({"foot": 0.0}, {"leg": 0.0})


def test_a_heavier_trunk_shows_in_the_inertia_by_as_much() -> None:
    found = compared(trunk="4.5")
    assert found.inertia == pytest.approx(5 / 4.5 - 1, rel=0.02)  # rotating the trunk alone moves nothing else


def test_a_foot_elsewhere_shows_by_as_much() -> None:
    assert compared(hip="0.102").places["foot"] == pytest.approx(0.002)


def test_limits_of_a_joint_show() -> None:
    assert compared(low="-0.9").ranges == {"leg": pytest.approx(0.1)}


def test_joints_that_only_one_model_has_are_refused() -> None:
    with pytest.raises(ValueError, match="arm"):
        compared(leg="arm")


@pytest.mark.parametrize("armature", [True, False])
def test_rotors_count_unless_left_out(armature: bool) -> None:
    ours, other = (mujoco.MjModel.from_xml_string(LEG.format(**OURS | {"armature": a})) for a in ("0.01", "0"))
    found = differences(ours, other, places={}, configurations=3, armature=armature)
    assert (found.inertia > 0.03) == armature


def test_other_joints_can_be_fixed() -> None:
    spec: Any = mujoco.MjSpec.from_string(LEG.format(**OURS))
    spec.add_actuator(target="leg", trntype=mujoco.mjtTrn.mjTRN_JOINT)
    model = only_joints(spec, ()).compile()
    assert (model.njnt, model.nv, model.nu) == (1, 6, 0)
