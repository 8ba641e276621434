"""Schemas as values, and values checked against them. Spec: 04 §12."""

from __future__ import annotations

from functools import partial

from harnpy.faults import paced
from harnpy.formats import schemas
from harnpy.formats.json import parse_json
from harnpy.formats.nesting import refuse_endless
from harnpy.formats.schema_checks import Checked, SchemaValues, check
from harnpy.formats.schemas import SchemaError, canonical
from harnpy.vm.declare import ABSENT
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import Thrown
from harnpy.vm.values import EnumValue, Set, Struct, display, type_name
from harnpy.vm.values.equality import equal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

    Schema = dict[str, Any]

# Harn's values for domain packages that must look into them. Spec: 04 §12.


class HarnValues(SchemaValues):
    def __init__(self, vm: Vm) -> None:
        self._vm = vm

    def equal(self, a: Value, b: Value) -> bool:
        return equal(a, b)

    def items(self, value: Value) -> list[Any] | None:
        return value.items if type(value) is Set else super().items(value)

    def rebuilt(self, value: Value, parts: Any) -> Value:
        if type(value) is Struct:
            return Struct(value.type, parts)
        return Set(parts) if type(value) is Set else parts

    def look(self) -> None:
        if self._vm.signal.pending:
            self._vm.poll()

    def search(self, pattern: str, text: str) -> bool:
        from harnpy.builtins.language.regexes import compiled_pattern, is_found

        return is_found(self._vm, compiled_pattern(self._vm, pattern), text)

    def read_json(self, text: str) -> Value:
        return parse_json(text)


builtin = partial(declare, family="json_schema", counted=True)


@builtin("schema_of(x: any) -> dict")
def schema_of(vm: Vm, x: Value = None) -> Schema:
    """Return the schema of a type that the file declares with `type`; return a schema dict unchanged.

    Example: schema_of({type: "string"})  // {type: "string"}
    """
    if type(x) is not dict:
        raise Thrown(f"schema_of: expected a type alias or schema dict, got {type_name(x)}")
    return x


# --- checking values ---------------------------------------------------------------------------------


@builtin("schema_check<T>(data: any, schema: Schema<T>) -> Result<T, any>")
def schema_check(vm: Vm, data: Value = ABSENT, schema: Value = ABSENT) -> EnumValue:
    """Return `Ok` of the normalised value, or `Err` of `{message, errors, value}` if it doesn't fit.

    `message` is the first of the `errors`; `value` is the part of the data that fits.

    Example:
        unwrap_err(schema_check("x", {type: "int"})).message  // "at root: expected type 'int', got 'string'"
    """
    return _result(vm, "schema_check", data, schema, defaults=False)


@builtin("schema_parse<T>(data: any, schema: Schema<T>) -> Result<T, any>")
def schema_parse(vm: Vm, data: Value = ABSENT, schema: Value = ABSENT) -> EnumValue:
    """Do what `schema_check` does, and fill in the `default` of every missing key.

    Example: unwrap(schema_parse({}, {properties: {port: {type: "int", default: 80}}}))  // {port: 80}
    """
    return _result(vm, "schema_parse", data, schema, defaults=True)


def _result(vm: Vm, name: str, data: Value, schema: Value, *, defaults: bool) -> EnumValue:
    _require(name, data, schema)
    try:
        value, errors = _checked(vm, data, schema, defaults=defaults)
    except Thrown as wrong:
        return EnumValue("Result", "Err", ({"message": wrong.value, "errors": [wrong.value]},))
    if errors:
        return EnumValue("Result", "Err", ({"message": errors[0], "errors": errors, "value": value},))
    return EnumValue("Result", "Ok", (value,))


@builtin("schema_is(data: any, schema: dict) -> bool")
def schema_is(vm: Vm, data: Value = ABSENT, schema: Value = ABSENT) -> bool:
    """Return true if the data fits the schema.

    Example: schema_is(1.0, {type: "int"})  // false
    """
    _require("schema_is", data, schema)
    return not _checked(vm, data, schema).errors


@builtin("is_type(data: any, schema: dict) -> bool")
def is_type(vm: Vm, data: Value = ABSENT, schema: Value = ABSENT) -> bool:
    """Return true if the data fits the schema, as `schema_is` does.

    Example: is_type([1, 2], {type: "list", items: {type: "int"}})  // true
    """
    _require("is_type", data, schema)
    return not _checked(vm, data, schema).errors


@builtin("schema_expect<T>(data: any, schema: Schema<T>, apply_defaults: bool = false) -> T")
def schema_expect(
    vm: Vm, data: Value = ABSENT, schema: Value = ABSENT, apply_defaults: Value = False
) -> Value:
    """Return the normalised value; throw all errors, joined with `; `, if it doesn't fit the schema.

    Example: schema_expect({name: "Ada"}, {type: "dict", required: ["name"]})  // {name: "Ada"}
    """
    _require("schema_expect", data, schema)
    value, errors = _checked(vm, data, schema, defaults=bool(apply_defaults))
    if errors:
        raise Thrown("; ".join(errors))
    return value


