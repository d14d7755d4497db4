"""An evaluation by groups: runs that differ only in their seed, and single policies."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.envs.family import return_limits
from gym_dr.errors import ConfigError
from gym_dr.evaluation.results import Evaluation
from gym_dr.evaluation.sets import TRAINING, CellSet
from gym_dr.policies.frozen import UNKNOWN, FrozenPolicy
from gym_dr.runs.config import OpenedRun, named_runs

MAIN_FIRST = ("sobol", "grid", "distribution", "fixed", "nominal")  # kinds of sets
PLACES = {  # kind of a set -> preposition, label
    "nominal": ("On", "nominal physics"),
    "sobol": ("Over", "the training distribution"),
    "grid": ("On", "the grid"),
}

MAX_PARAMETERS = 8  # whose pairs are mapped: 28 pairs


@dataclass(frozen=True, kw_only=True)
class Group:
    """The runs of one configuration, or one other policy."""

    name: str  # in tables and plots
    policies: tuple[FrozenPolicy, ...]  # in the order of their seeds

    @property
    def quoted(self) -> str:
        """The name in a sentence, where it may read like one of its words."""
        return f"'{self.name}'"

    @property
    def runs(self) -> list[OpenedRun]:
        """The runs, whose configurations differ only in the seed; empty for another policy."""
        return [policy.run for policy in self.policies if policy.run is not None]

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs."""
        return [run.config.settings.seed for run in self.runs]


def group_policies(policies: Sequence[FrozenPolicy]) -> list[Group]:
    """Groups runs by their configuration without the seed, in the order given; other policies stay single.

    A single run keeps its name; several are named after their folder, or its whole path if its name is not unique.

    Raises:
        ConfigError: Two runs have the same configuration and seed.
    """
    alike: dict[tuple[str, str], dict[int, FrozenPolicy]] = defaultdict(dict)
    for policy in policies:
        if policy.run is None:
            alike[policy.digest, policy.name][0] = policy
            continue
        other = alike[_form(policy.run)].setdefault(policy.run.config.settings.seed, policy)
        if other.run is not None and other is not policy:
            raise ConfigError(
                f"{policy.run.folder.path}: has the configuration and the seed of {other.run.folder.path}, and would "
                "count as another seed. Leave one of them out."
            )
    groups = [[by_seed[seed] for seed in sorted(by_seed)] for by_seed in alike.values()]
    # a policy that is not a run has no folder but a source
    folders = [Path(one.source) if one.run is None else one.run.folder.path.resolve().parent for one, *_ in groups]
    short = [group[0].name if len(group) == 1 else folder.name for group, folder in zip(groups, folders, strict=True)]
    return [
        Group(name=name if short.count(name) == 1 else str(folder), policies=tuple(group))
        for name, folder, group in zip(short, folders, groups, strict=True)
    ]


