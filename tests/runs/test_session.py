from __future__ import annotations

import contextlib
import csv
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.vector import AsyncVectorEnv

from gym_dr import Randomization, Scale
from gym_dr.cli.main import main
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import CheckpointError, ConfigError, RunFolderError, UnknownNameError
from gym_dr.randomization.sampler import SAMPLERS, draw, seed_word
from gym_dr.runs.checkpoint import checkpoint_paths, pack, unpack
from gym_dr.runs.config import RunConfig
from gym_dr.runs.configure import build_config
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.session import RunSession, run_sampler
from gym_dr.training.registry import find_algorithm
from tests.plugins.parts.growing import GROWING
from tests.processes import training_processes
from tests.runs.training import train_or_resume

A2C = find_algorithm("a2c")
UPDATES = 6
# 128 steps between two checkpoints: an episode of an untrained lander is over in about 100
SETTINGS = {"num_envs": 2, "checkpoint_every": 2, "eval_episodes": 0}
OPTIONS = {"updates": UPDATES, "rollout_steps": 64, "hidden_sizes": (8,)}


def config_of(**settings: Any) -> RunConfig:
    return build_config(A2C, {**SETTINGS, **OPTIONS, **settings})


def silent(updates: int, row: Mapping[str, float]) -> None:
    pass


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return [{name: value for name, value in row.items() if name != "seconds"} for row in csv.DictReader(file)]


def assert_same_run(left: RunFolder, right: RunFolder) -> None:
    assert rows(left.metrics) == rows(right.metrics)
    assert rows(left.draws) == rows(right.draws)
    for mine, other in zip(left.weights, right.weights, strict=True):
        a, b = torch.load(mine, weights_only=True), torch.load(other, weights_only=True)
        assert a.keys() == b.keys()
        assert all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run that nothing has interrupted."""
    return train_or_resume(tmp_path_factory.mktemp("whole") / "run", config_of())


def test_the_same_seed_gives_the_same_run(whole: RunFolder, tmp_path: Path) -> None:
    assert_same_run(train_or_resume(tmp_path / "run", config_of()), whole)


@pytest.mark.parametrize("resample_every", [0, 1])
def test_every_draw_can_be_replayed_from_its_seed_and_index(resample_every: int, tmp_path: Path) -> None:
    config = config_of(resample_every=resample_every)
    folder = train_or_resume(tmp_path / "run", config)
    assert config.randomization is not None
    recorded = rows(folder.draws)
    assert recorded
    for row in recorded:
        seeds = np.array([seed_word(int(row["seed"]))], dtype=np.uint64)
        drawn = draw(config.randomization, LUNAR_LANDER, seeds, int(row["draw_index"]))
        replayed = {name: float(values[0]) for name, values in drawn.items()}
        assert {name: float(row[name]) for name in LUNAR_LANDER} == {**LUNAR_LANDER.nominal, **replayed}


def test_metrics_count_steps_and_episodes(whole: RunFolder) -> None:
    metrics = rows(whole.metrics)
    assert [int(row["update"]) for row in metrics] == list(range(UPDATES))
    assert int(metrics[-1]["episodes"]) == len(rows(whole.draws))
    # reset steps are nobody's: each episode that ended before the last step of a segment has one
    assert UPDATES * 128 - len(rows(whole.draws)) <= int(metrics[-1]["steps"]) <= UPDATES * 128


def test_the_running_mean_is_that_of_the_recorded_episodes(whole: RunFolder) -> None:
    returns = [float(row["return"]) for row in rows(whole.draws)]
    assert float(rows(whole.metrics)[-1]["return_mean"]) == pytest.approx(np.mean(returns), rel=1e-12)


def test_metrics_have_the_mean_of_each_term_of_the_reward_which_resuming_does_not_change(tmp_path: Path) -> None:
    config = config_of(env="gym_dr/HopperDR-v5")
    whole, cut = (rows(train_or_resume(tmp_path / n, config, at).metrics) for n, at in (("a", None), ("b", 4)))
    terms = ["reward_forward_mean", "reward_ctrl_mean", "reward_survive_mean"]
    assert [name for name in whole[0] if name.startswith("reward_")] == terms
    for row in whole:  # all of the same episodes
        assert float(row["return_mean"]) == pytest.approx(sum(float(row[name]) for name in terms), nan_ok=True)
    assert len(cut) == 5
    assert rows(train_or_resume(tmp_path / "b", config).metrics) == whole


@pytest.mark.filterwarnings("ignore:.*diverged")
def test_episodes_whose_simulation_diverged_are_no_results_of_a_training(tmp_path: Path) -> None:
    strong = Randomization({"actuator_gear": Scale(1000.0)})
    config = build_config(A2C, {**SETTINGS, **OPTIONS, "env": "gym_dr/HalfCheetahDR-v5"}, randomization=strong)
    folder = train_or_resume(tmp_path / "run", config)
    assert not folder.draws.exists()
    assert {(row["episodes"], row["return_mean"]) for row in rows(folder.metrics)} == {("0", "nan")}


def test_checkpoints_are_saved_at_segment_ends_and_at_the_end(tmp_path: Path) -> None:
    folder = train_or_resume(tmp_path / "run", config_of(checkpoint_every=4))
    assert [path.name for path in checkpoint_paths(folder)] == [
        "update-00000004.safetensors",
        "update-00000006.safetensors",
    ]


def files(folder: RunFolder) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def cut_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was cut between its second checkpoint and its third."""
    return train_or_resume(tmp_path_factory.mktemp("cut") / "run", config_of(), cut_at=4).path


