"""Where everything about a sub-environment lives in memory.

Between steps each sub-environment is a *row*: ``rows[env, FIELD]``, float32. To solve, ``LANES`` rows are transposed
into a *block*, one flat float32 array in which field F of lane l is at ``block[F * LANES + l]``. LLVM turns the
loop ``for lane in range(LANES)`` over such an array into full-width SIMD, provided that every offset is a compile-time
constant, hence the module constants below. The first ``PACKED`` fields are the same in a row and in a block. Kernels
import this module as ``at``, and by name what is no offset: ``block[at.OMEGA * LANES + lane]``.

Touching contacts are *slots*: ``slots[(slot * SLOT + FIELD) * LANES + lane]``, the same idea.
"""

from __future__ import annotations

from itertools import count

import llvmlite.binding  # type: ignore[import-untyped]
import numpy as np

f32 = np.float32

_FEATURES = llvmlite.binding.get_host_cpu_features()
LANES = 16 if _FEATURES.get("avx512f", False) or _FEATURES.get("avx2", False) else 8
"""Environments a block: one AVX-512 register of float32, or two AVX2 registers, which hide each other's latency."""

# ---- bodies --------------------------------------------------------------------------------------------------------
# Numbers that are passed to functions are np.int64: numba compiles a function anew for every plain integer constant.
# Leg 0 starts right of the lander (Gymnasium's i = -1), leg 1 left of it.
LANDER, LEG_0, LEG_1 = np.int64(0), np.int64(1), np.int64(2)
BODIES = 3

_field = count()
CENTER_X = next(_field)  # m, centre of mass
CENTER_Y = next(_field)
ANGLE = next(_field)  # rad
VELOCITY_X = next(_field)  # m/s
VELOCITY_Y = next(_field)
OMEGA = next(_field)  # rad/s
COS = next(_field)  # of ANGLE
SIN = next(_field)
BOX_LOW_X = next(_field)  # m, the broad phase's fat box
BOX_LOW_Y = next(_field)
BOX_HIGH_X = next(_field)
BOX_HIGH_Y = next(_field)
REST_TIME = next(_field)  # s, how long the body has been almost still
BODY = next(_field)  # fields a body; body b starts at field b * BODY

# ---- joints --------------------------------------------------------------------------------------------------------
IMPULSE_X, IMPULSE_Y, LIMIT_IMPULSE, MOTOR_IMPULSE, LIMIT_STATE = range(5)  # N s, N s, N m s, N m s, +1 lower -1 upper
JOINT = 5
JOINT_0 = np.int64(BODIES * BODY)  # first field of the joint of leg 0
JOINT_1 = JOINT_0 + JOINT

# ---- what an episode's parameters make of the lander ---------------------------------------------------------------
PHYSICS = int(JOINT_1) + JOINT
_field = count(int(PHYSICS))
INV_MASS = next(_field)  # 1/kg, of the lander
INV_INERTIA = next(_field)  # 1/(kg m^2)
MASS_CENTER_Y = next(_field)  # m, of the lander's centre of mass above its origin
MOTOR_LIMIT = next(_field)  # N m s, largest impulse of a leg's motor in one step
PACKED = next(_field)  # fields that a block takes from a row

# ---- results of the solver, block and row --------------------------------------------------------------------------
MOVED = PACKED  # sum of 1 << body for bodies that left their fat box
AWAKE = MOVED + 1  # 1, or 0 once all three bodies sleep
SOLVED = AWAKE + 1  # 1 once the position iterations have left early
START = SOLVED + 1  # centre x, y and angle of each body before the step, 3 * BODIES fields
RETURNED = START + 3 * BODIES

# ---- rows only -----------------------------------------------------------------------------------------------------
_field = count(RETURNED)
GRAVITY = next(_field)  # m/s^2
FRICTION = next(_field)  # of hull and flat edge, hull and terrain, leg and flat edge, leg and terrain
ROW = FRICTION + 4

# ---- blocks only ---------------------------------------------------------------------------------------------------
_field = count(RETURNED)
ARM_A_X = next(_field)  # m, from the lander's centre of mass to the joints (both are at its origin)
ARM_A_Y = next(_field)
MOTOR_MASS = next(_field)  # kg m^2, 1 / (sum of inverse inertias)
INERTIA_SUM = next(_field)  # 1/(kg m^2), sum of inverse inertias
PENETRATION = next(_field)  # m, deepest contact of this position iteration
WORK_0 = np.int64(next(_field))  # joint 0's effective mass, see the names below
# Offsets in a joint's work: arm to the leg, symmetric 3x3 matrix K, adjugate column, two reciprocals, limit threshold.
ARM_B_X, ARM_B_Y, K11, K12, K13, K22, K23, ADJ_X, ADJ_Y, ADJ_Z, INV_DET3, INV_DET2, THRESHOLD = range(13)
WORK = 13
WORK_1 = WORK_0 + WORK
BLOCK = WORK_1 + WORK

