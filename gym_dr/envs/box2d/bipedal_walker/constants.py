"""The constants of BipedalWalker, defined once for all implementations.

They are those of Gymnasium's ``BipedalWalker-v3`` (MIT license; a test compares them). Lengths are in Box2D units
("meters"), which are pixels of Gymnasium's pictures divided by ``SCALE``. Values that an episode may change are in
``params.py`` as the nominal values of parameters; the rest is here.
"""

from __future__ import annotations

FPS = 50  # physics steps per second; one environment step is one physics step
SCALE = 30.0  # pixels per meter
VELOCITY_ITERATIONS = 180  # of Box2D's solver, every step
POSITION_ITERATIONS = 60  # at most; Box2D leaves early when the joints and contacts are satisfied

MOTORS_TORQUE = 80  # N m, of each joint at full action
SPEED_HIP = 4  # rad/s
SPEED_KNEE = 6  # rad/s
LIDAR_RANGE = 160 / SCALE  # m
LIDAR_RAYS = 10
LIDAR_SWEEP = 1.5  # rad, from straight down to where an eleventh ray would point
INITIAL_RANDOM = 5  # N, largest push on the hull at the start

HULL_POLY = ((-30, +9), (+6, +9), (+34, +1), (+34, -8), (-30, -8))  # pixels, around the hull's origin
HULL_DENSITY = 5.0  # kg/m^2
HULL_FRICTION = 0.1
LEG_DOWN = -8 / SCALE  # m, of the hips above the hull's origin
LEG_W, LEG_H = 8 / SCALE, 34 / SCALE  # m, width and height of an upper leg
LOWER_WIDTH = 0.8  # of a lower leg, in LEG_W
LEG_DENSITY = 1.0  # kg/m^2
LEG_FRICTION = 0.2  # Box2D's default
LEG_TILT = 0.05  # rad, a leg's angle when the world is built
HIP_LOWER, HIP_UPPER = -0.8, 1.1  # rad
KNEE_LOWER, KNEE_UPPER = -1.6, -0.1  # rad

VIEWPORT_W = 600  # pixels
VIEWPORT_H = 400  # pixels

TERRAIN_STEP = 14 / SCALE  # m
TERRAIN_LENGTH = 200  # in steps
TERRAIN_HEIGHT = VIEWPORT_H / SCALE / 4  # m
TERRAIN_GRASS = 10  # in steps: longest stretch between obstacles
TERRAIN_STARTPAD = 20  # in steps: level at the start
FRICTION = 2.5  # of the ground

CLOUDS = TERRAIN_LENGTH // 20
CLOUD_CORNERS = 5
START_X = TERRAIN_STEP * TERRAIN_STARTPAD / 2  # m, of the hull
START_Y = TERRAIN_HEIGHT + 2 * LEG_H
UPPER_Y, LOWER_Y = START_Y - LEG_H / 2 - LEG_DOWN, START_Y - LEG_H * 3 / 2 - LEG_DOWN  # m, of the legs' centers
GOAL_X = (TERRAIN_LENGTH - TERRAIN_GRASS) * TERRAIN_STEP  # m, beyond it an episode ends

PROGRESS_REWARD = 130  # per SCALE meters
TILT_COST = 5.0  # of the potential, per rad
TORQUE_COST = 0.00035 * MOTORS_TORQUE  # reward per joint and step at full action
FALL_REWARD = -100.0  # replaces the reward of the last step
