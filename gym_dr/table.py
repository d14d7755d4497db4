"""One table for the terminal and text files, and for notebooks and reports."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from gym_dr.errors import printable

# each cell of a column that is aligned on the right
_NUMBER = re.compile(r"(?:[-+]?(?:\d[\d,.e+-]*|inf)(?: ?%)?(?: \(.*\))?|-?)$")


class Cell(NamedTuple):
    """A value with a smaller text beside it, such as its interval ``10 to 12``."""

    value: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.value} ({self.detail})" if self.detail else self.value


Row: TypeAlias = Sequence[str | Cell]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of texts; the first text of a row names it.

    Example:
        >>> print(Table(columns=["policy", "mean"], rows=[["first", Cell("212.5", "201 to 224")], ["other", "-3.1"]]))
        policy                mean
        first   212.5 (201 to 224)
        other                 -3.1

    Attributes:
        columns: Heads of the columns; empty for none.
        rows: One cell for each column.
        caption: What the table is about.
        notes: Paragraphs below it.
    """

    rows: Sequence[Row]
    columns: Sequence[str] = ()
    caption: str = ""
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        """Aligned columns, numbers on the right; indented below a caption."""
        lines = self._lines(lambda cell: " ".join(str(cell).split()))
        aligned = []
        for column in zip(*lines, strict=True):
            body = column[1:] if self.columns else column
            numbers, width = all(map(_NUMBER.match, body)), max(map(len, column))
            aligned.append([cell.rjust(width) if numbers else cell.ljust(width) for cell in column])
        texts = [*("  ".join(row).rstrip() for row in zip(*aligned, strict=True)), *self.notes]
        return printable("\n".join([self.caption, *(f"  {text}" for text in texts)] if self.caption else texts))

    def __html__(self) -> str:
        """The table as HTML, all text escaped; Jinja calls this method."""
        lines = [f"<caption>{html.escape(self.caption)}</caption>"] if self.caption else []
        if self.columns:
            heads = (f'<th scope="col">{html.escape(column)}</th>' for column in self.columns)
            lines.append(f"<thead><tr>{''.join(heads)}</tr></thead>")
        lines.append("<tbody>")
        for name, *cells in self.rows:
            others = "".join(f"<td>{_html(cell)}</td>" for cell in cells)
            lines.append(f'<tr><th scope="row">{_html(name)}</th>{others}</tr>')
        lines.append("</tbody>")
        notes = [f'<p class="note">{html.escape(note)}</p>' for note in self.notes]
        return printable("\n".join(["<table>", *lines, "</table>", *notes]))

    _repr_html_ = __html__  # as notebooks call it

    def _lines(self, form: Callable[[str | Cell], str]) -> list[list[str]]:
        """The heads, if there are any, and the rows."""
        heads = [self.columns] if self.columns else []
        return [[form(cell) for cell in row] for row in [*heads, *self.rows]]


def _html(cell: str | Cell) -> str:
    value, detail = (cell, "") if isinstance(cell, str) else cell
    small = f"<br><small>{html.escape(detail)}</small>" if detail else ""
    return f"{html.escape(value)}{small}"
