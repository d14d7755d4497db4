"""Runs on Ray: whatever is lost, a machine, a worker or the launcher, they go on from what was handed back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gym_dr.cli.main import main
from gym_dr.errors import ConfigError
from gym_dr.runs import launch
from gym_dr.runs.checkpoint import updates_saved
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.launch import Ended, read_changes, train_on_ray, write_files
from tests.runs.test_launch import CHECKPOINTS, LONG, TWO, result, train, training_of
from tests.studies.stopping import Killed, stopping

RAY = ["--launcher", "ray"]
SAVED = ["--checkpoint-every", "2", "--rollout-steps", "100"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four updates that nothing has disturbed."""
    return train(tmp_path_factory.mktemp("whole") / "run", "--seed", "1", *SAVED)


@pytest.fixture
def cut(tmp_path: Path) -> RunFolder:
    """The same run, killed before its second checkpoint."""
    with pytest.MonkeyPatch.context() as patch:
        stopping("gym_dr.runs.session.save_checkpoint", 1, Killed(), patch)
        with pytest.raises(Killed):
            train(tmp_path / "cut" / "run", "--seed", "1", *SAVED)
    return RunFolder(tmp_path / "cut" / "run")


# ---- what is handed back ---------------------------------------------------------------------------------------------


def test_what_a_growing_run_hands_back_resumes_to_the_same_result(cut: RunFolder, whole: Path, tmp_path: Path) -> None:
    with open(cut.draws, "a") as file:
        file.write("3,0,")  # a row that is being written
    copy = RunFolder(tmp_path / "copy" / "run")
    write_files(copy, read_changes(cut, {}))
    assert updates_saved(copy) == 2
    assert copy.draws.read_bytes().endswith(b"\n")
    main(["resume", str(copy.path)])
    assert training_of(copy.path) == training_of(whole)
    assert (copy.path / "actor.pt").read_bytes() == (whole / "actor.pt").read_bytes()


def test_only_what_has_changed_is_handed_back_again(cut: RunFolder) -> None:
    known: dict[str, tuple[int, int]] = {}
    names = [*read_changes(cut, known)]
    assert names[0] == "checkpoints/update-00000002.safetensors"
    assert {"config.json", "metrics.csv", "draws.csv", "actor.pt"} < {*names}
    assert ".lock" not in names
    assert read_changes(cut, known) == {}
    cut.metrics.write_text("update\n0\n")
    assert read_changes(cut, known) == {"metrics.csv": b"update\n0\n"}


def test_old_checkpoints_leave_the_folder_as_they_leave_that_of_the_task(tmp_path: Path) -> None:
    for number in range(1, 6):
        write_files(RunFolder(tmp_path), {f"checkpoints/update-{number:08d}.safetensors": b""})
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == [f"update-{number:08d}.safetensors" for number in (3, 4, 5)]


# ---- what is lost ----------------------------------------------------------------------------------------------------


class LostError(Exception):
    """Stands for Ray's."""


def fake_ray() -> Any:
    """Ray with one worker, which hands over what a task yields or raises."""

    def wait(streams: list[Any], **_: Any) -> tuple[list[Any], list[Any]]:
        return streams[:1], streams[1:]

    def get(found: Any) -> Any:
        if isinstance(found, Exception):
            raise found
        return found

    return SimpleNamespace(
        is_initialized=lambda: True,
        init=lambda **_: None,
        remote=lambda *, num_cpus, **_: lambda task: SimpleNamespace(remote=partial(task, num_cpus)),
        wait=wait,
        get=get,
        cancel=lambda *_, **__: None,
        exceptions=SimpleNamespace(RayError=LostError, RayTaskError=ZeroDivisionError),
    )


def train_on_fake(folder: RunFolder, task: Any, monkeypatch: pytest.MonkeyPatch) -> Ended:
    monkeypatch.setitem(sys.modules, "ray", fake_ray())
    monkeypatch.setattr(launch, "train_files", task)
    return train_on_ray({"run": folder}, None, (), lambda _: None, 3)["run"]


