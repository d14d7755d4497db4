"""``onnx:FILE`` plays as the run that it comes from; a stranger's file is refused, or played within bounds."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import gym_dr
from gym_dr.errors import ConfigError, GymDrError
from gym_dr.integrations.onnx_policy import MAX_FILE, read_policy
from gym_dr.policies.open import is_policy_text
from tests.cli.command import gymdr, refused
from tests.policies.onnx_graphs import HOSTILE, graph_of, op, small_policy

POLE, PENDULUM = "gym_dr/CartPoleDR-v1", "gym_dr/PendulumDR-v1"
SMALL: dict[str, Any] = {
    "updates": 1,
    "num_envs": 4,
    "rollout_steps": 16,
    "minibatches": 2,
    "hidden_sizes": (8, 6),
    "eval_episodes": 0,
    "progress": False,
    "randomization": "wide",
}
MEMORY = {"memory": "gru", "memory_size": 5, "sequence_length": 8}
RUNS: dict[str, dict[str, Any]] = {
    "choices": {"env": POLE},
    "the past": {"env": PENDULUM, "stack_observations": 3, "observe_reward": True},
    "the draw": {"env": POLE, "context": "observation", **MEMORY},
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[gym_dr.Run, Path]]:
    """Name -> a run and its file."""
    folder, found = tmp_path_factory.mktemp("exported"), {}
    for name, options in RUNS.items():
        run = gym_dr.train("ppo", run_dir=folder / name, **{**SMALL, **options})
        found[name] = run, run.export(folder / f"{name}.onnx")
    return found


def likeliest(run: gym_dr.Run) -> gym_dr.Run:
    """The run with its deterministic policy, which is the exported one."""
    (opened,) = run.opened
    loader: Any = functools.partial(opened.algorithm.policy_loader(), deterministic=True)
    algorithm = dataclasses.replace(opened.algorithm, load_policy=loader)
    return gym_dr.Run(dataclasses.replace(opened, algorithm=algorithm))


@pytest.mark.parametrize("name", RUNS)
def test_a_file_plays_the_episodes_of_its_run(
    name: str, exported: dict[str, tuple[gym_dr.Run, Path]], tmp_path: Path
) -> None:
    run, path = exported[name]
    played = gym_dr.evaluate([likeliest(run), f"file=onnx:{path}"], episodes=6, output=tmp_path / "out", progress=False)
    document = played.document
    own, file = document["policies"]
    assert file["randomization"] == own["randomization"]
    assert (file["kind"], file["algorithm"], file["seed"]) == ("onnx", "ppo", own["seed"])
    table = played.episodes.set_index(["policy", "set", "episode"])
    assert set(played.episodes["set"]) == {"nominal", "training"}
    expected, found = table.loc[own["name"]], table.loc["file"]
    np.testing.assert_array_equal(found["steps"], expected["steps"])
    np.testing.assert_allclose(found["return"], expected["return"], rtol=1e-4)  # a torque differs in its last bits


def test_a_changed_file_is_played_again(exported: dict[str, tuple[gym_dr.Run, Path]], tmp_path: Path) -> None:
    policy = tmp_path / "policy.onnx"
    seen = []
    for name in ("choices", "the draw", "the draw"):
        policy.write_bytes(exported[name][1].read_bytes())
        found = gym_dr.evaluate(f"onnx:{policy}", episodes=2, output=tmp_path / "out", progress=False)
        seen.append(found.document["policies"][0]["digest"])
    assert seen[0] != seen[1] == seen[2]


# ---- at the command line ---------------------------------------------------------------------------------------------


def test_the_command_line_needs_the_file_alone(
    exported: dict[str, tuple[gym_dr.Run, Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pole.onnx").write_bytes(exported["the draw"][1].read_bytes())
    result = gymdr("evaluate", "--policy", "onnx:pole.onnx", "--episodes", "2", "--grid", "gravity=8:12:2")
    assert result.code == 0, result.err
    assert result.out.startswith(f"{POLE}, ")
    assert result.out.endswith("Wrote pole-evaluation\n")
    (entry,) = json.loads(Path("pole-evaluation/evaluation.json").read_text())["policies"]
    assert entry["trained_on"] == "wide"


def test_draws_and_environment_that_the_user_names_replace_those_of_the_file(
    exported: dict[str, tuple[gym_dr.Run, Path]], tmp_path: Path
) -> None:
    text, options = f"onnx:{exported['choices'][1]}", {"episodes": 1, "progress": False}
    policy = gym_dr.open_policy(text, randomization={"gravity": (9, 10)})
    found = gym_dr.evaluate(policy, output=tmp_path / "draws", **options)
    assert list(found.document["policies"][0]["randomization"]) == ["gravity"]
    stock = gym_dr.evaluate(text, env="CartPole-v1", output=tmp_path / "stock", **options)
    assert (stock.document["env"], stock.document["policies"][0]["randomization"]) == ("CartPole-v1", None)
    with pytest.raises(GymDrError, match=r"does not fit gym_dr/PendulumDR-v1.*it takes observations of shape \(4,\)"):
        gym_dr.evaluate(text, env=PENDULUM, output=tmp_path / "other", **options)
    with pytest.raises(ConfigError, match="`context` is for policies that do not record what they observe"):
        gym_dr.open_policy(text, context="observation", context_params={"gravity": (9, 10)})


def test_a_policy_of_another_program_needs_one_input_and_an_output_named_action(tmp_path: Path) -> None:
    nodes = [op("MatMul", "x", "w", to="y"), op("ArgMax", "y", axis=1, keepdims=0)]
    model = onnx.ModelProto.FromString(graph_of(nodes, {"w": np.eye(4, 2, dtype=np.float32)}))
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    path = tmp_path / "theirs.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ConfigError, match="Expected `env`: only runs and files of gymdr export record"):
        gym_dr.evaluate(f"onnx:{path}", episodes=1)
    found = gym_dr.evaluate(f"onnx:{path}", env=POLE, episodes=1, output=tmp_path / "out", progress=False)
    assert found.document["policies"][0]["randomization"] is None
    assert set(found.episodes["set"]) == {"nominal", "default"}


def test_texts_that_name_files_are_told_from_functions_and_other_files() -> None:
    for text in ("onnx:a.onnx", "mine=onnx:b/a.onnx", "onnx:C:/a.onnx"):
        assert is_policy_text(text)
    with pytest.raises(ConfigError, match=r"a\.onnx: cannot be read: No such file"):
        gym_dr.evaluate("onnx:a.onnx")
    with pytest.raises(ConfigError, match=r"got an ONNX file\. Name it so: `policies='onnx:a\.onnx'`"):
        gym_dr.evaluate("a.onnx")
    assert refused(gymdr("evaluate", "a.onnx")).endswith("Name it so: --policy onnx:a.onnx")
    assert "expected a run, got an ONNX file" in refused(gymdr("export", "a.onnx", "--output", "b.onnx"))


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_a_missing_package_is_named_with_its_command(
    package: str, exported: dict[str, tuple[gym_dr.Run, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    expected = rf"needs the package '{package}', which is not installed: pip install 'gym-dr\[onnx\]'"
    with pytest.raises(ConfigError, match=expected):
        gym_dr.evaluate(f"onnx:{exported['choices'][1]}")


# ---- what a stranger may send ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_with_a_reason(name: str) -> None:
    make, expected = HOSTILE[name]
    with pytest.raises(ConfigError) as caught:
        read_policy(Path("policy.onnx"), make())
    assert str(caught.value).startswith("policy.onnx: ")
    assert expected in str(caught.value)


def test_a_link_to_itself_is_named(tmp_path: Path) -> None:
    (tmp_path / "loop.onnx").symlink_to("loop.onnx")
    for command in ("evaluate", "play"):
        message = refused(gymdr(command, "--policy", f"onnx:{tmp_path / 'loop.onnx'}"))
        assert message.startswith(f"{tmp_path / 'loop.onnx'}: cannot be read")


def test_only_a_plain_file_of_bounded_size_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    with open(tmp_path / "large.onnx", "wb") as file:
        file.truncate(MAX_FILE + 1)  # holes, which take no room
    for path, reason in (("pipe.onnx", "not a plain file"), ("large.onnx", "larger than"), ("", "not a plain file")):
        assert reason in refused(gymdr("evaluate", "--policy", f"onnx:{tmp_path / path}"))
    (tmp_path / "link.onnx").symlink_to(tmp_path / "policy.onnx")  # which the user named
    (tmp_path / "policy.onnx").write_bytes(small_policy(env=POLE))
    assert gymdr("play", "--policy", f"onnx:{tmp_path / 'link.onnx'}", "--video", "x.txt").code == 2


METADATA: dict[str, tuple[dict[str, Any], str]] = {
    "another environment": ({"env": "gym_dr/CartPolDR-v1"}, "Unknown environment 'gym_dr/CartPolDR-v1'"),
    "a module": ({"env": "never_imported:Env-v0"}, "--trust never_imported"),
    "a text in place of draws": ({"randomization": "wide"}, "expected metadata as gymdr export writes them"),
    "nested without end": ({"randomization": "[" * 100_000}, "expected metadata as gymdr export writes them"),
    "an unknown parameter": ({"randomization": {"gravty": 3}}, "Did you mean 'gravity'"),
    "an unknown past": ({"observes_past": {"stack": 3}}, "Unknown setting 'stack'"),
    "a long past": ({"observes_past": {"stack_observations": 10**9}}, "from 1 to 1000, got 1000000000"),
    "an infinite range": ({"observes_draw": {"gravity": [float("nan"), 2]}}, "expected a finite range"),
    "a number beyond all": ({"observes_draw": {"gravity": [1, 10**400]}}, "expected a range (low, high)"),
    "a larger observation": ({"observes_draw": {"gravity": [1, 2]}}, "it takes observations of shape (4,)"),
}


@pytest.mark.parametrize("name", METADATA)
def test_what_a_file_says_of_itself_is_checked(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    about, expected = METADATA[name]
    Path("policy.onnx").write_bytes(small_policy(**{"env": POLE, "observes_draw": {}, **about}))
    assert expected in refused(gymdr("evaluate", "--policy", "onnx:policy.onnx", "--episodes", "1"))
    assert [path.name for path in Path().iterdir()] == ["policy.onnx"]
