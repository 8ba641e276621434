"""Schemas made of others. Spec: 04 §12.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.schemas.canonical import canonical, with_inner

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.schemas.canonical import Schema


def extended(base: Any, overrides: Any) -> Schema:
    """Both; what ``overrides`` has at its top level wins. Raises `SchemaError`, as all here."""
    return canonical(base) | canonical(overrides)


def partial(schema: Any) -> Schema:
    """The schema with nothing required, at any depth."""
    return _without_required(canonical(schema))


def _without_required(schema: Schema) -> Schema:
    return with_inner({key: schema[key] for key in schema if key != "required"}, _without_required)


def picked(schema: Any, keys: set[str]) -> Schema:
    """The schema with those of its properties."""
    return _filtered(schema, lambda key: key in keys)


def omitted(schema: Any, keys: set[str]) -> Schema:
    """The schema without those properties."""
    return _filtered(schema, lambda key: key not in keys)


def _filtered(schema: Any, kept: Callable[[str], bool]) -> Schema:
    found = canonical(schema)
    properties, required = found.get("properties"), found.pop("required", None)
    if isinstance(properties, dict):
        found["properties"] = {key: properties[key] for key in properties if kept(key)}
    if isinstance(required, list):
        required = [key for key in required if kept(key)]
    return {**found, "required": required} if required else found
