"""The memory layout that the small worlds of all families share.

A world is a few dynamic bodies on static ground. Between steps each is a *row*: ``rows[env, FIELD]``, float32. To
solve, ``LANES`` rows are transposed into a *block*, one flat float32 array in which field F of lane l is at
``block[F * LANES + l]``. LLVM turns the loop ``for lane in range(LANES)`` over such an array into full-width SIMD,
provided that every offset is a compile-time constant, hence the module constants below.

Rows and blocks begin with the bodies, ``BODY`` fields each, followed by the ``HEAD`` fields of the world and the
joints; the rest is specific to the family (its ``layout.py``). Kernels import this module as ``at`` and
their family's as ``fields``, and anything that is not an offset by name.

Touching contacts are *slots*: ``slots[(slot * SLOT + FIELD) * LANES + lane]``, the same idea.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import llvmlite.binding  # type: ignore[import-untyped]
import numpy as np

f32 = np.float32  # the type in which Box2D computes
ZERO, ONE = f32(0), f32(1)

_FEATURES = llvmlite.binding.get_host_cpu_features()
LANES = 16 if _FEATURES.get("avx512f", False) or _FEATURES.get("avx2", False) else 8
"""Environments per block: one AVX-512 register of float32, or two AVX2 registers, which hide each other's latency."""

# ---- bodies --------------------------------------------------------------------------------------------------------
# Numbers that are passed to functions are np.int64: numba compiles a function anew for every plain integer constant.
_field: Iterator[Any] = map(np.int64, count())
CENTER_X = next(_field)  # m, center of mass
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
START_X = next(_field)  # m, center of mass and angle (rad) before the step
START_Y = next(_field)
START_ANGLE = next(_field)
BODY = next(_field)  # fields a body; body b starts at field b * BODY
BODY_FLOATS = BODY * LANES  # of one body in a block

# ---- the world, after its bodies -----------------------------------------------------------------------------------
MOVED, AWAKE, SOLVED, PENETRATION = range(4)
# MOVED: sum of 1 << body for bodies that left their fat box. AWAKE: 1, or 0 once all bodies sleep. SOLVED: 1 once the
# position iterations have left early. PENETRATION: m, deepest contact of this position iteration.
HEAD = 4

# ---- joints, after the head ----------------------------------------------------------------------------------------
IMPULSE_X, IMPULSE_Y, LIMIT_IMPULSE, MOTOR_IMPULSE, LIMIT_STATE = range(5)  # N s, N s, N m s, N m s, +1 lower -1 upper
JOINT = 5
# Offsets in a joint's work, in blocks only: arms from the centers of mass to the pin (m), symmetric 3x3 matrix K,
# adjugate column, two reciprocals, limit threshold.
ARM_A_X, ARM_A_Y, ARM_B_X, ARM_B_Y, K11, K12, K13, K22, K23, K33 = range(10)
ADJ_X, ADJ_Y, ADJ_Z, INV_DET3, INV_DET2, THRESHOLD, MOTOR_MASS = range(10, 17)
WORK = 17

# ---- contact slots -------------------------------------------------------------------------------------------------
_field = map(np.int64, count())
# the manifold, as the narrow phase left it
FACE_B = next(_field)  # 1 if the reference face is the body's, 0 if it is the ground's
POINTS = next(_field)  # contact points, 0 for an empty slot
LOCAL_NORMAL_X, LOCAL_NORMAL_Y = next(_field), next(_field)
LOCAL_POINT_X, LOCAL_POINT_Y = next(_field), next(_field)  # m, on the reference face
POINT_1_X, POINT_1_Y = next(_field), next(_field)  # m, in the other shape's frame
POINT_2_X, POINT_2_Y = next(_field), next(_field)
NORMAL_IMPULSE_1, TANGENT_IMPULSE_1 = next(_field), next(_field)  # N s
NORMAL_IMPULSE_2, TANGENT_IMPULSE_2 = next(_field), next(_field)
SLOT_FRICTION = next(_field)
SLOT_INV_MASS, SLOT_INV_INERTIA = next(_field), next(_field)  # of the body that touches
SLOT_CENTER_X, SLOT_CENTER_Y = next(_field), next(_field)  # m, of that body's center of mass in its frame
# computed by contact preparation
NORMAL_X, NORMAL_Y = next(_field), next(_field)
ARM_1_X, ARM_1_Y = next(_field), next(_field)  # m, from the center of mass to the contact
ARM_2_X, ARM_2_Y = next(_field), next(_field)
NORMAL_MASS_1, TANGENT_MASS_1 = next(_field), next(_field)  # kg
NORMAL_MASS_2, TANGENT_MASS_2 = next(_field), next(_field)
PAIR_K11, PAIR_K12, PAIR_K22 = next(_field), next(_field), next(_field)  # 1/kg, both points together
PAIR_INV11, PAIR_INV12, PAIR_INV22 = next(_field), next(_field), next(_field)  # kg, its inverse
PAIRED = next(_field)  # 1 if two points are solved together
SLOT = next(_field)
SLOT_STRIDE = SLOT * LANES  # of one slot

