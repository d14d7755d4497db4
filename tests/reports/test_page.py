from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from gym_dr.errors import ConfigError, RunFolderError, needs
from gym_dr.reports import page
from gym_dr.reports.page import Panel, Report, Section, View
from gym_dr.reports.style import new_figure
from gym_dr.table import Cell, Table

EVIL = "</script><script>window.hacked=1</script>"


def report(text: str = "text", y: list[float] | None = None) -> Report:
    import plotly.graph_objects as go

    figure = new_figure([go.Scatter(x=[1, 2], y=y or [1.0, 2.0], name=page.plain(text))], x=page.plain(text), y="y")
    view = View(name=text, panels=[Panel(title=text, figure=figure, description=text)])
    table = Table(caption=text, columns=[text, text], rows=[[text, Cell(text, text)]], notes=[text])
    section = Section(key="s", title=text, lead=text, how_to_read=text, views=[view, view], choice=text)
    return Report(
        title=text,
        facts=[text],
        findings=[text, text],
        tables=[table, table],
        picture=view.panels[0],
        folded=[table],
        sections=[section],
        provenance=[page.Provenance(name=text, text=text, commands=[(text, text)], config=text)],
        command=text,
        versions=text,
    )


def scripts(html: str) -> list[str]:
    return re.findall(r"<script[^>]*>(.*?)</script>", html, flags=re.DOTALL)


def test_text_is_escaped_wherever_it_stands() -> None:
    assert len(scripts(page.render(report(EVIL)))) == len(scripts(page.render(report()))) == 3
    assert EVIL not in page.render(report(EVIL))
    assert 'onerror="' not in page.render(report('" onerror="x'))


def test_labels_of_plots_hold_no_tags_and_no_templates() -> None:
    assert page.plain("<b>a</b> %{x} & b") == "&lt;b&gt;a&lt;/b&gt; &#37;{x} &amp; b"


def test_only_the_scripts_of_the_page_may_run() -> None:
    html = page.render(report())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    _, *own = scripts(html)
    assert [f"'sha256-{page._script_hash(script)}'" in policy[1] for script in own] == [True, True]


def test_numbers_that_are_not_finite_become_gaps() -> None:
    figures = json.loads(scripts(page.render(report(y=[float("nan"), 2.123456789])))[0])
    assert figures["s-0-0"]["data"][0]["y"] == [None, 2.123457]


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(ConfigError, match=r"plotly.*pip install 'gym-dr\[report\]'"):
        needs("A report", "report", "jinja2", "plotly")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(RunFolderError, match=r"report\.html"):
        page.write_report(report(), tmp_path / "report.html")
