"""The families that come with gym_dr."""

from __future__ import annotations

from gym_dr.envs.box2d.bipedal_walker.family import FAMILIES as BIPEDAL_WALKER
from gym_dr.envs.box2d.lunar_lander.family import FAMILY as LUNAR_LANDER
from gym_dr.envs.classic_control.family import FAMILIES as CLASSIC_CONTROL
from gym_dr.envs.mujoco.family import FAMILIES as MUJOCO

BUILTIN = (LUNAR_LANDER, *BIPEDAL_WALKER, *CLASSIC_CONTROL, *MUJOCO)
DEFAULT_ENV = LUNAR_LANDER.ids[0].id  # if none is named
