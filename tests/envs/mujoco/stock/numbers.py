"""Where the value of a parameter belongs in an MjModel, found without the code that the tests try."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import mujoco  # type: ignore[import-untyped]
import numpy as np

from gym_dr.arrays import Array

VECTORS, NUMBERS = ("gravity", "wind"), ("density", "viscosity", "timestep")  # of the options
_AXES = {  # of the fields that are vectors
    "x y z": "gravity wind body_inertia body_ipos light_dir",
    "slide spin roll": "geom_friction",
    "slide1 slide2 spin roll1 roll2": "pair_friction",
    "timeconst dampratio": "geom_solref pair_solref jnt_solref eq_solref",
    "dmin dmax width midpoint power": "geom_solimp pair_solimp jnt_solimp eq_solimp",
    "low high": "jnt_range jnt_actfrcrange actuator_forcerange tendon_range tendon_actfrcrange tendon_lengthspring",
    "focal_x focal_y principal_x principal_y": "cam_intrinsic",
    "r g b": "light_diffuse light_ambient light_specular",
    "r g b a": "geom_rgba mat_rgba",
    "constant linear quadratic": "light_attenuation",
}
AXES = {field: axes.split() for axes, fields in _AXES.items() for field in fields.split()}
AXES |= {
    f"{kind}_{what}": list("xyz") for kind in ("body", "geom", "site", "cam", "light") for what in ("pos", "rotation")
}
AXES["mat_texrepeat"] = ["x", "y"]
AXES["pseudo_inertia"] = ["alpha", "d1", "d2", "d3", "s12", "s23", "s13", "t1", "t2", "t3"]
GEAR = ["x", "y", "z", "rx", "ry", "rz"]
_SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX = range(2, 7)  # mjtGeom
_TEXTURE_COLUMN = 1  # mjTEXROLE_RGB


Write: TypeAlias = Callable[[Any, Any, int, str, float], None]  # model, nominal one, row, axis, value


class Where(NamedTuple):
    """What a name stands for."""

    field: str
    element: str  # empty for all
    axis: str  # empty for all


def read_name(name: str) -> Where:
    """Takes a name apart."""
    head, _, rest = name.partition(":")
    field, _, option_axis = head.partition(".")
    if not rest:
        return Where(field, "", option_axis)
    element, _, axis = rest.rpartition(".")
    known = {"actuator_gear": GEAR, "geom_size": ["radius", "length", "x", "y", "z"]}.get(field, AXES.get(field, []))
    return Where(field, element, axis) if element and axis in known else Where(field, rest, "")


class Names(dict[str, list[str]]):
    """Kind -> the names of its elements, by their places; an unnamed one is called after what it belongs to."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __missing__(self, kind: str) -> list[str]:
        model = self._model
        if kind == "dof":
            owners = list(model.dof_jntid)
            several = [f"{self['jnt'][j]}.{i - owners.index(j)}" for i, j in enumerate(owners)]
            self[kind] = [self["jnt"][j] if owners.count(j) == 1 else several[i] for i, j in enumerate(owners)]
            return self[kind]
        number = model.nu if kind == "actuator" else getattr(model, f"n{kind}")
        names = [getattr(model, kind)(i).name or self._belonging(kind, i) for i in range(number)]
        repeated, seen = Counter(names), Counter[str]()
        for i, name in enumerate(names):
            seen[name] += 1
            names[i] = f"{name}#{seen[name]}" if repeated[name] > 1 else name
        self[kind] = names
        return names

    def _belonging(self, kind: str, i: int) -> str:
        model = self._model
        if kind == "body" and model.body_jntnum[i]:
            return self["jnt"][model.body_jntadr[i]]
        if kind == "geom":
            return self["body"][model.geom_bodyid[i]]
        if kind == "actuator" and model.actuator_trntype[i] == mujoco.mjtTrn.mjTRN_JOINT:
            return self["jnt"][model.actuator_trnid[i, 0]]
        if kind == "pair":
            return f"{self['geom'][model.pair_geom1[i]]}+{self['geom'][model.pair_geom2[i]]}"
        return f"{'joint' if kind == 'jnt' else kind}{i}"


