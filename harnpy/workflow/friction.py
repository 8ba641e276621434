"""Friction: recurring obstacles in a team's work, and context packs that would remove them.

A friction event is one obstacle, without secrets. Recorded events suggest context packs, which describe what
a task needs to know and how to fetch it. Spec: 08 §8.8.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError, paced
from harnpy.formats.dicts import read_fields, read_toml
from harnpy.formats.json import to_json
from harnpy.formats.secrets.masking import MASK, mask_secrets
from harnpy.formats.secrets.secret_names import is_secret_name
from harnpy.world.clock import rfc3339
from harnpy.world.files import private_files, system_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.world import World
    from harnpy.world.files import Files

    Key = tuple[str, ...]

# Redacting secrets in what people and tools report. Spec: 08 §8.8 "Redaction".


REDACTED = "[redacted]"

_PREFIXES = ("sk-", "ghp_", "xoxb-", "AKIA")
_ASSIGNMENTS = ("token=", "password=", "api_key=", "apikey=")
_LONG = re.compile(r"[A-Za-z0-9_-]{49,}")
_SECRET_KEYS = ("secret", "token", "password", "api_key", "apikey")


def redacted(text: str) -> str:
    """Return the words of ``text``, separated by one space, without those that look like secrets."""
    masked = mask_secrets(text)
    return " ".join(REDACTED if MASK in word or _is_suspect(word) else word for word in paced(masked.split()))


def is_secret(word: str) -> bool:
    return _is_suspect(word) or mask_secrets(word) != word


def _is_suspect(word: str) -> bool:
    if word.startswith(_PREFIXES) or _LONG.fullmatch(word):
        return True
    lowered = word.lower()
    return any(mark in lowered for mark in _ASSIGNMENTS)


def redacted_metadata(metadata: Dict, top_level_keys: bool) -> Dict:
    """Return ``metadata`` without secrets; ``top_level_keys``: its own keys may name one, too."""
    return {
        key: REDACTED if top_level_keys and _names_secret(key) else _within(value)
        for key, value in paced([*metadata.items()])
    }


def _within(value: Any) -> Any:
    if isinstance(value, dict):
        return redacted_metadata(value, top_level_keys=True)
    if isinstance(value, list):
        return [_within(item) for item in paced(value)]
    return redacted(value) if isinstance(value, str) else value


def _names_secret(key: str) -> bool:
    lowered = key.lower()
    return is_secret_name(key) or any(part in lowered for part in _SECRET_KEYS)


KINDS = tuple(
    "repeated_query repeated_clarification approval_stall missing_context manual_handoff tool_gap "
    "failed_assumption expensive_model_used_for_deterministic_step human_hypothesis".split()
)

_EVENT_FIELDS = {
    "schema_version": "int", "id": "string", "kind": "string", "source": "string", "actor": "string",
    "tenant_id": "string", "task_id": "string", "run_id": "string", "workflow_id": "string", "tool": "string",
    "provider": "string", "redacted_summary": "string", "estimated_cost_usd": "number",
    "estimated_time_ms": "int", "recurrence_hints": "list of strings", "trace_id": "string",
    "span_id": "string", "links": "list", "human_hypothesis": "string", "metadata": "dict",
    "timestamp": "string",
}  # fmt: skip
_SUMMARIES = {"summary": "string", "message": "string"}
_EVENT = "friction_event"


def normalised_event(given: Any, world: World, path: str = "", top_level_keys: bool = False) -> Dict:
    """Return the event with every key. ``top_level_keys``: its metadata's own keys may name secrets, too.

    Raise `MisuseError`.
    """
    event = read_fields(given, _EVENT_FIELDS, path, what=_EVENT)
    others = read_fields(given, _SUMMARIES, path, what=_EVENT)
    if event["redacted_summary"] is None:
        event["redacted_summary"] = others["message"] if others["summary"] is None else others["summary"]
    event["kind"] = _kind(event["kind"])
    event["redacted_summary"] = redacted(event["redacted_summary"] or "")
    if not event["redacted_summary"]:
        raise MisuseError("friction_event: missing redacted_summary")
    event["schema_version"] = 1
    event["id"] = event["id"] or f"friction_{world.ids.new()}"
    # Six digits: events within one millisecond keep their order.
    event["timestamp"] = event["timestamp"] or rfc3339(world.clock.now(), 6)
    event["recurrence_hints"] = event["recurrence_hints"] or []
    event["links"] = event["links"] or []
    event["metadata"] = redacted_metadata(event["metadata"] or {}, top_level_keys)
    return event


def read_friction_events(given: Any, world: World) -> list[Dict]:
    """Return the events in a list, or in a dict that has one as ``events``. Raise `MisuseError`."""
    events = given.get("events") if isinstance(given, dict) else given
    if not isinstance(events, list):
        raise MisuseError("friction events fixture must be an array or {events: [...]}")
    return [normalised_event(event, world, f"[{index}]") for index, event in enumerate(events)]


def _kind(given: str | None) -> str:
    kind = (given or "").strip().lower()
    if not kind:
        raise MisuseError("friction_event: missing kind")
    if kind not in KINDS:
        expected = ", ".join(KINDS)
        raise MisuseError(f"friction_event: unsupported kind '{kind}' (expected one of {expected})")
    return kind


LOG_VARIABLE = "HARN_FRICTION_LOG"
_LOG_OPTIONS = {"enabled": "bool", "log_path": "string", "path": "string"}


class FrictionLog:
    """The events that one program has recorded so far."""

    def __init__(self) -> None:
        self.events: list[Dict] = []

    def record(self, given: Any, options: Any, world: World) -> Dict:
        """Record an event, unless that is disabled; return where it went. Raise `MisuseError`."""
        settings = read_fields(
            {} if options is None else options, _LOG_OPTIONS, "options", what="friction_record"
        )
        event = normalised_event(given, world, top_level_keys=True)
        if settings["enabled"] is False:
            return {"recorded": False, "sink": "disabled", "event": event}
        path, files = settings["log_path"] or settings["path"], world.files
        if not path:
            path, files = world.unguarded.environment.get(LOG_VARIABLE), world.unguarded.files
        if path:
            _append(path, event, files)
        self.events.append(event)
        sink = {"sink": "jsonl", "path": path} if path else {"sink": "memory"}
        return {"recorded": True, "event": event, **sink}


def _append(path: str, event: Dict, files: Files) -> None:
    try:
        private_files(files).write_text(path, to_json(event) + "\n", append=True)
    except (OSError, ValueError) as error:
        raise MisuseError(f"failed to write friction log: {path}: {system_reason(error)}") from error


CONTEXT_PACK = "context_pack"
_MANIFEST = "context_pack_manifest"
_SLUG_WORDS = 8

_MANIFEST_FIELDS = {
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


def normalised_context_pack(given: Any) -> Dict:
    """Return the manifest with every key. Raise `MisuseError`."""
    pack = _read(given, _MANIFEST_FIELDS, "")
    for key in ("name", "owner"):
        if _blank(pack[key]):
            raise MisuseError(f"{_MANIFEST}: missing {key}")
    if not all(map(_is_reference, pack["secrets"])):
        raise MisuseError(f"{_MANIFEST}: secrets must be capability references, not raw secret values")
    for key, types in _ITEMS.items():
        pack[key] = [_read(item, types, f"{key}[{index}]") for index, item in enumerate(pack[key])]
    if any(_blank(query["id"]) or _blank(query["query"]) for query in pack["included_queries"]):
        raise MisuseError(f"{_MANIFEST}: included queries require id and query")
    pack["version"] = pack["version"] or 1
    pack["id"] = slug(pack["name"]) if _blank(pack["id"]) else pack["id"]
    refresh = _read(pack["refresh_policy"], _REFRESH, "refresh_policy")
    pack["refresh_policy"] = {**refresh, "mode": refresh["mode"] or "on_demand"}
    review = given.get("review")
    pack["review"] = None if review is None else _read(review, _REVIEW, "review")
    return pack


def parsed_context_pack(text: str, parse_json: Callable[[str], Any]) -> Dict:
    """Return the manifest in a JSON or TOML text. Raise `MisuseError`."""
    json = text.lstrip().startswith("{")
    try:
        given = parse_json(text) if json else read_toml(text)
    except ValueError as error:
        raise MisuseError(f"{_MANIFEST}_parse: invalid {'JSON' if json else 'TOML'}: {error}") from error
    return normalised_context_pack(given)


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
    fields = read_fields(given, types, path, what=_MANIFEST)
    return {
        key: _EMPTY[types[key]]() if value is None and types[key] in _EMPTY else value
        for key, value in fields.items()
    }


# The context pack that a group of friction events suggests. Spec: 08 §8.8 "candidate_manifest".


_ASKING = ("repeated_query", "missing_context")
_DETERMINISTIC = "expensive_model_used_for_deterministic_step"
_SLOT = "primary_context"


def candidate_manifest(title: str, owner: str, hint: str, events: Sequence[Dict]) -> Dict:
    """Return the manifest that the events' metadata suggest; ``hint`` is what they have in common."""
    first, slots = events[0], sorted(set(map(_slot, events)))
    return normalised_context_pack(
        {
            "name": title,
            "owner": owner,
            "description": first["redacted_summary"],
            "triggers": [{"kind": first["kind"], "source": first["source"], "match_hint": hint}],
            "included_queries": _queries(events),
            "included_docs": _docs(events),
            "included_tools": _tools(events),
            "secrets": _secrets(events),
            "capabilities": sorted(set(_texts(events, "capability"))),
            "output_slots": [{"name": slot, "artifact_kind": "context"} for slot in slots],
            "review": {"owner": owner, "approval_required": True},
        }
    )


