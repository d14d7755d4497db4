"""How Sphinx builds the documentation: sphinx-build -W docs docs/_build."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

import gym_dr

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "gym_dr"
author = "the gym_dr developers"
copyright = "2026, the gym_dr developers"
release = version = gym_dr.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "environment_pages",
    "field_comments",
]
exclude_patterns = ["_build", "environments/notes"]
templates_path = ["_templates"]
nitpicky = False  # types of numpy and torch are not ours to link

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
autodoc_mock_imports = ["stable_baselines3"]
autodoc_member_order = "bysource"
autoclass_content = "both"  # constructors describe their parameters
autodoc_typehints = "both"  # in signatures, and beside the descriptions of parameters
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
napoleon_google_docstring, napoleon_numpy_docstring = True, False
copybutton_exclude = ".linenos, .gp"

html_theme = "furo"
html_title = "gym_dr"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["custom.css"]

_pyproject = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
address = _pyproject["tool"]["gym_dr"]["address"]
if address:
    html_theme_options = {"source_repository": address, "source_branch": "main", "source_directory": "docs/"}


def _write_address(app: Sphinx, name: str, text: list[str]) -> None:
    text[0] = text[0].replace("git clone ADDRESS", f"git clone {address or 'ADDRESS'}")


def setup(app: Sphinx) -> None:
    """Commands that clone the repository have its address."""
    app.connect("source-read", _write_address)
