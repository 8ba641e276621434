"""Context packs: descriptions of what a task needs to know, and how to fetch it. Spec: 08 §8.8."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.reading.dicts import read_toml
from harnpy.reading.strict import read_fields
from harnpy.workflow.friction.event_redaction import is_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.reading.dicts import Dict


CONTEXT_PACK = "context_pack"
_WHAT = "context_pack_manifest"
_SLUG_WORDS = 8

_FIELDS = {
    "version": "int", "id": "string", "name": "string", "description": "string", "owner": "string",
    "triggers": "list", "inputs": "list", "included_queries": "list", "included_docs": "list",
    "included_tools": "list", "refresh_policy": "dict", "secrets": "list", "capabilities": "list of strings",
    "output_slots": "list", "fallback_instructions": "string", "review": "dict", "metadata": "dict",
}  # fmt: skip
#: The lists of dicts, and the fields of their items.
_ITEMS: Mapping[str, Mapping[str, str]] = {
    "triggers": {"kind": "string", "source": "string", "match_hint": "string"},
    "inputs": {"name": "string", "description": "string", "required": "bool", "source": "string"},
    "included_queries": {
        "id": "string", "label": "string", "provider": "string", "query": "string", "filters": "dict",
        "output_slot": "string",
    },
    "included_docs": {
        "id": "string", "title": "string", "url": "string", "path": "string", "freshness": "string",
    },
    "included_tools": {
        "name": "string", "capability": "string", "purpose": "string", "deterministic": "bool",
    },
    "secrets": {"name": "string", "capability": "string", "required": "bool"},
    "output_slots": {"name": "string", "description": "string", "artifact_kind": "string"},
}  # fmt: skip
_REFRESH = {"mode": "string", "interval": "string", "stale_after": "string"}
_REVIEW = {"owner": "string", "approval_required": "bool", "privacy_notes": "list of strings"}
_EMPTY: Mapping[str, Callable[[], Any]] = {
    "bool": bool, "dict": dict, "list": list, "list of strings": list,
}  # fmt: skip


def normalised(given: Any) -> Dict:
    """Return the manifest with every key. Raise `MisuseError`."""
    pack = _read(given, _FIELDS, "")
    for key in ("name", "owner"):
        if _blank(pack[key]):
            raise MisuseError(f"{_WHAT}: missing {key}")
    if not all(map(_is_reference, pack["secrets"])):
        raise MisuseError(f"{_WHAT}: secrets must be capability references, not raw secret values")
    for key, types in _ITEMS.items():
        pack[key] = [_read(item, types, f"{key}[{index}]") for index, item in enumerate(pack[key])]
    if any(_blank(query["id"]) or _blank(query["query"]) for query in pack["included_queries"]):
        raise MisuseError(f"{_WHAT}: included queries require id and query")
    pack["version"] = pack["version"] or 1
    pack["id"] = slug(pack["name"]) if _blank(pack["id"]) else pack["id"]
    refresh = _read(pack["refresh_policy"], _REFRESH, "refresh_policy")
    pack["refresh_policy"] = {**refresh, "mode": refresh["mode"] or "on_demand"}
    review = given.get("review")
    pack["review"] = None if review is None else _read(review, _REVIEW, "review")
    return pack


def parsed(text: str, parse_json: Callable[[str], Any]) -> Dict:
    """Return the manifest in a JSON or TOML text. Raise `MisuseError`."""
    json = text.lstrip().startswith("{")
    try:
        given = parse_json(text) if json else read_toml(text)
    except ValueError as error:
        raise MisuseError(f"{_WHAT}_parse: invalid {'JSON' if json else 'TOML'}: {error}") from error
    return normalised(given)


def slug(name: str) -> str:
    """Make an id of a name: its first words, in ASCII letters and digits."""
    return "_".join(re.findall(r"[a-z0-9]+", name.lower())[:_SLUG_WORDS]) or CONTEXT_PACK


def _is_reference(secret: Any) -> bool:
    """Return whether a secret says where to get it, and isn't a secret value itself."""
    if not isinstance(secret, dict) or secret.get("value") is not None:
        return False
    texts = [text for text in (secret.get("name"), secret.get("capability")) if isinstance(text, str)]
    return not _blank(secret.get("capability")) and not any(map(is_secret, " ".join(texts).split()))


def _blank(text: Any) -> bool:
    return text is None or (isinstance(text, str) and not text.strip())


def _read(given: Any, types: Mapping[str, str], path: str) -> Dict:
    """Return the fields of a dict, with empty values for missing ones."""
    fields = read_fields(given, types, path, what=_WHAT)
    return {
        key: _EMPTY[types[key]]() if value is None and types[key] in _EMPTY else value
        for key, value in fields.items()
    }
