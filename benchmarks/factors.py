"""Collects the runs of the study of factors from machines that trained some of its seeds, and states the effects.

Run it with:  python -m benchmarks.factors [FOLDER ...]

Each FOLDER is the output of ``gymdr study examples/studies/factors_lander.toml --output FOLDER`` with some of its
seeds; its numbers join those in the CSV file. Prints the study's tables and draws its picture from all of them.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from functools import partial
from pathlib import Path

import pandas as pd

from gym_dr.evaluation.results import Evaluation
from gym_dr.experiments.factor_plots import plot_effects
from gym_dr.experiments.factor_tables import effect_tables, share_findings
from gym_dr.experiments.study_file import read_study
from gym_dr.experiments.study_tables import (
    MEAN,
    SOLVED,
    TITLES,
    effects_of,
    results_of,
    results_table,
    shares_of,
)

ROOT = Path(__file__).parents[1]
STUDY = ROOT / "examples" / "studies" / "factors_lander.toml"
CSV = ROOT / "docs" / "data" / "factors.csv"
PICTURE = ROOT / "docs" / "guides" / "pictures" / "factors.png"
SHOWN = ("box", "nominal")  # sets in the picture
KEY = ["variant", "seed", "set", "statistic"]


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
    study, values = read_study(STUDY), partial(by_variant_of, rows)
    results, found, shares = results_of(study, values), effects_of(study, values), shares_of(study, values)
    for statistic, title in TITLES.items():
        if len(chosen := results[results["statistic"] == statistic]):
            table = results_table(study, title, chosen, "variant", percent=statistic == SOLVED)
            print(f"\n{title}\n\n{table.markdown()}")
        parts = (part[part["statistic"] == statistic] for part in (found, shares))
        for shown in effect_tables(*parts, title, percent=statistic == SOLVED):
            print(f"\n{shown.caption}\n\n{shown.markdown()}")
    of_means = [part[part["statistic"] == MEAN] for part in (found, shares)]
    print("\n" + "\n".join(share_findings(of_means[1])))
    plot_effects(*(part[part["set"].isin(SHOWN)] for part in of_means), PICTURE)


if __name__ == "__main__":
    main()
