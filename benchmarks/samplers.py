"""Cost of adaptive samplers: their share of the training time.

Run it with: python -m benchmarks.samplers [--updates 1000] [--algorithm a2c] [--env gym_dr/LunarLanderDR-v3] [NAME ...]

Counts everything that a sampler does: draws, updates, and AdaptParams's bookkeeping of each step. "uniform"
only draws; what is above its share is what adapting adds. Measures processor time, which other load hardly affects,
without importing scipy.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from gym_dr import AdaptParams
from gym_dr.bench import temporary_session
from gym_dr.plugins.loading import load_plugins
from gym_dr.randomization.sampler import SAMPLERS, FixedSampler, Sampler
from gym_dr.runs.configure import build_config
from gym_dr.runs.train import limited_threads
from gym_dr.training.registry import find_algorithm

METHODS = ("update", "_was_reset", "_stepped")  # of AdaptParams
TARGET = 0.02


class Stopwatch:
    """Measures the processor time spent in functions, which may call each other."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._running = False

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps a function to measure its time."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._running:
                return function(*args, **kwargs)
            self._running, begin = True, time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self._running = False
                self.seconds += time.process_time() - begin

        return call


def measure(name: str, algorithm: str, env_id: str, updates: int) -> tuple[float, float, int]:
    """Trains with a sampler on the preset "wide"; returns its seconds, all seconds, and its number of versions."""
    watch, found = Stopwatch(), find_algorithm(algorithm)
    settings = {"env": env_id, "sampler": name, "eval_episodes": 0}
    # -150 is soon reached, so that samplers adapt
    options = {"success": -150.0, "start": "default"} if _has_success(name) else {}
    given = {**settings, "updates": updates, "schedule": "constant", **options}
    config = build_config(found, given, randomization="wide")
    make = Sampler.for_space

    def for_space(*args: Any, **kwargs: Any) -> Any:
        sampler: Any = make(*args, **kwargs)
        sampler.draw = watch.timed(sampler.draw)
        return sampler

    timed: dict[str, Any] = {method: watch.timed(getattr(AdaptParams, method)) for method in METHODS}
    with (
        patch.multiple(AdaptParams, **timed),
        patch.object(Sampler, "for_space", for_space),
        patch.object(FixedSampler, "draw", watch.timed(FixedSampler.draw)),
        temporary_session(config) as session,
    ):
        begin = time.process_time()
        found.train_function()(session, config.options)
        whole = time.process_time() - begin
        envs: Any = session.envs
        versions = int(envs.sampler.version or 0)
    return watch.seconds, whole, versions


def _has_success(name: str) -> bool:
    return any(field.name == "success" for field in SAMPLERS.get(name).option_fields())


@limited_threads(1)
def main() -> None:
    """Reads the options and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="samplers; all by default")
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--algorithm", default="a2c")
    parser.add_argument("--env", default="gym_dr/LunarLanderDR-v3")
    arguments = parser.parse_args()
    load_plugins()
    names = arguments.names or list(SAMPLERS)
    measure(names[0], arguments.algorithm, arguments.env, 2)  # compiles
    for module in ("scipy.optimize", "scipy.special"):
        importlib.import_module(module)
    print(f"Share of training time spent in the sampler (target: below {TARGET:.0%}), {arguments.updates} updates")
    for name in names:
        seconds, whole, versions = measure(name, arguments.algorithm, arguments.env, arguments.updates)
        print(f"  {name:12} {seconds / whole:7.2%} of {whole:6.1f} s, {versions} versions", flush=True)


if __name__ == "__main__":
    main()
