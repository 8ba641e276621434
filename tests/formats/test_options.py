"""Tables of options: what is read from their text, and what they refuse. Spec: 07 §1.2."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.faults import OptionError
from harnpy.formats.options import Option, OptionTable

INNER = OptionTable("size: int = 3 — how large")
TABLE = OptionTable(
    """
    name: string — what it is called
    left, right: string | dict = "a: b" — a side
    """,
    {"right": INNER},
    removed={"old": "old is gone"},
    providers=True,
)
LONG = OptionTable("\n".join(f"option_{letter}: int — one" for letter in "abcdefghijklm"))


def refused(table: OptionTable, given: dict[str, Any], **others: Any) -> str:
    with pytest.raises(OptionError) as error:
        table.check("f", given, **others)
    return error.value.message


def test_rows_have_the_options_of_inner_dicts_behind_their_owner() -> None:
    assert list(TABLE.rows()) == [
        Option("name", "string", "", "what it is called"),
        Option("left", "string | dict", '"a: b"', "a side"),
        Option("right", "string | dict", '"a: b"', "a side"),
        Option("right.size", "int", "3", "how large"),
    ]


def test_known_options_pass_whatever_their_values() -> None:
    TABLE.check("f", {"name": None, "left": {"anything": 1}, "right": 5})
    TABLE.check("f", {"right": [{"size": 1}, 5]})
    TABLE.check("f", {"mine": {}}, lambda: ["mine"])


def test_the_first_unknown_one_in_key_order_is_named() -> None:
    assert refused(TABLE, {"z": 1, "nam": 1}) == (
        "f: unknown option key 'nam' (did you mean 'name'? expected one of: name, left, right)"
    )


def test_those_of_inner_dicts_are_named_by_path() -> None:
    assert refused(TABLE, {"right": [{"size": 1}, {"sizes": 1}]}) == (
        "f: unknown option key 'right[1].sizes' (did you mean 'size'? expected one of: size)"
    )


def test_a_removed_one_says_so_before_anything_else() -> None:
    assert refused(TABLE, {"old": None, "a": 1}) == "old is gone"


def test_a_long_table_is_not_listed() -> None:
    lists = "`harnpy builtins f` lists the options"
    assert refused(LONG, {"zzzzzz": 1}) == f"f: unknown option key 'zzzzzz' ({lists})"
    assert refused(LONG, {"option_": 1}) == (
        f"f: unknown option key 'option_' (did you mean 'option_a'? {lists})"
    )
    assert refused(LONG, {"size": 1}, others=lambda: {"g": INNER}) == (
        f"f: unknown option key 'size' (an option of g; {lists})"
    )


def test_a_sum_has_the_later_row() -> None:
    both = TABLE + OptionTable("name: int = 1 — a number\nnew: bool — more")
    assert both.own["name"] == Option("name", "int", "1", "a number")
    assert list(both.own) == ["name", "left", "right", "new"]
    assert refused(both, {"right": {"x": 1}}).startswith("f: unknown option key 'right.x'")


def test_defaults_are_values() -> None:
    table = OptionTable("""
        count: int = 12
        flag: bool = true
        word: string = hybrid
        text: string = "##DONE##"
        part: float = 0.85
        none: int — no default
    """)
    known = {"count": 12, "flag": True, "word": "hybrid", "text": "##DONE##", "part": 0.85, "none": None}
    assert {name: table.default(name) for name in known} == known
