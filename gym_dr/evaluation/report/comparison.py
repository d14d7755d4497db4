"""An evaluation as a report compares it: by groups of runs rather than by single runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.evaluation.report.groups import Group
from gym_dr.evaluation.results import Evaluation

Array = npt.NDArray[np.float64]

WIDEST_FIRST = ("sobol", "grid", "corners", "distribution", "nominal")  # kinds of sets
LABELS = {
    "nominal": "nominal physics",
    "sobol": "the whole randomized box",
    "corners": "the corners of the randomized box",
    "grid": "the grid",
}

MAX_PARAMETERS = 8  # whose pairs are drawn: 28 of them


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Groups of runs, and an evaluation in which all of their runs are policies."""

    groups: Sequence[Group]
    evaluation: Evaluation

    @property
    def document(self) -> dict[str, Any]:
        """The content of ``evaluation.json``."""
        return self.evaluation.document

    @property
    def sets(self) -> list[str]:
        """Names of the sets, in the order of the file."""
        return [entry["name"] for entry in self.document["sets"]]

    @cached_property
    def policies(self) -> list[list[int]]:
        """For each group the indices of its runs among the evaluation's policies."""
        known = {policy["digest"]: index for index, policy in enumerate(self.document["policies"])}
        return [[known[policy.digest] for policy in group.policies] for group in self.groups]

    @property
    def group_pairs(self) -> list[tuple[int, int]]:
        """Every two groups, the one named later first, since users name the baseline first."""
        return [(second, first) for first, second in combinations(range(len(self.groups)), 2)]

    @property
    def widest(self) -> str:
        """The set that covers most: one that fills the box, else a grid, else draws."""
        return min(self.sets, key=lambda name: WIDEST_FIRST.index(self.set_entry(name)["kind"]))

    def label(self, set_name: str) -> str:
        """The name of a set in a report."""
        return LABELS.get(self.set_entry(set_name)["kind"], set_name)

    def set_entry(self, name: str) -> dict[str, Any]:
        """The entry of one set in ``evaluation.json``."""
        return next(entry for entry in self.document["sets"] if entry["name"] == name)

    def entries(self, group: int) -> list[dict[str, Any]]:
        """The entries of a group's runs in ``evaluation.json``."""
        return [self.document["policies"][index] for index in self.policies[group]]

    def results(self, group: int, set_name: str) -> list[dict[str, Any]]:
        """The results of each of a group's runs on a set."""
        names = [entry["name"] for entry in self.entries(group)]
        found = {r["policy"]: r for r in self.document["results"] if r["set"] == set_name}
        return [found[name] for name in names]

    def training_range(self, group: int, parameter: str) -> tuple[float, float]:
        """Smallest and largest value of a parameter in training; both nominal where it was not randomized."""
        nominal = self.document["parameters"][parameter]["nominal"]
        low, high = self.entries(group)[0]["ranges"].get(parameter, (nominal, nominal))
        return low, high

    def returns(self, group: int, set_name: str) -> Array:
        """Returns of a group's runs on a set.

        Returns:
            Shape ``(runs, episodes)``; column i is the same draw and the same episode seed in every run of every group.
        """
        returns = self._returns[set_name][self.policies[group]]
        return returns.reshape(len(returns), -1)

    def values(self, set_name: str) -> dict[str, Array]:
        """The parameters that vary in a set: name -> value in each episode, in the order of ``returns``."""
        return self._values[set_name]

    def pairs(self, set_name: str) -> list[tuple[str, str]]:
        """Pairs of the parameters that vary in a set, the most important first; of many parameters only of those."""
        return list(combinations(self.important(set_name)[:MAX_PARAMETERS], 2))

    def left_out(self, set_name: str) -> str:
        """A sentence on the parameters that ``pairs`` leaves out; empty where it has all."""
        names = self.important(set_name)
        plotted, others = names[:MAX_PARAMETERS], names[MAX_PARAMETERS:]
        if not others:
            return ""
        known = any(self._totals.get(name) for name in names)
        count, total = len(plotted), f"{len(names)} parameters"
        choice = f"The {count} of {total} that matter most" if known else f"The first {count} of {total}"
        return f"{choice} are shown; the others: {', '.join(others)}."

    def important(self, set_name: str) -> list[str]:
        """The parameters that vary in a set; where sensitivities are known, the one that matters most comes first."""
        names = list(self.values(set_name))
        return sorted(names, key=lambda name: -self._totals.get(name, 0.0))  # keeps the order of equals

    @cached_property
    def _totals(self) -> dict[str, float]:
        """Total sensitivities by parameter, summed over runs; empty where none are known."""
        totals: dict[str, float] = {}
        for result in self.document["results"]:
            if found := result["sensitivity"]:
                for name, index in zip(found["parameters"], found["total"], strict=True):
                    totals[name] = totals.get(name, 0.0) + (index["value"] or 0.0)  # none where nothing varied
        return totals

    @cached_property
    def _returns(self) -> dict[str, Array]:
        return {name: self.evaluation.returns(name) for name in self.sets}

    @cached_property
    def _values(self) -> dict[str, dict[str, Array]]:
        table = self.evaluation.episodes
        first = table[table["policy"] == self.document["policies"][0]["name"]]
        found = {}
        for name in self.sets:
            rows = first[first["set"] == name]
            columns = {p: rows[p].to_numpy(dtype=np.float64) for p in self.document["parameters"]}
            found[name] = {p: column for p, column in columns.items() if np.ptp(column) > 0}
        return found
