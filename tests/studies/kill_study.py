"""Kills a study at random points and goes on; exits with a message where other files come out than without.

A program of its own, as tests/runs/kill_points.py, whose ways to kill it takes: at a random time, or inside a write.

    python -m tests.studies.kill_study POINTS SEED FOLDER
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from pathlib import Path

import torch

import gym_dr.api.run
import gym_dr.reports.assemble
from gym_dr.runs import launch
from tests.conftest import run_here
from tests.runs.kill_points import die_at_write, run
from tests.studies.study_sample import TINY, outcome, quick_page

WRITES = 400  # about as many places to die in as a study has: five a file


def check(points: int, seed: int, base: Path) -> None:
    """Exits with a message at the first difference."""
    random.seed(seed)
    (base / "study.json").write_text(json.dumps(TINY))
    out = base / "out"  # the same each time, since the page names it
    study = ["study", str(base / "study.json"), "--output", str(out)]
    assert run(study) == 0  # compiles what is not there yet
    shutil.rmtree(out)
    began = time.perf_counter()
    assert run(study) == 0
    seconds, expected = time.perf_counter() - began, outcome(out)
    for point in range(points):
        shutil.rmtree(out)
        history = []  # exit statuses
        for _ in range(random.choice([1, 1, 2, 3])):  # a study may be killed more than once
            if random.random() < 0.5:
                history.append(run(study, prepare=die_at_write(random.randint(1, WRITES))))
            else:
                history.append(run(study, kill_after=random.uniform(0.0, seconds)))
        history.append(run(study))
        found = outcome(out)
        if history[-1] or found != expected:
            different = [name for name, value in found.items() if value != expected.get(name)]
            sys.exit(f"seed {seed}, point {point}: statuses {history}; {different} differ in {out}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    launch.run_commands = run_here  # type: ignore[assignment]  # in the fork that is killed
    gym_dr.api.run.plot_training = lambda _, path: path.touch()
    gym_dr.reports.assemble.assemble = quick_page
    check(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
