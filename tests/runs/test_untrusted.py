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
from gym_dr.evaluation.results import Evaluation, read_document, read_episodes
from gym_dr.randomization.files import MAX_FILE, read_table
from gym_dr.runs import metrics
from gym_dr.runs.checkpoint import load_checkpoint
from gym_dr.runs.configure import build_config, open_run
from gym_dr.runs.durable import write_atomically
from gym_dr.runs.folder import RunFolder, expand
from gym_dr.runs.pack import pack, unpack
from gym_dr.training.registry import find_algorithm
from gym_dr.wording import addressing
from tests.cli.command import files, gymdr, refused, train

A2C = find_algorithm("a2c")
SETTINGS = {"env": "CartPole-v1", "num_envs": 2, "vectorization": "sync"}


def make_run(path: Path, **changes: Any) -> RunFolder:
    """A run folder as a stranger might send it, never trained."""
    given = {**SETTINGS, "env": "gym_dr/LunarLanderDR-v3", "updates": 1}
    form = build_config(A2C, given, randomization="wide").to_dict()
    return RunFolder.create(path, json.dumps({"gym_dr": "0.4.0", **form, **changes}), overwrite=False)


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that leaves a folder behind when it is imported."""
    (tmp_path / "evil_module.py").write_text(f"import os\nimport gym_dr\nos.mkdir({str(tmp_path / 'exploded')!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "evil_module", raising=False)
    return "evil_module:gym_dr/LunarLanderDR-v3"


@pytest.mark.parametrize("command", ["resume", "evaluate", "play"])
def test_a_run_folder_cannot_have_a_module_imported(command: str, evil: str, tmp_path: Path) -> None:
    make_run(tmp_path / "run", env=evil)
    assert "--trust evil_module" in refused(gymdr(command, tmp_path / "run"))
    assert not (tmp_path / "exploded").exists()


def test_a_module_that_the_user_trusts_is_imported(evil: str, tmp_path: Path) -> None:
    make_run(tmp_path / "run", env=evil)
    open_run(str(tmp_path / "run"), ["evil_module"])
    assert (tmp_path / "exploded").exists()


def test_a_configuration_file_cannot_have_a_module_imported(evil: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(f'env = "{evil}"\n')
    assert "--trust evil_module" in refused(train(tmp_path / "run", "--config", tmp_path / "c.toml"))
    assert not (tmp_path / "exploded").exists()
    # on the command line it is the user's own wish
    assert train(tmp_path / "run", "--config", tmp_path / "c.toml", "--env", evil).code == 0
    assert (tmp_path / "exploded").exists()


@pytest.mark.parametrize("name", ["../there.toml", "/etc/passwd.toml", "sub/../../there.toml", "../there"])
def test_a_path_in_a_file_does_not_lead_out_of_its_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "there.toml").write_text("gravity = -9\n")
    (tmp_path / "here").mkdir()
    (tmp_path / "here/c.toml").write_text(f'randomization = "{name}"\n')
    message = refused(train(tmp_path / "run", "--config", tmp_path / "here/c.toml"))
    assert f"expected a file beside or below this one, got '{name}'" in message
    make_run(tmp_path / "stranger", randomization=name)
    assert "expected a table in a run's configuration" in refused(gymdr("evaluate", tmp_path / "stranger"))


def train_student(path: Path, teacher: Path) -> RunFolder:
    """A run as a stranger might send it, which names a run to imitate and one to go on from."""
    env = ("--env", "gym_dr/CartPoleDR-v1", "--randomize", "length=0.4:0.6")
    small = (*env, "--num-envs", "2", "--updates", "2", "--rollout-steps", "64")
    small += ("--minibatches", "2", "--hidden-sizes", "8", "--eval-episodes", "0", "--checkpoint-every", "2")
    assert gymdr("train", "ppo", *small, "--run-dir", teacher).code == 0
    given = ("--teacher", teacher, "--init", teacher, "--run-dir", path)
    assert gymdr("train", "distill", *small, *given).code == 0
    return RunFolder(path)


def test_runs_that_an_untrusted_run_names_are_read_only_to_resume_it(tmp_path: Path) -> None:
    folder = train_student(tmp_path / "run", tmp_path / "teacher")
    evaluate = ("evaluate", "--episodes", "2", folder.path)
    shutil.rmtree(tmp_path / "teacher")  # so that reading it would fail
    report = ("report", folder.path, "--output", tmp_path / "report.html")
    for command in (("plot", folder.path), evaluate, ("play", folder.path, "--video", tmp_path / "v.gif"), report):
        assert gymdr(*command).code == 0, command
    for path in folder.checkpoints.iterdir():
        path.unlink()
    folder.metrics.unlink()  # it has begun no more
    assert "teacher: no such run folder" in refused(gymdr("resume", folder.path))


def test_a_run_that_a_resumed_one_names_cannot_have_a_module_imported(evil: str, tmp_path: Path) -> None:
    folder = train_student(tmp_path / "run", tmp_path / "teacher")
    shutil.rmtree(folder.checkpoints)
    folder.metrics.unlink()
    form = json.loads((tmp_path / "teacher/config.json").read_text())
    (tmp_path / "teacher/config.json").write_text(json.dumps({**form, "env": evil}))
    before = files(tmp_path / "teacher")
    assert "which would import a module" in refused(gymdr("resume", folder.path))
    assert not (tmp_path / "exploded").exists()
    assert files(tmp_path / "teacher") == before


LINKS: dict[str, Callable[[RunFolder], Path]] = {
    "metrics": lambda folder: folder.metrics,
    "draws": lambda folder: folder.draws,
    "plots": lambda folder: folder.plots,
    "evaluation": lambda folder: folder.evaluation,
    "weights": lambda folder: folder.weights[0],
    "checkpoints": lambda folder: folder.checkpoints,
    "lock": lambda folder: folder.path / ".lock",
    "replaced": lambda folder: folder.path / ".replaced",
}


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("command", [["resume"], ["plot"], ["train", "a2c", "--overwrite", "--run-dir"]])
def test_a_link_in_a_run_folder_leads_no_write_elsewhere(command: list[str], name: str, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    link, target = LINKS[name](folder), tmp_path / "mine"
    if name in ("checkpoints", "replaced"):
        target.mkdir()
        (target / "update-00000001.safetensors").write_text("mine")
        if name == "checkpoints":
            link.rmdir()
    else:
        target.write_text("mine")
        link.unlink(missing_ok=True)
    link.symlink_to(target)
    before = files(tmp_path)
    assert f"{link}: expected a plain file or folder of the run" in refused(gymdr(*command, folder.path))
    assert files(tmp_path) == before


def make_seeds(root: Path) -> None:
    """A folder of two seeds as a stranger might send it."""
    for seed in (1, 2):
        make_run(root / f"seed-{seed}", seed=seed)


SEED_LINKS: dict[str, Callable[[Path], Path]] = {
    "seed": lambda root: root / "seed-1",
    "metrics": lambda root: root / "seed-1/metrics.csv",
    "checkpoints": lambda root: root / "seed-1/checkpoints",
    "evaluation": lambda root: root / "evaluation",
    "episodes": lambda root: root / "evaluation/episodes.csv",
}


@pytest.mark.parametrize("name", SEED_LINKS)
@pytest.mark.parametrize(
    "command",
    [["resume"], ["plot"], ["evaluate"], ["train", "a2c", "--seeds", "1,2", "--run-dir"]],
    ids=lambda command: command[0],
)
def test_a_link_in_a_folder_of_seeds_leads_nowhere(command: list[str], name: str, tmp_path: Path) -> None:
    make_seeds(tmp_path / "seeds")
    mine = make_run(tmp_path / "mine")
    target = mine.path if name in ("seed", "evaluation") else mine.checkpoints if name == "checkpoints" else mine.config
    link = SEED_LINKS[name](tmp_path / "seeds")
    link.parent.mkdir(exist_ok=True)
    if link.is_dir():
        link.rename(tmp_path / "aside")
    link.symlink_to(target)
    before = files(tmp_path)
    options = ["--overwrite"] if command[0] == "train" else []
    assert f"{link}: expected a plain file or folder of the run" in refused(
        gymdr(*command, tmp_path / "seeds", *options)
    )
    assert files(tmp_path) == before


def test_a_folder_of_seeds_may_be_named_by_a_link(tmp_path: Path) -> None:
    make_seeds(tmp_path / "seeds")
    (tmp_path / "link").symlink_to(tmp_path / "seeds")
    assert [folder.path.name for folder in expand([str(tmp_path / "link")])] == ["seed-1", "seed-2"]


STUDY_LINKS = ("runs", "runs/v", "runs/v/seed-1", "runs/v/seed-1/checkpoints", "evaluation", "study.json", ".lock")


@pytest.mark.parametrize("name", STUDY_LINKS)
def test_a_link_in_the_folder_of_a_study_leads_nowhere(name: str, tmp_path: Path) -> None:
    form = {"algorithm": "a2c", "seeds": [1], "settings": {"num_envs": 2}, "a2c": {"updates": 1, "rollout_steps": 8}}
    (tmp_path / "study.json").write_text(json.dumps({**form, "variants": {"v": {}}}))
    folder = tmp_path / "sent"
    make_run(folder / "runs/v/seed-1")
    (folder / "evaluation").mkdir()
    sent = {
        "format": "gym_dr study",
        "gym_dr": "0.4.0",
        "version": 1,
        "env": "gym_dr/LunarLanderDR-v3",
        "variants": {"v": {}},
    }
    (folder / "study.json").write_text(json.dumps(sent))
    mine, link = tmp_path / "mine", folder / name
    if link.exists():
        link.rename(mine)
    else:
        mine.write_text("mine")
    link.symlink_to(mine)
    before = files(tmp_path)
    message = refused(gymdr("study", tmp_path / "study.json", "--output", folder))
    assert f"{link}: " in message
    assert "link" in message
    assert files(tmp_path) == before


def test_the_temporary_file_of_a_write_follows_no_link(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    folder.metrics.write_text("update,steps,return_mean\n0,1,1\n")
    (tmp_path / "mine").write_text("mine")
    for name in ("training.png", "evaluation.json"):  # a stranger would send one for each process number
        (folder.path / f".{name}.{os.getpid()}.tmp").symlink_to(tmp_path / "mine")
    assert gymdr("plot", folder.path).code == 0
    write_atomically(folder.path / "evaluation.json", b"{}")
    assert (tmp_path / "mine").read_text() == "mine"
    assert not folder.plots.is_symlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.parametrize("name", ["evaluation.json", "episodes.csv"])
def test_a_pipe_in_the_folder_of_an_evaluation_is_not_waited_for(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(RunFolderError, match=rf"{name}: cannot be read.*not a plain file"):
        (read_document if name == "evaluation.json" else read_episodes)(
            tmp_path if name == "evaluation.json" else tmp_path / name
        )


@pytest.mark.parametrize("name", ["evaluation.json", "episodes.csv"])
def test_an_evaluation_is_read_up_to_a_limit(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gym_dr.evaluation.results.MAX_DOCUMENT", 100)
    monkeypatch.setattr("gym_dr.evaluation.results.MAX_EPISODES", 100)
    (tmp_path / name).write_text("x" * 101)
    with pytest.raises(RunFolderError, match=f"{name}: cannot be read.*larger than 100 bytes"):
        (read_document if name == "evaluation.json" else read_episodes)(
            tmp_path if name == "evaluation.json" else tmp_path / name
        )


@pytest.mark.parametrize(
    "command", ["rm -rf /", "gymdr evaluate a; rm b", "gymdr evaluate \x1b[2J", "gymdr evaluate a --trust evil", "'", 3]
)
def test_a_recorded_command_is_not_recommended_unless_it_is_plain(command: Any, tmp_path: Path) -> None:
    document = {
        "format": "gym_dr evaluation",
        "gym_dr": "0.4.0",
        "version": 3,
        "complete": False,
        "command": command,
        "env": "x",
    }
    (tmp_path / "evaluation.json").write_text(
        json.dumps({**document, "env": "x", "policies": [], "sets": [], "success": None, "results": []})
    )
    with addressing(command_line=True), pytest.raises(RunFolderError, match=r"Continue with: gymdr evaluate RUN$"):
        Evaluation.load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.parametrize("name", ["metrics", "evaluation"])
def test_a_pipe_in_a_run_folder_is_not_waited_for(name: str, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    os.mkfifo(LINKS[name](folder))
    assert "expected a plain file" in refused(gymdr("plot", folder.path))


def test_a_configuration_is_read_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "c.json").touch()
    os.truncate(tmp_path / "c.json", 10 * 2**30)  # takes no room on the disk
    with pytest.raises(ConfigError, match=f"c.json: cannot be read: it is larger than {MAX_FILE} bytes"):
        read_table(tmp_path / "c.json")


def test_metrics_are_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_LOG", 2**20)  # a GiB takes seconds
    folder = make_run(tmp_path / "run")
    folder.metrics.touch()
    os.truncate(folder.metrics, 2**20 + 1)
    for command in ("plot", "resume"):
        assert "larger than" in refused(gymdr(command, folder.path))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"num_envs": 10**12}, "num_envs: expected at most 1000000"),
        ({"seed": 10**400}, "seed: expected a number of at most 64 bits"),
        ({"a2c": {"hidden_sizes": [10**6, 10**6]}}, "hidden_sizes: expected at most 65536 units in a layer"),
        ({"a2c": {"hidden_sizes": [60000, 60000]}}, "hidden_sizes: expected at most 65536 units in a layer"),
        ({"a2c": {"gamma": 10**400}}, "gamma: expected a number of at most 64 bits"),
        ({"env": "x" * 10**6}, "Unknown environment 'xxx"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_sizes_in_a_configuration_are_bounded(changes: dict[str, Any], expected: str, tmp_path: Path) -> None:
    make_run(tmp_path / "run", **changes)
    message = refused(gymdr("evaluate", tmp_path / "run"))
    assert expected in message
    assert len(message) < 1000


def test_a_name_of_markup_is_drawn_as_it_is(tmp_path: Path) -> None:
    folder = make_run(tmp_path / r"$\frac{")
    folder.metrics.write_text("update,steps,return_mean\n0,1,1\n")
    assert gymdr("plot", folder.path).code == 0


# --- mutated real files -----------------------------------------------------------------------------------------------

NASTY = [
    None,
    True,
    -1,
    0,
    10**30,
    1e308,
    float("nan"),
    "",
    "x:y",
    "../x.toml",
    "\0",
    [],
    [[]],
    {},
    {"a": 1},
    "uniform:1:2",
]


def mutate_bytes(rng: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        at, length = rng.randrange(len(changed) + 1), rng.choice([1, 1, 4, 8, 64])
        kind = rng.randrange(4)
        if kind == 0:
            changed[at : at + length] = rng.randbytes(length)
        elif kind == 1:
            del changed[at : at + length]
        elif kind == 2:
            changed[at:at] = changed[at : at + length]
        elif at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
    return bytes(changed)


def mutate_tree(rng: random.Random, value: Any) -> Any:
    """A copy with one of its parts replaced, removed or renamed."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        kind = rng.random()
        rest = {name: item for name, item in value.items() if name != key}
        if kind < 0.1:
            return rest
        return {**rest, f"{key}x": value[key]} if kind < 0.2 else {**value, key: mutate_tree(rng, value[key])}
    if isinstance(value, list | tuple) and value and rng.random() < 0.7:
        at = rng.randrange(len(value))
        return [*value[:at], mutate_tree(rng, value[at]), *value[at + 1 :]]
    return rng.choice(NASTY)


