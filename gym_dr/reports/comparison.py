"""An evaluation by groups: runs that differ only in their seed, and single policies."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from gym_dr.arrays import Array
from gym_dr.errors import ConfigError
from gym_dr.evaluation.regret import BestKnown, best_on
from gym_dr.evaluation.results import Evaluation
from gym_dr.evaluation.sets import CellSet
from gym_dr.policies.frozen import UNKNOWN, FrozenPolicy
from gym_dr.runs.config import OpenedRun, RunConfig
from gym_dr.runs.other_runs import folders_of_seeds

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
    def runs(self) -> list[OpenedRun]:
        """The runs, whose configurations differ only in the seed; empty for another policy."""
        return [policy.run for policy in self.policies if policy.run is not None]

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs."""
        return [run.config.settings.seed for run in self.runs]

    @property
    def folders_by_seed(self) -> dict[str, str]:
        """Options that name another run for each seed -> the folder of all of these."""
        first, *others = [vars(run.config.options) for run in self.runs]
        folders = folders_of_seeds(self.runs[0].config)
        return {name: folder for name, folder in folders.items() if any(one[name] != first[name] for one in others)}


def group_policies(policies: Sequence[FrozenPolicy]) -> list[Group]:
    """Groups runs by their configuration without the seed, in the order given; other policies stay single.

    Runs that each go on from, or imitate, the run with their own seed in one folder are a group too. A single run keeps
    its name; several are named after their folder, or its whole path if its name is not unique.

    Raises:
        ConfigError: Two runs have the same configuration and seed.
    """
    alike, forms = defaultdict(list), defaultdict(set)
    for run in [policy.run for policy in policies if policy.run is not None]:
        forms[_by_seed(run)].add(_form(run.config))
    for policy in policies:
        if policy.run is None:
            alike[policy.digest, policy.name].append((0, policy))
        else:
            config, by_seed = policy.run.config, _by_seed(policy.run)
            # a run that happens to have its own seed may be named by all
            key = by_seed if len(forms[by_seed]) > 1 else (_form(config), "")
            alike[key].append((config.settings.seed, policy))
    for group in alike.values():
        _check_seeds([policy.run for _, policy in group if policy.run is not None])
    groups = [[policy for _, policy in sorted(group, key=lambda pair: pair[0])] for group in alike.values()]
    # a policy that is not a run has no folder but a source
    folders = [Path(one.source) if one.run is None else one.run.folder.path.resolve().parent for one, *_ in groups]
    short = [group[0].name if len(group) == 1 else folder.name for group, folder in zip(groups, folders, strict=True)]
    return [
        Group(name=name if short.count(name) == 1 else str(folder), policies=tuple(group))
        for name, folder, group in zip(short, folders, groups, strict=True)
    ]


def _check_seeds(runs: Sequence[OpenedRun]) -> None:
    """Checks that the runs of a group have different seeds."""
    known: dict[int, OpenedRun] = {}
    for run in runs:
        if (other := known.setdefault(run.config.settings.seed, run)) is not run:
            raise ConfigError(
                f"{run.folder.path}: has the configuration and the seed of {other.folder.path}, and would count as "
                "another seed. Leave one of them out."
            )


def _form(config: RunConfig, options: Mapping[str, str] | None = None) -> str:
    """A configuration without the seed, with other values of some options."""
    form = config.to_dict()
    del form["seed"]
    form[config.algorithm] |= options or {}
    return json.dumps(form, sort_keys=True)


def _by_seed(run: OpenedRun) -> tuple[str, str]:
    """The key of runs in one folder that each name the run with their own seed in another folder."""
    return _form(run.config, folders_of_seeds(run.config)), str(run.folder.path.resolve().parent)


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
    def sets(self) -> list[str]:
        """Names of the sets, in the order of the file."""
        return [cells.name for cells in self.evaluation.sets]

    @cached_property
    def policies(self) -> list[list[int]]:
        """For each group the indices of its members among the evaluation's policies."""
        return [[self._index(policy) for policy in group.policies] for group in self.groups]

    def _index(self, policy: FrozenPolicy) -> int:
        """A policy's index in the evaluation, where it may have an older name, and others may act alike."""
        names = {index: one["name"] for index, one in enumerate(self.document["policies"])}
        alike = [index for index in names if self.document["policies"][index]["digest"] == policy.digest]
        return next((index for index in alike if names[index] == policy.name), alike[0])

    @property
    def group_pairs(self) -> list[tuple[int, int]]:
        """All pairs of groups, the later one first, since users name the baseline first."""
        return [(second, first) for first, second in combinations(range(len(self.groups)), 2)]

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
        if kind == "sobol" and owner:
            return "Over", f"the distribution of {owner}"
        if kind == "fixed":
            return "At", set_name
        return PLACES.get(kind, ("On the", f"draws of {what} ({owner})" if owner else f"draws of {what}"))

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

    @cached_property
    def values(self) -> dict[str, dict[str, Array]]:
        """For each set the parameters that vary: name -> value in each episode, in the order of ``returns``."""
        return {name: self.evaluation.varied(name) for name in self.sets}

    def pairs(self, set_name: str) -> list[tuple[str, str]]:
        """Pairs of parameters that vary in a set, at most ``MAX_PARAMETERS`` of them, the most important first."""
        return list(combinations(self.important(set_name)[:MAX_PARAMETERS], 2))

    def left_out(self, set_name: str) -> str:
        """A sentence on the parameters that ``pairs`` leaves out; empty if there are none."""
        names = self.important(set_name)
        if len(names) <= MAX_PARAMETERS:
            return ""
        count = f"{MAX_PARAMETERS} of {len(names)} parameters"
        known = any(self._totals.get(name) for name in names)
        choice = f"The {count} that matter most" if known else f"The first {count}"
        return f"{choice} are shown; the others: {', '.join(names[MAX_PARAMETERS:])}."

    def important(self, set_name: str) -> list[str]:
        """The parameters that vary in a set, sorted by sensitivity, if it is known."""
        return sorted(self.values[set_name], key=lambda name: -self._totals.get(name, 0.0))  # keeps the order of equals

    @cached_property
    def _totals(self) -> dict[str, float]:
        """Total sensitivities by parameter, summed over runs; empty if none are known."""
        totals: dict[str, float] = defaultdict(float)
        for result in self.document["results"]:
            if found := result["sensitivity"]:
                for name, index in zip(found["parameters"], found["total"], strict=True):
                    totals[name] += index["value"] or 0.0  # none where nothing varied
        return totals

    def regret(self, group: int, set_name: str) -> Array | None:
        """Regret of a group's runs, in the form of ``returns``; None if the evaluation has no references."""
        if set_name not in self._best or (known := self._best[set_name]) is None:
            return None
        found = known.regret[self.policies[group]]
        return found.reshape(len(found), -1)

    @cached_property
    def _best(self) -> dict[str, BestKnown | None]:
        names = self.sets if self.document.get("references") else ()
        return {name: best_on(self.cells(name), self._returns[name]) for name in names}

    @cached_property
    def _returns(self) -> dict[str, Array]:
        return {name: self.evaluation.returns(name) for name in self.sets}
