"""The table of what may vary in a MuJoCo model, one row for each physical quantity, and the names of its elements.

Most rows are fields of ``MjModel`` under MuJoCo's names. Others stand for several numbers (``actuator_kp``), or change
fields in another form (``geom_rotation``).
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias

import numpy as np

from gym_dr.arrays import Array, Mask

FACTOR_HIGH = 1000.0  # largest factor that scales a whole field or a whole vector

XYZ = ("x", "y", "z")
RANGE = ("low", "high")
_RGB = ("r", "g", "b")
_RGBA = (*_RGB, "a")
_FRICTION = ("slide", "spin", "roll")
SOLREF = ("timeconst", "dampratio")
# MuJoCo clips to these bounds
_SHARE = (1e-4, 0.9999)
_SOLIMP = {"dmin": _SHARE, "dmax": _SHARE, "width": (0, 100), "midpoint": _SHARE, "power": (1, 100)}
# of Rucker and Wensing (2022), see ``derived.pseudo_inertia``
_PSEUDO = ("alpha", "d1", "d2", "d3", "s12", "s23", "s13", "t1", "t2", "t3")

_FREE, _BALL = 0, 1  # mjtJoint
_SPHERE, _CAPSULE, _CYLINDER = 2, 3, 5  # mjtGeom
SHAPED = (2, 3, 4, 5, 6)  # the same, ellipsoids and boxes: what MuJoCo collides by formulas
_FIXED, _AFFINE, _MUSCLE, _DCMOTOR = 0, 1, 2, 3  # mjtGain and mjtBias
_SCALAR = (0, 1, 2, 3)  # mjtTrn: a joint, a joint in its parent, a slider and crank, a tendon


@dataclass(frozen=True, kw_only=True)
class Part:
    """Numbers of one field of the model that a name stands for."""

    field: str
    columns: tuple[int, ...]  # places in the flattened field
    exponent: int = 1  # of the factor, if the name is a factor
    coef: float = 1.0  # each number is the parameter's value times this


Parts: TypeAlias = tuple[Part, ...]
Reasons: TypeAlias = Sequence[str]  # why each element cannot have an effect; empty if it can


@dataclass(frozen=True)
class Field:
    """One quantity of a model: a field of ``MjModel``, of ``MjModel.opt``, or what ``parts`` says."""

    name: str  # MuJoCo's name, if it is a field
    objects: str | None  # kind of its elements: "body", "geom", "jnt", "dof", "actuator", ...; None for options
    low: float  # smallest possible value
    high: float  # largest possible value
    unit: str  # empty for pure numbers
    doc: str
    _: KW_ONLY
    axes: tuple[str, ...] | Callable[[Any, int], tuple[str, ...]] = ()  # names of a vector's components; () for numbers
    derived: bool = False  # whether a change requires mj_setConst
    closed: bool = False  # whether the bounds hold for every model; others follow an extreme nominal value
    kind: str = "float"
    # component -> its own bounds, which hold for every model; such components are not scaled together
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    highest: Callable[[Any, int], float] | None = None  # of an element, in place of ``high``
    idle: Callable[[Any], Reasons] | None = None  # None if every element may have an effect
    # of one element: component ("" if it is a number) -> its numbers, or {} if it has none; None for consecutive ones
    parts: Callable[[Any, int], Mapping[str, Parts]] | None = None
    factor: bool = False  # whether an element is a factor, nominally 1
    added: bool = False  # whether it is no field of MuJoCo's, and nominally 0: what it changes is derived

    @property
    def scales(self) -> bool:
        """Whether a factor for the whole field or a whole vector makes sense."""
        return not (self.added or self.limits or self.kind == "int")

    @property
    def factor_low(self) -> float:
        """Smallest factor that scales the whole field or a whole vector."""
        # a negative one would swap the ends of a range
        return -FACTOR_HIGH if self.low < 0 and self.axes not in (RANGE, SOLREF) else 1e-6 if self.low > 0 else 0.0

    def numbers(self, model: Any, i: int, stride: int) -> Mapping[str, Parts]:
        """The numbers of element ``i``: component -> its parts; "" is the component of a number."""
        if self.parts is not None:
            return self.parts(model, i)
        axes = self.axes(model, i) if callable(self.axes) else self.axes
        places = enumerate(axes or ("",), start=i * stride)
        return {axis: (Part(field=self.name, columns=(column,)),) for column, axis in places}


# ---- what cannot have an effect --------------------------------------------------------------------------------------


def _touches(model: Any) -> Mask:
    """Which geoms can collide under their own parameters, ``(ngeom, ngeom)``."""
    found = (model.geom_contype[:, None] & model.geom_conaffinity[None, :]) != 0
    bodies = model.body_weldid[model.geom_bodyid]
    return np.asarray((found | found.T) & (bodies[:, None] != bodies[None, :]))


def outranked(model: Any) -> Mask:
    """Which contacts of each geom follow the other geom alone, whose priority is higher, ``(ngeom, ngeom)``."""
    return np.asarray(_touches(model) & (model.geom_priority[None, :] > model.geom_priority[:, None]))


def _where(idle: Callable[[Any], Any], reason: str) -> Callable[[Any], Reasons]:
    """A reason for the elements that a function of the model marks."""
    return lambda model: [reason if flag else "" for flag in idle(model)]


_alone = _where(lambda model: ~_touches(model).any(axis=1), "it collides with nothing")


def _contactless(model: Any) -> Reasons:
    ruled = (_touches(model) & ~outranked(model)).any(axis=1)
    reasons = [alone or "all that it touches has a higher priority" for alone in _alone(model)]
    return list(np.where(ruled, "", reasons))


# ---- names that stand for several numbers ----------------------------------------------------------------------------


def _gains(i: int, *numbers: tuple[str, int, float]) -> dict[str, Parts]:
    """Parts of one parameter: the prefix of a field with ten numbers an actuator, the number, and its coefficient."""
    return {"": tuple(Part(field=f"actuator_{f}prm", columns=(10 * i + k,), coef=coef) for f, k, coef in numbers)}


def _gain(model: Any, i: int, k: int) -> Mapping[str, Parts]:
    """The gain of a servo for its position (``k`` is 1) or its velocity (2)."""
    gain, bias = model.actuator_gainprm[i], model.actuator_biasprm[i]
    if model.actuator_gaintype[i] == _DCMOTOR:
        return _gains(i, ("gain", 2 * k + 2, 1.0)) if gain[4] or gain[2 * k + 2] else {}
    if model.actuator_gaintype[i] == _AFFINE and gain[k] and k == 2:  # a damper, whose control is its damping
        return _gains(i, ("gain", 2, -1.0))
    if model.actuator_biastype[i] != _AFFINE or not (bias[1] or bias[k]):
        return {}
    leads = model.actuator_gaintype[i] == _FIXED and (k == 1 or not bias[1])  # a velocity servo follows its velocity
    follows = [("gain", 0, -gain[0] / bias[k])] if leads else []
    return _gains(i, ("bias", k, -1.0), *follows)


def _strength(model: Any, i: int) -> Mapping[str, Parts]:
    columns = tuple(10 * i + k for k in ((2, 3) if model.actuator_gaintype[i] == _MUSCLE else (0, 1, 2)))
    parts = [Part(field=f"actuator_{field}prm", columns=columns) for field in ("gain", "bias")]
    if model.actuator_forcelimited[i]:
        parts.append(Part(field="actuator_forcerange", columns=(2 * i, 2 * i + 1)))
    return {"": tuple(parts)}


def _gear_axes(model: Any, i: int) -> tuple[str, ...]:
    turns = model.actuator_trntype[i] in _SCALAR[:2] and model.jnt_type[model.actuator_trnid[i, 0]] <= _BALL
    return ("x", "y", "z", "rx", "ry", "rz") if turns or model.actuator_trntype[i] not in _SCALAR else ()


def _size_axes(model: Any, i: int) -> tuple[str, ...]:
    kind = model.geom_type[i]
    return () if kind == _SPHERE else ("radius", "length") if kind in (_CAPSULE, _CYLINDER) else XYZ


def _at_joint(field: str) -> Callable[[Any, int], Mapping[str, Parts]]:
    return lambda model, i: {"": (Part(field=field, columns=(int(model.jnt_qposadr[i]),)),)}


def _material(model: Any, i: int) -> Mapping[str, Parts]:
    return {"": (Part(field="geom_matid", columns=(i,)),)} if model.nmat else {}


def _texture(model: Any, i: int) -> Mapping[str, Parts]:
    column = model.mat_texid.shape[1] * i + 1  # mjTEXROLE_RGB
    return {"": (Part(field="mat_texid", columns=(column,)),)} if model.ntex else {}


def _history(model: Any, i: int) -> float:
    return float(model.actuator_history[i, 0] * model.opt.timestep) or 1.0


def _length(model: Any, i: int) -> Mapping[str, Parts]:
    """The length of a link that is a single capsule or cylinder, in models without contacts, which depend on shapes."""
    geoms = np.flatnonzero(model.geom_bodyid == i)
    if not (model.body_mass[i] > 0 and len(geoms) == 1 and model.geom_type[geoms[0]] in (_CAPSULE, _CYLINDER)):
        return {}
    if model.body_simple[i] or not model.body_ipos[i].any() or _touches(model).any():  # the frame must be at one end
        return {}
    geom = int(geoms[0])
    thin = int(np.argmin(model.body_inertia[i]))  # the moment about the link's own axis does not change
    bent = tuple(3 * i + axis for axis in range(3) if axis != thin)
    moved = [("body_ipos", i), ("geom_pos", geom)]
    moved += [("body_pos", int(child)) for child in np.flatnonzero(model.body_parentid == i) if child]
    moved += [("site_pos", int(site)) for site in np.flatnonzero(model.site_bodyid == i)]
    parts = [Part(field=name, columns=tuple(range(3 * k, 3 * k + 3))) for name, k in moved]
    size = Part(field="geom_size", columns=(3 * geom + 1,))
    return {"": (*parts, size, Part(field="body_inertia", columns=bent, exponent=2))}


# ---- the table -------------------------------------------------------------------------------------------------------

_BIG = 1e9  # where physics has no bound
_TURN = float(np.pi)
_SERVO = "it would move the target of a servo; use actuator_strength, actuator_kp or actuator_kd"
_SLIDE = (
    "friction; a contact uses the larger value of its two geoms, unless one has a higher priority; spin and roll act "
    "where condim is 4 and 6"
)
_HARD = "time constant and damping ratio of a constraint, or negative stiffness and damping"
_simple = _where(lambda m: m.body_simple, 'MuJoCo has compiled the body as simple; write simple="false" in its XML')
_placed = _where(lambda m: np.isin(np.arange(m.nbody), m.jnt_bodyid[m.jnt_type == _FREE]), "its free joint places it")
_unlimited = _where(lambda model: model.jnt_limited == 0, "the joint has no limits")
_turning = _where(lambda model: model.jnt_type <= _BALL, "it has more than one number")


def _solver(objects: str, prefix: str, what: str, idle: Callable[[Any], Reasons] | None = None) -> tuple[Field, ...]:
    """How hard and how soft a kind of constraint is."""
    return (
        Field(f"{prefix}solref", objects, -1e7, 1e7, "", f"{what}: {_HARD}", axes=SOLREF, idle=idle),
        Field(
            f"{prefix}solimp", objects, 0, 100, "", f"{what}: impedance", axes=tuple(_SOLIMP), limits=_SOLIMP, idle=idle
        ),
    )


def _pose(objects: str, what: str, idle: Callable[[Any], Reasons] | None = None) -> tuple[Field, ...]:
    """Place and direction of a kind of element."""
    place, turn = f"place of {what} in its frame", f"{what}: rotation vector, in the frame that holds it"
    return (
        Field(f"{objects}_pos", objects, -1000, 1000, "m", place, axes=XYZ, derived=True, idle=idle),
        Field(f"{objects}_rotation", objects, -_TURN, _TURN, "rad", turn, axes=XYZ, added=True, idle=idle),
    )


# One row, one quantity.
# fmt: off
_ROWS = (
    Field("gravity", None, -100, 100, "m/s^2", "acceleration of gravity", axes=XYZ),
    Field("wind", None, -100, 100, "m/s", "velocity of the medium", axes=XYZ),
    Field("density", None, 0, 20_000, "kg/m^3", "density of the medium; 0 for none"),
    Field("viscosity", None, 0, 100, "Pa s", "viscosity of the medium; 0 for none"),
    Field("timestep", None, 1e-6, 0.1, "s", "duration of a simulation step"),
    Field("body_mass", "body", 1e-6, 1e5, "kg", "mass", derived=True),
    Field("body_inertia", "body", 1e-12, 1e6, "kg m^2", "principal moment of inertia; scales with the mass unless set",
          axes=XYZ, derived=True),
    Field("body_ipos", "body", -10, 10, "m", "center of mass in the body's frame", axes=XYZ, derived=True,
          idle=_simple),
    Field("body_length", "body", 0.05, 20, "x",
          "factor: length of a link at constant mass; also moves its center of mass, inertia and attached bodies",
          parts=_length, factor=True, closed=True),
    Field("pseudo_inertia", "body", -3, 3, "",
          "change of mass, center and moments together, always physical; alpha multiplies the mass by exp(2 alpha)",
          axes=_PSEUDO, added=True, idle=_simple),
    Field("body_gravcomp", "body", -10, 10, "", "share of the weight that is compensated", derived=True),
    *_pose("body", "a body", _placed),
    Field("geom_friction", "geom", 0, 100, "", _SLIDE, axes=_FRICTION, idle=_contactless),
    *_solver("geom", "geom_", "contacts", _contactless),
    Field("geom_margin", "geom", 0, 10, "m", "distance at which contacts begin", derived=True, idle=_alone),
    Field("geom_gap", "geom", 0, 10, "m", "part of the margin without force", derived=True, idle=_alone),
    Field("geom_size", "geom", 1e-6, 1000, "m", "radius and half length, or half sizes; the mass stays",
          axes=_size_axes, derived=True,
          idle=_where(lambda model: ~np.isin(model.geom_type, SHAPED), "its size is not that of a simple shape")),
    *_pose("geom", "a geom"),
    Field("geom_rgba", "geom", 0, 1, "", "color of a geom without material", axes=_RGBA, closed=True),
    Field("geom_matid", "geom", -1, 0, "", "number of a material; -1 for none", kind="int", parts=_material,
          highest=lambda model, i: model.nmat - 1),
    Field("pair_friction", "pair", 0, 100, "", "friction of a pair of geoms",
          axes=("slide1", "slide2", "spin", "roll1", "roll2")),
    *_solver("pair", "pair_", "contacts of a pair"),
    Field("pair_margin", "pair", 0, 10, "m", "distance at which contacts of a pair begin"),
    Field("pair_gap", "pair", 0, 10, "m", "part of a pair's margin without force"),
    Field("jnt_stiffness", "jnt", 0, 1e6, "N/m, N m/rad", "spring stiffness of a joint"),
    Field("jnt_range", "jnt", -_BIG, _BIG, "m, rad", "limits of a joint", axes=RANGE, idle=_unlimited),
    *_solver("jnt", "jnt_", "limits of a joint", _unlimited),
    Field("jnt_margin", "jnt", 0, 10, "m, rad", "distance at which a limit acts", idle=_unlimited),
    Field("jnt_actfrcrange", "jnt", -_BIG, _BIG, "N, N m", "limits of all actuators' force on a joint", axes=RANGE,
          idle=_where(lambda model: model.jnt_actfrclimited == 0, "the joint has no such limits")),
    Field("qpos0", "jnt", -_BIG, _BIG, "m, rad", "position of a joint in the model's pose, where its angle is 0",
          parts=_at_joint("qpos0"), derived=True, idle=_turning),
    Field("qpos_spring", "jnt", -_BIG, _BIG, "m, rad", "position at which a joint's spring rests; needs stiffness",
          parts=_at_joint("qpos_spring"), derived=True, idle=_turning),
    Field("dof_damping", "dof", 0, 1e6, "N s/m, N m s/rad", "damping of a joint"),
    Field("dof_frictionloss", "dof", 0, 1e6, "N, N m", "dry friction of a joint"),
    Field("dof_armature", "dof", 0, 1e5, "kg, kg m^2", "inertia of a joint's motor", derived=True),
    Field("actuator_gear", "actuator", -1e6, 1e6, "", "force or torque of an actuator at control 1", axes=_gear_axes,
          derived=True, idle=_where(lambda m: [_gain(m, i, 1) or _gain(m, i, 2) for i in range(m.nu)], _SERVO)),
    Field("actuator_strength", "actuator", 0, FACTOR_HIGH, "x",
          "factor: force of an actuator, with the gains and the force range of a servo", parts=_strength, factor=True,
          idle=_where(lambda m: (m.actuator_gaintype >= _DCMOTOR) & (m.actuator_biastype != _AFFINE),
                      "no number of this kind of actuator scales its force")),
    Field("actuator_kp", "actuator", 0, 1e9, "N/m, N m/rad", "gain of a servo: force for an error of 1",
          parts=functools.partial(_gain, k=1)),
    Field("actuator_kd", "actuator", 0, 1e9, "N s/m, N m s/rad", "damping of a servo: force against a velocity of 1",
          parts=functools.partial(_gain, k=2)),
    Field("actuator_forcerange", "actuator", -_BIG, _BIG, "N, N m", "limits of an actuator's force", axes=RANGE,
          idle=_where(lambda model: model.actuator_forcelimited == 0, "the actuator has no force limits")),
    Field("actuator_delay", "actuator", 0, 10, "s", "age of the control that acts", highest=_history,
          idle=_where(lambda model: model.actuator_history[:, 0] == 0,
                      "it needs a history: nsample of the actuator, or actuator_history of register_robot")),
    Field("tendon_stiffness", "tendon", 0, 1e9, "N/m", "stiffness of a tendon", derived=True),
    Field("tendon_damping", "tendon", 0, 1e9, "N s/m", "damping of a tendon", derived=True),
    Field("tendon_frictionloss", "tendon", 0, 1e9, "N", "dry friction of a tendon"),
    Field("tendon_armature", "tendon", 0, 1e9, "kg", "inertia of a tendon", derived=True),
    Field("tendon_range", "tendon", -_BIG, _BIG, "m", "limits of a tendon", axes=RANGE,
          idle=_where(lambda model: model.tendon_limited == 0, "the tendon has no limits")),
    Field("tendon_actfrcrange", "tendon", -_BIG, _BIG, "N", "limits of all actuators' force on a tendon", axes=RANGE,
          idle=_where(lambda model: model.tendon_actfrclimited == 0, "the tendon has no such limits")),
    Field("tendon_lengthspring", "tendon", 0, _BIG, "m", "lengths between which a tendon's spring rests", axes=RANGE),
    *_solver("eq", "eq_", "an equality"),
    *_pose("site", "a site"),
    *_pose("cam", "a camera"),
    Field("cam_fovy", "cam", 1, 179, "deg", "vertical field of view", closed=True),
    Field("cam_intrinsic", "cam", -10, 10, "m", "focal length and principal point of a camera with a sensor size",
          axes=("focal_x", "focal_y", "principal_x", "principal_y"),
          idle=_where(lambda model: ~model.cam_sensorsize.all(axis=1), "the camera has no sensor size")),
    Field("light_pos", "light", -1000, 1000, "m", "place of a light in its frame", axes=XYZ, derived=True),
    Field("light_dir", "light", -1, 1, "", "direction of a light", axes=XYZ, derived=True, closed=True),
    Field("light_diffuse", "light", 0, 10, "", "color of a light", axes=_RGB),
    Field("light_ambient", "light", 0, 10, "", "color that a light gives to everything", axes=_RGB),
    Field("light_specular", "light", 0, 10, "", "color of a light's reflections", axes=_RGB),
    Field("light_attenuation", "light", 0, 1000, "", "loss of a light with distance",
          axes=("constant", "linear", "quadratic")),
    Field("light_cutoff", "light", 0, 180, "deg", "half the opening of a spotlight", closed=True),
    Field("light_exponent", "light", 0, 1000, "", "sharpness of a spotlight"),
    Field("mat_rgba", "mat", 0, 1, "", "color of a material", axes=_RGBA, closed=True),
    Field("mat_texid", "mat", -1, 0, "", "number of a texture; -1 for none", kind="int", parts=_texture,
          highest=lambda model, i: model.ntex - 1),
    Field("mat_emission", "mat", 0, 10, "", "light that a material gives"),
    Field("mat_specular", "mat", 0, 1, "", "reflections of a material", closed=True),
    Field("mat_shininess", "mat", 0, 1, "", "sharpness of a material's reflections", closed=True),
    Field("mat_reflectance", "mat", 0, 1, "", "how much a material mirrors", closed=True),
    Field("mat_texrepeat", "mat", 0, 1e4, "", "repetitions of a texture", axes=("x", "y")),
)
# fmt: on
FIELDS = {row.name: row for row in _ROWS}


def is_option(name: str) -> bool:
    """Whether a field is one of ``MjModel.opt``."""
    return name in FIELDS and FIELDS[name].objects is None


def owner_of(model: Any, name: str) -> Any:
    """The object that has a field: an ``MjModel`` or its options."""
    return model.opt if is_option(name) else model


def field_array(model: Any, name: str) -> Array:
    """The values of a field in a model, ``(elements, numbers of each)`` or as MuJoCo has it; a copy.

    One that is no field of MuJoCo's is all zeros.
    """
    if name in FIELDS and FIELDS[name].added:
        field = FIELDS[name]
        return np.zeros((len(element_names(model, field.objects)), len(field.axes)))  # type: ignore[arg-type]
    return np.array(getattr(owner_of(model, name), name), dtype=np.float64)


# ---- names of elements -----------------------------------------------------------------------------------------------


def element_names(model: Any, objects: str | None) -> list[str]:
    """The names of a model's elements, in MuJoCo's order.

    An unnamed actuator is named after its joint, a body after its first joint, a geom after its body, a pair after its
    geoms, and a degree of freedom after its joint (``"root.3"`` if the joint has several); a number is appended if the
    name is not unique. Other unnamed elements have a number alone.

    Args:
        model: An ``MjModel``.
        objects: "body", "geom", "jnt", "dof", "actuator", "site", "cam", "light", "mat", "tendon", "pair", "eq", or
            None.
    """
    if objects is None:
        return [""]
    if objects == "dof":
        return _dof_names(model)
    count = model.nu if objects == "actuator" else getattr(model, f"n{objects}")
    given = [getattr(model, objects)(i).name for i in range(count)]
    return _unique([name or other for name, other in zip(given, _substitutes(model, objects, count), strict=True)])


def _dof_names(model: Any) -> list[str]:
    joints = element_names(model, "jnt")
    counts = Counter(model.dof_jntid.tolist())
    return [
        joints[joint] if counts[joint] == 1 else f"{joints[joint]}.{i - model.jnt_dofadr[joint]}"
        for i, joint in enumerate(model.dof_jntid.tolist())
    ]


def _substitutes(model: Any, objects: str, count: int) -> list[str]:
    """What elements without a name are called, see ``element_names``."""
    if objects == "geom":
        bodies = element_names(model, "body")
        return [bodies[body] for body in model.geom_bodyid]
    if objects == "pair":
        geoms = element_names(model, "geom")
        return [f"{geoms[a]}+{geoms[b]}" for a, b in zip(model.pair_geom1, model.pair_geom2, strict=True)]
    joints = element_names(model, "jnt") if objects in ("actuator", "body") else []
    if objects == "actuator":
        driven = model.actuator_trntype == _SCALAR[0]
        return [joints[model.actuator_trnid[i, 0]] if driven[i] else f"actuator{i}" for i in range(count)]
    if objects == "body":
        return [joints[model.body_jntadr[i]] if model.body_jntnum[i] else f"body{i}" for i in range(count)]
    return [f"{'joint' if objects == 'jnt' else objects}{i}" for i in range(count)]


def _unique(names: list[str]) -> list[str]:
    """Appends a number to names that occur more than once."""
    counts, numbers = Counter(names), defaultdict[str, Iterator[int]](lambda: itertools.count(1))
    return [name if counts[name] == 1 else f"{name}#{next(numbers[name])}" for name in names]