def numbers(owner: Any) -> list[str]:
    """The arrays of a model or its options that hold numbers which vary."""
    held = {name: getattr(owner, name) for name in dir(owner) if not name.startswith("_")}
    real = [name for name, value in held.items() if getattr(value, "dtype", np.dtype(bool)).kind == "f"]
    return [*real, *(name for name in ("geom_matid", "mat_texid") if name in held)]


def arrays(model: Any) -> dict[str, Array]:
    """All of them by name; inertias as tensors, since their axes have no order."""
    found = {name: np.array(getattr(model, name), np.float64) for name in numbers(model)}
    found |= {name: np.array(getattr(model.opt, name)) for name in (*numbers(model.opt), *NUMBERS)}
    axes = matrices(found.pop("body_iquat"))
    found["body_inertia"] = np.einsum("nij,nj,nkj->nik", axes, found["body_inertia"], axes)
    return found


def matrices(quats: Array) -> Array:
    """Rotations as matrices."""
    found = np.zeros((len(quats), 9))
    for quat, matrix in zip(quats, found, strict=True):
        mujoco.mju_quat2Mat(matrix, quat)
    return found.reshape(-1, 3, 3)


class Written:
    """A model of its own, to which parameters are written one by one."""

    def __init__(self, nominal: Any) -> None:
        self.nominal, self.model, self._names = nominal, copy.copy(nominal), Names(nominal)
        self._data = mujoco.MjData(nominal)
        self._fields = numbers(nominal)

    def write(self, values: Mapping[str, float]) -> None:
        """Writes values of elements and components into the nominal model, and what MuJoCo derives from them."""
        for name in self._fields:
            getattr(self.model, name)[...] = getattr(self.nominal, name)
        options, nominal_options = self.model.opt, self.nominal.opt
        for name in VECTORS:
            getattr(options, name)[:] = getattr(nominal_options, name)
        for name in NUMBERS:
            setattr(options, name, getattr(nominal_options, name))
        vectors: dict[tuple[str, int], Array] = {}  # of which the numbers act together
        for name, value in values.items():
            field, element, axis = read_name(name)
            if field in NUMBERS:
                setattr(options, field, value)
                continue
            if field in VECTORS:
                getattr(options, field)["xyz".index(axis)] = value
                continue
            kind = {"qpos0": "jnt", "qpos": "jnt", "pseudo": "body"}.get(
                field.partition("_")[0], field.partition("_")[0]
            )
            row = self._names[kind].index(element)
            if field == "pseudo_inertia" or field.endswith("_rotation"):
                vector = vectors.setdefault((field, row), np.zeros(len(AXES[field])))
                vector[AXES[field].index(axis)] = value
            elif field in _SPECIAL:
                _SPECIAL[field](self.model, self.nominal, row, axis, value)
            else:
                place = (row, AXES[field].index(axis)) if axis else row
                getattr(self.model, field)[place] = value
        for (field, row), vector in vectors.items():
            if field == "pseudo_inertia":
                _reshape(self.model, row, vector)
            else:
                _turn(getattr(self.model, field.replace("rotation", "quat"))[row], vector)
        mujoco.mj_setConst(self.model, self._data)


