"""The report of a fit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gym_dr.fitting.results import Fit
from gym_dr.randomization.spec import Randomization
from gym_dr.reports.fitting import fit_report
from gym_dr.reports.page import Report, render, write_report
from tests.api.fit_sample import LENGTH, fit, short_log

EVIL = {"length": "<b>", "masscart": "%{x}", "x": "<i>"}  # names of parameters and coordinates


@pytest.fixture(scope="module")
def found() -> Fit:
    return fit(short_log(), randomize={**LENGTH, "masscart": (0.7, 1.4), "x_threshold": (2.0, 3.0)})


def report(found: Fit) -> Report:
    return fit_report(found, "gymdr fit flights --env Env-v0 <i>", Path("fitted.toml"))


def section(page: Report, key: str) -> Any:
    return next(one for one in page.sections if one.key == key)


def scripts(html: str) -> list[str]:
    return re.findall(r"<script[^>]*>(.*?)</script>", html, flags=re.DOTALL)


def numbers(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from numbers(item)
    else:
        yield value


def test_the_page_has_all_parts_in_their_order_and_needs_nothing_else(found: Fit, tmp_path: Path) -> None:
    path = tmp_path / "fitted.html"
    write_report(report(found), path)
    html = path.read_text()
    places = [
        html.index(f'id="{key}"') for key in ("first", "more", "posterior", "pairs", "replay", "residuals", "next")
    ]
    assert sorted(places) == places
    for text in (found.findings[0], "--randomization fitted.toml", "gymdr fit flights --env Env-v0 &lt;i&gt;", "numpy"):
        assert text in html
    assert not re.findall(r"<(?:link|script|img|iframe)[^>]+(?:src|href)=[\"'](?!data:)", html)
    assert len(html.encode()) < 6e6


def test_names_and_findings_are_text_and_never_code(found: Fit) -> None:
    evil = replace(
        found,
        prior=Randomization({EVIL.get(name, name): rule for name, rule in found.prior.items()}),
        parameters=found.parameters.rename(index=EVIL),
        particles=found.particles.rename(columns=EVIL),
        errors=found.errors.rename(index=EVIL).assign(unit="<u>"),
        replay=found.replay.replace({"coordinate": EVIL}).assign(unit="<u>"),
        residuals=found.residuals.replace({"coordinate": EVIL}),
        findings=["</script><script>window.hacked=1</script>"],
    )
    html = render(report(evil))
    own = sum(script.count("<script") for script in scripts(html))  # those that Plotly's code names
    assert html.count("<script") - own == 3
    outside = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert not re.findall(r"<(?:b|i|u)>", outside)
    assert "window.hacked=1</script>" not in outside.replace("&lt;", "")
    plots = json.dumps(json.loads(scripts(html)[0]))
    assert "&lt;b&gt; (m)" in plots
    assert "&#37;{x}" in plots
    assert not re.findall(r"<[iu]>", plots)


def test_every_parameter_and_coordinate_has_its_rows_and_plots(found: Fit) -> None:
    page, names = report(found), list(found.parameters.index)
    assert [row[0] for row in page.tables[0].rows] == names
    assert [row[0] for row in page.tables[1].rows] == list(found.errors.index)
    assert [row[0] for row in page.tables[2].rows] == list(found.errors.index)
    assert page.tables[1].columns[1:-1] == list(dict.fromkeys(found.replay["horizon"]))
    assert [panel.title.split(":")[0] for panel in section(page, "posterior").views[0].panels] == names
    assert [view.name for view in section(page, "residuals").views] == list(found.errors.index)
    pairs = section(page, "pairs").views[0].panels
    assert 0 < len(pairs) <= 10
    assert all(len(panel.figure.data[0].x) <= 1000 for panel in pairs)
    for figure in json.loads(scripts(render(page))[0]).values():
        for trace in figure["data"]:
            assert not {None} & set(numbers([trace.get(key, []) for key in ("x", "y", "z")]))


def test_a_fit_of_a_delay_alone_has_a_page(found: Fit) -> None:
    nothing = replace(found, parameters=found.parameters[:0], particles=found.particles[[]], prior=Randomization())
    page = report(replace(nothing, replay=found.replay[:0], residuals=found.residuals[:0]))
    assert [table.caption for table in page.tables] == ["Noise that the fit has estimated"]
    assert page.sections == []
    assert "What next" in render(page)
