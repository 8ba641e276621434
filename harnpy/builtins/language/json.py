"""JSON text to values and back. Spec: 04 §11.1–11.2."""

from __future__ import annotations

from harnpy.formats.json import JsonError, parse_json, to_json
from harnpy.llm.json_extraction import json_part
from harnpy.vm.declare import ABSENT, builtin
from harnpy.vm.errors import Thrown
from harnpy.vm.values import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm


@builtin("json_parse(text: string) -> any", family="json_schema")
def json_parse(vm: Vm, text: str) -> Value:
    r"""Return the value of a JSON text.

    Integers that fit 64 bits are ints, other numbers floats; of equal keys the last wins; nesting ends
    before level 128. Throws `JSON parse error: <detail> at line L column C`.

    Example: json_parse("{\"a\": [1, 2.5, null]}")  // {a: [1, 2.5, nil]}
    """
    try:
        return parse_json(text)
    except JsonError as error:
        raise Thrown(f"JSON parse error: {error}") from None


@builtin("json_extract(text: string, key?: string) -> any", family="json_schema", counted=True)
def json_extract(vm: Vm, text: Value = ABSENT, key: Value = ABSENT) -> Value:
    r"""Return the JSON value in `text`, which a model may have wrapped in prose or a fence; or its `key`.

    A fenced text counts first, then the first object, then the first array, then the whole text.

    Example: json_extract("Sure: {\"ok\": true}. Bye!", "ok")  // true
    """
    if text is ABSENT:
        raise Thrown("json_extract requires at least 1 argument: text")
    try:
        value = parse_json(json_part(display(text)))
    except JsonError as error:
        raise Thrown(f"json_extract: failed to parse JSON: {error}") from None
    if key is ABSENT:
        return value
    if type(value) is not dict:
        raise Thrown("json_extract: parsed value is not a dict, cannot extract key")
    name = display(key)
    if name not in value:
        raise Thrown(f"json_extract: key '{name}' not found")
    return value[name]


@builtin("json_stringify(value: any) -> string", family="json_schema")
def json_stringify(vm: Vm, value: Value) -> str:
    r"""Return compact JSON with sorted keys; closures, enums, durations, pairs and handles become null.

    Example: json_stringify({b: 1, a: ["x", nil]})  // "{\"a\":[\"x\",null],\"b\":1}"
    """
    return to_json(value)
