"""The tutorial on a servo's log: its commands run on a simulated log of the same form."""

from __future__ import annotations

import json
import runpy
import shlex
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gym_dr.cli.main import main
from tests.pages import ROOT, blocks
from tests.policies.tiny_run import TINY
from tests.registered import forgotten_afterwards

PAGE, EXAMPLE = ROOT / "docs" / "tutorials" / "servo.md", ROOT / "examples" / "servo"
TRUTH = {"strength": 0.076, "braking": 0.03, "viscous": 0.004, "friction": 0.02, "armature": 0.002, "offset": 0.01}
TINY_PPO = [*TINY, "--minibatches", "1"]
SMALL = {"train": TINY_PPO, "evaluate": ["--episodes", "1"]}
ASIDE = next(word for line in blocks(PAGE, "console") for word in line.split() if word.startswith("motions/"))


def motion(servo: Any, kp: float, rng: np.random.Generator, seconds: float = 0.9) -> dict[str, Any]:
    """A motion as the servo's own log has it: a record for each reading."""
    time = np.cumsum(rng.uniform(0.0035, 0.006, int(seconds / 0.00475)))
    known = {"mass": 0.49, "arm": 0.1, "kp": kp, **TRUTH}
    state, entries = servo["State"](0.0, 0.0), []
    for now, after in zip(time, [*time[1:], time[-1]], strict=True):
        goal, volts, enabled = float(np.sin(3.0 * now + kp)), float(rng.uniform(7.2, 7.5)), bool(now < 0.8 * seconds)
        reading = round((state.q) / 0.001534) * 0.001534
        entry = {"position": reading, "speed": state.w, "load": 0, "input_volts": volts, "temp": 28, "timestamp": now}
        entries.append({**entry, "goal_position": goal, "torque_enable": enabled})
        c = SimpleNamespace(**known, volts=volts, enabled=float(enabled), dt=after - now)
        state, _, _ = servo["step"](c, state, goal)
    return {"mass": 0.49, "length": 0.1, "kp": kp, "vin": 7.4, "motor": "xl330", "entries": entries}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples and a log where the page fetches it."""
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "servo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "examples" / "servo"))
    monkeypatch.delitem(sys.modules, "servo", raising=False)
    raw = tmp_path / "bam" / "bam" / "data.bak" / "raw"
    raw.mkdir(parents=True)
    with forgotten_afterwards():
        servo = runpy.run_path(str(EXAMPLE / "servo.py"))
    rng = np.random.default_rng(0)
    for number, kp in enumerate([100, 200, 400, 800, 400]):
        name = Path(ASIDE).stem if number == 4 else f"2026-01-15_10h28m{number:02}"
        (raw / f"{name}.json").write_text(json.dumps(motion(servo, kp, rng)))
    return tmp_path


def run(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a command of the page, with a small budget."""
    program, *arguments = shlex.split(line.removeprefix("PYTHONPATH=examples/servo "))
    if program == "gymdr":
        main([*arguments, *SMALL.get(arguments[0], [])])
    elif program == "python":
        monkeypatch.setattr(sys, "argv", arguments)
        runpy.run_path(arguments[0], run_name="__main__")
    elif program == "mkdir":
        Path(arguments[-1]).mkdir()
    elif program == "mv":
        source, target = arguments
        shutil.move(source, target)
    else:
        assert program == "git", line


@pytest.mark.usefixtures("seeds_in_this_process", "few_particles")
def test_the_commands_of_the_page_find_a_servo_from_its_log_and_train_a_policy_for_it(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with forgotten_afterwards():
        for block in blocks(PAGE, "console"):
            for line in block.splitlines():
                run(line, monkeypatch)
    out = capsys.readouterr().out
    assert "Wrote 5 motions to motions" in out
    particles = np.load("servo.npz")
    for name in ("strength", "friction", "armature"):
        assert abs(particles[name].mean() / TRUTH[name] - 1.0) < 0.1, name
    total = particles["braking"] + particles["viscous"]
    assert abs(total.mean() / 0.034 - 1.0) < 0.1
    assert Path("servo.png").is_file()
    assert {"runs/sheet", "runs/log", "sheet_log"} <= {str(path) for path in Path().glob("**") if path.is_dir()}


def test_the_page_shows_the_step_of_the_file() -> None:
    assert blocks(PAGE, "py")[0] in (EXAMPLE / "servo.py").read_text()
