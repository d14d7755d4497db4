"""What answers at once must not load what is slow."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"torch", "numba", "mujoco", "matplotlib", "pandas", "seaborn", "scipy", "Box2D", "pygame", "plotly", "jinja2"}


@pytest.mark.parametrize(
    "statement",
    [
        "import gym_dr",
        "main(['--help'])",
        "main(['--version'])",
        "main(['train', '--help'])",
        "main(['train', 'a2c', '--help'])",
        "main(['bench', '--help'])",
        "main(['list', 'plugins'])",
        "main(['list', 'envs'])",
    ],
)
def test_nothing_heavy_is_imported(statement: str) -> None:
    program = f"""
import sys
if {statement.startswith("main")}:
    from gym_dr.cli.main import main
try:
    {statement}
except SystemExit as stop:
    assert not stop.code, stop
print("loaded:", *({HEAVY} & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stderr == ""
    assert result.stdout.splitlines()[-1] == "loaded:"
