"""A study of three variants and two seeds whose trainings take a moment, and what came out of it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pandas as pd

from gym_dr.randomization.sampler import SAMPLERS
from gym_dr.reports.page import Report
from gym_dr.runs.checkpoint import checkpoint_paths
from gym_dr.runs.folder import RunFolder
from tests.runs.kill_points import result as result_of_run

TINY: dict[str, Any] = {
    "env": "gym_dr/LunarLanderDR-v3",
    "algorithm": "a2c",
    "seeds": [1, 2],
    "reserved_seeds": [101],
    "settings": {"num_envs": 2, "checkpoint_every": 2},
    "a2c": {"updates": 3, "rollout_steps": 64, "hidden_sizes": [8]},
    "variants": {
        "nominal": {"randomization": "none"},
        "wide": {"randomization": "wide"},
        "asymmetric": {"randomization": "wide", "critic_context": True},
    },
    "evaluation": {"episodes": 2, "success": -150.0, "grid": {"gravity": [-11, -5, 2], "wind_power": [0, 20, 2]}},
}


def quick_page(*_: Any, compared: Any) -> Report:
    """In place of the report of all policies: what the study itself says, and no plots."""
    return Report(
        **{"title": "", "command": "", "versions": ""},  # type: ignore[arg-type]  # only texts
        **dict.fromkeys(["facts", "sections", "provenance"], ()),
        findings=compared[0],
        tables=compared[1],
    )


def tiny(**changes: Any) -> dict[str, Any]:
    """The study with other values; ``variants`` adds to those that there are."""
    form = copy.deepcopy(TINY)
    form["variants"] |= changes.pop("variants", {})
    return form | changes


def tiny_study(form: dict[str, Any]) -> dict[str, Any]:
    """The first three variants of a study, or two levels of two factors, with one seed and a budget of a moment."""
    small = copy.deepcopy(form)
    small["seeds"] = small["seeds"][:1]
    short = {"updates": 2, "rollout_steps": 8, "minibatches": 1, "hidden_sizes": [8]}
    if "factors" in small:
        small["factors"] = {factor: _first(levels, 2) for factor, levels in _first(small["factors"], 2).items()}
        small.pop("design")
        levels = [level for levels in small["factors"].values() for level in levels.values()]
        small |= {level["algorithm"]: short for level in levels if "algorithm" in level}
    small["variants"] = _first(small.get("variants", {}), 3)
    evaluation = small.get("evaluation", {})
    evaluation |= {"references": [name for name in evaluation.get("references", ()) if name in small["variants"]]}
    used = {variant.get("sampler") for variant in small["variants"].values()}
    small = {key: value for key, value in small.items() if key not in SAMPLERS or key in used}
    small["settings"] = small.get("settings", {}) | {"num_envs": 2}
    algorithm = small.get("algorithm", "a2c")  # or ppo, which has these options too
    small[algorithm] = small.get(algorithm, {}) | short
    for variant in small["variants"].values():
        if "memory" in variant:
            variant["sequence_length"] = short["rollout_steps"]
    if any(variant.get("algorithm") == "reinforce" for variant in small["variants"].values()):
        small["reinforce"] = {"updates": 2}
    if pairs := small.get("comparisons", {}).get("pairs"):
        small["comparisons"]["pairs"] = [pair for pair in pairs if small["variants"].keys() >= set(pair)]
    evaluation = small.get("evaluation", {})
    evaluation["episodes"] = 1
    evaluation |= {"grid": {name: [low, high, 2] for name, (low, high, _) in evaluation.get("grid", {}).items()}}
    return small | {"evaluation": evaluation | ({"sobol": 2} if "sobol" in evaluation else {})}


def _first(table: dict[str, Any], count: int) -> dict[str, Any]:
    """The first entries of a table."""
    return dict(list(table.items())[:count])


def outcome(folder: Path) -> dict[str, Any]:
    """Everything that a study has written but for wall times, and for digests of checkpoints, which hold those."""
    found: dict[str, Any] = {"names": sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))}
    for run in sorted(folder.glob("runs/*/seed-*")):
        found |= {f"{run.relative_to(folder)}: {name}": value for name, value in result_of_run(run).items()}
    for name in ("study.json", "results.csv", "comparisons.csv", "tables.txt", "evaluation/episodes.csv"):
        found[name] = (folder / name).read_text()
    document = json.loads((folder / "evaluation/evaluation.json").read_text())
    for policy in document["policies"]:
        del policy["digest"]
    found["evaluation.json"] = document
    found["times.csv"] = pd.read_csv(folder / "times.csv").drop(columns="seconds").to_csv()
    found["report.html"] = (folder / "report.html").read_text().replace(str(folder), "FOLDER")
    return found


def trained_at(folder: Path) -> dict[str, int]:
    """Name of a run -> when its newest checkpoint was written, in nanoseconds; nothing of runs without one."""
    saved = {run: checkpoint_paths(RunFolder(run)) for run in sorted(folder.glob("runs/*/seed-*"))}
    return {f"{run.parent.name}/{run.name}": paths[-1].stat().st_mtime_ns for run, paths in saved.items() if paths}
