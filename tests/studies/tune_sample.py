"""A tuning of two trials with two seeds, which takes a moment, and what came out of it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

TINY: dict[str, Any] = {
    "env": "gym_dr/CartPoleDR-v1",
    "algorithm": "ppo",
    "seeds": [1001, 1002],
    "trials": 2,
    "settings": {"num_envs": 2, "checkpoint_every": 2},
    "ppo": {"updates": 5, "rollout_steps": 32, "minibatches": 1, "epochs": 1, "hidden_sizes": [8]},
    "search": {
        "lr": {"low": 1e-4, "high": 1e-1, "log": True},
        "hidden_sizes": {"choices": [[8], [4, 4]]},
        "epochs": {"low": 1, "high": 2},
    },
    "evaluation": {"episodes": 2},
}


def tiny(**changes: Any) -> dict[str, Any]:
    """The tuning with other tables; None removes one."""
    form = copy.deepcopy(TINY) | changes
    return {name: value for name, value in form.items() if value is not None}


def tiny_tuning(form: dict[str, Any]) -> dict[str, Any]:
    """A tuning with a budget of a moment."""
    return form | {"trials": 2, "seeds": form["seeds"][:1], "total_steps": 1000, "evaluation": {"episodes": 1}}


def outcome(folder: Path) -> dict[str, str]:
    """What a tuning has written, but for wall times and for the page, which shows the same."""
    texts = {name: (folder / name).read_text() for name in ("trials.csv", "best.json")}
    return texts | {"names": str(sorted(str(path.relative_to(folder)) for path in folder.rglob("*")))}
