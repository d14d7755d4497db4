"""Downloads wheels with robots from the package index, and unpacks them into a cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from filelock import FileLock

PINNED = dict(
    line.split("==")
    for line in Path(__file__).with_name("wheels.txt").read_text().split("\n")
    if line and not line.startswith("#")
)


def cache() -> Path:
    """Where wheels are unpacked, each in a folder of its name."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("GYMDR_STOCK_ROBOTS") or Path(home) / "gym_dr" / "stock_robots")


def unpacked(package: str) -> Path:
    """The folder with the code and models of a package, which is downloaded if it is not in the cache."""
    version = PINNED[package]
    target = cache() / package
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(target.with_suffix(".lock")):  # of the workers of pytest-xdist, one downloads
        if not (target / f"{package}-{version}.dist-info").is_dir():
            shutil.rmtree(target, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=target.parent) as folder:
                parts = Path(folder)
                options = ("--quiet", "--no-deps", "--only-binary", ":all:", "--dest", str(parts))
                wanted = f"{package}=={version}"
                subprocess.run([sys.executable, "-m", "pip", "download", *options, wanted], check=True)
                with zipfile.ZipFile(*parts.glob("*.whl")) as wheel:
                    wheel.extractall(parts / "whole")
                (parts / "whole").rename(target)  # at once, so that a test that is stopped leaves no part
    return target / package
