"""The format that a reply must have: the options for structured output.

Spec: 07 §1.2, §1.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError
from harnpy.reading.lenient import Options
from harnpy.schemas.canonical import canonical

if TYPE_CHECKING:
    Schema = dict[str, Any]

TEXT, JSON_OBJECT, JSON_SCHEMA = "text", "json_object", "json_schema"

_KINDS = {
    "text": TEXT,
    "none": TEXT,
    "off": TEXT,
    "json": JSON_OBJECT,
    "json_object": JSON_OBJECT,
    "json_schema": JSON_SCHEMA,
    "schema": JSON_SCHEMA,
}
SCHEMA_RETRIES = 1


@dataclass(frozen=True)
class Output:
    """``kind``, ``schema`` and ``strict`` are requested from the provider; ``expected_schema`` is what
    the answer must satisfy. ``nudge``: a bool, or the text itself.
    """

    kind: str = TEXT
    schema: Schema | None = None
    strict: bool = True
    expected_schema: Schema | None = None
    validation: str = "off"
    retries: int = 0
    nudge: bool | str = True

    @property
    def structured(self) -> bool:
        return self.kind != TEXT or self.expected_schema is not None

    @cached_property
    def checked_schema(self) -> Schema | None:
        """``expected_schema`` in its canonical spelling."""
        return None if self.expected_schema is None else canonical(self.expected_schema)


def read_output(options: Options, retries: int = SCHEMA_RETRIES) -> Output:
    """The output that the options ask for; ``retries`` is the caller's default."""
    response_format = options.string("response_format", "text")
    if response_format not in ("json", "json_object", "text"):
        raise OptionError(
            f'response_format: expected "json", "json_object", or "text", got "{response_format}"'
        )
    json_schema = _first(_schema(options, "json_schema"), _schema(options, "schema", "json_schema"))
    kind, schema, strict = _format(options, response_format, json_schema)
    expected = _first(_schema(options, "output_schema"), json_schema, schema)
    nudge = options.value("schema_retry_nudge")
    output = Output(
        kind=kind,
        schema=schema,
        strict=strict,
        expected_schema=expected,
        validation=options.string("output_validation", "off") or "off",
        retries=options.count("schema_retries", retries),
        nudge=nudge if isinstance(nudge, bool | str) else True,
    )
    if output.structured:
        output.checked_schema  # noqa: B018 - a wrong schema fails here, before the call
    return output


def _schema(options: Options, key: str, name: str = "") -> Schema | None:
    value = options.value(key)
    if value is not None and not isinstance(value, dict):
        raise OptionError(f"{name or key}: expected a JSON Schema object")
    return value


def _first(*schemas: Schema | None) -> Schema | None:
    """The first schema that is given; an empty one counts."""
    return next((schema for schema in schemas if schema is not None), None)


def _format(
    options: Options, response_format: str, json_schema: Schema | None
) -> tuple[str, Schema | None, bool]:
    """(kind, schema, strict) of ``output_format``, or what the other options imply."""
    given = options.value("output_format")
    if given is None:
        if json_schema is not None:
            return JSON_SCHEMA, json_schema, True
        return _KINDS[response_format], None, True
    if isinstance(given, str):
        given = {"kind": given}
    if not isinstance(given, dict):
        raise OptionError("output_format: expected string or dict")
    own = Options(given)
    name = own.string("kind", TEXT) or TEXT
    kind = _KINDS.get(name.lower())
    if kind is None:
        raise OptionError(
            f'output_format.kind: expected "text" | "json_object" | "json_schema", got "{name}"'
        )
    schema = _first(own.mapping("schema"), own.mapping("json_schema"), json_schema)
    if kind == JSON_SCHEMA and schema is None:
        raise OptionError('output_format: kind "json_schema" requires a `schema` field')
    return kind, schema, own.flag("strict", True)
