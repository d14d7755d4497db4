"""What the user lets vary: parameter name -> rule, with optional correlations."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.errors import RandomizationError, check_known, located
from gym_dr.randomization.rules import Rule, as_rule

if TYPE_CHECKING:
    import pandas as pd

    from gym_dr.randomization.space import ParamSpace


@dataclass(frozen=True)
class Correlation:
    """Correlation of some parameters' normal scores (a Gaussian copula); each keeps its own distribution.

    The first parameter keeps the draws that it would have without correlation; the others follow it. It links draws
    before Scale and Add apply, so for a Scale of a negative nominal value its sign turns around. The values of a Choice
    count in their order.
    """

    names: tuple[str, ...]  # of the parameters, in the order of the matrix
    matrix: tuple[tuple[float, ...], ...]  # symmetric, ones on the diagonal, positive definite

    def __post_init__(self) -> None:
        try:
            matrix = np.asarray(self.matrix, dtype=np.float64)
            names = tuple(str(name) for name in self.names)
        except (TypeError, ValueError, OverflowError):
            raise RandomizationError(f"Correlation: expected names and a matrix of numbers, got {self!r}.") from None
        if isinstance(self.names, str) or matrix.shape != (len(names), len(names)) or not names:
            raise RandomizationError(
                f"Correlation: expected a {len(names)} x {len(names)} matrix for {names}, got shape {matrix.shape}."
            )
        if len(set(names)) != len(names):
            raise RandomizationError(f"Correlation: expected each name once, got {names}.")
        if not (np.isfinite(matrix).all() and np.allclose(matrix, matrix.T) and np.allclose(np.diag(matrix), 1.0)):
            raise RandomizationError(
                "Correlation: expected a symmetric matrix of finite numbers with ones on the diagonal, "
                f"got {matrix.tolist()}."
            )
        smallest = float(np.linalg.eigvalsh(matrix)[0])
        if smallest < 1e-10:
            raise RandomizationError(
                f"Correlation: expected a positive definite matrix, got {matrix.tolist()} with smallest eigenvalue "
                f"{smallest:.3g}. Move the correlations closer to 0, or leave a dependent parameter out."
            )
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "matrix", tuple(tuple(float(v) for v in row) for row in matrix))

    def without(self, names: Collection[str]) -> Correlation | None:
        """The correlation of the other parameters; None if there are none."""
        kept = [k for k, name in enumerate(self.names) if name not in names]
        matrix = tuple(tuple(self.matrix[i][j] for j in kept) for i in kept)
        return Correlation(tuple(self.names[k] for k in kept), matrix) if kept else None

    @cached_property
    def cholesky(self) -> Array:
        """Lower triangular factor, shape ``(len(names), len(names))``."""
        return np.linalg.cholesky(np.asarray(self.matrix))


CORRELATION = "correlation"  # key of the form for files, beside the names of parameters


@dataclass(frozen=True, init=False, repr=False)
class Randomization(Mapping[str, Rule]):
    """Which parameters vary and how: a frozen, hashable mapping of names to rules.

    All other parameters keep their nominal values. An environment adds rules for switches that the parameters need.
    """

    rules: tuple[tuple[str, Rule], ...]  # sorted by name, so that equal randomizations compare equal
    correlation: Correlation | None

    def __init__(self, rules: Mapping[str, Any] | None = None, *, correlation: Any = None) -> None:
        """Reads rules in any of the forms that users write.

        Args:
            rules: name -> ``Distribution``, ``Scale(...)``, ``Add(...)``, a pair (Uniform), a number (Constant), a
                table as in TOML files, or a string as on the command line.
            correlation: A ``Correlation`` or a mapping with ``names`` and ``matrix``.

        Raises:
            RandomizationError: A rule or the correlation is impossible.
            UnknownNameError: A distribution or field is unknown.
        """
        if rules is not None and not isinstance(rules, Mapping):
            raise RandomizationError(f"Expected a mapping of parameter names to distributions, got {rules!r}.")
        read = {}
        for name, rule in (rules or {}).items():
            if not isinstance(name, str):
                raise RandomizationError(f"Expected parameter names, got {name!r}.")
            if name == CORRELATION:
                raise RandomizationError(f"Expected parameter names, got {name!r}. Pass it as {name}=....")
            with located(f"Parameter {name!r}"):
                read[name] = as_rule(rule)
        object.__setattr__(self, "rules", tuple(sorted(read.items())))
        object.__setattr__(self, "correlation", _as_correlation(correlation, read))

    def __getitem__(self, name: str) -> Rule:
        return dict(self.rules)[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def __repr__(self) -> str:
        rules = ", ".join(f"{name!r}: {rule!r}" for name, rule in self.rules)
        return f"Randomization({{{rules}}}{f', correlation={self.correlation!r}' if self.correlation else ''})"

    def without(self, names: Collection[str]) -> Randomization:
        """The same without some parameters."""
        rules = {name: rule for name, rule in self.rules if name not in names}
        return Randomization(rules, correlation=self.correlation and self.correlation.without(names))

    def sample(self, n: int, seed: int = 0, space: ParamSpace | None = None) -> pd.DataFrame:
        """Draws as a table: a row for each draw, a column for each parameter.

        Row i is draw i of a sub-environment that was reset with this seed.

        Example:
            >>> table = Randomization({"gravity": (-12, -6), "wind_power": (0, 20)}).sample(1000, seed=1)
            >>> table["gravity"].mean()

        Args:
            n: Number of draws.
            seed: Seed of the sub-environment, at least 0.
            space: The environment's parameters, ``envs.param_space``; needed for Scale, Add and names with ``*``.

        Returns:
            Shape ``(n, parameters)``, in each parameter's unit.

        Raises:
            RandomizationError: The number or the seed is impossible, or ``space`` is needed or does not fit.
            UnknownNameError: The space has no such parameter.
        """
        from gym_dr.randomization.samples import sample  # it draws, which needs this class

        return sample(self, n, seed, space)

    def to_dict(self) -> dict[str, Any]:
        """The form for TOML and JSON; ``Randomization.from_dict`` restores an equal one."""
        form: dict[str, Any] = {name: rule.to_dict() for name, rule in self.rules}
        if self.correlation is not None:
            matrix = [list(row) for row in self.correlation.matrix]
            form["correlation"] = {"names": list(self.correlation.names), "matrix": matrix}
        return form

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Randomization:
        """Reads the form that ``to_dict`` writes, or a handwritten one with tuples, numbers and strings."""
        rules = {name: rule for name, rule in form.items() if name != CORRELATION}
        return cls(rules, correlation=form.get(CORRELATION))


def _as_correlation(value: Any, rules: Mapping[str, Rule]) -> Correlation | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        if set(value) != {"names", "matrix"}:
            raise RandomizationError(
                f"Correlation: expected the fields names and matrix, got {sorted(map(str, value))}."
            )
        value = Correlation(value["names"], value["matrix"])
    if not isinstance(value, Correlation):
        raise RandomizationError(f"Expected a Correlation or a table with names and matrix, got {value!r}.")
    for name in value.names:
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in rules):  # as body_mass:* stands for several
            check_known("parameter in the correlation (it must be randomized):", name, rules)
    return value
