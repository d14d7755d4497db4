"""Folders that earlier versions wrote stay usable: opened, played, evaluated and continued."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gym_dr
from gym_dr.errors import RandomizationWarning
from gym_dr.evaluation.cells import nominal
from gym_dr.evaluation.policies import open_policies
from gym_dr.evaluation.sensitivity import sensitivity
from gym_dr.experiments.run import Run
from gym_dr.randomization.draws import seed_word
from gym_dr.runs.folder import CONFIG

HERE = Path(__file__).parent
VERSIONS = [path.name for path in HERE.iterdir() if path.name[0].isdigit()]
RUNS = sorted(path.parent.relative_to(HERE).as_posix() for path in HERE.rglob(CONFIG))
FINISHED = [run for run in RUNS if (HERE / run / "training.png").exists()]
STOPPED = [run for run in RUNS if run not in FINISHED]

# all of the oldest version, and some of each later one, most of which take the same way
FEW = [
    run
    if run.startswith(min(VERSIONS)) or run.endswith(("/ppo_memory", "/a2c_delayed"))
    else pytest.param(run, marks=pytest.mark.slow)
    for run in STOPPED
    if not run.endswith(("/adr", "/doraemon", "/spdl"))  # whose draws had two columns more
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of all folders."""
    return Path(shutil.copytree(HERE, tmp_path_factory.mktemp("saved") / "copy"))


def opened(path: Path) -> Run:
    run = gym_dr.load_run(path)
    assert isinstance(run, Run)
    return run


# the run without wind says so wherever it is opened
windless = pytest.mark.filterwarnings("ignore:Parameter 'wind_power' has no effect here")


def test_a_run_whose_parameter_had_no_effect_says_so(saved: Path) -> None:
    with pytest.warns(RandomizationWarning, match="'wind_power' has no effect here: it needs enable_wind = 1"):
        run = opened(saved / "0.2.0" / "a2c_windless")
    assert set(run.draws["enable_wind"]) == {0.0}


def test_there_are_runs_of_all_kinds() -> None:
    stopped = {
        "a2c_windless",
        "a2c_delayed",
        "a2c_stock",
        "ppo",
        "ppo_memory",
        "reinforce",
        "adr",
        "doraemon",
        "spdl",
    }
    assert {Path(run).name for run in STOPPED} >= stopped
    assert {Path(run).name for run in FINISHED} >= {"a2c", "seed-1", "seed-2"}


@windless
@pytest.mark.parametrize("name", RUNS)
def test_a_run_opens_and_its_policy_acts(name: str, saved: Path) -> None:
    run = opened(saved / name)
    assert list(run.metrics["update"]) == list(range(len(run.metrics)))
    policy = open_policies([run.parts])[0]
    with contextlib.closing(policy.make_envs(nominal(2))) as envs:
        observations, _ = envs.reset(seed=0)
        starts = [np.ones(2, bool)] if run.config.options.memory != "none" else []
        assert run.policy()(observations, *starts).shape == envs.action_space.shape


@windless
@pytest.mark.parametrize("name", [name for name in RUNS if not name.endswith("_stock")])
def test_the_draws_of_a_run_can_be_repeated(name: str, saved: Path) -> None:
    run = opened(saved / name)
    own = "version" not in run.draws
    table = run.draws if own else run.draws[run.draws["version"] <= run.sampler.version]  # before the checkpoint
    assert len(table)
    for version, rows in [(None, table)] if own else table.groupby("version"):
        words = np.array([seed_word(int(value)) for value in rows["seed"]], np.uint64)
        drawn = run.sampler.replay(words, rows["draw_index"].to_numpy(np.int64), None if own else int(version))
        for parameter, values in drawn.items():
            np.testing.assert_array_equal(rows[parameter], values)


@windless
@pytest.mark.parametrize("name", FEW)
def test_a_stopped_run_goes_on_from_its_checkpoint(name: str, saved: Path, tmp_path: Path) -> None:
    before = opened(saved / name)
    run = opened(Path(shutil.copytree(before.path, tmp_path / "run"))).resume(progress=False)
    assert len(run.metrics) == 6
    pd.testing.assert_frame_equal(run.draws.query("update < 4"), before.draws.query("update < 4"))
    assert set(run.draws.get("enable_wind", [])) == set(before.draws.get("enable_wind", []))
    assert run.evaluation is not None


@pytest.mark.parametrize("version", VERSIONS)
def test_several_seeds_open_with_their_summary(version: str, saved: Path) -> None:
    runs = gym_dr.load_run(saved / version / "seeds")
    assert runs.summary.loc["evaluation on nominal", "seeds"] == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_an_evaluation_opens_and_a_further_one_adds_to_it(version: str, saved: Path, tmp_path: Path) -> None:
    run = opened(Path(shutil.copytree(saved / version / "a2c", tmp_path / "a2c")))
    before = run.evaluation
    assert before is not None
    assert before.regret.empty
    found = gym_dr.evaluate(run, grid={"gravity": (-11, -5, 2)}, episodes=2, progress=False)
    assert set(found.document["sets"][0]) == set(before.document["sets"][0])
    kept = found.episodes.query("set == 'nominal'")
    pd.testing.assert_frame_equal(kept[before.episodes.columns], before.episodes.query("set == 'nominal'"))
    assert {row["set"] for row in found.document["results"]} >= {"nominal", "training", "sobol", "corners", "grid"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sobol_set_keeps_its_cells_and_gives_shares(version: str, saved: Path) -> None:
    found = opened(saved / version / "a2c").evaluation
    assert found is not None
    (points,) = (cells for cells in found.sets if cells.kind == "sobol")
    played = found.episodes.query("set == 'sobol'").sort_values(["cell", "episode"])
    np.testing.assert_allclose(played[list(points.names)].to_numpy()[:: points.episodes], points.values, rtol=1e-9)
    shares = sensitivity(found.returns("sobol")[0], points)
    assert shares["parameters"] == list(points.names)
    assert all(np.isfinite([row["low"], row["value"], row["high"]]).all() for row in shares["total"])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_study_continues_with_what_it_has(version: str, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gym_dr.evaluation.report.assemble.film_strips", lambda *_: [])
    folder = saved / version / "study"
    before = pd.read_csv(folder / "results.csv")
    found = gym_dr.study(saved / version / "study.toml", output=folder, progress=False)
    assert found.missing == {}
    after, chosen = pd.read_csv(folder / "results.csv"), before["statistic"] == "worst_cell"
    pd.testing.assert_frame_equal(after[~chosen], before[~chosen])
    equal = after[chosen]["value"] == before[chosen]["value"]
    assert set(equal) == {version != "0.2.0"}  # which did not play worst cells again
