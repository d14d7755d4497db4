"""Memory layout of a lander, beyond what ``solver/layout.py`` defines for all worlds.

Rows and blocks share: bodies, head, joints, and quantities derived from parameters; the rest differs.
"""

from __future__ import annotations

from itertools import count

import numpy as np

from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.layout import BODY, HEAD, JOINT, LANES, WORK

# ---- bodies --------------------------------------------------------------------------------------------------------
# Numbers that are passed to functions are np.int64: numba compiles a function anew for every plain integer constant.
# Leg 0 starts right of the lander (Gymnasium's i = -1), leg 1 left of it.
LANDER, LEG_0, LEG_1 = np.int64(0), np.int64(1), np.int64(2)
BODIES = 3
WORLD = BODIES * BODY  # first field of the head
MOVED, AWAKE, SOLVED, PENETRATION = WORLD + at.MOVED, WORLD + at.AWAKE, WORLD + at.SOLVED, WORLD + at.PENETRATION
JOINT_0 = np.int64(WORLD + HEAD)  # first field of the joint of leg 0
JOINT_1 = JOINT_0 + JOINT
RETURNED = int(JOINT_1) + JOINT  # fields that a block gives back

# ---- derived from the episode's parameters -------------------------------------------------------------------------
_field = count(RETURNED)
INV_MASS = next(_field)  # 1/kg, of the lander
INV_INERTIA = next(_field)  # 1/(kg m^2)
MASS_CENTER_Y = next(_field)  # m, of the lander's center of mass above its origin
MOTOR_LIMIT = next(_field)  # N m s, largest impulse of a leg's motor in one step
PACKED = next(_field)  # fields that a block takes from a row

# ---- rows only -----------------------------------------------------------------------------------------------------
GRAVITY = PACKED  # m/s^2
ROW = GRAVITY + 1

# ---- blocks only ---------------------------------------------------------------------------------------------------
WORK_0 = np.int64(PACKED)
WORK_1 = WORK_0 + WORK
BLOCK = int(WORK_1) + WORK
BLOCK_FLOATS = BLOCK * LANES

# ---- contacts ------------------------------------------------------------------------------------------------------
EDGES = 11  # the flat edge 0 at y = 0 and ten of terrain
MAX_CONTACTS = EDGES * BODIES

# ---- status[env, :], int64 -----------------------------------------------------------------------------------------
S_HAS_SHAPING, S_WIND, S_TURBULENCE = range(at.STATUS, at.STATUS + 3)
STATUS = at.STATUS + 3

# ---- parameters[env, :], float64, in the order of the ParamSpace ---------------------------------------------------
(
    P_GRAVITY,
    P_ENABLE_WIND,
    P_WIND_POWER,
    P_TURBULENCE_POWER,
    P_MAIN_ENGINE_POWER,
    P_SIDE_ENGINE_POWER,
    P_LANDER_DENSITY,
    P_LEG_SPRING_TORQUE,
    P_GROUND_FRICTION,
    P_INITIAL_RANDOM,
) = range(10)
PARAMETERS = 10

OBSERVATION = 8