def _reshape(model: Any, body: int, changes: Array) -> None:
    """Deforms a body whose mass is spread over points: each point x goes to A x + t, and all become heavier."""
    alpha, d1, d2, d3, s12, s23, s13, *shift = changes
    deform = np.array([[np.exp(d1), s12, s13], [0, np.exp(d2), s23], [0, 0, np.exp(d3)]])
    axes = matrices(model.body_iquat[body][None])[0]
    moments = model.body_inertia[body]
    center = model.body_ipos[body]
    # points on the principal axes of which each has a sixth of the mass
    mass, spread = model.body_mass[body], 0.5 * moments.sum() - moments
    ends = np.sqrt(np.maximum(3.0 * spread / mass, 0))[:, None] * axes.T
    points = np.concatenate([center + ends, center - ends]) @ deform.T + shift
    mass *= np.exp(2.0 * alpha)
    new_center = points.mean(axis=0)
    around = points - new_center
    tensor = mass / 6 * (np.square(around).sum() * np.eye(3) - around.T @ around)
    values, vectors = np.linalg.eigh(tensor)
    vectors[:, 2] = np.cross(vectors[:, 0], vectors[:, 1])
    model.body_mass[body], model.body_ipos[body], model.body_inertia[body] = mass, new_center, values
    mujoco.mju_mat2Quat(model.body_iquat[body], vectors.reshape(-1))


def _turn(quat: Array, vector: Array) -> None:
    """Turns about the axes of the parent's frame."""
    turn = np.zeros(4)
    angle = np.linalg.norm(vector)
    mujoco.mju_axisAngle2Quat(turn, vector / (angle or 1.0), angle)
    mujoco.mju_mulQuat(quat, turn, quat.copy())


def _mass(model: Any, nominal: Any, row: int, axis: str, value: float) -> None:
    """The body keeps its shape."""
    model.body_mass[row], ratio = value, value / nominal.body_mass[row]
    model.body_inertia[row] = nominal.body_inertia[row] * ratio


def _gear(model: Any, nominal: Any, row: int, axis: str, value: float) -> None:
    model.actuator_gear[row, GEAR.index(axis) if axis else 0] = value


def _strength(model: Any, nominal: Any, row: int, axis: str, value: float) -> None:
    for field in ("gainprm", "biasprm", "forcerange"):
        getattr(model, f"actuator_{field}")[row] = value * getattr(nominal, f"actuator_{field}")[row]


def _kp(model: Any, nominal: Any, row: int, axis: str, value: float) -> None:
    """The force of a position servo is kp (control - position) - kd velocity."""
    model.actuator_gainprm[row, 0], model.actuator_biasprm[row, 1] = value, -value


def _kd(model: Any, nominal: Any, row: int, axis: str, value: float) -> None:
    model.actuator_biasprm[row, 2] = -value
    if not nominal.actuator_biasprm[row, 1]:  # a velocity servo: kd (control - velocity)
        model.actuator_gainprm[row, 0] = value


def _size(model: Any, nominal: Any, row: int, axis: str, value: float) -> None:
    kind, size = nominal.geom_type[row], model.geom_size[row]
    size[{"": 0, "radius": 0, "length": 1, "x": 0, "y": 1, "z": 2}[axis]] = value
    a, b, c = size
    radius, half = {
        _SPHERE: (a, (a, a, a)),
        _CAPSULE: (a + b, (a, a, a + b)),
        _CYLINDER: (np.hypot(a, b), (a, a, b)),
        _ELLIPSOID: (max(size), (a, b, c)),
        _BOX: (np.linalg.norm(size), (a, b, c)),
    }[int(kind)]
    model.geom_rbound[row], model.geom_aabb[row, 3:] = radius, half


def _of_joint(field: str) -> Write:
    def write(model: Any, nominal: Any, row: int, axis: str, value: float) -> None:
        getattr(model, field)[model.jnt_qposadr[row]] = value

    return write


def _texture(model: Any, nominal: Any, row: int, axis: str, value: float) -> None:
    model.mat_texid[row, _TEXTURE_COLUMN] = int(value)


_SPECIAL: dict[str, Write] = {
    "body_mass": _mass,
    "actuator_gear": _gear,
    "actuator_strength": _strength,
    "actuator_kp": _kp,
    "actuator_kd": _kd,
    "geom_size": _size,
    "qpos0": _of_joint("qpos0"),
    "qpos_spring": _of_joint("qpos_spring"),
    "mat_texid": _texture,
}
