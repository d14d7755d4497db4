from __future__ import annotations

import warnings
from typing import Any

import mujoco  # type: ignore[import-untyped]
import numpy as np
import pytest

from gym_dr import Add, Correlation, Randomization, Rule, Scale, Uniform, sample
from gym_dr.envs.mujoco.editor import ModelEditor, ModelFields
from gym_dr.envs.mujoco.fields import element_names
from gym_dr.envs.mujoco.presets import PRESETS
from gym_dr.envs.mujoco.space import ModelSpace
from gym_dr.errors import RandomizationError, RandomizationWarning, UnknownNameError
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.spec import parse_rule
from tests.envs.mujoco.names import NAMES, single


def model_of(name: str) -> Any:
    return single(name, randomization="none").unwrapped.model


def space_of(name: str) -> ModelSpace:
    return ModelSpace(name, model_of(name))


HOPPER = space_of("Hopper")


def test_names_are_mujocos() -> None:
    assert {"gravity.z", "density", "viscosity", "wind.x", "body_mass", "body_mass:torso"} <= set(HOPPER)
    assert {"body_inertia:torso.x", "body_ipos:foot.z", "geom_friction:floor", "geom_friction:floor.slide"} <= set(
        HOPPER
    )
    joint = ("jnt_stiffness", "dof_damping", "dof_armature", "dof_frictionloss", "actuator_gear")
    assert {f"{field}:thigh_joint" for field in joint} <= set(HOPPER)
    pendulum = space_of("InvertedPendulum")
    assert {"dof_damping:slider", "actuator_gear:slide", "body_length:pole"} <= set(pendulum)


@pytest.mark.parametrize("name", NAMES)
def test_nominal_values_are_the_models(name: str) -> None:
    model = model_of(name)
    space = ModelSpace(name, model)
    for key in space:
        if space[key].factor:
            assert space[key].nominal == 1.0
            continue
        for part in space[key].parts:
            owner = model.opt if hasattr(model.opt, part.field) else model
            number = np.ravel(getattr(owner, part.field, np.zeros(1000)))[
                part.columns[0]
            ]  # no field: it changes others
            assert space[key].nominal == pytest.approx(number / part.coef, rel=1e-15)


def test_elements_without_a_name_are_called_after_what_they_belong_to() -> None:
    ant, swimmer, humanoid = model_of("Ant"), model_of("Swimmer"), model_of("Humanoid")
    assert "ankle_1" in element_names(ant, "body")
    assert "hip_1" in element_names(ant, "actuator")
    assert element_names(swimmer, "geom")[1:] == ["torso", "mid", "back"]
    assert element_names(humanoid, "dof")[:7] == [*(f"root.{i}" for i in range(6)), "abdomen_z"]
    for model in (ant, swimmer, humanoid):
        for objects in ("body", "geom", "jnt", "dof", "actuator"):
            names = element_names(model, objects)
            assert len(set(names)) == len(names)


def test_a_pattern_gives_each_match_its_own_draw() -> None:
    expanded = HOPPER.expand(Randomization({"body_mass:*": Scale((0.5, 2.0)), "dof_damping:*_joint": (0.5, 2.0)}))
    assert list(expanded) == [
        *(f"body_mass:{body}" for body in ("foot", "leg", "thigh", "torso")),
        *(f"dof_damping:{joint}_joint" for joint in ("foot", "leg", "thigh")),
    ]


def test_parameters_that_a_pattern_stands_for_can_be_correlated() -> None:
    drawn = Randomization(
        {"body_mass:*": Scale((0.5, 2.0))},
        correlation=Correlation(("body_mass:leg", "body_mass:foot"), ((1.0, 0.9), (0.9, 1.0))),
    )
    assert HOPPER.expand(drawn).correlation == drawn.correlation
    values = sample(drawn, HOPPER, 500, seed=1)
    assert values["body_mass:leg"].corr(values["body_mass:foot"]) > 0.8
    assert abs(values["body_mass:leg"].corr(values["body_mass:torso"])) < 0.2
    with pytest.raises(UnknownNameError, match="'body_mass:arm'"):
        HOPPER.expand(Randomization(drawn, correlation=Correlation(("body_mass:arm", "body_mass:leg"), np.eye(2))))


