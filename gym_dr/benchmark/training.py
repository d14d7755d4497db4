"""Trainings that are only measured: their configuration, and a run folder that does not stay."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import TypeVar

from gym_dr.errors import ConfigError
from gym_dr.runs.config import RunConfig, build_config
from gym_dr.runs.environments import check_vectorization
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.session import Report, RunSession
from gym_dr.training.api import Algorithm

_ENDLESS = {"updates": 10**9, "schedule": "constant"}  # who measures ends the training

S = TypeVar("S", bound=RunSession)


def training_config(env_id: str, algorithm: Algorithm, num_envs: int, seed: int) -> RunConfig:
    """The algorithm's defaults for a training whose length is not known beforehand, so with constant rates.

    Raises:
        GymDrError: The environment is unknown, cannot be made, or is not for this algorithm.
    """
    options = {field.name for field in fields(algorithm.config_class())}
    return build_config(
        algorithm,
        {"env": env_id, "num_envs": num_envs, "seed": seed, "eval_episodes": 0},
        {name: value for name, value in _ENDLESS.items() if name in options},
        None,
    )


def with_vectorization(config: RunConfig, vectorization: str) -> RunConfig | None:
    """The same training with other vector environments; None where there are none."""
    try:
        check_vectorization(config.settings.env, vectorization)
    except ConfigError:
        return None
    return replace(config, settings=replace(config.settings, vectorization=vectorization))


@contextlib.contextmanager
def temporary_session(kind: type[S], config: RunConfig, report: Report = lambda *_: None) -> Iterator[S]:
    """A session as ``gymdr train`` makes it, in a folder that is deleted.

    Args:
        kind: Of the session.
        config: Of the run.
        report: Called after each update with its metrics.
    """
    with tempfile.TemporaryDirectory(prefix="gymdr-bench-") as place:
        folder = RunFolder.create(Path(place) / "run", config.to_json(), overwrite=False)
        session = kind(folder, config, report, resume=False)
        try:
            yield session
        finally:
            session.close()
