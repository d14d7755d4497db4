"""Tables for notebooks, which show an object's ``_repr_html_``, and short texts of long lists."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

MAX_ROWS = 40  # of a table
MAX_NAMES = 4  # of a list in a text


class TableCell(NamedTuple):
    """One value of a table, with its interval if there is one."""

    value: str
    interval: str = ""


def html_table(
    columns: Sequence[str], rows: Sequence[Sequence[str | TableCell]], caption: str = "", note: str = ""
) -> str:
    """A table as HTML; all text is escaped, and rows that do not fit are counted."""
    lines = [f"<caption>{html.escape(caption)}</caption>"] if caption else []
    if columns:
        lines.append(f"<thead><tr>{''.join(f'<th>{html.escape(column)}</th>' for column in columns)}</tr></thead>")
    lines += ["<tbody>", *(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:MAX_ROWS]), "</tbody>"]
    left = [f"{len(rows) - MAX_ROWS} more rows."] if len(rows) > MAX_ROWS else []
    notes = [f"<p>{html.escape(text)}</p>" for text in [*left, note] if text]
    return "\n".join(["<table>", *lines, "</table>", *notes])


def listed(names: Sequence[str]) -> str:
    """Names separated by commas; "and N more" in place of those that do not fit."""
    if len(names) <= MAX_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: MAX_NAMES - 1])} and {len(names) - MAX_NAMES + 1} more"


def _cell(cell: str | TableCell) -> str:
    value, interval = TableCell(cell) if isinstance(cell, str) else cell
    small = f"<br><small>{html.escape(interval)}</small>" if interval else ""
    return f"<td>{html.escape(value)}{small}</td>"
