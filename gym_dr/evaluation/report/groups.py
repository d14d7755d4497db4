"""Groups of runs that differ in their seed alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from gym_dr.evaluation.policies import RunPolicy
from gym_dr.runs.config import RunConfig


@dataclass(frozen=True, kw_only=True)
class Group:
    """The runs of one configuration."""

    name: str  # in tables and plots
    policies: tuple[RunPolicy, ...]  # in the order of their seeds

    @property
    def config(self) -> RunConfig:
        """The configuration of the first run; the others differ in the seed."""
        return self.policies[0].config

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs."""
        return [policy.config.settings.seed for policy in self.policies]


def group_runs(policies: Sequence[RunPolicy]) -> list[Group]:
    """Groups runs by their configuration less the seed, in the order in which they are named.

    A single run keeps its name. Several are named after the folder that holds them; where others have that name, too,
    after its whole path.
    """
    alike: dict[str, list[RunPolicy]] = {}
    for policy in policies:
        form = policy.config.to_dict()
        del form["seed"]
        alike.setdefault(json.dumps(form, sort_keys=True), []).append(policy)
    groups = [sorted(group, key=lambda policy: policy.config.settings.seed) for group in alike.values()]
    folders = [group[0].folder.path.resolve().parent for group in groups]
    short = [group[0].name if len(group) == 1 else folder.name for group, folder in zip(groups, folders, strict=True)]
    return [
        Group(name=name if short.count(name) == 1 else str(folder), policies=tuple(group))
        for name, folder, group in zip(short, folders, groups, strict=True)
    ]
