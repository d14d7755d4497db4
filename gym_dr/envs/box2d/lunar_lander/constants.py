"""The constants of LunarLander, defined once for all implementations.

They are those of Gymnasium's ``LunarLander-v3`` (MIT license; a test compares them). Lengths are in Box2D units
("meters"), which are pixels of Gymnasium's pictures divided by ``SCALE``. Values that an episode may change are in
``params.py`` as the nominal values of parameters; the rest is here.
"""

from __future__ import annotations

FPS = 50  # physics steps per second; one environment step is one physics step
SCALE = 30.0  # pixels per meter
VELOCITY_ITERATIONS = 180  # of Box2D's solver, every step
POSITION_ITERATIONS = 60  # at most; Box2D leaves early when the joints and contacts are satisfied

VIEWPORT_W = 600  # pixels
VIEWPORT_H = 400  # pixels
WORLD_W = VIEWPORT_W / SCALE  # m, 20
WORLD_H = VIEWPORT_H / SCALE  # m, 13.33

CHUNKS = 11  # corner points of the terrain, so ten edges
CORNER_STEP = WORLD_W / (CHUNKS - 1)  # m, from one to the next
HELIPAD_Y = WORLD_H / 4  # m, height of the landing pad
TERRAIN_SMOOTHING = 0.33  # weight of each of three neighboring heights
BASELINE_FRICTION = 0.2  # of the flat edge at y = 0 under the terrain (Box2D's default)

LANDER_POLY = ((-14, +17), (-17, 0), (-17, -10), (+17, -10), (+17, 0), (+14, +17))  # pixels, around the body's origin
LANDER_FRICTION = 0.1
LEG_AWAY = 20  # pixels, sideways from the lander's origin to a leg's
LEG_DOWN = 18  # pixels, from a leg's center up to the joint
LEG_W = 2  # pixels, half width
LEG_H = 8  # pixels, half height
LEG_DENSITY = 1.0  # kg/m^2
LEG_FRICTION = 0.2  # Box2D's default
LEG_TILT = 0.05  # rad, a leg's angle when the world is built
LEG_MOTOR_SPEED = 0.3  # rad/s, outwards
LEG_ANGLE_MIN, LEG_ANGLE_MAX = 0.9 - 0.5, 0.9  # rad, of a leg's joint

MAIN_ENGINE_Y_LOCATION = 4  # pixels, below the lander's origin
SIDE_ENGINE_HEIGHT = 14  # pixels
SIDE_ENGINE_AWAY = 12  # pixels
SIDE_ENGINE_DROP = 17  # pixels; Gymnasium mixes this and SIDE_ENGINE_HEIGHT, which tilts the thrust with the lander

WIND_INDEX_LOW = -9999  # the phase of wind and turbulence is drawn from [low, high)
WIND_INDEX_HIGH = 9999
MAIN_ENGINE_COST = 0.30  # reward per step at full power
SIDE_ENGINE_COST = 0.03  # reward per step at full power
CRASH_REWARD = -100.0  # replaces the reward of the last step
LANDED_REWARD = 100.0  # replaces the reward of the last step
