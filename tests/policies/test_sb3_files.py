"""What files of Stable-Baselines3 say without it; ``tests/integrations`` has what they do with it."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from gym_dr.errors import ConfigError
from gym_dr.integrations import sb3_policy
from gym_dr.integrations.sb3_policy import digest_of, read_saved
from gym_dr.policies.open import is_policy_text, open_policy
from tests.pages import ROOT

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
SAC = {
    "policy_class": {"__module__": "stable_baselines3.sac.policies"}
}  # such files do not say whether they need statistics


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
        ("stable_baselines3.common.policies", {"normalize_advantage": True}, "A2C"),
        ("stable_baselines3.common.policies", {"normalize_advantage": True, "cg_max_steps": 15}, "TRPO"),
        ("sb3_contrib.common.recurrent.policies", {"clip_range": 0.2, "normalize_advantage": True}, "RecurrentPPO"),
        ("my_package.policies", {"clip_range": 0.2}, None),
    ],
)
def test_an_algorithm_is_recognized(tmp_path: Path, module: str, marks: dict[str, Any], algorithm: str | None) -> None:
    data = {"policy_class": {"__module__": module}, **marks}
    assert read_saved(save(tmp_path / "a.zip", data)).algorithm == algorithm


@pytest.mark.parametrize(
    "name", ["run_vecnormalize_900_steps.pkl", "run_900_steps/vecnormalize.pkl", "vecnormalize.pkl"]
)
def test_statistics_are_found_and_part_of_what_a_policy_is(tmp_path: Path, name: str) -> None:
    path = save(tmp_path / "run_900_steps.zip", NORMALIZED)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    digests = []
    for content in (b"one", b"other"):
        (tmp_path / name).write_bytes(content)
        saved = read_saved(path)
        assert saved.statistics == tmp_path / name
        digests.append(digest_of(saved))
    assert digests[0] != digests[1]


def test_a_pickle_of_the_files_own_name_is_no_statistics(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(b"")  # as model.save_replay_buffer("a") names it
    assert read_saved(save(tmp_path / "a.zip", SAC)).statistics is None


def test_statistics_that_are_missing_or_too_much_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "a.zip", NORMALIZED)
    with pytest.raises(ConfigError, match=r"VecNormalize and needs its statistics.*\.save\(.*a_vecnormalize\.pkl'\)"):
        read_saved(path)
    (tmp_path / "vecnormalize.pkl").write_bytes(b"")
    save(path, PPO)
    with pytest.raises(ConfigError, match=r"vecnormalize\.pkl: is beside a\.zip, which was trained without"):
        read_saved(path)


@pytest.mark.parametrize("data", [{}, {"policy_class": 1}])
def test_an_archive_of_something_else_is_refused(tmp_path: Path, data: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"expected a file from model\.save\(\) of Stable-Baselines3"):
        read_saved(save(tmp_path / "a.zip", data))


def damaged(path: Path, kind: str) -> Path:
    """A file that no ``model.save`` has written."""
    save(path, PPO)
    if kind == "deep":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("data", "[" * 60_000)
    else:  # some kilobytes that say they are small, and are not
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("data", b" " * 2**20)
    return path


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("deep", "RecursionError"),
        ("bomb", "'data' is larger than 65536 bytes"),
    ],
)
def test_a_damaged_archive_is_refused_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, reason: str
) -> None:
    monkeypatch.setattr(sb3_policy, "MAX_PART", 2**16)
    path = damaged(tmp_path / "a.zip", kind)
    with pytest.raises(ConfigError, match=rf"expected a file from model\.save\(\) of Stable-Baselines3.*{reason}"):
        read_saved(path)


def test_without_stable_baselines_the_extra_that_has_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    path = save(tmp_path / "a.zip", PPO)
    with pytest.raises(ConfigError, match=r"needs the package 'stable_baselines3'.*pip install 'gym-dr\[sb3\]'$"):
        opened(path, path)


# what is opened, and whose code runs


def opened(path: Path, *trust: Path | str) -> object:
    return open_policy(f"sb3:{path}", env="CartPole-v1", trust=[*map(str, trust)])


class Explode:
    """Leaves a folder behind when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


def test_a_file_is_not_unpickled_before_it_is_trusted(tmp_path: Path) -> None:
    path = save(tmp_path / "a.zip", PPO)
    with pytest.raises(
        ConfigError, match=r"hold pickles, which can run any code .* source of a\.zip: `trust=\['.*/a\.zip'\]`$"
    ):
        opened(path, "a.zip", tmp_path)


@pytest.mark.parametrize("data", [NORMALIZED, SAC], ids=["needed", "perhaps needed"])
def test_trust_in_a_file_is_no_trust_in_the_statistics_beside_it(tmp_path: Path, data: dict[str, Any]) -> None:
    path, statistics = save(tmp_path / "a.zip", data), tmp_path / "vecnormalize.pkl"
    statistics.write_bytes(pickle.dumps(Explode(tmp_path / "exploded")))
    message = (
        rf"source of vecnormalize\.pkl: `trust=\['{path}', '{statistics}'\]` \(if vecnormalize\.pkl does not belong"
    )
    with pytest.raises(ConfigError, match=message):
        opened(path, path)
    both = rf"source of a\.zip and vecnormalize\.pkl: `trust=\['{path}', '{statistics}'\]`"
    with pytest.raises(ConfigError, match=both):
        opened(path)
    with pytest.raises(ConfigError, match=rf"source of a\.zip: `trust=\['{path}', '{statistics}'\]`$"):
        opened(path, statistics)
    assert not (tmp_path / "exploded").exists()


WATCH = """
import sys

opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)

from gym_dr.cli.typed import as_typed
from gym_dr.errors import ConfigError
from gym_dr.policies.open import open_policy

folder = sys.argv[1]
for trust in ([], [f"{folder}/a.zip"]):
    opened.clear()
    try:
        open_policy(f"sb3:{folder}/a.zip", env="CartPole-v1", trust=trust)
    except ConfigError as error:
        print(str(error).partition(": ")[2])
    print(*sorted({path.rpartition("/")[2] for path in opened if path.startswith(folder)}))
"""


def test_nothing_beside_a_file_is_opened_unless_it_is_trusted(tmp_path: Path) -> None:
    save(tmp_path / "a.zip", NORMALIZED)
    for name in ("vecnormalize.pkl", "a_vecnormalize.pkl", "a.pkl", "config.json", "args.yml"):
        (tmp_path / name).write_bytes(b"")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", WATCH, str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()
    assert found[1::2] == ["a.zip", "a.zip"]
    assert all("If you trust" in refusal for refusal in found[::2])


def test_texts_that_name_policies_are_told_from_paths_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    policies = ["sb3:a.zip", "sb3:C:/b=1/a.zip", "mine=sb3:a.zip", "pkg.mod:act", "mine=pkg.mod:Net.act"]
    runs = ["runs/first", "C:\\runs\\first", "a=b", "a.zip", "pkg.mod", ":act", "pkg:"]
    assert [text for text in policies + runs if is_policy_text(text)] == policies
    (tmp_path / "pkg.mod:act").mkdir()  # a run's folder
    assert not is_policy_text("pkg.mod:act")
