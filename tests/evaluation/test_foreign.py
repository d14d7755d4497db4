"""What files of Stable-Baselines3 say without it; ``tests/integrations`` has what they do with it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from gym_dr.errors import ConfigError
from gym_dr.evaluation.foreign import Setting, is_file_text, is_policy_text, open_foreign
from gym_dr.integrations.sb3_policy import read_saved

PPO = {
    "policy_class": {"__module__": "stable_baselines3.common.policies", ":serialized:": "no pickle"},
    "clip_range": 0.2,
    "gae_lambda": 0.95,
    "normalize_advantage": True,
    "seed": 3,
    "num_timesteps": 640,
    "_last_original_obs": None,
}
NORMALIZED = {**PPO, "_last_original_obs": {":serialized:": "no pickle"}}


def save(path: Path, data: dict[str, Any]) -> Path:
    """A file as ``model.save`` writes it, without weights."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", json.dumps(data))
        archive.writestr("_stable_baselines3_version", "2.9.0\n")
    return path


def test_a_file_is_described_without_running_its_code(tmp_path: Path) -> None:
    saved = read_saved(save(tmp_path / "a.zip", PPO))
    assert (saved.algorithm, saved.seed, saved.steps, saved.version) == ("PPO", 3, 640, "2.9.0")
    assert saved.statistics is None


@pytest.mark.parametrize(
    ("module", "marks", "algorithm"),
    [
        ("stable_baselines3.sac.policies", {}, "SAC"),
        ("sb3_contrib.tqc.policies", {}, "TQC"),
        ("stable_baselines3.common.policies", {"normalize_advantage": True}, "A2C"),
        ("stable_baselines3.common.policies", {"normalize_advantage": True, "cg_max_steps": 15}, "TRPO"),
        ("my_package.policies", {"clip_range": 0.2}, None),
    ],
)
def test_an_algorithm_is_recognized(tmp_path: Path, module: str, marks: dict[str, Any], algorithm: str | None) -> None:
    data = {"policy_class": {"__module__": module}, **marks}
    assert read_saved(save(tmp_path / "a.zip", data)).algorithm == algorithm


@pytest.mark.parametrize(
    "name",
    [
        "run_900_steps_vecnormalize.pkl",
        "run_vecnormalize_900_steps.pkl",
        "run_900_steps/vecnormalize.pkl",
        "vecnormalize.pkl",
    ],
)
def test_statistics_are_found_and_part_of_what_a_policy_is(tmp_path: Path, name: str) -> None:
    path = save(tmp_path / "run_900_steps.zip", NORMALIZED)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    digests = []
    for content in (b"one", b"other"):
        (tmp_path / name).write_bytes(content)
        saved = read_saved(path)
        assert saved.statistics == tmp_path / name
        digests.append(saved.digest)
    assert digests[0] != digests[1]


def test_statistics_that_are_missing_or_too_much_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "a.zip", NORMALIZED)
    with pytest.raises(ConfigError, match=r"VecNormalize and needs its statistics.*\.save\(.*a_vecnormalize\.pkl'\)"):
        read_saved(path)
    (tmp_path / "vecnormalize.pkl").write_bytes(b"")
    save(path, PPO)
    with pytest.raises(ConfigError, match=r"vecnormalize\.pkl: is beside a\.zip, which was trained without"):
        read_saved(path)


@pytest.mark.parametrize(
    "data",
    [
        {**PPO, "policy_class": {"__module__": "sb3_contrib.common.recurrent.policies"}},
        {**PPO, "policy_class": {"__module__": "mine", "lstm_hidden_size": 8}},
    ],
)
def test_a_recurrent_policy_is_refused(tmp_path: Path, data: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="its policy is recurrent"):
        read_saved(save(tmp_path / "a.zip", data))


@pytest.mark.parametrize("data", [{}, {"policy_class": None}, {"policy_class": {}}])
def test_an_archive_of_something_else_is_refused(tmp_path: Path, data: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"expected a file from model\.save\(\) of Stable-Baselines3"):
        read_saved(save(tmp_path / "a.zip", data))


def test_a_file_is_not_unpickled_before_it_is_trusted(tmp_path: Path) -> None:
    path = save(tmp_path / "a.zip", PPO)
    setting = Setting(env="CartPole-v1", has_params=False, randomization=None, trust=["a.zip", str(tmp_path)])
    with pytest.raises(ConfigError, match=r"hold pickles, which can run any code .* --trust .*a\.zip"):
        open_foreign(f"sb3:{path}", setting)


def test_texts_that_name_policies_are_told_from_paths_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    policies = ["sb3:a.zip", "sb3:C:/b=1/a.zip", "mine=sb3:a.zip", "pkg.mod:act", "mine=pkg.mod:Net.act"]
    runs = ["runs/first", "C:\\runs\\first", "a=b", "a.zip", "pkg.mod", ":act", "pkg:"]
    assert [text for text in policies + runs if is_policy_text(text)] == policies
    assert [text for text in policies if is_file_text(text)] == policies[:3]
    (tmp_path / "pkg.mod:act").mkdir()  # a run's folder
    assert not is_policy_text("pkg.mod:act")
