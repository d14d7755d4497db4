"""Domain randomization for Gymnasium: importing this package registers the ``gym_dr/...`` environment ids."""

from __future__ import annotations

from gym_dr.api.evaluate import evaluate, record, report
from gym_dr.api.fit import fit
from gym_dr.api.run import Run, Runs, load_run
from gym_dr.api.study import study, tune
from gym_dr.api.train import train
from gym_dr.envs.equations.family import equations_family, register_equations
from gym_dr.envs.interface import Interface, Quantity
from gym_dr.envs.mirror import Mirror
from gym_dr.envs.mujoco.robots import register_robot
from gym_dr.envs.mujoco.wrapper import RandomizeMujoco
from gym_dr.envs.own import register
from gym_dr.evaluation.sets import draws, grid, sobol
from gym_dr.plugins import loading
from gym_dr.plugins.loading import load_plugins
from gym_dr.policies.open import open_policy, pretrained
from gym_dr.randomization.distributions import (
    Bernoulli,
    Choice,
    Constant,
    Distribution,
    Integer,
    LogUniform,
    Mixture,
    Normal,
    Uniform,
)
from gym_dr.randomization.presets import add_preset
from gym_dr.randomization.sampler import EpisodeRecord, sample
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Add, Correlation, Randomization, Rule, Scale
from gym_dr.version import __version__ as __version__
from gym_dr.wrappers.adapt import AdaptParams
from gym_dr.wrappers.attributes import RandomizeAttributes
from gym_dr.wrappers.context import DrawContext
from gym_dr.wrappers.disturb import Disturb, DisturbVector
from gym_dr.wrappers.frame_stack import FrameStack
from gym_dr.wrappers.record import RecordEpisodes
from gym_dr.wrappers.resample import ResampleParams
from gym_dr.wrappers.vector_params import VectorParams

__all__ = [
    "AdaptParams",
    "Add",
    "Bernoulli",
    "Choice",
    "Constant",
    "Correlation",
    "Distribution",
    "Disturb",
    "DisturbVector",
    "DrawContext",
    "EpisodeRecord",
    "FrameStack",
    "Integer",
    "Interface",
    "LogUniform",
    "Mirror",
    "Mixture",
    "Normal",
    "Param",
    "ParamSpace",
    "Quantity",
    "Randomization",
    "RandomizeAttributes",
    "RandomizeMujoco",
    "RecordEpisodes",
    "ResampleParams",
    "Rule",
    "Run",
    "Runs",
    "Scale",
    "Uniform",
    "VectorParams",
    "add_preset",
    "draws",
    "equations_family",
    "evaluate",
    "fit",
    "grid",
    "load_plugins",
    "load_run",
    "open_policy",
    "pretrained",
    "record",
    "register",
    "register_equations",
    "register_robot",
    "report",
    "sample",
    "sobol",
    "study",
    "train",
    "tune",
]


loading.load([], frozenset())  # gym_dr's own; load_plugins finds those of other packages