def _queries(events: Sequence[Dict]) -> list[Dict]:
    found: dict[str, Dict] = {}
    for event in events:
        query = _text(event, "query", "deterministic_query")
        if query:
            found.setdefault(query, event)
    if not found and events[0]["kind"] in _ASKING:
        found[events[0]["redacted_summary"]] = events[0]
    return [
        {
            "id": f"query_{number}",
            "label": event["redacted_summary"],
            "provider": event["provider"],
            "query": query,
            "output_slot": _slot(event),
        }
        for number, (query, event) in enumerate(found.items(), 1)
    ]


def _docs(events: Sequence[Dict]) -> list[Dict]:
    found: dict[tuple[str | None, str | None], None] = {}
    for event in events:
        place = _text(event, "doc_url", "document_url"), _text(event, "doc_path", "document_path")
        if any(place):
            found.setdefault(place)
    return [
        {"id": f"doc_{number}", "title": url or path, "url": url, "path": path}
        for number, (url, path) in enumerate(found, 1)
    ]


def _tools(events: Sequence[Dict]) -> list[Dict]:
    found: dict[str, Dict] = {}
    for event in events:
        name = event["tool"] or _text(event, "tool")
        if name:
            found.setdefault(name, event)
    return [
        {
            "name": name,
            "capability": _text(event, "capability"),
            "purpose": event["redacted_summary"],
            "deterministic": event["kind"] == _DETERMINISTIC,
        }
        for name, event in found.items()
    ]


