"""Memory layout of a walker, beyond what ``solver/layout.py`` defines for all worlds.

Rows and blocks share: bodies, head, joints, and quantities derived from parameters and action; the rest differs.
"""

from __future__ import annotations

from itertools import count

import numpy as np

from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.layout import BODY, HEAD, JOINT, LANES, WORK

# ---- bodies --------------------------------------------------------------------------------------------------------
# Numbers that are passed to functions are np.int64: numba compiles a function anew for every plain integer constant.
# Leg 0 is the first that Gymnasium builds, tilted to -0.05 rad.
HULL, UPPER_0, LOWER_0, UPPER_1, LOWER_1 = (np.int64(body) for body in range(5))
BODIES = 5
WORLD = BODIES * BODY  # first field of the head
MOVED, AWAKE, SOLVED, PENETRATION = WORLD + at.MOVED, WORLD + at.AWAKE, WORLD + at.SOLVED, WORLD + at.PENETRATION
JOINTS = 4
HIP_0, KNEE_0, HIP_1, KNEE_1 = (np.int64(WORLD + HEAD + JOINT * joint) for joint in range(JOINTS))  # first fields
RETURNED = WORLD + HEAD + JOINT * JOINTS  # fields that a block gives back

# ---- derived from the episode's parameters, and the action of this step --------------------------------------------
_field = count(RETURNED)
HULL_INV_MASS, HULL_INV_INERTIA = next(_field), next(_field)  # 1/kg, 1/(kg m^2)
HULL_CENTER_X, HULL_CENTER_Y = next(_field), next(_field)  # m, the hull's center of mass in its frame
UPPER_INV_MASS, UPPER_INV_INERTIA = next(_field), next(_field)
LOWER_INV_MASS, LOWER_INV_INERTIA = next(_field), next(_field)
HIP_LOWER, HIP_UPPER, KNEE_LOWER, KNEE_UPPER = next(_field), next(_field), next(_field), next(_field)  # rad
SPEED_0 = next(_field)  # rad/s, target speeds of the motors, in the order of the joints
SPEED_1, SPEED_2, SPEED_3 = next(_field), next(_field), next(_field)
IMPULSE_0 = next(_field)  # N m s, largest impulses of the motors in this step
IMPULSE_1, IMPULSE_2, IMPULSE_3 = next(_field), next(_field), next(_field)
PACKED = next(_field)  # fields that a block takes from a row

# ---- rows only -----------------------------------------------------------------------------------------------------
GRAVITY = PACKED  # m/s^2
ROW = GRAVITY + 1

# ---- blocks only ---------------------------------------------------------------------------------------------------
WORK_HIP_0, WORK_KNEE_0, WORK_HIP_1, WORK_KNEE_1 = (np.int64(PACKED + WORK * joint) for joint in range(JOINTS))
BLOCK = PACKED + WORK * JOINTS
BLOCK_FLOATS = BLOCK * LANES

# ---- status[env, :], int64 -----------------------------------------------------------------------------------------
S_HAS_SHAPING = at.STATUS
STATUS = at.STATUS + 1

# ---- parameters[env, :], float64, in the order of the ParamSpace; those from P_OBSTACLES on are the hardcore variant's
(
    P_GRAVITY,
    P_MOTOR_TORQUE,
    P_HIP_SPEED,
    P_KNEE_SPEED,
    P_HULL_DENSITY,
    P_LEG_DENSITY,
    P_GROUND_FRICTION,
    P_LEG_FRICTION,
    P_INITIAL_RANDOM,
    P_HIP_LOWER,
    P_HIP_UPPER,
    P_KNEE_LOWER,
    P_KNEE_UPPER,
    P_LIDAR_RANGE,
    P_ROUGHNESS,
    P_OBSTACLES,
) = range(16)

OBSERVATION = 24
ACTIONS = 4
