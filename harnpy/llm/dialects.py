"""The rules of each dialect: which names of tools, ids of calls and schemas of parameters its services take.

Names and ids that a service refuses are spelled in another way, the same one each time, and read back. Pure.
Spec: 07 §1.18.
"""

from __future__ import annotations

import re
from base64 import b32encode
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats.json import compact_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    Schema = dict[str, Any]

#: Letters of a digest behind a name that had to change.
_DIGEST = 8
#: Keys that services refuse at the root of a tool's parameters.
_COMBINED = ("anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const")


class Dialect(NamedTuple):
    """What a dialect's services take. ``tool`` is a pattern of the types that its own tools have; ``keyed``
    ones have none: they are a dict of one key. ``exact_ids``: ids are letters and digits, and all as long as
    the longest."""

    name: str
    longest_name: int
    longest_id: int
    tool: str = "(?!)"
    exact_ids: bool = False
    keyed: bool = False

    def name_of(self, tool: str) -> str:
        """Return a tool's name as the services take it."""
        return _spelled(tool, self.longest_name)

    def id_of(self, call: str) -> str:
        """Return a call's id as the services take it."""
        if not self.exact_ids:
            return _spelled(call, self.longest_id)
        if len(call) == self.longest_id and call.isascii() and call.isalnum():
            return call
        return b32encode(_digest(call))[: self.longest_id].decode()

    def names_back(self, tools: Iterable[str]) -> dict[str, str]:
        """Return the names of those tools that are spelled in another way, by that spelling."""
        return {spelled: tool for tool in tools if (spelled := self.name_of(tool)) != tool}

    def has_tool(self, type: Any) -> bool:
        """Return whether the services have a tool of their own of that type, None for one without."""
        return self.keyed if type is None else re.fullmatch(self.tool, str(type)) is not None


#: OpenAI's limits; servers with its protocol have no narrower ones.
CHAT = Dialect("openai", 64, 40, r"(?!function$)\w+(?<!_\d{8})")
RESPONSES = CHAT._replace(name="responses", longest_id=64)
GEMINI = Dialect("gemini", 63, 40, keyed=True)
ANTHROPIC = Dialect("anthropic", 128, 64, r"\w+_\d{8}|mcp_toolset")
MISTRAL = CHAT._replace(name="mistral", longest_id=9, exact_ids=True)
DEEPSEEK = CHAT._replace(name="deepseek")
OLLAMA = Dialect("ollama", 64, 40)


def _spelled(text: str, longest: int) -> str:
    spelled = re.sub(r"[^a-zA-Z0-9_-]", "_", text)
    if spelled == text and 0 < len(text) <= longest:
        return text
    return f"{spelled[: longest - _DIGEST - 1]}_{_digest(text).hex()[:_DIGEST]}"


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def parameters_schema(schema: Any) -> tuple[Schema, str]:
    """Return a tool's parameters as an object that each service takes, and what that leaves out, in words for
    the model."""
    schema = _resolved(schema) if isinstance(schema, dict) else {}
    left = {key: schema[key] for key in _COMBINED if key in schema}
    if not left and schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
        return schema, ""
    made = {key: value for key, value in schema.items() if key not in left}
    properties, required = dict(made.get("properties") or {}), list(made.get("required") or ())
    for key in ("allOf", "anyOf", "oneOf"):
        for part in filter(_is_dict, left.get(key) or ()):
            part = _resolved({"$defs": schema.get("$defs"), **part})
            properties = {**(part.get("properties") or {}), **properties}
            required += (part.get("required") or ()) if key == "allOf" else ()
    made |= {"type": "object", "properties": properties}
    if required:
        made["required"] = list(dict.fromkeys(required))
    return made, f"The arguments must also fit this JSON Schema: {compact_json(left)}" if left else ""


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _resolved(schema: Schema) -> Schema:
    """Return a schema whose root is what its `$ref` names, if it is one."""
    seen: set[str] = set()
    while isinstance(ref := schema.get("$ref"), str) and ref.startswith("#/") and ref not in seen:
        seen.add(ref)
        found: Any = schema
        for step in ref[2:].split("/"):
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            break
        schema = {**{key: value for key, value in schema.items() if key != "$ref"}, **found}
    return schema
