"""A run folder or configuration from a stranger is data: it runs nothing, leads nowhere, and takes no memory."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from gym_dr.errors import ConfigError, GymDrError, RunFolderError
from gym_dr.evaluation.results import read_document, read_episodes
from gym_dr.randomization.files import MAX_FILE, read_table
from gym_dr.runs import metrics
from gym_dr.runs.checkpoint import load_checkpoint, pack
from gym_dr.runs.configure import build_config, open_run
from gym_dr.runs.folder import RunFolder, write_atomically
from gym_dr.training.registry import find_algorithm
from tests.cli.command import files, gymdr, refused, train

A2C = find_algorithm("a2c")
SETTINGS = {"env": "gym_dr/LunarLanderDR-v3", "num_envs": 2, "vectorization": "sync", "updates": 1}


def make_run(path: Path, **changes: Any) -> RunFolder:
    """A run folder as a stranger might send it, never trained."""
    form = json.loads(build_config(A2C, SETTINGS, randomization="wide").to_json())
    return RunFolder.create(path, json.dumps({**form, **changes}), overwrite=False)


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that leaves a folder behind when it is imported."""
    (tmp_path / "evil_module.py").write_text(f"import os\nimport gym_dr\nos.mkdir({str(tmp_path / 'exploded')!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "evil_module", raising=False)
    return "evil_module:gym_dr/LunarLanderDR-v3"


@pytest.mark.parametrize("command", ["resume", "evaluate", "play"])
def test_a_run_folder_has_only_a_module_imported_that_the_user_trusts(command: str, evil: str, tmp_path: Path) -> None:
    make_run(tmp_path / "run", env=evil)
    assert "--trust evil_module" in refused(gymdr(command, tmp_path / "run"))
    assert not (tmp_path / "exploded").exists()
    open_run(str(tmp_path / "run"), ["evil_module"])
    assert (tmp_path / "exploded").exists()


def test_a_configuration_file_cannot_have_a_module_imported(evil: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(f'env = "{evil}"\n')
    assert "--trust evil_module" in refused(train(tmp_path / "run", "--config", tmp_path / "c.toml"))
    assert not (tmp_path / "exploded").exists()
    # on the command line it is the user's own wish
    assert train(tmp_path / "run", "--config", tmp_path / "c.toml", "--env", evil).code == 0
    assert (tmp_path / "exploded").exists()


@pytest.mark.parametrize("name", ["/etc/passwd.toml", "sub/../../there.toml"])
def test_a_path_in_a_file_does_not_lead_out_of_its_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "there.toml").write_text("gravity = -9\n")
    (tmp_path / "here").mkdir()
    (tmp_path / "here/c.toml").write_text(f'randomization = "{name}"\n')
    message = refused(train(tmp_path / "run", "--config", tmp_path / "here/c.toml"))
    assert f"expected a file beside or below this one, got '{name}'" in message
    make_run(tmp_path / "stranger", randomization=name)
    assert "expected a table in a run's configuration" in refused(gymdr("evaluate", tmp_path / "stranger"))


def test_a_run_that_an_untrusted_run_names_is_read_only_to_resume_it_and_runs_nothing(
    evil: str, tmp_path: Path
) -> None:
    folder, teacher = RunFolder(tmp_path / "run"), tmp_path / "teacher"
    small = ("--env", "gym_dr/CartPoleDR-v1", "--randomize", "length=0.4:0.6", "--num-envs", "2", "--updates", "2")
    small += ("--rollout-steps", "64", "--minibatches", "2", "--hidden-sizes", "8", "--eval-episodes", "0")
    assert gymdr("train", "ppo", *small, "--run-dir", teacher).code == 0
    assert gymdr("train", "distill", *small, "--teacher", teacher, "--run-dir", folder.path).code == 0
    form = json.loads((teacher / "config.json").read_text())
    (teacher / "config.json").write_text(json.dumps({**form, "env": evil}))
    assert gymdr("evaluate", "--episodes", "2", folder.path).code == 0
    shutil.rmtree(folder.checkpoints)
    folder.metrics.unlink()  # it has begun no more
    assert "--trust evil_module" in refused(gymdr("resume", folder.path))
    assert not (tmp_path / "exploded").exists()


LINKS: dict[str, Callable[[RunFolder], Path]] = {
    "metrics": lambda folder: folder.metrics,
    "evaluation": lambda folder: folder.evaluation,
    "checkpoints": lambda folder: folder.checkpoints,
    "logger": lambda folder: folder.loggers / "tensorboard",
    "lock": lambda folder: folder.path / ".lock",
}


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("command", [["resume"], ["train", "a2c", "--overwrite", "--run-dir"]])
def test_a_link_in_a_run_folder_leads_no_write_elsewhere(command: list[str], name: str, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "seed-1")
    link, target = LINKS[name](folder), tmp_path / "mine"
    if name == "checkpoints":
        link.rename(target)
    else:
        target.write_text("mine")
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
    link.symlink_to(target)
    before = files(tmp_path)
    place = tmp_path if command == ["resume"] else folder.path  # a folder of seeds has runs
    assert f"{link}: expected a plain file or folder, got a link" in refused(gymdr(*command, place))
    assert files(tmp_path) == before


@pytest.mark.parametrize("name", ["runs/v", "evaluation", "study.json"])
def test_a_link_in_the_folder_of_a_study_leads_nowhere(name: str, tmp_path: Path) -> None:
    form = {"algorithm": "a2c", "seeds": [1], "settings": {"num_envs": 2}, "a2c": {"updates": 1, "rollout_steps": 8}}
    (tmp_path / "study.json").write_text(json.dumps({**form, "variants": {"v": {}}}))
    folder = tmp_path / "sent"
    make_run(folder / "runs/v/seed-1")
    (folder / "evaluation").mkdir()
    sent = {"format": "gym_dr study", "gym_dr": "0.4.0", "version": 1, "env": SETTINGS["env"], "variants": {"v": {}}}
    (folder / "study.json").write_text(json.dumps(sent))
    mine, link = tmp_path / "mine", folder / name
    link.rename(mine)
    link.symlink_to(mine)
    before = files(tmp_path)
    message = refused(gymdr("study", tmp_path / "study.json", "--output", folder))
    assert f"{link}: " in message
    assert "link" in message
    assert files(tmp_path) == before


def test_the_temporary_file_of_a_write_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")  # a stranger would send a link for each process number
    (tmp_path / f".evaluation.json.{os.getpid()}.tmp").symlink_to(tmp_path / "mine")
    write_atomically(tmp_path / "evaluation.json", b"{}")
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    for path in (folder.metrics, tmp_path / "evaluation.json", tmp_path / "episodes.csv"):
        os.mkfifo(path)
    assert "not a plain file" in refused(gymdr("plot", folder.path))
    for read, path in ((read_document, tmp_path), (read_episodes, tmp_path / "episodes.csv")):
        with pytest.raises(RunFolderError, match=r"cannot be read.*not a plain file"):
            read(path)


def test_files_are_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_LOG", 2**20)  # a GiB takes seconds
    monkeypatch.setattr("gym_dr.evaluation.results.MAX_DOCUMENT", 100)
    folder = make_run(tmp_path / "run")
    for path, size in (
        (folder.metrics, 2**20 + 1),
        (tmp_path / "c.json", 10 * 2**30),
        (tmp_path / "evaluation.json", 101),
    ):
        path.touch()
        os.truncate(path, size)  # takes no room on the disk
    for command in ("plot", "resume"):
        assert "larger than" in refused(gymdr(command, folder.path))
    with pytest.raises(ConfigError, match=f"c.json: cannot be read: it is larger than {MAX_FILE} bytes"):
        read_table(tmp_path / "c.json")
    with pytest.raises(RunFolderError, match=r"evaluation.json: cannot be read.*larger than 100 bytes"):
        read_document(tmp_path)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"num_envs": 10**12}, "num_envs: expected at most 1000000"),
        ({"seed": 10**400}, "seed: expected a number of at most 64 bits"),
        ({"a2c": {"hidden_sizes": [60000, 60000]}}, "hidden_sizes: expected at most 65536 units in a layer"),
        ({"env": "x" * 10**6}, "Unknown environment 'xxx"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_sizes_in_a_configuration_are_bounded(changes: dict[str, Any], expected: str, tmp_path: Path) -> None:
    make_run(tmp_path / "run", **changes)
    message = refused(gymdr("evaluate", tmp_path / "run"))
    assert expected in message
    assert len(message) < 1000


def mutated(rng: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        at, length = rng.randrange(len(changed) + 1), rng.choice([1, 1, 4, 8, 64])
        kind = rng.randrange(3)
        if kind == 0:
            changed[at : at + length] = rng.randbytes(length)
        elif kind == 1:
            del changed[at : at + length]
        else:
            changed[at:at] = changed[at : at + length]
    return bytes(changed)


def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    rng, folder = random.Random(0), make_run(tmp_path / "run")
    content = {"format": "gym_dr checkpoint", "version": 1, "update": 1, "config": {}, "session": {"steps": 8}}
    state = {"actor": {"w": torch.zeros(3, 4)}, "optimizer": {"state": {0: {"step": torch.tensor(1.0)}}, "lr": [0.1]}}
    checkpoint = folder.checkpoints / "update-00000001.safetensors"
    checkpoint.write_bytes(pack({**content, "state": state}))
    reads: dict[Path, Callable[[], Any]] = {
        folder.config: lambda: open_run(folder.path),
        checkpoint: lambda: load_checkpoint(checkpoint),
    }
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd but possible randomizations
        for path, read in reads.items():
            whole, refusals = path.read_bytes(), 0
            for _ in range(100):
                path.write_bytes(mutated(rng, whole))
                try:
                    read()
                except GymDrError:
                    refusals += 1
            path.write_bytes(whole)
            assert refusals > 25  # a mutation may leave a valid file: another seed, or a space more
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 200 * 2**20