def fuzz(count: int, seed: int, base: Path) -> dict[str, int]:
    """Reads mutated configurations and checkpoints; returns how many of each were refused."""
    rng = random.Random(seed)
    folder = make_run(base / "run")
    config = json.loads(folder.config.read_text())
    state = {"actor": {"w": torch.zeros(3, 4)}, "optimizer": {"state": {0: {"step": torch.tensor(1.0)}}, "lr": [0.1]}}
    session = {"steps": 8, "episodes": 1, "seconds": 0.5, "window": [[1.0, 2]]}
    path = folder.checkpoints / "update-00000001.safetensors"
    path.write_bytes(
        pack(
            {
                "format": "gym_dr checkpoint",
                "version": 1,
                "update": 1,
                "config": config,
                "state": state,
                "session": session,
            }
        )
    )
    checkpoint, whole = path.read_bytes(), unpack(path)
    text = folder.config.read_bytes()
    refusals = {"config": 0, "checkpoint": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd but possible randomizations
        for number in range(count):
            kind = "config" if number % 2 else "checkpoint"
            structured = rng.random() < 0.3
            try:
                if kind == "config":
                    folder.config.write_bytes(
                        json.dumps(mutate_tree(rng, config)).encode() if structured else mutate_bytes(rng, text)
                    )
                    open_run(str(folder.path))
                else:
                    changed = mutate_tree(rng, whole) if structured else None
                    path.write_bytes(pack(changed) if isinstance(changed, dict) else mutate_bytes(rng, checkpoint))
                    load_checkpoint(path)
            except GymDrError:
                refusals[kind] += 1
    return refusals


def check_fuzz(count: int, base: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refusals = fuzz(count, seed=count, base=base)
    # a mutation may leave a valid file: another seed, or a space more
    assert refusals["config"] > count / 4
    assert refusals["checkpoint"] > count / 4
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * 1024 < 200 * 2**20


def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    check_fuzz(500, tmp_path)


@pytest.mark.slow
def test_100_000_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    check_fuzz(100_000, tmp_path)
