from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.image import imread

from gym_dr.errors import RunFolderError
from gym_dr.reports.plots import plot_training
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.metrics import read_metrics

looked_at = pytest.mark.usefixtures("full_pictures")


def write_metrics(path: Path, updates: int = 60, *terms: str) -> RunFolder:
    path.mkdir()
    more = "".join(f",reward_{term}_mean" for term in terms)
    rows = [f"update,steps,episodes,return_mean,length_mean,actor_loss,critic_loss,entropy,seconds{more}"]
    ones = ",1" * len(terms)
    for u in range(updates):
        value = "nan" if u == 0 else f"{u}"
        rows.append(f"{u},{u * 10},{u},{value},90,{np.sin(u)},{100 / (u + 1)},{1.3 - u / 100},{u / 10}{ones}")
    folder = RunFolder(path)
    folder.metrics.write_text("\n".join(rows) + "\n")
    return folder


def colors(path: Path) -> int:
    # hundredths of red, green, blue and alpha in one number, which sorts far faster than rows of four
    return len(np.unique((imread(path)[::3, ::3] * 100).round().astype(np.int64) @ 101 ** np.arange(4)))


@looked_at
@pytest.mark.parametrize("updates", [(60,), (1, 60)], ids=["one run", "several, one of a single update"])
def test_runs_are_drawn(updates: tuple[int, ...], tmp_path: Path) -> None:
    folders = [write_metrics(tmp_path / f"{count}", count) for count in updates]
    plot_training(folders, tmp_path / "out.png")
    assert imread(tmp_path / "out.png").shape[:2] == (704, 968)
    assert colors(tmp_path / "out.png") > 20


def drawn(folders: list[RunFolder], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The panels of a picture of training."""
    figures: list[Any] = []
    monkeypatch.setattr("gym_dr.reports.plots.save_figure", lambda figure, path, dpi: figures.append(figure))
    plot_training(folders, Path("out.png"))
    return [ax for ax in figures[0].axes if ax.get_visible()]


@looked_at
def test_settings_that_matplotlib_read_from_the_current_folder_have_no_latex_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # so that it would be missed
    with rc_context({"text.usetex": True, "text.latex.preamble": r"\input{/somewhere}"}):  # from a matplotlibrc
        plot_training([write_metrics(tmp_path / name) for name in ("a", "b")], tmp_path / "strange.png")
    plot_training([RunFolder(tmp_path / name) for name in ("a", "b")], tmp_path / "own.png")
    assert (tmp_path / "strange.png").read_bytes() == (tmp_path / "own.png").read_bytes()


def test_a_run_without_metrics_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"metrics.csv: this run has no metrics"):
        plot_training([RunFolder(tmp_path)], tmp_path / "out.png")


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "update,return_mean\n", '"\n\x00'])
def test_damaged_metrics_are_named(tmp_path: Path, content: str) -> None:
    folder = RunFolder(tmp_path)
    folder.metrics.write_text(content)
    with pytest.raises(RunFolderError, match=r"metrics\.csv"):
        read_metrics(folder)


def test_a_picture_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    folder = write_metrics(tmp_path / "a")
    with pytest.raises(RunFolderError, match=r"nowhere/out\.png"):
        plot_training([folder], tmp_path / "nowhere" / "out.png")
    with pytest.raises(RunFolderError, match=r"out\.xyz"):
        plot_training([folder], tmp_path / "out.xyz")


@pytest.mark.parametrize("first", ["whole", "without"])
def test_runs_with_other_columns_are_drawn_in_any_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    whole, without = write_metrics(tmp_path / "whole"), write_metrics(tmp_path / "without")
    lines = [line.split(",") for line in without.metrics.read_text().splitlines()]
    column = lines[0].index("critic_loss")
    without.metrics.write_text("\n".join(",".join(c for i, c in enumerate(x) if i != column) for x in lines) + "\n")
    panels = drawn([whole, without] if first == "whole" else [without, whole], monkeypatch)
    assert [len(panel.lines) for panel in panels] == [2, 2, 1, 2]


def test_terms_of_rewards_share_a_panel_and_need_not_be_those_of_every_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = write_metrics(tmp_path / "one", 60, "far", "c$t")
    assert [len(panel.lines) for panel in drawn([one], monkeypatch)] == [2, 2, 2, 2, 2]
    others = [write_metrics(tmp_path / "other", 60, "far", "late"), write_metrics(tmp_path / "without")]
    panels = drawn([one, *others], monkeypatch)
    assert [len(panel.lines) for panel in panels] == [3, 3, 3, 3, 4]
    assert [text.get_text() for text in panels[-1].get_legend().get_texts()] == ["far", r"c\$t", "late"]
