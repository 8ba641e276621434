"""Lenient reading: whatever has the wrong type is absent."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.faults import MisuseError
from harnpy.formats.dicts import Options, as_dict, as_dicts, as_text, dicts_at


@pytest.mark.parametrize("given", [None, [], "text", 7])
def test_options_that_are_no_dict_are_empty(given: Any) -> None:
    options = Options(given)
    assert options.value("a") is None
    assert options.strings("a") is None
    assert not options.flag("a")


def test_a_wrong_type_reads_as_absent() -> None:
    options = Options({"n": "7", "f": True, "m": [], "l": "text"})
    assert options.integer("n") is None
    assert options.count("n", 3) == 3
    assert options.number("f") is None
    assert options.mapping("m") is None
    assert options.strings("l") is None


def test_a_string_is_the_display_of_any_value() -> None:
    options = Options({"s": True, "l": [1, None], "none": None})
    assert options.string("s") == "true"
    assert options.strings("l") == ["1", "nil"]
    assert options.string("none", "default") == "default"


def test_a_count_is_not_negative_and_a_limit_must_not_be() -> None:
    options = Options({"n": -1})
    assert options.count("n", 5) == 0
    with pytest.raises(MisuseError, match="agent_loop: n must be >= 0"):
        options.limit("n", "agent_loop")


def test_values_of_others() -> None:
    assert [as_text(value) for value in ("a", "", None, 1)] == ["a", None, None, None]
    assert as_dict([1]) == {}
    assert as_dicts([{"a": 1}, 2, {}]) == [{"a": 1}, {}]
    assert dicts_at({"events": [{"a": 1}, "b"]}, "events") == [{"a": 1}]
    assert dicts_at({"events": None}, "events") == dicts_at(None, "events") == []
