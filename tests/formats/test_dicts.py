"""What is read from dicts: leniently, whatever has the wrong type is absent; strictly, it is an error."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.faults import MisuseError
from harnpy.formats.dicts import (
    FieldError,
    Options,
    as_dict,
    as_dicts,
    as_text,
    boolean,
    closure,
    count,
    dicts_at,
    errors_after,
    mapping,
    read_fields,
    string,
    timestamp,
)


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


TYPES = {"name": "string", "steps": "list of dicts", "limit": "int", "extra": "any"}


def test_known_fields_are_read_and_others_dropped() -> None:
    read = read_fields({"name": "a", "other": 1, "extra": object}, TYPES, "")
    assert read == {"name": "a", "steps": None, "limit": None, "extra": object}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([], "run: expected dict, got list"),
        ({"name": 7}, "run.name: expected string, got int"),
        ({"limit": True}, "run.limit: expected int, got bool"),
        ({"steps": [{}, 1]}, "run.steps: expected list of dicts, got list"),
    ],
)
def test_a_wrong_type_is_an_error_with_its_path(given: Any, problem: str) -> None:
    with pytest.raises(FieldError) as caught:
        read_fields(given, TYPES, "run", what="record")
    assert caught.value.message.startswith(f"record parse error at {problem} | payload=")


def test_a_required_field_may_not_be_nil() -> None:
    with pytest.raises(FieldError, match="expected string, got nil"):
        read_fields({}, TYPES, "run", required=("name",))


def test_a_reader_puts_its_own_words_first() -> None:
    with pytest.raises(MisuseError, match=r"^load: run\.name: expected string"), errors_after("load: "):
        read_fields({"name": 7}, TYPES, "run")
    with pytest.raises(MisuseError, match=r"^load: no such file$"), errors_after("load: "):
        raise MisuseError("no such file")


def test_kinds_say_what_is_wrong() -> None:
    assert string("a") is boolean(True) is mapping({}) is closure(print) is count(0) is None
    assert string(1) == "must be a string"
    assert count(-1) == "must be >= 0"
    assert count("1") == "must be an int"
    assert timestamp("2026-01-31T09:15:02Z") is None
    assert timestamp("yesterday") == "must be an RFC 3339 timestamp"
