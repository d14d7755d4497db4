"""Commands in processes: one that is killed takes no other along, and all end with the one that started them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gym_dr.runs import launch
from gym_dr.runs.launch import Command, Ended


def workers_of(process: int) -> list[int]:
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in children if b"gym_dr.cli.launched" in Path(f"/proc/{child}/cmdline").read_bytes()]


def test_a_process_that_is_killed_takes_no_other_along(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import os, sys; sys.argv[1] == 'die' and os.kill(os.getpid(), 9); print('refused'); sys.exit(2)"
    monkeypatch.setattr(launch, "PROGRAM", program)
    seen: list[int] = []
    found = launch.run_commands({"killed": ["die"], "other": ["live"]}, 1, lambda ended: seen.append(len(ended)))
    assert found == {"killed": Ended(code=-9), "other": Ended(code=2, message="refused")}
    assert sorted({*seen}) == [1, 2] or sorted({*seen}) == [0, 1, 2]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be kept to some processors")
def test_no_more_processes_run_than_processors_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "PROGRAM", "print('ended')")
    before, running, most = os.sched_getaffinity(0), list[subprocess.Popen[str]](), list[int]()
    start = launch.start

    def counted(command: Command, num_threads: int) -> subprocess.Popen[str]:
        most.append(1 + sum(process.poll() is None for process in running))
        running.append(start(command, num_threads))
        return running[-1]

    monkeypatch.setattr(launch, "start", counted)
    os.sched_setaffinity(0, {min(before)})
    try:
        launch.run_commands({str(k): [] for k in range(3)}, None)
    finally:
        os.sched_setaffinity(0, before)
    assert most == [1, 1, 1]


@pytest.mark.parametrize(
    ("workers", "num_threads", "at_once", "each"),
    [(None, None, 16, 5), (2, None, 2, 8), (99, None, 99, 5), (None, 6, 2, 6), (None, 20, 1, 20), (2, 1, 2, 1)],
)
def test_processes_get_the_threads_that_were_asked_for_or_their_share_of_the_processors(
    workers: int | None, num_threads: int | None, at_once: int, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "usable_threads", lambda: 16)
    monkeypatch.setattr(launch, "PROGRAM", "import sys; print(*sys.argv[1:])")
    assert launch.processes_at_once(workers, num_threads) == at_once
    found = launch.run_commands({name: ["do", name] for name in "abc"}, workers, num_threads=num_threads)
    assert {name: one.message for name, one in found.items()} == {
        name: f"do {name} --num-threads={each}" for name in "abc"
    }


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    waiting = "from gym_dr.cli.launched import command_line, main; import time; "
    waiting += "command_line.main = lambda *_, **__: time.sleep(100); main()"
    program = "from gym_dr.runs import launch; "
    program += f"launch.PROGRAM = {waiting!r}; launch.run_commands({{'a': [], 'b': []}}, 2)"
    parent = subprocess.Popen([sys.executable, "-c", program])
    while len(children := workers_of(parent.pid)) < 2:
        assert parent.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.05)
