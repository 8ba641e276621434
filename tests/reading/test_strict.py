"""Strict reading: the first field of the wrong type is an error that says where it is."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.faults import MisuseError
from harnpy.formats.dicts import (
    FieldError,
    boolean,
    closure,
    count,
    errors_after,
    mapping,
    read_fields,
    string,
    timestamp,
)

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
