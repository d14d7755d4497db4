from __future__ import annotations

from gym_dr.errors import listed
from gym_dr.table import Cell, Table

TABLE = Table(
    columns=["policy", "mean", "worst"],
    rows=[["first", Cell("212.5", "201 to 224"), "gravity -3"], ["other|old", "-3.1", "none"]],
    caption="On nominal physics",
    notes=["Over episodes."],
)


def test_text_has_aligned_columns_with_numbers_on_the_right() -> None:
    assert str(TABLE).splitlines() == [
        "On nominal physics",
        "  policy                   mean  worst",
        "  first      212.5 (201 to 224)  gravity -3",
        "  other|old                -3.1  none",
        "  Over episodes.",
    ]
    assert str(Table(rows=[["a", "one"], ["bcd", ""]])) == "a    one\nbcd"


def test_html_has_columns_rows_details_and_notes() -> None:
    table = Table(columns=TABLE.columns, rows=TABLE.rows[:1], caption=TABLE.caption, notes=TABLE.notes)
    assert table._repr_html_() == (
        "<table>\n<caption>On nominal physics</caption>\n"
        '<thead><tr><th scope="col">policy</th><th scope="col">mean</th><th scope="col">worst</th></tr></thead>\n'
        "<tbody>\n"
        '<tr><th scope="row">first</th><td>212.5<br><small>201 to 224</small></td><td>gravity -3</td></tr>\n'
        '</tbody>\n</table>\n<p class="note">Over episodes.</p>'
    )


def test_names_are_text_and_never_markup() -> None:
    nasty = "<script>alert(1)</script>"
    table = Table(columns=[nasty], rows=[[nasty], [Cell(nasty, nasty)]], caption=nasty, notes=[nasty])
    assert "<script>" not in table._repr_html_()


def test_a_long_list_of_names_says_how_many_it_leaves_out() -> None:
    assert listed(["a", "b", "c", "d"]) == "a, b, c, d"
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
