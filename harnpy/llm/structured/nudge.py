"""The message to a model whose output doesn't fit the schema. Spec: 07 §1.6."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harnpy.llm.structured.output_format import Output

_SHAPES = 8
_DEPTH = 3

_MISMATCH = "Your previous response did not match the required JSON schema."
_AGAIN = "Reply once more with nothing but JSON that satisfies the schema: no text around it, no code fence."


def joined(errors: Iterable[str]) -> str:
    return "; ".join(errors)


def nudge_text(output: Output, errors: Iterable[str]) -> str | None:
    """The message that asks for a better answer, None when there is to be none."""
    if output.nudge is False:
        return None
    if isinstance(output.nudge, str):
        return f"{output.nudge}\n\nValidation errors: {joined(errors) or '(no detailed errors)'}"
    schema = output.expected_schema or {}
    lines = [_MISMATCH, f"Validation errors: {joined(errors)}."]
    if required := _required(schema):
        lines.append(f"Required keys: {required}.")
    if allowed := _allowed(schema):
        lines.append(f"Allowed top-level keys: {allowed}.")
    if shapes := list(islice(_shapes("root", schema, 0), _SHAPES)):
        lines += ["Expected JSON schema shape:", *shapes]
    return "\n".join([*lines, _AGAIN])


def _shapes(path: str, schema: Any, depth: int) -> Iterator[str]:
    """A line for each object that the schema describes, the outer ones first."""
    if not isinstance(schema, dict) or depth > _DEPTH:
        return
    allowed, required = _allowed(schema), _required(schema)
    if allowed:
        yield f"- {path} object allowed keys: {allowed}" + (
            f"; required keys: {required}" if required else ""
        )
        for key, property in sorted(schema["properties"].items()):
            yield from _shapes(f"{path}.{key}", property, depth + 1)
    yield from _shapes(f"{path}[]", schema.get("items"), depth + 1)


def _required(schema: dict[str, Any]) -> str:
    keys = schema.get("required")
    return ", ".join(map(str, keys)) if isinstance(keys, list) else ""


def _allowed(schema: dict[str, Any]) -> str:
    properties = schema.get("properties")
    return ", ".join(sorted(properties)) if isinstance(properties, dict) else ""
