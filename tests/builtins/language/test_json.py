"""JSON in both directions, with every documented failure. Spec: 04 §11.1."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.faults import LOOK
from harnpy.formats import json as reader
from harnpy.formats.json import float_text, to_json
from harnpy.vm.values import Duration, EnumValue, Fn, Iter, Pair, Range, Set, Struct

BIG = 2**63
CONTROL = "control character (\\u0000-\\u001F) found while parsing a string"


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("", "EOF while parsing a value at line 1 column 0"),
        (" \n ", "EOF while parsing a value at line 2 column 1"),
        ("x", "expected value at line 1 column 1"),
        ("\ufeff1", "expected value at line 1 column 1"),
        ("NaN", "expected value at line 1 column 1"),
        ("Infinity", "expected value at line 1 column 1"),
        ("nul", "EOF while parsing a value at line 1 column 3"),
        ("nulx", "expected ident at line 1 column 4"),
        ("truE", "expected ident at line 1 column 4"),
        ("[", "EOF while parsing a list at line 1 column 1"),
        ("[1", "EOF while parsing a list at line 1 column 2"),
        ("[1,", "EOF while parsing a value at line 1 column 3"),
        ("[1,]", "trailing comma at line 1 column 4"),
        ("[1 2]", "expected `,` or `]` at line 1 column 4"),
        ("[,1]", "expected value at line 1 column 2"),
        ("{", "EOF while parsing an object at line 1 column 1"),
        ('{"a"', "EOF while parsing an object at line 1 column 4"),
        ('{"a":', "EOF while parsing a value at line 1 column 5"),
        ('{"a":1', "EOF while parsing an object at line 1 column 6"),
        ('{"a":1,', "EOF while parsing a value at line 1 column 7"),
        ('{"a":1,}', "trailing comma at line 1 column 8"),
        ('{"a" 1}', "expected `:` at line 1 column 6"),
        ('{"a":1 "b":2}', "expected `,` or `}` at line 1 column 8"),
        ("{a:1}", "key must be a string at line 1 column 2"),
        ("{1:1}", "key must be a string at line 1 column 2"),
        ("1 2", "trailing characters at line 1 column 3"),
        ("[]\n]", "trailing characters at line 2 column 1"),
        ('"a', "EOF while parsing a string at line 1 column 2"),
        ('"a\\', "EOF while parsing a string at line 1 column 3"),
        ('"\\u12', "EOF while parsing a string at line 1 column 5"),
        ('"\\q"', "invalid escape at line 1 column 3"),
        ('"\\u12G4"', "invalid escape at line 1 column 7"),
        ('"a\tb"', f"{CONTROL} at line 1 column 3"),
        ('"\\udc00"', "lone leading surrogate in hex escape at line 1 column 7"),
        ('"\\ud800x"', "unexpected end of hex escape at line 1 column 8"),
        ('"\\ud800\\u0041"', "lone leading surrogate in hex escape at line 1 column 13"),
        ("01", "invalid number at line 1 column 2"),
        ("-", "EOF while parsing a value at line 1 column 1"),
        ("-a", "invalid number at line 1 column 2"),
        ("+1", "expected value at line 1 column 1"),
        ("1.", "EOF while parsing a value at line 1 column 2"),
        ("1.e1", "invalid number at line 1 column 3"),
        ("1e", "EOF while parsing a value at line 1 column 2"),
        ("1e+", "EOF while parsing a value at line 1 column 3"),
        ("1ex", "invalid number at line 1 column 3"),
        ("1e999", "number out of range at line 1 column 5"),
        ("9" * 400, "number out of range at line 1 column 400"),
        ("9" * 9000, "number out of range at line 1 column 9000"),
        ("[" * 128, "recursion limit exceeded at line 1 column 128"),
        ("[" * 200 + "]" * 200, "recursion limit exceeded at line 1 column 128"),
        ('{"a":' * 100_000, "recursion limit exceeded at line 1 column 636"),
        ('[\n  "é",\n  é]', "expected value at line 3 column 3"),
    ],
)
def test_bad_json(vm: Any, text: str, detail: str) -> None:
    assert vm.failure("json_parse", text) == f"JSON parse error: {detail}"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" [ 1 , -2.5e3 ] ", [1, -2500.0]),
        ('{"a": {"b": null}, "c": [true, false]}', {"a": {"b": None}, "c": [True, False]}),
        ('{"a":1,"a":2}', {"a": 2}),
        ("1.0", 1.0),
        ("0", 0),
        ("-0", 0),
        ("-0.0", -0.0),
        (str(BIG - 1), BIG - 1),
        (str(-BIG), -BIG),
        (str(BIG), float(BIG)),
        (str(-BIG - 1), -float(BIG)),
        ("9" * 30, 1e30),
        ("1E2", 100.0),
        ('"\\u00e9\\ud83d\\uDE00\\b\\f\\n\\r\\t\\/\\\\\\""', 'é😀\b\f\n\r\t/\\"'),
        ('"\x7f\u2028"', "\x7f\u2028"),
        ("[" * 127 + "]" * 127, None),
        ('["' + "[" * 500 + '"]', ["[" * 500]),
        ("[" + "[]," * 500 + "{}]", [*[[]] * 500, {}]),
        ("[]", []),
        ("{}", {}),
    ],
)
def test_good_json(vm: Any, text: str, value: Any) -> None:
    found = vm.run("json_parse", text)
    if value is not None:
        assert found == value
        assert type(found) is type(value)
    assert found == reader._Reader(text).read()


def test_parse_takes_the_text_of_anything(vm: Any) -> None:
    assert vm.run("json_parse", 5) == 5
    assert vm.run("json_parse", [1, 2]) == [1, 2]
    assert vm.failure("json_parse") == "JSON parse error: EOF while parsing a value at line 1 column 0"
    assert vm.failure("json_parse", None) == "JSON parse error: expected ident at line 1 column 2"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (-5, "-5"),
        (1.0, "1"),
        (-0.0, "-0"),
        (1.5, "1.5"),
        (1e21, "1" + "0" * 21),
        (1e-7, "0.0000001"),
        (math.nan, "NaN"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (
            'a"\\/\n\r\t\b\f\x1b\x7f\x9fé😀\u2028',
            '"a\\"\\\\/\\n\\r\\t\\u0008\\u000c\\u001b\\u007f\\u009fé😀\u2028"',
        ),
        ([1, "a", []], '[1,"a",[]]'),
        ({"b": 1, "a": {"d": 1, "c": 2}}, '{"a":{"c":2,"d":1},"b":1}'),
        ({}, "{}"),
        (Set([2, 1]), "[2,1]"),
        (Struct("P", {"y": 1, "x": 2}), '{"x":2,"y":1}'),
        (b"\x00\xff", '{"$bytes_b64":"AP8="}'),
        (Range(1, 3), '"1 to 3"'),
        (Duration(5), "null"),
        (EnumValue("E", "V"), "null"),
        (Pair(1, 2), "null"),
        (Iter([]), "null"),
        (Fn("f", (), lambda depth: None), "null"),
    ],
)
def test_stringify(vm: Any, value: Any, text: str) -> None:
    assert vm.run("json_stringify", value) == text


def test_stringify_without_argument(vm: Any) -> None:
    assert vm.run("json_stringify") == "null"


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-BIG, BIG - 1) | FLOATS | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)


@given(VALUES)
def test_parse_undoes_stringify(value: Any) -> None:
    assert _loosely(reader.parse_json(to_json(value))) == _loosely(value)
    assert _loosely(json.loads(to_json(value))) == _loosely(value)


#: Plain data, and what an encoder in C would write in another way.
PARTS = (
    VALUES
    | st.floats()
    | st.sampled_from(
        [
            "1.0,",
            "[2.0]",
            "C:\\b",
            "\\\b",
            "\\\\f",
            "\b",
            "\f",
            "\x7f",
            "\x80",
            "\x9f",
            "\xa0",
            "\ud800",
            b"\0",
            1e16,
            -1e-5,
        ]
    )
    | st.builds(Set, st.lists(st.integers(), max_size=3))
    | st.builds(lambda fields: Struct("P", fields), st.fixed_dictionaries({"y": VALUES, "x": VALUES}))
)


@given(
    st.lists(PARTS, min_size=16, max_size=24) | st.dictionaries(st.text(), PARTS, min_size=16, max_size=24)
)
def test_both_writers_write_the_same(value: Any) -> None:
    _assert_written_alike(value)


@pytest.mark.parametrize(
    "value",
    [
        [*range(1_000)],
        [0.5, 1.0, -2.0, 1e15, -1e15, 0.0, -0.0, 1e-4] * 40,
        [["1.0,", 1.0]] * 500,
        {f"{i:x}": {"name": f"é{i}", "of": [i, i / 4, None, True]} for i in range(300)},
        [[[*range(100)]] * 3] * 200,
        [1, *[[]] * 200, [*range(5_000)], {"a": [*range(5_000)]}],
        [2**63, -(2**64), 2**200, *range(20)],
        dict.fromkeys(["", "\0", "a", "\uffff", "\U00010000", "é", "ab", "a\0", *"ABCDEFGHIJ"], 1),
    ],
)
def test_both_writers_write_the_same_at_length(value: Any) -> None:
    _assert_written_alike(value)
    deep = value
    for _ in range(40):
        deep = [deep, *range(20)]
    _assert_written_alike(deep)


def _assert_written_alike(value: Any) -> None:
    """`to_json` gives an encoder in C what that writes as we do. It can't write floats in another way."""
    assert to_json(value) == to_json(value, lambda x: float_text(x))