def test_a_pattern_for_vectors_scales_elements_or_draws_components() -> None:
    scaled = HOPPER.expand(Randomization({"body_ipos:*": Scale((0.9, 1.1))}))
    assert list(scaled) == ["body_ipos:foot", "body_ipos:thigh"]  # the others are 0
    added = HOPPER.expand(Randomization({"body_ipos:t*": Add((-0.01, 0.01))}))
    assert list(added) == [f"body_ipos:{body}.{axis}" for body in ("thigh", "torso") for axis in "xyz"]
    slides = HOPPER.expand(Randomization({"geom_friction:*.slide": (0.5, 1.0)}))
    assert len(slides) == 5
    assert all(name.endswith(".slide") for name in slides)


def test_a_written_name_wins_over_a_pattern() -> None:
    expanded = HOPPER.expand(Randomization({"body_mass:*": Scale((0.5, 2.0)), "body_mass:leg": 2.5}))
    assert expanded["body_mass:leg"].distribution.support == (2.5, 2.5)
    assert len(expanded) == 4


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"body_mass:legg": 1.0},
            r"Unknown element of body_mass in Hopper: 'legg'. Did you mean 'leg'\? Known: foot, leg",
        ),
        ({"geom_friction:flor.slide": 1.0}, "Did you mean 'floor.slide'"),
        ({"body_mas:leg": 1.0}, "Did you mean 'body_mass'"),
        ({"gravty.z": -9.0}, "Did you mean 'gravity.z'"),
        ({"body_mass:q*": 1.0}, "Known: foot, leg, thigh, torso"),
        ({"integrator": 0.1}, "Unknown parameter of Hopper"),
    ],
)
def test_unknown_names_list_what_the_model_has(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        resolve(rules, HOPPER)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"body_mass:leg": 0.0}, "kg, got"),
        ({"body_mass": Scale((0.0, 2.0))}, "from 1e-06"),
        ({"geom_friction:floor": 0.5}, "geom_friction:floor.slide"),
        ({"gravity": (-11.0, -9.0)}, "gravity.z"),
        ({"body_mass": (1.0, 2.0)}, r"expected Scale\(\(low, high\)\), .* body_mass=scale:LOW:HIGH"),
        ({"body_inertia:leg": (0.1, 5.0)}, r"=scale:LOW:HIGH, .* a component in kg m\^2: body_inertia:leg\.x, "),
        ({"body_inertia:leg.x": 9.0}, "none exceeds the sum of the other two"),
        ({"body_mass:*": (1.0, 4.0), "body_mass:t*": (3.0, 5.0)}, "two patterns"),
    ],
)
def test_impossible_rules_are_refused(rules: dict[str, Any], message: str) -> None:
    warnings.simplefilter("ignore")  # pytest puts the filters back
    with pytest.raises(RandomizationError, match=message):
        resolve(rules, HOPPER)


def test_impossible_values_are_refused() -> None:
    for values in ({"body_mass:leg": -1.0}, {"body_inertia:leg.x": 9.0}, {"geom_friction:floor.slide": float("nan")}):
        with pytest.raises(RandomizationError):
            HOPPER.check(values)
        with pytest.raises(RandomizationError):
            HOPPER.check_vector(values, 3)
    with pytest.raises(RandomizationError):
        HOPPER.check_vector({"body_inertia:leg.x": np.array([0.05, 0.05, 9.0])}, 3)


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_holds_for_its_model(name: str) -> None:
    space = space_of(name)
    assert sorted(PRESETS) == sorted(NAMES)
    assert sorted(PRESETS[name]) == ["default", "extreme", "random", "wide"]
    for preset in PRESETS[name]:
        assert len(resolve(preset, space)) >= 2
    assert len(resolve("none", space)) == 0
    inside, outside = resolve("random", space), resolve("extreme", space)
    assert list(inside) == list(outside)
    for key in inside:
        low, high = inside[key].distribution.support
        drawn = outside[key].distribution.ppf(np.linspace(0.01, 0.99, 99))
        assert ((drawn <= low) | (drawn >= high)).all()


