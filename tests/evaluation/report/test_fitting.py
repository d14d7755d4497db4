"""The report of a fit, from a fit that is made up: a log of two coordinates of which one has a wrong model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gym_dr.evaluation.report.fitting import fit_report
from gym_dr.evaluation.report.page import Report, render, write_report
from gym_dr.fitting.identifiability import told
from gym_dr.fitting.results import Fit
from gym_dr.randomization.distributions import Normal, Uniform
from gym_dr.randomization.rules import Scale, as_rule
from gym_dr.randomization.spec import Randomization

EVIL = "<b>"
COORDINATES = {"angle of the pole": "rad", "x of the cart": "m"}
COLUMNS = ["unit", "nominal", "prior_low", "prior_high", "mean", "deviation", "low", "high", "shrink", "told"]
NEXT = [("Train on these ranges", "gymdr train ppo --env Env-v0 --randomization fitted.toml")]


def made_up(
    names: Sequence[str] = ("gravity", "mass", "damping"),
    physics: Sequence[str] = ("nominal", "fitted", "true"),
    coordinates: dict[str, str] = COORDINATES,
) -> Fit:
    """A fit in which every second parameter follows the one before, and the last keeps its prior if there are several.

    Residuals of the first coordinate depend on those before.
    """
    rng = np.random.default_rng(1)
    shared = rng.standard_normal(2000)
    prior, rows, particles = {}, {}, {}
    for k, name in enumerate(names):
        kept = k == len(names) - 1 and k > 0
        shrink = 1.0 if kept else (0.005, 0.05, 0.4)[k % 3]
        rule = (Uniform(-12.0, -6.0), Scale(Uniform(0.5, 2.0)), Normal(1.0, 0.2, 0.2, 2.0))[k % 3]
        prior[name] = rule
        low, high = ((-12.0, -6.0), (0.5, 2.0), (0.2, 2.0))[k % 3]
        score = 0.97 * shared + 0.25 * rng.standard_normal(2000) if k % 2 else rng.standard_normal(2000)
        middle, deviation = (low + high) / 2, shrink * (high - low) / 12**0.5
        drawn = middle + deviation * (shared if k == 0 else score)
        if kept:
            drawn = as_rule(rule).distribution.ppf(rng.uniform(size=2000))
        particles[name] = drawn
        rows[name] = {
            "unit": ("m/s^2", "x", "")[k % 3],
            "nominal": (-9.8, 1.0, 0.9)[k % 3],
            "prior_low": low,
            "prior_high": high,
            "mean": drawn.mean(),
            "deviation": drawn.std(),
            "low": np.quantile(drawn, 0.05),
            "high": np.quantile(drawn, 0.95),
            "shrink": shrink,
            "told": told(shrink),
        }
    errors = {name: {"unit": unit, "measured": 0.01, "process": 0.0002} for name, unit in coordinates.items()}
    return Fit(
        env="Env-v0",
        randomization=Randomization(prior),
        prior=Randomization(prior),
        parameters=pd.DataFrame.from_dict(rows, orient="index", columns=COLUMNS),
        particles=pd.DataFrame(particles),
        errors=pd.DataFrame.from_dict(errors, orient="index"),
        replay=_replay(physics, coordinates),
        residuals=_residuals(coordinates, rng),
        suspicious=True,
        findings=["The model is suspicious: </script><script>window.hacked=1</script>.", "Determined: gravity."],
        facts={"episodes": "6 fitted, 2 held out", "method": "least squares", "time": "1.2 s"},
    )


def _replay(physics: Sequence[str], coordinates: dict[str, str]) -> pd.DataFrame:
    size = {"nominal": 0.03, "fitted": 0.004, "true": 0.0035}
    rows = [
        (name, steps, coordinate, unit, 0.5 * size[name] * steps, size[name] * steps)
        for name in physics
        for steps in (1, 2, 5, 10, 20, 50)
        for coordinate, unit in coordinates.items()
    ]
    return pd.DataFrame(rows, columns=["physics", "steps", "coordinate", "unit", "error", "share"])


def _residuals(coordinates: dict[str, str], rng: np.random.Generator) -> pd.DataFrame:
    tables = []
    for k, coordinate in enumerate(coordinates):
        for episode in range(6):
            noise = rng.standard_normal(201)
            values = noise[1:] if k else 0.7 * noise[1:] + 0.7 * noise[:-1] + 0.5 * np.sin(np.arange(200) / 30)
            columns = {"episode": episode, "step": np.arange(200), "coordinate": coordinate, "residual": values}
            tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def report(**kwargs: Any) -> Report:
    return fit_report(made_up(**kwargs), "gymdr fit flights --env Env-v0 <i>", NEXT)


def section(found: Report, key: str) -> Any:
    return next(one for one in found.sections if one.key == key)


def figures(html: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(re.findall(r"<script[^>]*>(.*?)</script>", html, flags=re.DOTALL)[0])
    return found


def numbers(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from numbers(item)
    else:
        yield value


def test_the_page_has_all_parts_in_their_order_and_needs_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "fitted.html"
    write_report(report(), path)
    html = path.read_text()
    found = [html.index(f'id="{key}"') for key in ("summary", "posterior", "pairs", "replay", "residuals", "next")]
    assert sorted(found) == found
    assert html.index("The model is suspicious") < html.index("Determined: gravity") < html.index("90 % interval")
    for text in ("episodes: 6 fitted, 2 held out", NEXT[0][1], "gymdr fit flights --env Env-v0 &lt;i&gt;", "numpy"):
        assert text in html
    assert "policies" not in re.sub(r"<script.*?</script>|<style.*?</style>", "", html, flags=re.DOTALL)
    assert not re.findall(r"<(?:link|script|img|iframe)[^>]+(?:src|href)=[\"'](?!data:)", html)
    assert len(html.encode()) < 6e6


def test_names_and_findings_are_text_and_never_code() -> None:
    html = render(report(names=(EVIL, "mass", "%{x}"), coordinates={"<i>": "rad", "y": "<u>"}))
    assert html.count("<script") - report_scripts(html) == 3
    outside = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert not re.findall(r"<(?:b|i|u)>", outside)
    assert "window.hacked=1</script>" not in outside.replace("&lt;", "")
    text = json.dumps(figures(html))
    assert "&lt;b&gt; (m/s^2)" in text
    assert "<i>" not in text
    assert "<u>" not in text
    assert "&#37;{x}" in text


def report_scripts(html: str) -> int:
    """How often Plotly's own code names scripts."""
    return sum(script.count("<script") for script in re.findall(r"<script[^>]*>(.*?)</script>", html, flags=re.DOTALL))


