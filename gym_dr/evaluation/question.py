"""The question of an evaluation: which policies play which sets, and which return counts as solved."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import gymnasium as gym

from gym_dr.evaluation.sets import CellSet
from gym_dr.evaluation.statistics import CONFIDENCE
from gym_dr.options import expect, is_number
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.randomization.space import ParamSpace
from gym_dr.training.api import seed_for
from gym_dr.version import WRITTEN_BY, __version__

FORMAT = "gym_dr evaluation"
EVALUATION_SEED = seed_for(0, stream=1)  # of the first episode; the same for every policy

_DESCRIBED = ("nominal", "low", "high", "unit", "kind", "doc")  # of a parameter


def check_success(success: float | None) -> float | None:
    """Checks the return from which an episode counts as solved, and returns it.

    Raises:
        ConfigError: It is not a finite number.
    """
    expect(success is None or is_number(success), "`success`", "a finite return", success)
    return None if success is None else float(success)


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """The part of ``evaluation.json`` that is known before the first episode."""

    command: str  # the command lines; empty for none
    env: str
    success: float | None  # return from which an episode counts as solved
    parameters: Mapping[str, Mapping[str, Any]]  # varied ones: name -> nominal, low, high, unit, kind, doc, needs
    policies: Sequence[Mapping[str, Any]]  # name, kind, path, digest, ... of each
    references: Sequence[str]  # names of policies that only show what is possible
    sets: Sequence[CellSet]

    @classmethod
    def of(
        cls,
        policies: Sequence[FrozenPolicy],
        sets: Sequence[CellSet],
        folder: Path,
        *,
        success: float | None,
        command: str,
    ) -> Question:
        """The question of policies on sets; ``success`` is by default the environment's reward threshold, if any."""
        env, space = policies[0].env, policies[0].space or ParamSpace("", [])
        varied = space.in_order({name for cells in sets for name in cells.parameters})
        return cls(
            command=command,
            env=env,
            success=gym.spec(env.rpartition(":")[2]).reward_threshold if success is None else success,
            parameters={
                name: {
                    **{key: getattr(space[name], key) for key in _DESCRIBED},
                    "needs": {other: space[other].nominal for other in space[name].needs},
                }
                for name in varied
            },
            policies=[_entry(policy, folder) for policy in policies],
            references=[policy.name for policy in policies if policy.reference],
            sets=sets,
        )

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Question:
        """Reads ``evaluation.json``."""
        return cls(
            command=str(document.get("command", "")),
            env=document["env"],
            success=document["success"],
            parameters=document.get("parameters", {}),
            policies=document["policies"],
            references=document.get("references", ()),
            sets=[CellSet.from_dict(form) for form in document["sets"]],
        )

    def to_document(self) -> dict[str, Any]:
        """The content of ``evaluation.json`` before the first episode."""
        return {
            "format": FORMAT,
            WRITTEN_BY: __version__,
            "complete": False,
            "command": self.command,
            "env": self.env,
            "seed": EVALUATION_SEED,
            "success": self.success,
            "confidence": CONFIDENCE,
            "parameters": self.parameters,
            "policies": self.policies,
            "references": self.references,
            "sets": [cells.to_dict() for cells in self.sets],
            "results": [],
            "differences": [],
            "best_known": [],
        }

    @property
    def names(self) -> list[str]:
        """The names of the policies."""
        return [policy["name"] for policy in self.policies]

    @cached_property
    def nominal(self) -> dict[str, float]:
        """Nominal values of the parameters that some set varies."""
        return {name: parameter["nominal"] for name, parameter in self.parameters.items()}

    @cached_property
    def needs(self) -> dict[str, Mapping[str, float]]:
        """Parameters that some set varies -> the parameters that each needs, and their nominal values."""
        return {name: parameter.get("needs", {}) for name, parameter in self.parameters.items()}

    @property
    def episodes(self) -> int:
        """The number of episodes, without those of worst cells that are played again."""
        return len(self.policies) * sum(cells.num_episodes for cells in self.sets)

    def outcome(self, episode_return: float) -> str:
        """Whether an episode counts as solved, in a word; empty without a threshold."""
        return "" if self.success is None else "success" if episode_return >= self.success else "failure"


def _entry(policy: FrozenPolicy, folder: Path) -> dict[str, Any]:
    randomization, space, path = policy.randomization, policy.space, policy.record["path"]
    ranges = {} if space is None else {n: r.support(space[n].nominal) for n, r in (randomization or {}).items()}
    return {
        "name": policy.name,
        **policy.record,
        "path": None if path is None else _path_from(folder, Path(path)),
        "trained_on": policy.trained_on,
        "ranges": {name: [float(low), float(high)] for name, (low, high) in ranges.items()},
        "randomization": None if randomization is None else randomization.to_dict(),
        "digest": policy.digest,
    }


def _path_from(folder: Path, path: Path) -> str:
    """A relative path, so that both folders can move together; absolute on another drive."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:
        return str(path.absolute())