@pytest.mark.parametrize("name", NAMES)
def test_draws_of_a_preset_all_differ_since_none_is_clipped_to_a_bound(name: str) -> None:
    space = space_of(name)
    for preset in PRESETS[name]:
        drawn = sample(preset, space, 100)  # type: ignore[arg-type]
        assert (drawn.nunique() == 100).all(), preset


# ---- values -> model ------------------------------------------------------------------------------------------------


def fields_of(values: dict[str, float], name: str = "Hopper") -> dict[str, Any]:
    model = model_of(name)
    fields = ModelFields(ModelSpace(name, model), list(values))
    return {key: array[0] for key, array in fields(np.array([list(values.values())])).items()}


def test_factors_multiply_values() -> None:
    model = model_of("Hopper")
    mass = fields_of({"body_mass:leg": 2.0, "body_mass": 1.5})["body_mass"]
    np.testing.assert_allclose(mass, [*(model.body_mass[:3] * 1.5), 3.0, model.body_mass[4] * 1.5])
    friction = fields_of({"geom_friction:floor.slide": 0.4, "geom_friction:floor": 0.5, "geom_friction": 3.0})
    np.testing.assert_allclose(friction["geom_friction"][0], [0.6, *(model.geom_friction[0, 1:] * 1.5)])
    np.testing.assert_allclose(friction["geom_friction"][1:], model.geom_friction[1:] * 3.0)


def test_inertia_follows_the_mass_unless_named() -> None:
    model = model_of("Hopper")
    doubled = fields_of({"body_mass:leg": 2 * model.body_mass[3]})["body_inertia"]
    np.testing.assert_allclose(doubled[3], 2 * model.body_inertia[3])
    np.testing.assert_array_equal(doubled[1], model.body_inertia[1])
    both = {"body_mass:leg": 2 * model.body_mass[3], "body_mass:torso": 2 * model.body_mass[1], "body_inertia:leg": 1.1}
    named = fields_of(both)["body_inertia"]
    np.testing.assert_allclose(named[3], 1.1 * model.body_inertia[3])
    np.testing.assert_allclose(named[1], 2 * model.body_inertia[1])


def test_a_nan_is_nominal_and_not_named() -> None:
    model = model_of("Hopper")
    fields = ModelFields(HOPPER, ["body_mass:leg", "body_inertia:leg", "geom_friction"])
    table = fields(np.array([[4.0, np.nan, np.nan], [np.nan, 1.1, 0.5]]))
    np.testing.assert_allclose(table["body_inertia"][0, 3], 4.0 / model.body_mass[3] * model.body_inertia[3])
    np.testing.assert_array_equal(table["body_mass"][1], model.body_mass)
    np.testing.assert_allclose(table["body_inertia"][1, 3], 1.1 * model.body_inertia[3])
    np.testing.assert_array_equal(table["geom_friction"][0], model.geom_friction)


def test_a_longer_pole_is_one_that_was_built_longer() -> None:
    def pole(length: float) -> Any:
        return mujoco.MjModel.from_xml_string(
            f"""<mujoco><default><geom contype="0"/></default><worldbody><body name="pole"><joint name="hinge"
            type="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 {length}" size="0.01" mass="5"/>
            <body name="tip" pos="0 0 {length}"><joint name="top" type="hinge" axis="0 1 0"/><geom type="capsule"
            fromto="0 0 0 0 0 0.3" size="0.01" mass="2"/></body></body></worldbody></mujoco>"""
        )

    short, long = pole(0.6), pole(0.9)
    ModelEditor(ModelSpace("Pole", short)).apply(short, {"body_length:pole": 1.5})
    np.testing.assert_allclose(short.body_ipos, long.body_ipos, atol=1e-12)
    np.testing.assert_allclose(short.body_pos, long.body_pos, atol=1e-12)
    np.testing.assert_allclose(short.geom_size[0], long.geom_size[0])
    np.testing.assert_allclose(short.body_inertia[1], long.body_inertia[1], rtol=0.05)  # a thin rod, not a capsule
    np.testing.assert_allclose(short.dof_M0, long.dof_M0, rtol=0.01)