@pytest.mark.parametrize("count", [1, 4])
def test_every_parameter_and_coordinate_has_its_rows_and_plots(count: int) -> None:
    names = [f"p{k}" for k in range(count)]
    found = report(names=names)
    assert [row[0] for row in found.tables[0].rows] == names
    assert [row[0] for row in found.tables[1].rows] == list(COORDINATES)
    panels = section(found, "posterior").views[0].panels
    assert [panel.title.split(":")[0] for panel in panels] == names
    assert [view.name for view in section(found, "residuals").views] == [*COORDINATES]
    pairs = [panel for one in found.sections if one.key == "pairs" for panel in one.views[0].panels]
    assert len(pairs) <= 10
    assert bool(pairs) == (count > 1)
    assert all(len(panel.figure.data[0].x) <= 1000 for panel in pairs)
    html = render(found)
    for figure in figures(html).values():
        for trace in figure["data"]:
            assert not {None} & set(numbers([trace.get(key, []) for key in ("x", "y", "z")]))


def test_a_fit_of_a_delay_alone_has_a_page() -> None:
    fit = made_up(names=())
    fit = replace(fit, replay=fit.replay[:0], residuals=fit.residuals[:0])
    found = fit_report(fit, "gymdr fit", NEXT)
    assert [table.caption for table in found.tables] == ["Errors that the fit has estimated"]
    assert found.sections == []
    assert "What next" in render(found)
