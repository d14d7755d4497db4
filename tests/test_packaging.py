"""The wheel and the sdist: all that the package needs is in them, and they run elsewhere than in the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata
from packaging.requirements import Requirement

import gym_dr
from tests.policies.tiny_run import TINY

ROOT = Path(__file__).parent.parent
WHERE = "import gym_dr; print(gym_dr.__file__, gym_dr.__version__)"


def run(cwd: Path, *command: str | Path, **env: str) -> str:
    result = subprocess.run(command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def build(source: Path, target: str, folder: Path) -> Path:
    run(source, sys.executable, "-m", "build", "--no-isolation", f"--{target}", "--outdir", str(folder), ".")
    (made,) = folder.iterdir()
    return made


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive, unpacked."""
    archive, folder = build(ROOT, "sdist", tmp_path_factory.mktemp("sdist")), tmp_path_factory.mktemp("unpacked")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    return unpacked


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    files = {path for path in (ROOT / "gym_dr").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    packed = {name for name in contents(wheel) if ".dist-info/" not in name}
    assert packed == {path.relative_to(ROOT).as_posix() for path in files}


def test_both_have_the_version_of_the_package(wheel: Path, sdist: Path) -> None:
    assert wheel.name == f"gym_dr-{gym_dr.__version__}-py3-none-any.whl"
    assert sdist.name == f"gym_dr-{gym_dr.__version__}"


def test_metadata_is_valid_and_says_what_an_index_shows(wheel: Path) -> None:
    (raw,) = (data for name, data in contents(wheel).items() if name.endswith(".dist-info/METADATA"))
    metadata = Metadata.from_email(raw, validate=True)
    assert (metadata.name, str(metadata.version)) == ("gym-dr", gym_dr.__version__)
    assert metadata.license_expression == "MIT"
    assert metadata.description == (ROOT / "README.md").read_text(encoding="utf-8")
    assert {"Programming Language :: Python :: 3.13", "Typing :: Typed"} <= set(metadata.classifiers or ())
    assert {"notebook", "report", "ray", "sb3", "tune", "video"} <= set(metadata.provides_extra or ())


def test_the_extra_sb3_is_tested_with_the_versions_that_the_constraints_pin() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    wanted = {one.name: one.specifier for one in map(Requirement, extras["sb3"])}
    for file in ("constraints.txt", "tests/integrations/sb3.txt"):
        lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
        pinned = dict(line.split("==") for line in lines if "==" in line)
        assert pinned.keys() >= wanted.keys()
        assert all(pinned[name] in versions for name, versions in wanted.items())


def test_readme_clones_the_address_of_pyproject_which_has_none_yet() -> None:
    address = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["gym_dr"]["address"]
    assert f"git clone {address or 'ADDRESS'} gym_dr" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_citation_names_the_version() -> None:
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {gym_dr.__version__}" in lines


def test_the_sdist_builds_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    assert contents(build(sdist, "wheel", tmp_path)) == contents(wheel)


def test_the_sdist_has_what_the_tests_need(sdist: Path) -> None:
    needed = ("constraints.txt", ".ci/run", "examples/own_algorithm/pyproject.toml", "tests/test_packaging.py")
    assert [name for name in needed if not (sdist / name).exists()] == []


@pytest.mark.slow  # .ci/run installs it too, and trains
def test_an_installed_wheel_lists_and_trains_elsewhere(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index"]
    run(tmp_path, *pip, "--target", str(site), str(wheel))
    gymdr = [sys.executable, site / "bin" / "gymdr"]
    env = {"PYTHONPATH": str(site)}
    where, version = run(tmp_path, sys.executable, "-c", WHERE, **env).split()
    assert Path(where).is_relative_to(site)
    assert version == gym_dr.__version__
    listed = run(tmp_path, *gymdr, "list", "envs", **env)
    assert "gym_dr/LunarLanderDR-v3" in listed
    assert "gym_dr/HopperDR-v5" in listed
    run(tmp_path, *gymdr, "train", "a2c", *TINY, "--run-dir", "run", **env)
    assert len((tmp_path / "run" / "metrics.csv").read_text().splitlines()) == 3