def test_lengths_are_offered_where_nothing_collides() -> None:
    assert {key for key in space_of("InvertedDoublePendulum") if key.startswith("body_length")} == {
        "body_length",
        "body_length:pole",
        "body_length:pole2",
    }
    assert not [key for key in HOPPER if key.startswith("body_length")]


def test_an_edit_starts_from_nominal_and_goes_back_to_it() -> None:
    model = model_of("Hopper")
    nominal = model_of("Hopper")
    editor = ModelEditor(ModelSpace("Hopper", model))
    for factor in (2.0, 0.5, 2.0):
        editor.apply(model, {"body_mass": factor, "gravity.z": -5.0})
        np.testing.assert_allclose(model.body_mass, factor * nominal.body_mass)
    editor.apply(model, {"geom_friction": 2.0})
    assert model.opt.gravity[2] == nominal.opt.gravity[2]
    for name in dir(nominal):
        values = getattr(nominal, name)
        if isinstance(values, np.ndarray) and name != "geom_friction":
            np.testing.assert_array_equal(getattr(model, name), values, err_msg=name)


def test_derived_constants_are_those_of_a_model_that_was_built_so() -> None:
    def model(mass: float) -> Any:
        return mujoco.MjModel.from_xml_string(
            f"""<mujoco><worldbody><body name="a" pos="0 0 1"><joint name="j" type="hinge" axis="0 1 0"/>
            <inertial pos="0 0 -0.3" mass="{mass}" diaginertia="{0.2 * mass} {0.3 * mass} {0.4 * mass}"/>
            <geom type="sphere" size="0.1"/></body></worldbody>
            <actuator><motor joint="j" gear="7"/></actuator></mujoco>"""
        )

    edited, built = model(1.0), model(2.5)
    ModelEditor(ModelSpace("Arm", edited)).apply(edited, {"body_mass:a": 2.5})
    for name in dir(built):
        values = getattr(built, name)
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            np.testing.assert_allclose(getattr(edited, name), values, rtol=1e-12, err_msg=name)


def test_a_distribution_keeps_its_draw_when_patterns_join() -> None:
    alone = single("Hopper", randomization={"body_mass:leg": Scale(Uniform(0.5, 2.0))})
    joined = single("Hopper", randomization={"body_mass:*": Scale(Uniform(0.5, 2.0)), "gravity.z": (-11, -9)})
    for _ in range(3):
        one, other = alone.reset(seed=7)[1]["params"], joined.reset(seed=7)[1]["params"]
        assert one["body_mass:leg"] == other["body_mass:leg"]


# ---- every physical field --------------------------------------------------------------------------------------------

