"""The fields of a MuJoCo model that may vary, and the names of their elements."""

from __future__ import annotations

from collections import Counter
from dataclasses import KW_ONLY, dataclass
from typing import Any

XYZ = ("x", "y", "z")
FACTOR_HIGH = 1000.0  # largest factor that scales a whole field or a whole vector


@dataclass(frozen=True)
class Field:
    """One field of ``MjModel``, or of ``MjModel.opt``."""

    name: str  # MuJoCo's name
    objects: str | None  # kind of its elements: "body", "geom", "jnt", "dof", "actuator"; None for options
    low: float  # smallest possible value
    high: float  # largest possible value
    unit: str  # empty for pure numbers
    doc: str
    _: KW_ONLY
    axes: tuple[str, ...] = ()  # names of a vector's components; empty for numbers
    derived: bool = False  # whether a change requires mj_setConst

    @property
    def factor_low(self) -> float:
        """Smallest factor that scales the whole field or a whole vector."""
        return -FACTOR_HIGH if self.low < 0 else 1e-6 if self.low > 0 else 0.0


_INERTIA = "principal moment of inertia; scales with the mass unless set"
_FRICTION = "friction; a contact uses the larger value of its two geoms"
FIELDS = {
    field.name: field
    for field in (
        Field("gravity", None, -100, 100, "m/s^2", "acceleration of gravity", axes=XYZ),
        Field("wind", None, -100, 100, "m/s", "velocity of the medium", axes=XYZ),
        Field("density", None, 0, 20_000, "kg/m^3", "density of the medium; 0 for none"),
        Field("viscosity", None, 0, 100, "Pa s", "viscosity of the medium; 0 for none"),
        Field("body_mass", "body", 1e-6, 1e5, "kg", "mass", derived=True),
        Field("body_inertia", "body", 1e-12, 1e6, "kg m^2", _INERTIA, axes=XYZ, derived=True),
        Field("body_ipos", "body", -10, 10, "m", "center of mass in the body's frame", axes=XYZ, derived=True),
        Field("geom_friction", "geom", 0, 100, "", _FRICTION, axes=("slide", "spin", "roll")),
        Field("jnt_stiffness", "jnt", 0, 1e6, "N/m, N m/rad", "spring stiffness of a joint"),
        Field("dof_damping", "dof", 0, 1e6, "N s/m, N m s/rad", "damping of a joint"),
        Field("dof_frictionloss", "dof", 0, 1e6, "N, N m", "dry friction of a joint"),
        Field("dof_armature", "dof", 0, 1e5, "kg, kg m^2", "inertia of a joint's motor", derived=True),
        Field("actuator_gear", "actuator", -1e6, 1e6, "", "force or torque of an actuator at control 1", derived=True),
    )
}


def is_option(name: str) -> bool:
    """Whether a field is one of ``MjModel.opt``."""
    return name in FIELDS and FIELDS[name].objects is None


def owner_of(model: Any, name: str) -> Any:
    """The object that has a field: an ``MjModel`` or its options."""
    return model.opt if is_option(name) else model


def element_names(model: Any, objects: str | None) -> list[str]:
    """The names of a model's elements, in MuJoCo's order.

    An unnamed actuator is named after its joint, a body after its first joint, a geom after its body, and a degree of
    freedom after its joint (``"root.3"`` if the joint has several); a number is appended if the name is not unique.

    Args:
        model: An ``MjModel``.
        objects: "body", "geom", "jnt", "dof", "actuator", or None.
    """
    if objects is None:
        return [""]
    if objects == "dof":
        return _dof_names(model)
    joints = [model.joint(i).name or f"joint{i}" for i in range(model.njnt)]
    if objects == "jnt":
        return _unique(joints)
    if objects == "actuator":
        return _unique([model.actuator(i).name or _driven(model, i, joints) for i in range(model.nu)])
    firsts = [joints[model.body_jntadr[i]] if model.body_jntnum[i] else f"body{i}" for i in range(model.nbody)]
    bodies = _unique([model.body(i).name or first for i, first in enumerate(firsts)])
    if objects == "body":
        return bodies
    return _unique([model.geom(i).name or bodies[model.geom_bodyid[i]] for i in range(model.ngeom)])


def _dof_names(model: Any) -> list[str]:
    joints = element_names(model, "jnt")
    counts = Counter(model.dof_jntid.tolist())
    return [
        joints[joint] if counts[joint] == 1 else f"{joints[joint]}.{i - model.jnt_dofadr[joint]}"
        for i, joint in enumerate(model.dof_jntid.tolist())
    ]


def _driven(model: Any, i: int, joints: list[str]) -> str:
    """The joint that an unnamed actuator drives."""
    drives_a_joint = model.actuator_trntype[i] == 0  # mjTRN_JOINT
    return joints[model.actuator_trnid[i, 0]] if drives_a_joint else f"actuator{i}"


def _unique(names: list[str]) -> list[str]:
    """Appends a number to names that occur more than once."""
    counts, seen = Counter(names), Counter[str]()
    unique = []
    for name in names:
        seen[name] += 1
        unique.append(name if counts[name] == 1 else f"{name}#{seen[name]}")
    return unique