def _form(run: OpenedRun) -> tuple[str, str]:
    """A configuration without the seed.

    Runs in one folder may go on from, or imitate, different seeds of another folder: both folders stand for them.
    """
    form, place = run.config.to_dict(), ""
    del form["seed"]
    for name, other in named_runs(run.config).items():
        if other.name.startswith("seed-"):
            form[run.config.algorithm][name] = str(other.parent)
            place = str(run.folder.path.resolve().parent)
    return json.dumps(form, sort_keys=True), place


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Groups of policies, and an evaluation of all of them."""

    groups: Sequence[Group]
    evaluation: Evaluation
    references: Sequence[Group] = ()  # not compared, but their returns count for regret

    @property
    def document(self) -> dict[str, Any]:
        """The content of ``evaluation.json``."""
        return self.evaluation.document

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and highest possible return."""
        return return_limits(self.document["env"])

    @property
    def sets(self) -> list[str]:
        """Names of the sets, in the order of the file."""
        return [cells.name for cells in self.evaluation.sets]

    @cached_property
    def policies(self) -> list[list[int]]:
        """For each group the indices of its members among the evaluation's policies."""
        return [[self._index(policy) for policy in group.policies] for group in self.groups]

    def _index(self, policy: FrozenPolicy) -> int:
        """A policy's index in the evaluation, where it may have an older name, and others may act alike."""
        alike = {k: one["name"] for k, one in enumerate(self.document["policies"]) if one["digest"] == policy.digest}
        return next((k for k, name in alike.items() if name == policy.name), min(alike))

    @property
    def main_sets(self) -> list[str]:
        """The most informative sets: those that fill the training distributions, else a grid or draws.

        There are several if runs were trained on different distributions.
        """
        first = min(map(self.rank, self.sets))
        return [name for name in self.sets if self.rank(name) == first]

    def main_set(self, group: int) -> str:
        """The main set of a group's training distribution; the first main set if there is none."""
        trained = self.entries(group)[0]["randomization"]
        own = (name for name in self.main_sets if self.cells(name).definition.get("randomization") == trained)
        return next(own, self.main_sets[0])

    def rank(self, set_name: str) -> int:
        """The rank of a set's kind in ``MAIN_FIRST``."""
        return MAIN_FIRST.index(self.cells(set_name).kind)

    def label(self, set_name: str) -> str:
        """The name of a set in a report."""
        return self._words(set_name)[1]

    def place(self, set_name: str) -> str:
        """Describes a set, for the beginning of a sentence."""
        return " ".join(self._words(set_name))

    def _words(self, set_name: str) -> tuple[str, str]:
        """Preposition and label."""
        kind, (what, _, owner) = self.cells(set_name).kind, set_name.partition(": ")
        # several seeds of one configuration share its draws, which are named after the first
        owner = {entry["name"]: of.name for i, of in enumerate(self.groups) for entry in self.entries(i)}.get(
            owner, owner
        )
        if kind == "sobol" and owner:
            return "Over", f"the distribution of '{owner}'"
        if kind == "fixed":
            return "At", set_name
        drawn = "training draws" if what == TRAINING else f"draws of {what}"
        return PLACES.get(kind, ("On the", f"{drawn} of '{owner}'" if owner else drawn))

    def cells(self, set_name: str) -> CellSet:
        """The set with a name."""
        return self.evaluation.cell_set(set_name)

    def entries(self, group: int) -> list[dict[str, Any]]:
        """The entries of a group's runs in ``evaluation.json``."""
        return [self.document["policies"][index] for index in self.policies[group]]

    def results(self, group: int, set_name: str) -> list[dict[str, Any]]:
        """The results of each of a group's runs on a set."""
        found = {r["policy"]: r for r in self.document["results"] if r["set"] == set_name}
        return [found[entry["name"]] for entry in self.entries(group)]

    def training_range(self, group: int, parameter: str) -> tuple[float, float] | None:
        """Smallest and largest value of a parameter in training; both are nominal if it was not randomized.

        None if the training randomization is unknown.
        """
        entry = self.entries(group)[0]
        if entry["trained_on"] == UNKNOWN:
            return None
        nominal = self.document["parameters"][parameter]["nominal"]
        low, high = entry["ranges"].get(parameter, (nominal, nominal))
        return -math.inf if low is None else low, math.inf if high is None else high  # JSON has no infinity

    def returns(self, group: int, set_name: str) -> Array:
        """Returns of a group's runs on a set.

        Returns:
            Shape ``(runs, episodes)``; column i has the same draw and episode seed in every run of every group.
        """
        returns = self._returns[set_name][self.policies[group]]
        return returns.reshape(len(returns), -1)

    def differences(self, first: int, second: int, set_name: str) -> tuple[Array, str]:
        """Returns of one group minus those of another, on the same draws and episode seeds.

        Returns:
            Shape ``(runs, episodes)``, and what intervals are over: "seeds", the rows, each of two runs with the same
            seed, or if no two seeds are common of runs in the same order; "episodes" of two single policies; or
            nothing, for the difference of means where runs without common seeds are not as many.
        """
        one, two = (
            dict(zip(self.groups[g].seeds or [0], self.returns(g, set_name), strict=True)) for g in (first, second)
        )
        shared = sorted(one.keys() & two.keys())
        if len(shared) < 2 and len(one) != len(two):
            return np.mean([*one.values()], axis=0)[None] - np.mean([*two.values()], axis=0), ""
        pairs = zip(shared, shared, strict=True) if len(shared) > 1 else zip(one, two, strict=True)
        rows = np.stack([one[a] - two[b] for a, b in pairs])
        return rows, "seeds" if len(rows) > 1 else "episodes"

    @cached_property
    def values(self) -> dict[str, dict[str, Array]]:
        """For each set the parameters that vary: name -> value in each episode, in the order of ``returns``.

        The value is NaN where the parameter has no effect.
        """
        return {name: self.evaluation.varied(name) for name in self.sets}

    def pairs(self, set_name: str) -> list[tuple[str, str]]:
        """Pairs of parameters that vary in a set, at most ``MAX_PARAMETERS`` of them, the most important first.

        A parameter that acts only beside a switch has no map with the switch.
        """
        found = combinations(self.important(set_name)[:MAX_PARAMETERS], 2)
        values = {pair: np.stack([self.values[set_name][name] for name in pair]) for pair in found}
        return [pair for pair, of in values.items() if (np.ptp(of[:, ~np.isnan(of).any(0)], axis=1) > 0).all()]

    def important(self, set_name: str) -> list[str]:
        """The parameters that vary in a set, sorted by sensitivity, if it is known, switches last."""
        # keeps the order of equals
        return sorted(self.values[set_name], key=lambda name: (self.is_switch(name), -self._totals.get(name, 0.0)))

    def is_switch(self, parameter: str) -> bool:
        """Whether a parameter is on or off."""
        return bool(self.document["parameters"][parameter]["kind"] == "bool")

    @cached_property
    def _totals(self) -> dict[str, float]:
        """Total sensitivities by parameter, summed over runs; empty if none are known."""
        totals: dict[str, float] = defaultdict(float)
        for result in self.document["results"]:
            if found := result["sensitivity"]:
                for name, index in zip(found["parameters"], found["total"], strict=True):
                    totals[name] += index["value"] or 0.0  # none where nothing varied
        return totals

    @cached_property
    def _returns(self) -> dict[str, Array]:
        return {name: self.evaluation.returns(name) for name in self.sets}
