"""Set-up of the whole suite: no window, no display, no plugins of the machine that it runs on."""

from __future__ import annotations

import os

import pytest

pytest.register_assert_rewrite("gym_dr.testing", "tests.contracts.wrappers")

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Ray reads these when it is imported: no reports to its maker, every node bound to the loopback address
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