def test_a_lost_task_begins_again_from_what_it_has_handed_back(
    cut: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, given = RunFolder(tmp_path / "launched" / "run"), []
    write_files(folder, {"config.json": cut.config.read_bytes()})

    def task(processors: int, path: str, files: Any, trust: Any, num_threads: int) -> Iterator[Any]:
        assert processors == num_threads == 3
        given.append({*files})
        if len(given) < 3:
            yield read_changes(cut, {}), None
            yield LostError()
        yield {"training.png": b""}, Ended(code=0)

    assert train_on_fake(folder, task, monkeypatch) == Ended(code=0)
    assert given[0] == {"config.json"}
    assert given[1] == given[2] == {*read_changes(cut, {})}
    assert folder.plots.exists()


def test_a_task_that_is_lost_too_often_is_given_up_and_a_bug_in_it_at_once(
    cut: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Any] = []

    def lost(*_: Any) -> Iterator[Any]:
        begun.append(1)
        yield LostError()

    def fails(*_: Any) -> Iterator[Any]:
        yield ZeroDivisionError("in a task")

    assert train_on_fake(cut, lost, monkeypatch) == Ended(code=-1)
    assert len(begun) == 4
    assert train_on_fake(cut, fails, monkeypatch) == Ended(code=1, message="in a task")


# ---- a cluster -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "variable", "expected"),
    [(None, None, "local"), (None, "mine:1", "mine:1"), ("other:2", "mine:1", "other:2")],
)
def test_no_ray_cluster_is_joined_but_the_one_that_the_user_names(
    given: str | None, variable: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # without an address Ray itself joins the one in /tmp/ray/ray_current_cluster, which any user of a machine may write
    joined: list[Any] = []

    def init(address: Any, **_: Any) -> None:
        joined.append(address)
        raise ConnectionError("enough")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False, init=init))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if variable:
        monkeypatch.setenv("RAY_ADDRESS", variable)
    with pytest.raises(ConfigError, match="no Ray cluster"):
        train_on_ray({}, given, (), print)
    assert joined == [expected]


def ray_tasks() -> list[int]:
    """Processes in which Ray runs one of our tasks, by their title."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"ray::train_files" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


def wait_for_checkpoints(root: Path, process: subprocess.Popen[bytes] | None = None) -> None:
    """Until both seeds have handed back a checkpoint."""
    while not all(updates_saved(RunFolder(root / f"seed-{seed}")) for seed in (1, 2)):
        assert process is None or process.poll() is None
        time.sleep(0.02)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    pytest.importorskip("ray", reason="the extra gym-dr[ray] is not installed")
    root = tmp_path_factory.mktemp("two")
    for seed in (1, 2):
        train(root / f"seed-{seed}", "--seed", str(seed), *CHECKPOINTS, tiny=LONG)
    return result(root)


# Ray leaves sockets and processes to the garbage collector when a node is lost
@pytest.mark.slow  # its siblings are those above
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_that_loses_a_worker_and_a_node_gives_the_same_result(
    expected: dict[str, Any], tmp_path: Path
) -> None:
    import ray
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "node_ip_address": "127.0.0.1"}  # a seed a node
    nodes = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    lost = []

    def lose(second: Any) -> None:
        wait_for_checkpoints(tmp_path / "ray")
        lost.extend(ray_tasks())
        os.kill(lost[0], signal.SIGKILL)
        time.sleep(1)
        nodes.remove_node(second, allow_graceful=False)

    try:
        loser = threading.Thread(target=lose, args=(nodes.add_node(**node),), daemon=True)
        loser.start()
        train(tmp_path / "ray", *TWO, *RAY, "--ray-address", nodes.address, tiny=LONG)
        loser.join(timeout=10)
    finally:
        ray.shutdown()
        nodes.shutdown()
    assert len(lost) == 2, "nothing was lost while both seeds were training"
    assert result(tmp_path / "ray") == expected


@pytest.mark.slow  # its siblings are those above
def test_a_launcher_that_is_killed_leaves_what_was_handed_back(expected: dict[str, Any], tmp_path: Path) -> None:
    root = tmp_path / "ray"
    command = [sys.executable, "-c", "from gym_dr.cli.main import main; main()", "train", "a2c", *LONG, *TWO, *RAY]
    launcher = subprocess.Popen([*command, "--run-dir", root])
    wait_for_checkpoints(root, launcher)
    launcher.kill()
    launcher.wait()
    assert updates_saved(RunFolder(root / "seed-1")) < 300
    main(["resume", str(root)])
    assert result(root) == expected
