"""Collects the runs of the study of factors from machines that trained some of its seeds, and states the effects.

Run it with:  python -m benchmarks.factors [FOLDER ...]

Each FOLDER is the output of ``gymdr study examples/studies/factors_lander.toml --output FOLDER`` with some of its
seeds; its numbers join those in the CSV file. Prints effects and shares of variance, and draws them.
"""

from __future__ import annotations

import argparse
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.factor_effects import (
    RESIDUAL,
    SEED_BLOCKS,
    blocks_of,
    contrast_over_seeds,
    effect_contrasts,
    shares_of_variance,
)
from gym_dr.evaluation.results import Evaluation
from gym_dr.evaluation.statistics import holm
from gym_dr.reports.plots import new_figure, save_figure
from gym_dr.studies.contrasts import Design, read_design
from gym_dr.studies.results import MEAN, TITLES

ROOT = Path(__file__).parents[1]
STUDY = ROOT / "examples" / "studies" / "factors_lander.toml"
CSV = ROOT / "docs" / "data" / "factors.csv"
PICTURE = ROOT / "docs" / "guides" / "pictures" / "factors.png"
SHOWN = ("box", "nominal")  # sets in the picture
KEY = ["variant", "seed", "set", "statistic"]
TIMES = " x "  # between crossed factors, in a term
ROW, GAP_BETWEEN = 1.0, 1.4  # heights of a row, and of a factor's heading


def rows_of(folder: Path) -> pd.DataFrame:
    """A row for each run, set and statistic of a study that is complete."""
    rows = Evaluation.load(folder / "evaluation").summary
    rows = rows[rows["statistic"].isin(TITLES)].round({"value": 4})
    names = rows["policy"].str.extract(r"^(?P<variant>.+)/seed-(?P<seed>\d+)$").astype({"seed": int})
    return pd.concat([names, rows], axis=1)[[*KEY, "value"]]


