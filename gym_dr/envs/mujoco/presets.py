"""The presets of the MuJoCo environments.

``default`` and ``wide`` vary what random-envs (github.com/gabrieletiboni/random-envs) and DORAEMON (Tiboni et al. 2024,
"Domain Randomization via Entropy Maximization") vary: the mass of every link, friction, and the damping of the joints.
Their ranges are ours.
``random`` and ``extreme`` are R and E of the generalization protocol of Packer et al. (2018, "Assessing Generalization
in Deep Reinforcement Learning", code at github.com/sunblaze-ucb/rl-generalization): R is a box around the nominal
values, E has every parameter outside that box. Their environments are different ones, so:

- the parameters (power, density and friction of Roboschool's Hopper and HalfCheetah; push force, pole length and pole
  mass of the classic CartPole) and their ranges, divided by the nominal values to get factors, are theirs;
- the choice of environments for these factors is ours: MuJoCo's Hopper and HalfCheetah; the pendulums, whose poles are
  some fifty times as heavy as CartPole's, with separate draws for the two links of the double one; and Hopper's factors
  for all other robots (their Pendulum and Acrobot, which have no cart, are not used).
"""

from __future__ import annotations

from gym_dr.randomization.distributions import Distribution, Uniform, uniform_outside
from gym_dr.randomization.spec import Randomization, Scale

_NARROW, _WIDE = Uniform(0.8, 1.2), Uniform(0.5, 1.5)

# Packer et al., Hopper: power 0.6 to 0.9 (E: 0.4 to 1.1) around 0.75; HalfCheetah: 0.7 to 1.1 (0.5 to 1.3) around 0.9;
# both: density 750 to 1250 (500 to 1500) around 1000, friction 0.5 to 1.1 (0.2 to 1.4) around 0.8
_POWER, _POWER_OUTSIDE = Uniform(0.8, 1.2), uniform_outside(0.4 / 0.75, 0.8, 1.2, 1.1 / 0.75)
_CHEETAH = Uniform(0.7 / 0.9, 1.1 / 0.9)
_CHEETAH_OUTSIDE = uniform_outside(0.5 / 0.9, 0.7 / 0.9, 1.1 / 0.9, 1.3 / 0.9)
_MASS, _MASS_OUTSIDE = Uniform(0.75, 1.25), uniform_outside(0.5, 0.75, 1.25, 1.5)
_CONTACT, _CONTACT_OUTSIDE = Uniform(0.625, 1.375), uniform_outside(0.25, 0.625, 1.375, 1.75)
_LEGGED = ("Hopper", "Walker2d", "Ant", "Humanoid", "HumanoidStandup")


def _links(spread: Uniform, *others: str) -> Randomization:
    """An independent factor for the mass of each link, and one for each other parameter."""
    return Randomization({name: Scale(spread) for name in ("body_mass:*", *others)})


def _robot(power: Distribution, mass: Distribution, contact: Distribution, *others: str) -> Randomization:
    """One factor each for power, density and the contact parameters ``others``, as in Packer et al."""
    return Randomization(
        {"actuator_strength": Scale(power), "body_mass": Scale(mass), **{name: Scale(contact) for name in others}}
    )


def _pole(length: Distribution, mass: Distribution, force: Distribution) -> Randomization:
    return Randomization(
        {"body_length:*": Scale(length), "body_mass:pole*": Scale(mass), "actuator_gear:slide": Scale(force)}
    )


def robot_presets(
    *others: str, power: Distribution = _POWER, power_outside: Distribution = _POWER_OUTSIDE, damped: bool = True
) -> dict[str, Randomization]:
    """The presets of a robot.

    Args:
        *others: Fields of its model that describe contacts or the medium.
        power: Factors for its motors in "random".
        power_outside: Those in "extreme".
        damped: Whether its joints have damping.
    """
    resisting = ("dof_damping", *others) if damped else others
    return {
        "default": _links(_NARROW, *resisting),
        "wide": _links(_WIDE, *resisting),
        "random": _robot(power, _MASS, _CONTACT, *others),
        "extreme": _robot(power_outside, _MASS_OUTSIDE, _CONTACT_OUTSIDE, *others),
    }


# Packer et al., CartPole: length 0.25 to 0.75 m (0.05 to 1.0 in E) around 0.5; mass 0.05 to 0.5 kg (0.01 to 1.0) around
# 0.1; force 5 to 15 N (1 to 20) around 10
_POLE_OUTSIDE = uniform_outside(0.1, 0.5, 1.5, 2.0)
_PENDULUM = {
    "default": _pole(_NARROW, _NARROW, _NARROW),
    "wide": _pole(_WIDE, _WIDE, _WIDE),
    "random": _pole(_WIDE, Uniform(0.5, 5.0), _WIDE),
    "extreme": _pole(_POLE_OUTSIDE, uniform_outside(0.1, 0.5, 5.0, 10.0), _POLE_OUTSIDE),
}
PRESETS: dict[str, dict[str, Randomization]] = {
    "InvertedPendulum": _PENDULUM,
    "InvertedDoublePendulum": _PENDULUM,
    **{name: robot_presets("geom_friction") for name in _LEGGED},
    "HalfCheetah": robot_presets("geom_friction", power=_CHEETAH, power_outside=_CHEETAH_OUTSIDE),
    "Swimmer": robot_presets("density", "viscosity", damped=False),  # it moves against water
    "Reacher": robot_presets(),  # its target is a kinematic body, whose mass has no effect
    "Pusher": robot_presets(),  # its contacts have no friction
}
