"""Who permitted or refused what: evidence of every decision in a run. Pure. Spec: 08 §17, `permissions`.

The decisions of rules and attached clients are events of transcripts, those of people are in the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.people.requests import APPROVAL, DUAL_CONTROL
from harnpy.reading.lenient import as_dict, as_dicts
from harnpy.world.clock import is_rfc3339, rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.reading.dicts import Dict

GRANTED, DENIED, ROUTED = "granted", "denied", "routed"

_BY_RULES = {"PermissionGrant": GRANTED, "PermissionDeny": DENIED, "PermissionEscalation": ROUTED}
_BY_CLIENT = "live_session_permission_route"
_BY_COMMAND_POLICY = "command_policy"
#: The statuses of commands that weren't run.
_NOT_RUN = ("blocked", "dry_run", "explain_only")
#: By the ``approval`` of a call's end: what was decided, and by whom.
_APPROVALS = {
    "auto_denied": (DENIED, "policy"),
    "host_denied": (DENIED, "host"),
    "host_granted": (GRANTED, "host"),
}
_BY_PEOPLE = {"approved": GRANTED, "denied": DENIED}


def decisions(events: Iterable[Dict], requests: Iterable[Dict]) -> list[Dict]:
    """Return the decisions in order: ``{kind, at, stage_id, tool_name, arguments?, decision, reason, by}``.

    ``events`` are those of transcripts, with their ``stage_id``; ``requests`` those of `metadata.hitl`. A
    person's decision also has ``request_id`` and ``signatures``.
    """
    found = [*map(_of_event, events), *map(_of_request, requests)]
    return sorted(filter(None, found), key=lambda decision: decision["at"] or "")


def _of_event(event: Dict) -> Dict | None:
    kind, metadata = event["kind"], as_dict(event.get("metadata"))
    made = {"kind": kind, "at": _time_of(event.get("id")), "stage_id": event["stage_id"]}
    if kind in _BY_RULES:
        known = {"decision": _BY_RULES[kind], "reason": metadata.get("reason", event.get("text")), "by": None}
        return made | _call(metadata.get("tool_name"), metadata.get("arguments")) | known
    if kind == _BY_CLIENT:
        request, at = as_dict(metadata.get("request")), metadata.get("routed_at")
        made["at"] = _time(at) or made["at"]
        known = {"decision": ROUTED, "reason": request.get("reason"), "by": metadata.get("client_id")}
        return made | _call(request.get("tool"), request.get("args")) | known
    if kind == _BY_COMMAND_POLICY:
        last = (as_dicts(metadata.get("decisions")) or [{}])[-1]
        decision = DENIED if metadata.get("status") in _NOT_RUN else GRANTED
        known = {"decision": decision, "reason": last.get("reason"), "by": last.get("source")}
        return made | _call(None, {"command": metadata.get("command")}) | known
    if kind == "tool_execution" and metadata.get("approval") in _APPROVALS:
        decision, by = _APPROVALS[metadata["approval"]]
        known = {"decision": decision, "reason": event.get("text"), "by": by}
        return made | _call(metadata.get("tool_name"), metadata.get("arguments")) | known
    return None


def _of_request(request: Dict) -> Dict | None:
    decision = _BY_PEOPLE.get(str(request.get("status")))
    if request.get("kind") not in (APPROVAL, DUAL_CONTROL) or decision is None:
        return None
    responses = as_dicts(request.get("responses"))
    last = responses[-1] if responses else {}
    made = {"kind": request["kind"], "at": _time(last.get("responded_at")), "stage_id": None}
    made |= _call(None, as_dict(request.get("payload")).get("args"))
    made |= {"decision": decision, "reason": last.get("reason")}
    made["by"] = [response.get("reviewer") for response in responses]
    made["request_id"] = request.get("request_id")
    signatures = [response["signature"] for response in responses if response.get("signature")]
    return {**made, "signatures": signatures} if signatures else made


def _call(tool: Any, arguments: Any) -> Dict:
    return {"tool_name": tool} if arguments is None else {"tool_name": tool, "arguments": arguments}


def _time(value: Any) -> str | None:
    return value if isinstance(value, str) and is_rfc3339(value) else None


def _time_of(id: Any) -> str | None:
    """Return the time in an event's id, a UUIDv7."""
    if not isinstance(id, str) or len(id) != 36 or id[14] != "7":
        return None
    try:
        return rfc3339(int(id[:8] + id[9:13], 16) / 1000)
    except ValueError:
        return None
