"""Where torch is missing, as on small machines beside a robot: environments, draws and wrappers work all the same."""

from __future__ import annotations

import subprocess
import sys
import textwrap

WITHOUT = "import sys\nsys.modules['torch'] = None  # importing it fails from here on\n"
ENVS = ("LunarLanderDR-v3", "CartPoleDR-v1", "HopperDR-v5", "Go1JoystickDR-v0")


def run(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT + textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True)


def test_environments_draws_and_wrappers_work() -> None:
    result = run(f"""
        import itertools

        import gymnasium as gym
        import gym_dr

        for name, mode in itertools.product({ENVS}, (None, "sync")):
            envs = gym.make_vec("gym_dr/" + name, num_envs=2, vectorization_mode=mode)
            envs = gym_dr.DrawContext(gym_dr.ResampleParams(envs, rollout_steps=2, every=1), "observation")
            _, info = envs.reset(seed=0)
            before = info["params"]
            for _ in range(4):
                envs.step(envs.action_space.sample())
            _, info = envs.reset()
            assert any((before[key] != info["params"][key]).any() for key in before), (name, mode)
            envs.close()
        assert sys.modules["torch"] is None
    """)
    assert result.returncode == 0, result.stderr


def test_a_training_says_what_to_install() -> None:
    result = run("""
        from gym_dr.cli.main import main

        main(["train", "a2c", "--updates", "1", "--run-dir", "never"])
    """)
    assert result.returncode == 2
    assert "pip install torch" in result.stderr
    assert "Traceback" not in result.stderr