def _secrets(events: Sequence[Dict]) -> list[Dict]:
    names = dict.fromkeys(_texts(events, "secret_ref"))
    return [{"name": name, "capability": name, "required": True} for name in names]


def _slot(event: Dict) -> str:
    return _text(event, "output_slot") or _SLOT


def _texts(events: Sequence[Dict], key: str) -> list[str]:
    return [text for text in (_text(event, key) for event in events) if text]


def _text(event: Dict, *keys: str) -> str | None:
    """Return the first text among the metadata's ``keys``."""
    values = (event["metadata"].get(key) for key in keys)
    return next((value for value in values if isinstance(value, str) and value.strip()), None)


_OPTIONS = {"min_occurrences": "int", "owner": "string"}
_GROUPED_BY = ("kind", "source", "tool", "provider")
_LEAST = 2
_WORKFLOW = ("approval_stall", "manual_handoff")
_BOTH = ("tool_gap", "failed_assumption", "expensive_model_used_for_deterministic_step")
_CONFIDENCE = {2: 0.62, 3: 0.74, 4: 0.82}
_HIGHEST_CONFIDENCE = 0.9
_TITLE_WORDS = 6
_EXAMPLES = 3
TEAM = "team"


def suggestions(events: Sequence[Dict], options: Any, world: World) -> list[Dict]:
    """Return what the events, in normal form, suggest. Raise `MisuseError` for wrong options."""
    settings = read_fields(
        {} if options is None else options, _OPTIONS, "options", what="context_pack_suggestions"
    )
    needed = max(settings["min_occurrences"] or 0, _LEAST)
    groups: dict[Key, list[Dict]] = {}
    for event in events:
        groups.setdefault(_key(event), []).append(event)
    return [
        _suggestion(sorted(groups[key], key=_moment), settings["owner"], world)
        for key in sorted(groups)
        if len(groups[key]) >= needed
    ]


def _suggestion(events: list[Dict], owner: str | None, world: World) -> Dict:
    first = events[0]
    title = f"{first['source'] or TEAM} {_hint(first, _TITLE_WORDS)} context pack"
    manifest = candidate_manifest(title, owner or first["actor"] or TEAM, _hint(first), events)
    return {
        "_type": "context_pack_suggestion",
        "id": f"context_pack_suggestion_{world.ids.new()}",
        "title": title,
        "recommended_artifact": _artifact(first["kind"]),
        "confidence": _CONFIDENCE.get(len(events), _HIGHEST_CONFIDENCE),
        "candidate_manifest": manifest,
        "evidence": [_evidence(event) for event in events],
        "examples": sorted({event["redacted_summary"] for event in events})[:_EXAMPLES],
        "estimated_savings": _savings(events),
        "risk_privacy_notes": _notes(manifest),
        "source_event_ids": [event["id"] for event in events],
        "created_at": rfc3339(world.clock.now()),
        "metadata": {key: first[key] for key in ("kind", "source", "tool", "provider")}
        | {"hint": _hint(first)},
    }


