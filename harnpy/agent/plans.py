"""Plans: anything plan-like in one normal form, and as text. Spec: 07 §14.2, 06 §24.

Pure. `plan_result` answers the tools `emit_plan` and `update_plan`.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from harnpy.faults import paced
from harnpy.formats.json import compact_json, pretty_json
from harnpy.session.transcript import lifecycle_event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.formats.dicts import Dict


EMIT_PLAN = "emit_plan"

_SYNONYMS = {
    "pending": "todo not_started",
    "in_progress": "active running started",
    "completed": "complete done",
    "blocked": "waiting",
    "cancelled": "canceled dropped skipped",
}
_STATUSES = {word: status for status, words in _SYNONYMS.items() for word in (status, *words.split())}
_APPROVALS = {
    "approved": "approved",
    "rejected": "rejected",
    "denied": "rejected",
    "requested": "requested",
    "pending": "requested",
}
_APPROVAL_DETAILS = ("request_id", "reviewer", "reviewers", "approved_at", "reason")
_SECTIONS = (
    ("Assumptions", "assumptions"),
    ("Open questions", "open_questions"),
    ("Verification commands", "verification_commands"),
)


def plan_artifact(given: Any, tool: str | None = None) -> Dict:
    """Return the normal form of a plan. ``tool`` is what emitted it, by default as the plan says itself."""
    source = given["plan"] if isinstance(given, dict) and isinstance(given.get("plan"), dict) else given
    plan = source if isinstance(source, dict) else {}
    steps = _first(plan, "steps", "plan", "tasks") if plan else source
    body = {
        "_type": "plan_artifact",
        "schema_version": "harn.plan.v1",
        "tool": tool or _text(plan.get("tool")) or EMIT_PLAN,
        "title": _first_text(plan, "title", "name") or "Plan",
        "summary": _first_text(plan, "explanation", "summary", "direction") or "",
        "steps": list(_steps(steps)),
        "assumptions": _texts(plan, "assumptions"),
        "open_questions": _texts(plan, "open_questions", "questions", "unknowns"),
        "verification_commands": _texts(plan, "verification_commands", "verification", "verify_commands"),
        "approval": _approval(plan.get("approval")),
    }
    digest = sha256(compact_json(body).encode("utf-8", "surrogatepass")).hexdigest()
    return {**body, "id": f"plan_{digest[:12]}"}


def plan_entries(given: Any) -> list[Dict]:
    """Return the steps as ``{content, status, priority?}``; a plan without any is one entry."""
    plan = plan_artifact(given)
    entries = [
        {key: step[key] for key in ("content", "status", "priority") if step[key] is not None}
        for step in paced(plan["steps"])
    ]
    return entries or [{"content": plan["summary"] or "Plan emitted", "status": "pending"}]


def plan_result(
    tool: str,
    arguments: Dict,
    tool_use_id: str | None = None,
) -> tuple[str, Dict]:
    """Return the answer to a call of a plan tool, and the `plan` event for the transcript."""
    plan = plan_artifact(arguments, tool)
    metadata = {
        "plan": plan,
        "entries": plan_entries(plan),
        "tool_name": tool,
        "tool_use_id": tool_use_id,
    }
    event = lifecycle_event("plan", markdown(plan), role="assistant", visibility="public", metadata=metadata)
    return pretty_json(plan), event


def markdown(plan: Dict) -> str:
    """Return a plan artifact as Markdown."""
    steps = [f"[{step['status']}] {step['content']}" for step in paced(plan["steps"])]
    parts = [f"# {plan['title']}", plan["summary"], _section("Steps", steps)]
    parts += [_section(title, plan[key]) for title, key in _SECTIONS]
    parts.append(f"Approval: {plan['approval']['state']}")
    return "\n\n".join(part for part in parts if part)


def _section(title: str, items: list[str]) -> str:
    return "\n".join([f"## {title}", *(f"- {item}" for item in paced(items))]) if items else ""


def _steps(given: Any) -> Iterator[Dict]:
    for position, step in enumerate(paced(given if isinstance(given, list) else [given]), 1):
        fields = step if isinstance(step, dict) else {"content": step if isinstance(step, str) else None}
        content = _first_text(fields, "content", "step", "task", "goal", "description")
        if content:
            yield {
                "id": _text(fields.get("id")) or f"step-{position}",
                "content": content,
                "status": _STATUSES.get((_text(fields.get("status")) or "").lower(), "pending"),
                "priority": _text(fields.get("priority")),
            }


def _approval(given: Any) -> Dict:
    if not isinstance(given, dict):
        return {"state": "unrequested"}
    named = (_first_text(given, "state", "status") or "").lower()
    decided = "unrequested"
    if isinstance(given.get("approved"), bool):
        decided = "approved" if given["approved"] else "rejected"
    details = {key: given[key] for key in _APPROVAL_DETAILS if given.get(key) is not None}
    return {"state": _APPROVALS.get(named, decided), **details}


def _first(fields: Dict, *names: str) -> Any:
    """Return the value of the first name that has one."""
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _first_text(fields: Dict, *names: str) -> str | None:
    return next((text for text in (_text(fields.get(name)) for name in names) if text), None)


def _text(value: Any) -> str | None:
    """Return a scalar's text, trimmed; None if it is blank."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return (str(value).strip() or None) if isinstance(value, str | int | float) else None


def _texts(fields: Dict, *names: str) -> list[str]:
    value = _first(fields, *names)
    return [text for text in map(_text, paced(value if isinstance(value, list) else [value])) if text]
