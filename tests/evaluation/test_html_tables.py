from __future__ import annotations

from gym_dr.evaluation.html_tables import MAX_ROWS, TableCell, html_table, listed


def test_a_table_has_its_columns_rows_intervals_and_note() -> None:
    made = html_table(
        ("policy", "mean"), [("first", TableCell("1.0", "0.5 to 1.5"))], "On nominal physics", "Over episodes."
    )
    assert made == (
        "<table>\n<caption>On nominal physics</caption>\n"
        "<thead><tr><th>policy</th><th>mean</th></tr></thead>\n"
        "<tbody>\n<tr><td>first</td><td>1.0<br><small>0.5 to 1.5</small></td></tr>\n</tbody>\n</table>\n"
        "<p>Over episodes.</p>"
    )


def test_names_are_text_and_never_markup() -> None:
    nasty = "<script>alert(1)</script>"
    assert "<script>" not in html_table((nasty,), [(nasty,), (TableCell(nasty, nasty),)], nasty, nasty)


def test_rows_that_do_not_fit_are_counted() -> None:
    made = html_table((), [(str(i),) for i in range(MAX_ROWS + 3)])
    assert made.count("<tr>") == MAX_ROWS
    assert "<p>3 more rows.</p>" in made


def test_a_long_list_of_names_says_how_many_it_leaves_out() -> None:
    assert listed(["a", "b", "c", "d"]) == "a, b, c, d"
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