def by_variant_of(table: pd.DataFrame, statistic: str) -> dict[str, dict[str, dict[int, float]]]:
    """The values of a statistic: set -> variant -> seed -> value."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    rows = table[table["statistic"] == statistic]
    for name, variant, seed, value in rows[["set", "variant", "seed", "value"]].itertuples(index=False):
        found.setdefault(name, defaultdict(dict))[variant][seed] = value
    return found


def effects_on(design: Design, by_variant: Mapping[str, Mapping[int, float]]) -> list[dict[str, Any]]:
    """The effects on one set, in one statistic: main effects, then interactions.

    Args:
        design: The factors.
        by_variant: Variant -> seed -> value.

    Returns:
        A row for each effect that the runs determine: ``term``, ``level``, ``other`` (the baseline's level), the number
        with its interval, and its p-value ``p``.
    """
    blocks, values = blocks_of(list(design.combinations), by_variant)
    rows = []
    for chosen, contrast in effect_contrasts(design).items():
        found = contrast_over_seeds(blocks, values, contrast)
        if found is not None:
            head = {
                "term": TIMES.join(factor for factor, _ in chosen),
                "level": TIMES.join(level for _, level in chosen),
                "other": TIMES.join(design.levels[factor][0] for factor, _ in chosen),
            }
            rows.append({**head, **found[0], "p": found[1]})
    return rows


def shares_on(design: Design, by_variant: Mapping[str, Mapping[int, float]]) -> list[dict[str, Any]]:
    """The shares of variance on one set, in one statistic, a row for each ``term``; none if the runs do not tell."""
    found = shares_of_variance(design, *blocks_of(list(design.combinations), by_variant)) or {}
    return [{"term": TIMES.join(term), "share": share} for term, share in found.items()]


def percentage(row: Mapping[Any, Any]) -> str:
    """A share of variance as text."""
    return f"{100 * row['share']:.0f} %"


def plot_effects(effects: pd.DataFrame, shares: pd.DataFrame, path: Path) -> None:
    """Draws effects with 95 % intervals, grouped by factor with its share of variance, a column for each set.

    Args:
        effects: See ``effects_on``; those of one statistic, at least one.
        shares: See ``shares_on``; those of the same statistic.
        path: Path of the picture.

    Raises:
        RunFolderError: The picture cannot be written.
    """
    sets = list(dict.fromkeys(effects["set"]))
    places = _places(effects)
    lowest = max(places.values()) + ROW
    figure, axes = new_figure(len(sets), len(sets), (2.0 / len(sets) + 3.2, 1.2 + 0.24 * lowest))
    colors = {term: f"C{index % 10}" for index, term in enumerate(dict.fromkeys(effects["term"]))}
    small: Any = {"fontsize": "small", "parse_math": False}
    for ax, name in zip(axes, sets, strict=True):
        ax.axvline(0.0, color="0.4", linewidth=1.0, linestyle=":")
        for row in effects[effects["set"] == name].to_dict("records"):
            y = places[row["term"], row["level"]]
            ax.plot([row["low"], row["high"]], [y, y], color=colors[row["term"]], linewidth=1.8)
            ax.plot([row["value"]], [y], "o", color=colors[row["term"]], markersize=5)
        known = _shares_of(shares, name)
        for term, other in effects.drop_duplicates("term")[["term", "other"]].itertuples(index=False):
            text = term if TIMES in term else f"{term}, from {other}"
            y = places[term, ""]
            text += f": {known[term]}" if term in known else ""
            ax.text(0.02, y, text, transform=ax.get_yaxis_transform(), va="center", backgroundcolor="white", **small)
        rest = [f"{term}: {known[term]}" for term in (SEED_BLOCKS, RESIDUAL) if term in known]
        ax.set_title("\n".join([name, ", ".join(rest)]), **small)
        ax.set_ylim(lowest, -ROW)
        ax.grid(visible=False, axis="y")
        labels = {y: level for (_, level), y in places.items() if level}
        ax.set_yticks(list(labels), list(labels.values()) if ax is axes[0] else [""] * len(labels), fontsize="small")
    figure.supxlabel(
        "Difference in mean return, with 95 % intervals over seeds; percentages: shares of variance", fontsize="medium"
    )
    save_figure(figure, path, dpi=110)


def _places(effects: pd.DataFrame) -> dict[tuple[str, str], float]:
    """(term, level) -> height from the top; the level "" stands for a term's heading."""
    found: dict[tuple[str, str], float] = {}
    height = 0.0
    for term, rows in effects.groupby("term", sort=False):
        found[str(term), ""] = height
        for level in dict.fromkeys(rows["level"]):
            height += ROW
            found[str(term), level] = height
        height += GAP_BETWEEN
    return found


def _shares_of(shares: pd.DataFrame, name: str) -> dict[str, str]:
    """Term -> its share of variance on a set, as text."""
    return {row["term"]: percentage(row) for row in shares[shares["set"] == name].to_dict("records")}


def main() -> None:
    """Joins the folders' rows to the file, prints tables and draws the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="*")
    arguments = parser.parse_args()
    known = [pd.read_csv(CSV)] if CSV.exists() else []
    if not known and not arguments.folders:
        parser.error(f"expected a FOLDER, since {CSV} does not exist yet.")
    rows = pd.concat([*known, *map(rows_of, arguments.folders)]).drop_duplicates(KEY, keep="last").sort_values(KEY)
    rows.to_csv(CSV, index=False)
    table = tomllib.loads(STUDY.read_text())
    design = read_design(table["factors"], table["design"])
    for statistic, title in TITLES.items():
        found, shares = [], []
        for name, runs in by_variant_of(rows, statistic).items():
            found += [{"set": name, **row} for row in effects_on(design, runs)]
            shares += [{"set": name, **row} for row in shares_on(design, runs)]
        if not found:
            continue
        effects = pd.DataFrame(found).assign(p_holm=holm([row["p"] for row in found]))
        print(f"\n{title}\n\n{effects.to_string()}\n\n{pd.DataFrame(shares).to_string()}")
        if statistic == MEAN:
            both = (table[table["set"].isin(SHOWN)] for table in (effects, pd.DataFrame(shares)))
            plot_effects(next(both), next(both), PICTURE)


if __name__ == "__main__":
    main()