ROBOT = """<mujoco><option timestep="0.002"/>
<asset><material name="skin"/><material name="steel"/></asset>
<worldbody>
  <geom name="floor" type="plane" size="5 5 0.1"/>
  <camera name="eye" pos="0 -2 1"/><light name="lamp" pos="0 0 3"/>
  <body name="trunk" pos="0 0 1" simple="false"><freejoint/><site name="rotor" pos="0.1 0 0"/>
    <geom name="trunk" type="box" size="0.2 0.1 0.05" contype="0" conaffinity="0"/>
    <body name="leg" pos="0.2 0 0"><joint name="hip" axis="0 1 0" range="-1 1" damping="1e11"/>
      <geom name="leg" type="capsule" size="0.02" fromto="0 0 0 0 0 -0.4" material="skin"/>
      <body name="foot" pos="0 0 -0.4"><joint name="ankle" axis="0 1 0"/>
        <geom name="foot" type="sphere" size="0.03" priority="1"/>
        <body name="dust"><joint name="twist"/>
          <inertial pos="0 0 0.01" mass="1e-6" diaginertia="1e-9 1e-9 1e-9"/></body>
      </body>
    </body>
  </body>
</worldbody>
<tendon><fixed name="cord"><joint joint="ankle" coef="0.1"/></fixed></tendon>
<contact><pair geom1="foot" geom2="floor"/></contact>
<actuator>
  <position name="servo" joint="hip" kp="20" kv="2" forcerange="-30 40" delay="0.004" nsample="5"/>
  <velocity name="wheel" joint="ankle" kv="3"/><damper name="brake" joint="ankle" kv="4" ctrlrange="0 1"/>
  <motor name="motor" joint="twist" gear="7"/><motor name="thrust" site="rotor" gear="0 0 1 0 0 0"/>
  <dcmotor name="cheap" joint="twist" motorconst="0.1" resistance="2"/>
</actuator></mujoco>"""


@pytest.fixture(scope="module")
def robot() -> ModelSpace:
    if not hasattr(mujoco.mjtGain, "mjGAIN_DCMOTOR"):
        pytest.skip("it has parts that older versions of MuJoCo lack")
    return ModelSpace("Robot", mujoco.MjModel.from_xml_string(ROBOT))


def edited(space: ModelSpace, values: dict[str, float]) -> Any:
    """The model with some values; they must be possible together."""
    model = mujoco.MjModel.from_xml_string(ROBOT)
    ModelEditor(space).apply(model, space.check(values))
    return model


def test_a_gain_is_written_where_each_kind_of_servo_has_it(robot: ModelSpace) -> None:
    nominal = {f"actuator_{gain}:{name}": robot[f"actuator_{gain}:{name}"].nominal for gain, name in
               (("kp", "servo"), ("kd", "servo"), ("kd", "wheel"), ("kd", "brake"))}  # fmt: skip
    assert list(nominal.values()) == [20.0, 2.0, 3.0, 4.0]
    model = edited(robot, {"actuator_kp:servo": 25.0, "actuator_kd:servo": 1.0, "actuator_kd": 10.0})
    # force = gain (control) + bias (position, velocity): a servo's is kp (control - angle) - kd velocity
    np.testing.assert_array_equal(model.actuator_gainprm[:3, :3], [[25, 0, 0], [30, 0, 0], [0, 0, -40]])
    np.testing.assert_array_equal(model.actuator_biasprm[:3, :3], [[0, -25, -10], [0, 0, -30], [0, 0, 0]])
    assert not [name for name in robot if name.startswith("actuator_kp:") and name != "actuator_kp:servo"]


def test_strength_scales_the_force_of_an_actuator_and_its_limits(robot: ModelSpace) -> None:
    model = edited(robot, {"actuator_strength:servo": 0.5, "actuator_strength:motor": 2.0})
    assert model.actuator_gainprm[:4, 0].tolist() == [10.0, 3.0, 0.0, 2.0]
    assert model.actuator_biasprm[0, :3].tolist() == [0.0, -10.0, -1.0]
    assert model.actuator_forcerange[0].tolist() == [-15.0, 20.0]
    np.testing.assert_array_equal(model.actuator_gear, robot.model.actuator_gear)


def test_a_weaker_servo_still_goes_where_it_is_told() -> None:
    arm = """<mujoco><option gravity="0 0 0"/><worldbody><body name="arm"><joint name="j" axis="0 1 0"/>
    <geom size="0.1" pos="0 0 -0.3"/></body></worldbody><actuator><position name="a" joint="j" kp="50" kv="5"/>
    </actuator></mujoco>"""
    model = mujoco.MjModel.from_xml_string(arm)
    space = ModelSpace("Arm", model)
    ModelEditor(space).apply(model, {"actuator_strength:a": 0.8, "actuator_kp:a": 60.0})
    data = mujoco.MjData(model)
    data.ctrl[:] = 1.57
    mujoco.mj_step(model, data, 5000)
    assert data.qpos[0] == pytest.approx(1.57, abs=1e-6)


