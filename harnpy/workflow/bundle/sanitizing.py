"""What `sanitized` removes besides secrets: the rules for texts, and parts of certain dicts.

A removed text becomes ``""``, any other removed value nil, so that the manifest can point to it. Spec: 08
§17, `sanitized`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.resize.microcompact import microcompact
from harnpy.workflow.bundle.redaction_manifest import step
from harnpy.workflow.bundle.redactor import SECRETS, TextRule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harnpy.reading.dicts import Dict
    from harnpy.workflow.bundle.environment_masking import Environment
    from harnpy.workflow.bundle.path_masking import Places
    from harnpy.workflow.bundle.redaction_manifest import Manifest


_MOST_BYTES = 32 * 1024
#: microcompact adds a line about what it left out: its result must not be long enough to be cut again.
_COMPACTED_BYTES = _MOST_BYTES - 128

_REASONING_EVENTS = ("private_reasoning", "thinking_summary")
_REASONING_BLOCKS = ("reasoning", "thinking", "redacted_thinking")
_REASONING_KEYS = (
    "private_reasoning",
    "thinking_summary",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
)
#: Rows of a sidecar in which `thinking` is a model's reasoning, not an option.
_RESPONSES = ("provider_call_response", "response", "llm_response")
_BLOCK_FRAME = ("type", "visibility")


def text_rules(places: Places, environment: Environment) -> Sequence[TextRule]:
    """Return the rules for every text, the most serious reason first."""
    return (
        SECRETS,
        TextRule("env", "masked", environment.removed_from),
        TextRule("path", "masked", places.without_home),
        TextRule("path", "hashed", places.without_paths),
        TextRule("oversize", "truncated", _in_size, hashes=True),
    )


def shapes(value: Dict, pointer: str, manifest: Manifest) -> Dict:
    """Return a dict without reasoning, payloads and environments, recognised by its shape."""
    if value.get("kind") in _REASONING_EVENTS:
        value = _without_texts(value, pointer, manifest)
    if value.get("type") in _REASONING_BLOCKS:
        gone = {key: item for key, item in value.items() if key not in _BLOCK_FRAME}
        value = _without(value, gone, pointer, "reasoning", manifest)
    if value.get("kind") == "provider_payload" and isinstance(value.get("metadata"), dict):
        value = {**value, "metadata": _counts(value["metadata"], step(pointer, "metadata"), manifest)}
    keys = (*_REASONING_KEYS, *(("thinking",) if value.get("type") in _RESPONSES else ()))
    value = _without(value, [key for key in keys if key in value], pointer, "reasoning", manifest)
    if isinstance(value.get("env"), dict):
        place = step(pointer, "env")
        value = {**value, "env": _without(value["env"], value["env"], place, "env", manifest)}
    if _is_transcript(value):
        value = {**value, "assets": _descriptors(value["assets"], step(pointer, "assets"), manifest)}
    return value


def _in_size(text: str) -> str:
    if len(text) * 4 <= _MOST_BYTES or len(text.encode("utf-8", "surrogatepass")) <= _MOST_BYTES:
        return text
    return microcompact(text, _COMPACTED_BYTES)


def _without(
    value: Dict, keys: Mapping[str, Any] | Sequence[str], pointer: str, reason: str, manifest: Manifest
) -> Dict:
    """Return ``value`` with nothing under those keys; empty values are left alone."""
    full = {key: "" if isinstance(value[key], str) else None for key in keys if value[key]}
    for key in full:
        manifest.add(step(pointer, key), reason, "removed")
    return {**value, **full} if full else value


def _without_texts(event: Dict, pointer: str, manifest: Manifest) -> Dict:
    """Return an event without text, also in its blocks."""
    event = _without(event, [key for key in ("text",) if key in event], pointer, "reasoning", manifest)
    blocks = event.get("blocks")
    if not isinstance(blocks, list):
        return event
    place = step(pointer, "blocks")
    return {**event, "blocks": [_mute(block, step(place, at), manifest) for at, block in enumerate(blocks)]}


def _mute(block: Any, pointer: str, manifest: Manifest) -> Any:
    if isinstance(block, dict):
        said = [key for key in block if key not in _BLOCK_FRAME]
        return _without(block, said, pointer, "reasoning", manifest)
    if block:
        manifest.add(pointer, "reasoning", "removed")
    return "" if isinstance(block, str) else None


def _counts(metadata: Dict, pointer: str, manifest: Manifest) -> Dict:
    """Return the model and the token counts of a provider's payload."""
    kept = {
        key: item
        for key, item in metadata.items()
        if (key == "model" and isinstance(item, str)) or (key.endswith("_tokens") and _is_count(item))
    }
    if kept != metadata:
        manifest.add(pointer, "payload", "removed")
    return kept


def _is_count(value: Any) -> bool:
    return value is None or isinstance(value, (int, float))


def _is_transcript(value: Dict) -> bool:
    known = value.get("_type") == "transcript" or "events" in value or "messages" in value
    return known and isinstance(value.get("assets"), list)


def _descriptors(assets: list[Any], pointer: str, manifest: Manifest) -> list[Any]:
    """Return assets without their data."""
    return [
        _without(asset, ["data"], step(pointer, at), "payload", manifest)
        if isinstance(asset, dict) and "data" in asset
        else asset
        for at, asset in enumerate(assets)
    ]