@builtin("json_validate(data: any, schema: dict) -> bool")
def json_validate(vm: Vm, data: Value = ABSENT, schema: Value = ABSENT) -> bool:
    """Return true; throw all errors, joined with `; `, if the data doesn't fit the schema.

    Example: json_validate(5, {type: "int", min: 1})  // true
    """
    _require("json_validate", data, schema)
    if errors := _checked(vm, data, schema).errors:
        raise Thrown("; ".join(errors))
    return True


def _checked(vm: Vm, data: Value, schema: Value, *, defaults: bool = False) -> Checked:
    return check(data, _made(canonical, schema), HarnValues(vm), defaults=defaults)


# --- schemas out of schemas --------------------------------------------------------------------------


@builtin("schema_to_json_schema(schema: dict) -> dict")
def schema_to_json_schema(vm: Vm, schema: Value = ABSENT) -> Schema:
    """Convert the schema to JSON Schema.

    Example: schema_to_json_schema({type: "int", min: 1})  // {type: "integer", minimum: 1.0}
    """
    from harnpy.formats.schemas import JSON_SCHEMA, spelled

    _require("schema_to_json_schema", schema)
    return _made(spelled, schema, JSON_SCHEMA)


@builtin("schema_to_openapi_schema(schema: dict) -> dict")
def schema_to_openapi_schema(vm: Vm, schema: Value = ABSENT) -> Schema:
    """Convert the schema to OpenAPI 3.0, where `nullable` is a key.

    Example: schema_to_openapi_schema({type: "int", nullable: true})  // {type: "integer", nullable: true}
    """
    from harnpy.formats.schemas import OPENAPI, spelled

    _require("schema_to_openapi_schema", schema)
    return _made(spelled, schema, OPENAPI)


@builtin("schema_from_json_schema(schema: dict) -> dict")
def schema_from_json_schema(vm: Vm, schema: Value = ABSENT) -> Schema:
    """Convert a JSON Schema to the canonical form; drop what that can't express.

    Example: schema_from_json_schema({type: "string", maxLength: 3})  // {type: "string", max_length: 3}
    """
    _require("schema_from_json_schema", schema)
    return _made(canonical, schema)


@builtin("schema_from_openapi_schema(schema: dict) -> dict")
def schema_from_openapi_schema(vm: Vm, schema: Value = ABSENT) -> Schema:
    """Convert an OpenAPI schema to the canonical form; drop what that can't express.

    Example: schema_from_openapi_schema({type: "integer", nullable: true})  // {type: "int", nullable: true}
    """
    _require("schema_from_openapi_schema", schema)
    return _made(canonical, schema)


@builtin("schema_extend(base: dict, overrides: dict) -> dict")
def schema_extend(vm: Vm, base: Value = ABSENT, overrides: Value = ABSENT) -> Schema:
    """Return the entries of both schemas; those of `overrides` win.

    Example: schema_extend({type: "int", min: 1}, {max: 9})  // {type: "int", min: 1, max: 9}
    """
    _require("schema_extend", base, overrides)
    return _made(schemas.extended, base, overrides)


@builtin("schema_partial(schema: dict) -> dict")
def schema_partial(vm: Vm, schema: Value = ABSENT) -> Schema:
    """Return the schema with no key required, at any depth.

    Example: schema_partial({type: "dict", required: ["a"]})  // {type: "dict"}
    """
    _require("schema_partial", schema)
    return _made(schemas.partial, schema)


@builtin("schema_pick(schema: dict, keys: list) -> dict")
def schema_pick(vm: Vm, schema: Value = ABSENT, keys: Value = ABSENT) -> Schema:
    """Return the schema with only those properties.

    Example: schema_pick({properties: {a: {}, b: {}}, required: ["b"]}, ["a"])  // {properties: {a: {}}}
    """
    return _made(schemas.picked, schema, _keys("schema_pick", schema, keys))


@builtin("schema_omit(schema: dict, keys: list) -> dict")
def schema_omit(vm: Vm, schema: Value = ABSENT, keys: Value = ABSENT) -> Schema:
    """Return the schema without those properties.

    Example: schema_omit({properties: {a: {}, b: {}}, required: ["a"]}, ["a"])  // {properties: {b: {}}}
    """
    return _made(schemas.omitted, schema, _keys("schema_omit", schema, keys))


def _keys(name: str, schema: Value, keys: Value) -> set[str]:
    _require(name, schema, keys)
    if type(keys) is not list:
        raise Thrown(f"{name}: keys must be a list")
    return {display(key) for key in paced(keys)}


def _made(make: Callable[..., Schema], schema: Value, *others: Value) -> Schema:
    """Return what ``make`` makes of schemas; throws what is wrong with them."""
    refuse_endless([schema, *others])
    try:
        return make(schema, *others)
    except SchemaError as error:
        raise Thrown(str(error)) from None


def _require(name: str, *arguments: Value) -> None:
    if ABSENT in arguments:
        raise Thrown(f"{name} requires {len(arguments)} argument{'s' if len(arguments) > 1 else ''}")
