"""Handoffs: who gives which task to whom, why, and with what. Spec: 07 §14.3, 08 §12.

Pure: ids and the time are parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.formats.dicts import Dict


HANDOFF, RUN_RECEIPT = "handoff_artifact", "run_receipt"

_LISTS = tuple(
    "files_or_entities_touched open_questions blocked_on requested_capabilities allowed_side_effects".split()
)
_EVIDENCE = ("artifact_id", "kind", "label", "path", "uri")
_DEADLINE = ("deadline", "checkback_at")
_RECEIPT = ("kind", "label", "run_id", "artifact_id", "path", "href")


def normalise(
    given: Any, id: str, created_at: str, run_id: str | None = None, caller: str = "handoff"
) -> Dict:
    """Return the normal form of a handoff, an artifact that holds one, or an agent-state handoff.

    ``id``, ``created_at`` and ``run_id`` are the defaults. Raises `MisuseError`.
    """
    if given is None:
        raise MisuseError(f"{caller}: missing payload")
    source = _payload(given)
    handoff = {} if source is None else _normal(source, id, created_at, run_id)
    target = handoff.get("target_persona_or_human") or {}
    required = [handoff.get(key) for key in ("source_persona", "task", "reason")]
    if not all(required) or not (target.get("id") or target.get("label")):
        raise MisuseError(f"{caller}: invalid handoff payload")
    return handoff


def handoff_context(handoff: Dict) -> str:
    """Return a normal handoff as tagged text for the model that takes over."""
    target = handoff["target_persona_or_human"]
    lines = [
        "<handoff>",
        f"<source_persona>{handoff['source_persona']}</source_persona>",
        f'<target kind="{target["kind"]}">{name_of(target)}</target>',
        f"<task>{handoff['task']}</task>",
        f"<reason>{handoff['reason']}</reason>",
    ]
    for section in _LISTS:
        lines += _tagged(section, handoff[section])
    lines += _tagged("evidence_refs", map(_evidence_line, handoff["evidence_refs"]))
    budget, deadline = handoff["budget_remaining"], handoff["deadline_checkback"]
    if budget is not None:
        shown = {**budget, "dollars": None if budget["dollars"] is None else f"{budget['dollars']:.4f}"}
        lines.append(_empty_tag("budget_remaining", shown))
    if deadline is not None:
        lines.append(_empty_tag("deadline_checkback", deadline))
    if handoff["confidence"] is not None:
        lines.append(f"<confidence>{handoff['confidence']:.2f}</confidence>")
    return "\n".join([*lines, "</handoff>"])


def facts_of(handoff: Dict) -> Dict:
    """Return what a session's log has of a normal handoff. Spec: 10 §A1.2."""
    target = handoff["target_persona_or_human"]
    return {
        "target_agent_id": target["id"] or target["label"],
        "reason": handoff["reason"],
        "context": handoff_context(handoff),
    }


def name_of(target: Dict) -> str:
    """Return a target's label, else its id."""
    return str(target["label"] or target["id"])


def _payload(given: Any) -> Dict | None:
    """Return the handoff inside a value: itself, an artifact's data, an agent-state handoff's typed part."""
    if not isinstance(given, dict):
        return None
    if given.get("_type") == "agent_state_handoff":
        inner = given.get("handoff") or given.get("summary")
    elif given.get("kind") == "handoff" and "data" in given:
        inner = given["data"]
    else:
        return given
    return inner if isinstance(inner, dict) else None


def _normal(source: Dict, id: str, created_at: str, run_id: str | None) -> Dict:
    deadline, metadata = source.get("deadline_checkback"), source.get("metadata")
    return {
        "_type": HANDOFF,
        "id": _text(source.get("id")) or id,
        "parent_run_id": _text(source.get("parent_run_id")) or run_id,
        "source_persona": _text(source.get("source_persona")),
        "target_persona_or_human": _target(source.get("target_persona_or_human")),
        "task": _text(source.get("task")),
        "reason": _text(source.get("reason")),
        "evidence_refs": _references(source.get("evidence_refs"), _EVIDENCE),
        **{key: _texts(source.get(key)) for key in _LISTS},
        "budget_remaining": _budget(source.get("budget_remaining")),
        "deadline_checkback": _fields(deadline, _DEADLINE) if isinstance(deadline, dict) else None,
        "confidence": _clamped(source.get("confidence")),
        "receipt_links": [
            {**link, "kind": link["kind"] or RUN_RECEIPT}
            for link in _references(source.get("receipt_links"), _RECEIPT)
        ],
        "created_at": _text(source.get("created_at")) or created_at,
        "metadata": metadata if isinstance(metadata, dict) else {},
    }


def _target(given: Any) -> Dict:
    if isinstance(given, str):
        given = {"id": given}
    if not isinstance(given, dict):
        given = {}
    kind = given.get("kind")
    return {
        "kind": kind if kind == "human" else "persona",
        "id": _text(given.get("id")),
        "label": _text(given.get("label")),
    }


def _budget(given: Any) -> Dict | None:
    if not isinstance(given, dict):
        return None
    counts = {key: given[key] if type(given.get(key)) is int else None for key in ("tokens", "tool_calls")}
    return {**counts, "dollars": _number(given.get("dollars"))}


def _references(given: Any, keys: tuple[str, ...]) -> list[Dict]:
    return (
        [_fields(item, keys) for item in given if isinstance(item, dict)] if isinstance(given, list) else []
    )


def _fields(given: Dict, keys: tuple[str, ...]) -> Dict:
    return {key: _text(given.get(key)) for key in keys}


def _number(value: Any) -> float | None:
    return float(value) if type(value) is int or type(value) is float else None


def _clamped(value: Any) -> float | None:
    number = _number(value)
    return None if number is None else min(max(number, 0.0), 1.0)


def _text(value: Any) -> str | None:
    return (value.strip() or None) if isinstance(value, str) else None


def _texts(given: Any) -> list[str]:
    """Return the texts trimmed, without blanks and repetitions."""
    texts = map(_text, given if isinstance(given, list) else [given])
    return list(dict.fromkeys(text for text in texts if text))


def _tagged(name: str, items: Iterable[str]) -> list[str]:
    lines = [f"- {item}" for item in items]
    return [f"<{name}>", *lines, f"</{name}>"] if lines else []


def _evidence_line(reference: Dict) -> str:
    parts = [reference["label"]] if reference["label"] else []
    parts += [f"{key}={reference[key]}" for key in ("artifact_id", "path", "uri", "kind") if reference[key]]
    return " | ".join(parts)


def _empty_tag(name: str, attributes: Dict) -> str:
    written = " ".join(f'{key}="{"" if value is None else value}"' for key, value in attributes.items())
    return f"<{name} {written} />"