def test_a_gear_has_as_many_numbers_as_the_actuator_uses(robot: ModelSpace) -> None:
    assert robot["actuator_gear:motor"].nominal == 7.0
    assert robot["actuator_gear:thrust.z"].nominal == 1.0
    assert "actuator_gear:thrust.rz" in robot
    assert edited(robot, {"actuator_gear:thrust": 0.8}).actuator_gear[4].tolist() == [0, 0, 0.8, 0, 0, 0]
    assert edited(robot, {"actuator_gear": 2.0}).actuator_gear[:5, 2].tolist() == [0, 0, 0, 0, 2.0]


@pytest.mark.parametrize(
    "name",
    [
        "actuator_gear:servo", "actuator_gear:wheel", "actuator_strength:cheap", "actuator_forcerange:wheel.low",
        "actuator_delay:motor", "geom_friction:trunk.slide", "geom_size:floor", "jnt_range:ankle.low", "qpos0:joint0",
        "body_pos:trunk.z", "tendon_range:cord.low", "body_ipos:leg.x",
    ],
)  # fmt: skip
def test_what_cannot_vary_is_refused_by_name_with_the_reason(robot: ModelSpace, name: str) -> None:
    if name == "body_ipos:leg.x":
        assert resolve({name: Add((-0.01, 0.01))}, robot)  # a hinge with an offset is not simple
        return
    param = robot[name]
    assert param.idle
    rule: Any = Scale((0.5, 2.0)) if param.unit == "x" else (param.nominal, param.nominal + 0.1)
    with pytest.raises(RandomizationError, match="cannot vary here"):
        resolve({name: rule}, robot)


def test_a_pattern_leaves_out_what_cannot_vary_and_says_so_once(robot: ModelSpace) -> None:
    with pytest.warns(RandomizationWarning, match="leaves out what cannot vary") as told:
        chosen = resolve({"geom_size:*": Scale((0.9, 1.1)), "dof_damping:*": (0.1, 0.2)}, robot)
    assert [name for name in chosen if name.startswith("geom")] == [f"geom_size:{g}" for g in ("foot", "leg", "trunk")]
    assert len(told) == 1
    with pytest.raises(RandomizationError, match="nothing that it matches can vary"):
        resolve({"jnt_range:ank*": Scale((0.9, 1.1))}, robot)


def test_contacts_that_follow_the_other_geom_are_named(robot: ModelSpace) -> None:
    with pytest.warns(UserWarning, match="foot ignore geom_friction:floor.slide"):
        resolve({"geom_friction:floor.slide": (0.5, 1.0)}, robot)
    resolve({"geom_friction:foot.slide": (0.5, 1.0)}, robot)


def test_a_shared_pattern_is_one_parameter(robot: ModelSpace) -> None:
    chosen = resolve({"geom_friction:[fl]*t.slide": Scale((0.5, 2.0), shared=True)}, robot)
    assert list(chosen) == ["geom_friction:[fl]*t.slide"]
    assert resolve(chosen, robot) == chosen == Randomization.from_dict(chosen.to_dict())
    assert parse_rule("shared:0.3:0.9") == Rule(Uniform(0.3, 0.9), shared=True)
    np.testing.assert_array_equal(
        edited(robot, {"geom_friction:[fl]*.slide": 0.7}).geom_friction[:, 0], [0.7, 1.0, 0.7, 0.7]
    )
    # masses differ, so that one draw can only scale them
    np.testing.assert_allclose(edited(robot, {"body_mass:*": 2.0}).body_mass, 2.0 * robot.model.body_mass)
    with pytest.raises(RandomizationError, match="expected Scale"):
        resolve({"body_mass:*": Rule(Uniform(1.0, 2.0), shared=True)}, robot)
    with pytest.raises(RandomizationError, match="two patterns"):
        resolve({"body_mass:*": Scale((0.5, 2.0), shared=True), "body_mass:leg": 1.0}, robot)