@pytest.mark.parametrize(
    "value",
    [[*range(20_000)], [{"a": [*range(9)]}] * 5_000, [[*range(20_000)]], {str(i): i for i in range(20_000)}],
)
def test_a_long_text_is_written_between_looks(value: Any) -> None:
    looks: list[int] = []
    before = LOOK.set(looks.append)
    try:
        to_json(value)
    finally:
        LOOK.reset(before)
    assert max(looks) <= 4_096 < 20_000 <= sum(looks)


def _loosely(value: Any) -> Any:
    """Integral floats come back as ints, or as the nearest float."""
    if type(value) is list:
        return [_loosely(item) for item in value]
    if type(value) is dict:
        return {key: _loosely(item) for key, item in value.items()}
    return float(value) if type(value) is int else value


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_both_readers_agree_on_good_texts(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert reader.parse_json(text) == reader._Reader(text).read() == value


@given(VALUES, st.data())
def test_both_readers_agree_on_broken_texts(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    text = (
        text[:at]
        + data.draw(st.sampled_from(["", ",", "}", '"', "\\u", "0", "-", "e", "\n"]))
        + text[at + 1 :]
    )
    assert _outcome(reader.parse_json, text) == _outcome(lambda text: reader._Reader(text).read(), text)


def _outcome(read: Any, text: str) -> str:
    try:
        return repr(read(text))
    except reader.JsonError as error:
        return str(error)