# ---- contact slots -------------------------------------------------------------------------------------------------
_field = count()
# the manifold, as the narrow phase left it
FACE_B = next(_field)  # 1 if the reference face is the polygon's, 0 if it is the edge
POINTS = next(_field)  # contact points, 0 for an empty slot
LOCAL_NORMAL_X, LOCAL_NORMAL_Y = next(_field), next(_field)
LOCAL_POINT_X, LOCAL_POINT_Y = next(_field), next(_field)  # m, on the reference face
POINT_1_X, POINT_1_Y = np.int64(next(_field)), np.int64(next(_field))  # m, in the other shape's frame
POINT_2_X, POINT_2_Y = np.int64(next(_field)), np.int64(next(_field))
NORMAL_IMPULSE_1, TANGENT_IMPULSE_1 = np.int64(next(_field)), np.int64(next(_field))  # N s
NORMAL_IMPULSE_2, TANGENT_IMPULSE_2 = np.int64(next(_field)), np.int64(next(_field))
SLOT_FRICTION = next(_field)
SLOT_INV_MASS, SLOT_INV_INERTIA = next(_field), next(_field)  # of the body that touches
SLOT_CENTER_Y = next(_field)  # m, of that body's centre of mass above its origin
# what contact preparation makes of it
NORMAL_X, NORMAL_Y = next(_field), next(_field)
ARM_1_X, ARM_1_Y = next(_field), next(_field)  # m, from the centre of mass to the contact
ARM_2_X, ARM_2_Y = next(_field), next(_field)
NORMAL_MASS_1, TANGENT_MASS_1 = np.int64(next(_field)), np.int64(next(_field))  # kg
NORMAL_MASS_2, TANGENT_MASS_2 = np.int64(next(_field)), np.int64(next(_field))
PAIR_K11, PAIR_K12, PAIR_K22 = next(_field), next(_field), next(_field)  # 1/kg, both points together
PAIR_INV11, PAIR_INV12, PAIR_INV22 = next(_field), next(_field), next(_field)  # kg, its inverse
PAIRED = next(_field)  # 1 if two points are solved together
SLOT = next(_field)

# ---- contacts between steps ----------------------------------------------------------------------------------------
EDGES = 11  # the flat edge 0 at y = 0 and ten of terrain
MAX_CONTACTS = EDGES * BODIES
# contact_floats[env, contact, :]: the fields LOCAL_NORMAL_X ... TANGENT_IMPULSE_2 of a slot, in that order
CONTACT_FLOATS = TANGENT_IMPULSE_2 - LOCAL_NORMAL_X + 1
# contact_ints[env, contact, :]
C_BODY, C_EDGE, C_TOUCHING, C_FACE_B, C_POINTS, C_ID_1, C_ID_2 = range(7)
CONTACT_INTS = 7

# ---- status[env, :], int64 -----------------------------------------------------------------------------------------
S_LEG_0, S_LEG_1, S_CRASHED, S_CONTACTS, S_FRESH, S_HAS_SHAPING, S_WIND, S_TURBULENCE = range(8)
STATUS = 8

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

# ---- scratch memory of one thread ----------------------------------------------------------------------------------
CHUNK = 1024  # environments that one pass sorts into blocks; their rows fit the second-level cache
# float scratch of the narrow phase and of the time of impact, in floats
W_VERTICES = 0  # polygon in the world, x and y of each vertex
W_NORMALS = 12
W_INCIDENT = np.int64(24)  # the clipped segment, two points
W_CLIPPED = np.int64(28)
W_SIMPLEX = np.int64(32)  # three vertices of 7: point on edge, point on polygon, difference, weight
W_METRIC = 53
W_SWEEPS = 54  # of each body: start x, y, angle, end x, y, angle, fraction done
SWEEP = 7
W_BACKUP = W_SWEEPS + BODIES * SWEEP
W_TIMES = W_BACKUP + SWEEP  # time of impact of each contact
FLOAT_SCRATCH = W_TIMES + MAX_CONTACTS
# integer scratch
I_INCIDENT = np.int64(0)  # ids of the clipped segment
I_CLIPPED = np.int64(2)
I_SIMPLEX = 4  # vertex on edge and on polygon of each of three simplex vertices, then their count
I_SAVED = 11
I_IMPACTS = 18  # how often each contact had an impact in this step
I_KNOWN = I_IMPACTS + MAX_CONTACTS  # whether its time of impact is known
I_ENABLED = I_KNOWN + MAX_CONTACTS
I_SELECTED = I_ENABLED + MAX_CONTACTS  # contacts of a substep
I_ORDER = I_SELECTED + MAX_CONTACTS  # environments of the chunk, sorted
I_CLASS = I_ORDER + CHUNK
I_HISTOGRAM = I_CLASS + CHUNK
CLASSES = 256  # of environments that are alike to solve: 2 bits a body for its contacts, and 2 more, see step.py
INT_SCRATCH = I_HISTOGRAM + CLASSES + 1

BLOCK_FLOATS = BLOCK * LANES
BODY_FLOATS = BODY * LANES  # of one body in a block
SLOT_STRIDE = SLOT * LANES  # of one slot
SLOT_FLOATS = MAX_CONTACTS * SLOT * LANES
# The substep after an impact solves one body: its fields, then these, then its slots.
SUB_PENETRATION = BODY
SUB_FROZEN = BODY + 1
SUB_SLOTS = BODY + 2
SUBSTEP_FLOATS = (SUB_SLOTS + EDGES * SLOT) * LANES

# ---- time ----------------------------------------------------------------------------------------------------------
DT = f32(1.0 / 50)  # s