def test_an_extreme_nominal_value_can_be_scaled(robot: ModelSpace) -> None:
    chosen = resolve({"body_mass:*": Scale((0.5, 1.5)), "dof_damping:hip": Scale((0.5, 1.5))}, robot)
    assert sample(chosen, robot, 100)["body_mass:dust"].max() < 1.5e-6


def test_a_rotation_turns_from_the_nominal_direction(robot: ModelSpace) -> None:
    model = edited(robot, {"cam_rotation:eye.x": np.pi / 2, "body_rotation:leg.z": 0.2})
    turned = np.zeros(4)
    mujoco.mju_mulQuat(turned, [np.sqrt(0.5), np.sqrt(0.5), 0, 0], robot.model.cam_quat[0])
    np.testing.assert_allclose(model.cam_quat[0], turned, atol=1e-15)
    np.testing.assert_array_equal(model.body_quat[3], robot.model.body_quat[3])
    assert model.body_quat[2, 3] == pytest.approx(np.sin(0.1))


def test_a_pseudo_inertia_changes_mass_center_and_moments_together(robot: ModelSpace) -> None:
    model = edited(robot, {"pseudo_inertia:leg.alpha": 0.1, "pseudo_inertia:leg.t1": 0.02, "body_mass:leg": 2.0})
    assert model.body_mass[2] == pytest.approx(2.0 * np.exp(0.2))
    assert model.body_ipos[2, 0] == pytest.approx(0.02)
    growth = np.exp(0.2) * 2.0 / robot.model.body_mass[2]
    np.testing.assert_allclose(model.body_inertia[2], growth * robot.model.body_inertia[2])
    np.testing.assert_array_equal(model.body_mass[[1, 3, 4]], robot.model.body_mass[[1, 3, 4]])


def test_impossible_values_of_the_table_are_refused(robot: ModelSpace) -> None:
    for values in (
        {"jnt_range:hip.low": 1.5},
        {"actuator_delay:servo": 0.011},
        {"geom_matid:leg": 2},
        {"geom_matid:leg": 0.5},
        {"geom_solimp:foot.dmax": 1.0},
        {"geom_solimp:foot.power": 0.5},
    ):
        with pytest.raises(RandomizationError):
            robot.check(values)
    assert edited(robot, {"geom_matid:leg": 1}).geom_matid[2] == 1


def test_names_with_brackets_are_names_and_names_that_clash_are_told() -> None:
    body = '<body name="{}"><joint/><geom size="0.1" pos="1 0 0"/></body>'
    bodies = "".join(map(body.format, ("w[1]", "a", "a.x")))
    space = ModelSpace("W", mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"))
    assert list(resolve({"body_mass:w[1]": (1.0, 2.0)}, space)) == ["body_mass:w[1]"]
    with pytest.raises(RandomizationError, match=r"body_ipos:a.x"):
        space["body_ipos:a"]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"jnt_range:hi*.low": Rule((1.5, 2), shared=True)}, "expected low <= high"),
        ({"jnt_range": Scale((-1, 1))}, "expected a value from 0"),
        ({"actuator_forcerange": Scale((-1, 1))}, "expected a value from 0"),
        ({"geom_solref:floor.timeconst": (-0.1, 0.1)}, "both negative"),
        ({"actuator_delay:servo": (0, 0.01), "timestep": Scale((0.5, 1))}, "history"),
        ({"geom_solref:[fl]*.timeconst": Rule((-0.2, -0.1), shared=True)}, "both negative"),
    ],
)
def test_numbers_that_belong_together_are_checked_together(
    robot: ModelSpace, rules: dict[str, Any], message: str
) -> None:
    with pytest.raises(RandomizationError, match=message):
        resolve(rules, robot)


def test_a_shared_pattern_may_scale_several_fields(robot: ModelSpace) -> None:
    (name,) = resolve({"dof_*:hip": Scale((0.5, 2), shared=True)}, robot)
    assert (robot[name].nominal, robot[name].low) == (1.0, 0.0)
