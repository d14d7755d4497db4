"""Renders tables and plots into one HTML file that needs no network: it embeds styles and scripts."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from gym_dr.errors import printable
from gym_dr.runs.folder import write_atomically
from gym_dr.table import Table

MARK = b'content="gym_dr"'  # begins each page
DIGITS = 7  # significant digits of a plotted number; more make the file larger without a visible difference


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One plot."""

    title: str
    figure: go.Figure
    description: str  # alternative text


@dataclass(frozen=True, kw_only=True)
class View:
    """Plots that are shown together."""

    panels: Sequence[Panel]
    name: str = ""  # in the list of views


@dataclass(frozen=True, kw_only=True)
class Section:
    """A question, the plots that answer it and a note on how to read them."""

    key: str  # anchor within the page
    title: str
    lead: str  # the question
    how_to_read: str
    views: Sequence[View]
    choice: str = ""  # label of the list of views, if there are several


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """How one policy was made."""

    name: str
    text: str
    commands: Sequence[tuple[str, str]]  # description, command
    config: str  # empty if there is none


@dataclass(frozen=True, kw_only=True)
class Report:
    """The content of the page."""

    title: str
    facts: Sequence[str]  # environment, policies, episodes
    findings: Sequence[str]  # sentences: the verdict first, which stands at the top
    tables: Sequence[Table]  # the first stands at the top
    sections: Sequence[Section]
    provenance: Sequence[Provenance]
    command: str  # command line of the report; empty if there is none
    versions: str  # of Python and packages
    next_commands: Sequence[tuple[str, str]] = ()  # what to do with the findings: description, command
    picture: Panel | None = None  # beside the first table
    folded: Sequence[Table] = ()  # details, which open on request


def versions_of(packages: Sequence[str]) -> str:
    """The versions of Python and some packages, and the kind of machine."""
    versions = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in packages)]
    return f"{', '.join(versions)} on {platform.system()} {platform.machine()}."


def write_report(report: Report, path: Path) -> None:
    """Writes the page whole or not at all.

    Raises:
        RunFolderError: The file cannot be written.
    """
    write_atomically(path, render(report).encode())


def render(report: Report) -> str:
    """Renders the page as HTML. All text is escaped; a content security policy allows only the page's own scripts."""
    import jinja2
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("gym_dr.reports", "template"),
        autoescape=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    here = Path(__file__).parent / "template"
    scripts = [get_plotlyjs(), (here / "report.js").read_text(encoding="utf-8")]
    return templates.get_template("report.html.jinja").render(
        report=report,
        figures=_figures(report),
        style=Markup((here / "report.css").read_text(encoding="utf-8")),
        scripts=[Markup(script) for script in scripts],
        hashes=[_script_hash(script) for script in scripts],
    )


def plain(text: object) -> str:
    """Escapes text for a plot's labels, where Plotly interprets tags and, in hover texts, ``%{...}``."""
    return html.escape(printable(str(text)), quote=False).replace("%", "&#37;")


def _figures(report: Report) -> dict[str, Any]:
    """Panel anchor -> figure in JSON form; Plotly writes NaN as null, which it plots as a gap."""
    panels = {
        f"{section.key}-{v}-{p}": panel
        for section in report.sections
        for v, view in enumerate(section.views)
        for p, panel in enumerate(view.panels)
    }
    panels |= {} if report.picture is None else {"first-plot": report.picture}
    return {key: json.loads(one.figure.to_json(validate=True), parse_float=_rounded) for key, one in panels.items()}


def _rounded(number: str) -> float:
    return float(f"{float(number):.{DIGITS}g}")


def _script_hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