# ---- contacts between steps ----------------------------------------------------------------------------------------
# contact_floats[env, contact, :]: the fields LOCAL_NORMAL_X ... TANGENT_IMPULSE_2 of a slot, in that order
CONTACT_FLOATS = TANGENT_IMPULSE_2 - LOCAL_NORMAL_X + 1
# contact_ints[env, contact, :]; C_GROUND numbers the shapes of the ground, boxes before edges
C_BODY, C_GROUND, C_TOUCHING, C_FACE_B, C_POINTS, C_ID_1, C_ID_2 = range(7)
CONTACT_INTS = 7

# ---- properties[env, body, :] --------------------------------------------------------------------------------------
INV_MASS, INV_INERTIA, LOCAL_CENTER_X, LOCAL_CENTER_Y, FRICTION = range(5)  # 1/kg, 1/(kg m^2), m, m
PROPERTIES = 5

# ---- the ground ----------------------------------------------------------------------------------------------------
# edges[env, edge, :]: two ends (m) and friction
EDGE_FRICTION = 4
EDGE = 5
# boxes[env, box, :]: four corners counter-clockwise (x and y, m), their edges' outward normals, centroid (m), friction
BOX_NORMALS, BOX_CENTROID, BOX_FRICTION = 8, 16, 18
GROUND_BOX = 19
BOX_CORNERS = 4

# ---- status[env, :], int64; the family's own fields follow ---------------------------------------------------------
# S_TOUCHES: sum of 1 << body for bodies whose last event was a contact that began; S_TOUCHED: for those with any such
# event in the episode; S_BOXES: boxes of the episode's ground
S_CONTACTS, S_FRESH, S_TOUCHES, S_TOUCHED, S_BOXES = range(5)
STATUS = 5

# ---- scratch memory of one thread ----------------------------------------------------------------------------------
MAX_BODIES = 5
MAX_CONTACTS = 96
CHUNK = 1024  # environments that one pass sorts into blocks; their rows fit the second-level cache
# float scratch of the narrow phase and of the time of impact, in floats
W_VERTICES = np.int64(0)  # a polygon in the world, x and y of each vertex
W_NORMALS = np.int64(16)
W_INCIDENT = np.int64(32)  # the clipped segment, two points
W_CLIPPED = np.int64(36)
W_SIMPLEX = np.int64(40)  # three vertices of 7: point on the ground, point on the body, difference, weight
W_METRIC = 61
W_GROUND = np.int64(62)  # corners of the ground's shape, x and y
W_SWEEPS = 70  # of each body: start x, y, angle, end x, y, angle, fraction done
SWEEP = 7
W_BACKUP = W_SWEEPS + MAX_BODIES * SWEEP
W_TIMES = W_BACKUP + SWEEP  # time of impact of each contact
W_GROUND_TIMES = W_TIMES + MAX_CONTACTS  # fraction done of each contact's static body
FLOAT_SCRATCH = W_GROUND_TIMES + MAX_CONTACTS
# integer scratch
I_INCIDENT = np.int64(0)  # ids of the clipped segment
I_CLIPPED = np.int64(2)
I_SIMPLEX = 4  # vertex on ground and body of each of three simplex vertices, then their count
I_SAVED = 11
I_GROUND_COUNT = 17  # corners of the ground's shape
I_IMPACTS = 18  # how often each contact had an impact in this step
I_KNOWN = I_IMPACTS + MAX_CONTACTS  # whether its time of impact is known
I_ENABLED = I_KNOWN + MAX_CONTACTS
I_SELECTED = I_ENABLED + MAX_CONTACTS  # contacts of a substep
I_BASES = np.int64(I_SELECTED + MAX_CONTACTS)  # offset of each slot's body in its block, for two blocks
I_KINDS = np.int64(I_BASES + 2 * MAX_CONTACTS)  # kind of each slot, see contacts.py
I_ORDER = I_KINDS + 2 * MAX_CONTACTS  # environments of the chunk, sorted
I_CLASS = I_ORDER + CHUNK
I_HISTOGRAM = I_CLASS + CHUNK
CLASSES = 256  # of environments with similar contacts
FIRST_TOUCHING = 1  # classes from here on have contacts
INT_SCRATCH = I_HISTOGRAM + CLASSES + 1

SLOT_FLOATS = MAX_CONTACTS * SLOT * LANES
# The substep after an impact solves one body: its fields, then these, then its slots.
SUB_PENETRATION = BODY
SUB_FROZEN = BODY + 1
SUB_SLOTS = BODY + 2
SUBSTEP_FLOATS = (SUB_SLOTS + MAX_CONTACTS * SLOT) * LANES

# ---- time ----------------------------------------------------------------------------------------------------------
DT = f32(1.0 / 50)  # s
VELOCITY_ITERATIONS, POSITION_ITERATIONS = 180, 60
