from __future__ import annotations

import mujoco
import pytest

from gym_dr.envs.mujoco.reference import base_of

BALL = '<body name="ball"><freejoint/><geom size="0.1" mass="9"/></body>'
LEG = '<body name="leg"><joint name="hip"/><geom name="foot" size="0.1" mass="1"/></body>'
ROBOT = f'<body name="torso"><freejoint name="root"/><geom size="0.1" mass="1"/><site name="prop"/>{LEG}</body>'
TWIN = ROBOT.replace('mass="1"', 'mass="2"')
for part in ("torso", "root", "prop", "leg", "hip", "foot"):
    TWIN = TWIN.replace(f'"{part}"', f'"{part}2"')
ARM = '<body name="arm"><joint name="hip"/><joint name="hip2"/><geom size="0.1"/></body>'
MOTOR, OTHER = '<motor joint="hip"/>', '<motor joint="hip2"/>'


@pytest.mark.parametrize(
    ("bodies", "actuators", "expected"),
    [
        (BALL + ROBOT, MOTOR, ("torso", range(6, 12))),
        (BALL + ROBOT, '<motor tendon="t"/>', ("torso", range(6, 12))),
        (BALL + ROBOT, '<motor site="prop" gear="0 0 1 0 0 0"/>', ("torso", range(6, 12))),
        (ROBOT + BALL + TWIN, MOTOR + OTHER, ("torso2", range(13, 19))),
        (BALL + ROBOT, "", ("ball", range(6))),
        (ARM + BALL, MOTOR, ("ball", range(2, 8))),
        (ARM, MOTOR, ("arm", range(1))),
        ('<body name="stone"><geom size="0.1"/></body>', "", ("world", range(0))),
    ],
    ids=["loose object first", "tendon", "site", "heaviest", "no actuators", "arm and object", "arm", "no joints"],
)
def test_pushes_move_the_floating_base_of_the_robot_wherever_it_is(
    bodies: str, actuators: str, expected: tuple[str, range]
) -> None:
    tendon = '<tendon><fixed name="t"><joint joint="hip" coef="1"/></fixed></tendon>' if "tendon" in actuators else ""
    text = f"<mujoco><worldbody>{bodies}</worldbody>{tendon}<actuator>{actuators}</actuator></mujoco>"
    model = mujoco.MjModel.from_xml_string(text)
    body, dofs = base_of(model)
    assert (model.body(body).name, dofs) == (expected[0], list(expected[1]))