def _key(event: Dict) -> Key:
    return (*(event[key] or "" for key in _GROUPED_BY), _hint(event))


def _moment(event: Dict) -> Key:
    return event["timestamp"], event["id"]


def _hint(event: Dict, words: int | None = None) -> str:
    """Return what recurs: the event's hint, else the first ``words`` words of its summary."""
    hints = event["recurrence_hints"]
    if hints and hints[0].strip():
        return str(hints[0])
    found = re.findall(r"[^\W_]+", event["redacted_summary"].lower())
    return " ".join(found[:words])


def _artifact(kind: str) -> str:
    if kind in _WORKFLOW:
        return "workflow"
    return "both" if kind in _BOTH else CONTEXT_PACK


def _evidence(event: Dict) -> Dict:
    return {
        "event_id": event["id"],
        "timestamp": event["timestamp"],
        "summary": event["redacted_summary"],
        "links": event["links"],
    }


def _savings(events: Sequence[Dict]) -> Dict:
    """Return what would be saved: everything but the first occurrence."""
    again = events[1:]
    return {
        "occurrences": len(events),
        "estimated_time_saved_ms": sum(event["estimated_time_ms"] or 0 for event in again),
        "estimated_cost_saved_usd": sum((event["estimated_cost_usd"] or 0.0 for event in again), 0.0),
    }


def _notes(manifest: Dict) -> list[str]:
    notes = ["The examples are redacted summaries; review them before the pack is shared."]
    if manifest["secrets"]:
        notes.append("The pack names secrets by capability; it must never hold their values.")
    return notes


# Checking whether friction events suggest the expected context packs. Spec: 08 §8.8 "Expectation keys".


_FIXTURE_FIELDS = {"options": "dict", "expected_suggestions": "list"}
_EXPECTATION = {
    "min_suggestions": "int", "recommended_artifact": "string", "title_contains": "string",
    "manifest_name_contains": "string", "required_capability": "string", "required_output_slot": "string",
}  # fmt: skip
_FIXTURE = "friction_eval_fixture"


def evaluate_friction_fixture(given: Any, world: World) -> Dict:
    """Return the report on a fixture: events, options and expectations. Raise `MisuseError`."""
    events = read_friction_events(given, world)
    fixture = read_fields(given if isinstance(given, dict) else {}, _FIXTURE_FIELDS, "", what=_FIXTURE)
    found = suggestions(events, fixture["options"], world)
    failures: list[str] = []
    for index, item in enumerate(fixture["expected_suggestions"] or []):
        expectation = read_fields(item, _EXPECTATION, f"expected_suggestions[{index}]", what=_FIXTURE)
        wanted = {key: value for key, value in expectation.items() if value is not None}
        failures += _failures(wanted, found)
    return {
        "pass": not failures,
        "failures": failures,
        "event_count": len(events),
        "suggestion_count": len(found),
        "suggestions": found,
    }


def _failures(wanted: Dict, found: Sequence[Dict]) -> list[str]:
    failures = []
    least = wanted.get("min_suggestions", 0)
    if len(found) < least:
        failures.append(f"expected at least {least} context-pack suggestion(s), got {len(found)}")
    described = wanted.keys() - {"min_suggestions"}
    if described and not any(_matches(suggestion, wanted) for suggestion in found):
        failures.append(f"no context-pack suggestion matched expectation {to_json(wanted)}")
    return failures


def _matches(suggestion: Dict, wanted: Dict) -> bool:
    manifest = suggestion["candidate_manifest"]
    capabilities = {*manifest["capabilities"], *(tool["capability"] for tool in manifest["included_tools"])}
    slots = {slot["name"] for slot in manifest["output_slots"]}
    return (
        wanted.get("recommended_artifact") in (None, suggestion["recommended_artifact"])
        and wanted.get("title_contains", "").lower() in suggestion["title"].lower()
        and wanted.get("manifest_name_contains", "").lower() in manifest["name"].lower()
        and ("required_capability" not in wanted or wanted["required_capability"] in capabilities)
        and ("required_output_slot" not in wanted or wanted["required_output_slot"] in slots)
    )