@pytest.fixture
def cut(cut_run: Path, tmp_path: Path) -> RunFolder:
    return RunFolder(shutil.copytree(cut_run, tmp_path / "run"))


def change(folder: RunFolder, **values: Any) -> None:
    newest = checkpoint_paths(folder)[-1]
    newest.write_bytes(pack({**unpack(newest), **values}))


def count_anew(folder: RunFolder, **session: Any) -> None:
    change(folder, session=session)


def edit(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new, 1))


DAMAGE: dict[str, tuple[Callable[[RunFolder], Any], str]] = {
    "no checkpoint": (
        lambda folder: [path.unlink() for path in checkpoint_paths(folder)],
        r"checkpoints: there is no checkpoint, but .*metrics\.csv",
    ),
    "another file": (lambda folder: checkpoint_paths(folder)[-1].write_bytes(b"hello"), "update-00000004"),
    "no counters": (count_anew, r"update-00000004\.safetensors: its counters are damaged"),
    "other counters": (
        lambda folder: count_anew(folder, steps="x", episodes=1, seconds=1.0, window=[]),
        r"update-00000004\.safetensors: its counters are damaged",
    ),
    "counters of two numbers": (
        lambda folder: count_anew(folder, steps=torch.zeros(2), episodes=1, seconds=1.0, window=[], rows=[4, 0, 0]),
        r"update-00000004\.safetensors: its counters are damaged",
    ),
    "a copy under a later name": (
        lambda folder: shutil.copy(checkpoint_paths(folder)[-1], folder.checkpoints / "update-99999999.safetensors"),
        r"update-99999999\.safetensors: holds update 4",
    ),
    "weights that are not finite": (
        lambda folder: change(folder, state={"actor": {"0.weight": torch.full((2,), np.nan)}}),
        r"update-00000004\.safetensors: its state\['actor'\]\['0.weight'\] is not finite",
    ),
    "a tensor in the configuration": (
        lambda folder: change(folder, config={"seed": torch.zeros(2)}),
        "update-00000004",
    ),
    "a zero between draws": (lambda folder: edit(folder.draws, "\n", "\n\0"), r"draws\.csv"),
    "a hole in the metrics": (lambda folder: edit(folder.metrics, "\n1,", "\n0,"), r"metrics\.csv"),
    "no draws": (lambda folder: os.unlink(folder.draws), r"draws\.csv"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_run_is_not_overwritten(damage: Callable[[RunFolder], Any], message: str, cut: RunFolder) -> None:
    damage(cut)
    before = files(cut)
    with pytest.raises((CheckpointError, RunFolderError), match=message):
        RunSession(cut, config_of(), silent, resume=True)
    assert files(cut) == before


STATES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "other moments": lambda state: state["actor_optimizer"]["state"][0].update(square_avg=torch.zeros(1)),
    "moments of no weight": lambda state: state["actor_optimizer"]["state"].update({99: {}}),
    "a list of moments": lambda state: state["critic_optimizer"].update(state=[1]),
    "a list of weights": lambda state: state.update(actor=[torch.zeros(2)]),
    "a number as generator": lambda state: state.update(generator=3),
}


@pytest.mark.parametrize("kind", STATES)
def test_a_state_that_does_not_fit_is_refused_before_anything_is_touched(kind: str, cut: RunFolder) -> None:
    state = unpack(checkpoint_paths(cut)[-1])["state"]
    STATES[kind](state)
    change(cut, state=state)
    before = files(cut)
    with pytest.raises(CheckpointError):
        train_or_resume(cut.path, config_of())
    assert files(cut) == before


def test_a_configuration_that_was_edited_is_refused_with_the_difference(cut: RunFolder) -> None:
    before, edited = files(cut), config_of(seed=5, gamma=0.5)
    with pytest.raises(CheckpointError, match=r"a2c\.gamma was 0\.996 and is 0\.5, seed was 1 and is 5"):
        RunSession(cut, edited, silent, resume=True)
    assert files(cut) == before


def train_and_interrupt(folder: Path, said: Path) -> None:
    """``gymdr train`` with worker processes, as a process of its own, which Ctrl-C reaches while it waits for them."""
    os.setsid()
    wait, calls = AsyncVectorEnv.step_wait, []

    def wait_and_interrupt(self: Any, *args: Any) -> Any:
        calls.append(args)
        if len(calls) in (15, 16):  # the second stops at once, while the workers step
            os.killpg(0, signal.SIGINT)  # the whole group, as from a terminal
        return wait(self, *args)

    AsyncVectorEnv.step_wait = wait_and_interrupt  # type: ignore[method-assign]
    with open(said, "w") as file, contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
        os.dup2(file.fileno(), 2)
        main(["train", "a2c", "--num-envs", "2", "--vectorization", "async", "--run-dir", str(folder)])


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes are interrupted in another way here")
def test_ctrl_c_ends_async_workers_without_a_word_from_them(tmp_path: Path) -> None:
    with training_processes() as context:
        process = context.Process(target=train_and_interrupt, args=(tmp_path / "run", tmp_path / "said"))
        process.start()
    process.join(60)
    assert process.exitcode == 130
    said = (tmp_path / "said").read_text()
    assert "Traceback" not in said
    assert "gymdr resume" in said


@pytest.fixture
def growing(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a sampler that learns, as a plugin would have registered it."""
    monkeypatch.setattr(SAMPLERS, "_entries", dict(SAMPLERS._entries))
    SAMPLERS.add("growing", GROWING, "tests")
    return "growing"


def test_a_damaged_state_of_a_sampler_is_refused_and_names_the_folder(tmp_path: Path) -> None:
    config = build_config(A2C, {**SETTINGS, **OPTIONS, "sampler": "adr"}, randomization={"gravity": (-11.0, -5.0)})
    folder = train_or_resume(tmp_path / "run", config, cut_at=4)
    newest = checkpoint_paths(folder)[-1]
    saved = unpack(newest)
    newest.write_bytes(pack({**saved, "session": {**saved["session"], "sampler": {"version": 0}}}))
    with pytest.raises(CheckpointError, match=r"checkpoints: The saved state of the sampler is damaged"):
        train_or_resume(tmp_path / "run", config)
    with pytest.raises(CheckpointError, match=r"checkpoints: The saved state of the sampler is damaged"):
        run_sampler(folder, config)


def test_a_sampler_that_learns_needs_something_to_draw(growing: str) -> None:
    with pytest.raises(ConfigError, match="no parameters"):
        build_config(A2C, {**SETTINGS, **OPTIONS, "env": "CartPole-v1", "sampler": growing})
    with pytest.raises(UnknownNameError, match=r"sampler.*'growin'.*growing"):
        config_of(sampler="growin")
