"""What runs the pages finds a page that is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import pages

PAGE = """# A page

```python
x = 2
print("two")
x + 1
```

```text
two
3
```

Prose.

```sh
echo 25, of all
```

<!-- numbers vary -->
```text
-1,000.5e-07, of all
```

```{toctree}
:maxdepth: 1
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_a_block_has_its_line_and_the_output_below_it(page: Path) -> None:
    python, shell, other = pages.shown(page)
    assert (python.language, python.line, python.output, python.varies) == ("python", 3, "two\n3\n", False)
    assert (shell.language, shell.output, shell.varies) == ("sh", "-1,000.5e-07, of all\n", True)
    assert (other.language, other.output) == ("{toctree}", None)
    assert pages.outputs(page) == 2


def test_a_page_that_is_right_runs(page: Path) -> None:
    assert pages.run_program(page) == ["two\n3\n"]
    pages.run_page(page)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("\ntwo\n3", "\ntwo\n4"), ("\ntwo\n3", "\n3"), ("7, of all", "7, of some"), ("echo 25", "echo a quarter")],
    ids=str,
)
def test_another_output_is_found(right: str, wrong: str, page: Path) -> None:
    page.write_text(PAGE.replace(right, wrong, 1))
    with pytest.raises(AssertionError, match="and the page shows"):
        pages.run_page(page)


def test_a_command_that_fails_is_found(page: Path) -> None:
    page.write_text(PAGE.replace("echo 25", "false; echo 25"))
    with pytest.raises(subprocess.CalledProcessError):
        pages.run_page(page)


def test_as_a_program_it_does_not_use_this_checkout(page: Path, tmp_path: Path) -> None:
    page.write_text("```python\nimport sys\nany('tests' in path for path in sys.path)\n```\n\n```text\nFalse\n```\n")
    program = [sys.executable, pages.__file__, str(page)]
    subprocess.run(program, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, check=True, capture_output=True)
