"""What a session's log has of a request to a person. Spec: 10 §A1.18, §C16.1.

A question is an ``external_input`` that the session waits for; everything else is an approval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.people.requests import QUESTION, approvals
from harnpy.session import events as kinds

if TYPE_CHECKING:
    from harnpy.agent.people.requests import Request
    from harnpy.reading.dicts import Dict

    Facts = list[tuple[str, Dict]]

#: What an approval's request keeps apart from the action and its arguments.
_ASIDE = ("action", "args", "role")


def asked(request: Request, session_id: str, tool: str | None) -> Facts:
    """Return the facts of a request; ``tool`` is the tool whose call it is about, if it is."""
    if request.kind == QUESTION:
        asked_for = {"prompt": request.prompt or "", "status": "pending", "request_id": request.id}
        return [(kinds.EXTERNAL_INPUT, asked_for), (kinds.WAIT_STARTED, _wait(request, "input"))]
    payload = request.payload
    approval = {
        "id": request.id,
        "session_id": session_id,
        "tool": tool or payload.get("action") or payload.get("role") or "",
        "args": payload.get("args"),
        "kind": request.kind,
    }
    metadata = {key: value for key, value in payload.items() if key not in _ASIDE and value not in (None, [])}
    return [(kinds.APPROVAL_REQUESTED, {**approval, "metadata": metadata} if metadata else approval)]


def answered(request: Request, value: Any, responses: list[Dict]) -> Facts:
    """Return the facts of an answer; ``value`` is what the program gets."""
    if request.kind == QUESTION:
        received = {"prompt": request.prompt or "", "status": "received", "input": value}
        return [
            (kinds.WAIT_RESOLVED, _wait(request, "input")),
            (kinds.EXTERNAL_INPUT, {**received, "request_id": request.id}),
        ]
    return [_resolved(request, "allow", None, responses)]


def denied(request: Request, reason: str, responses: list[Dict]) -> Facts:
    return [_resolved(request, "deny", reason, responses)]


def called_off(request: Request, tool: str | None, reason: str) -> Facts:
    """Return the facts of a request that got no answer."""
    if request.kind == QUESTION:
        return [(kinds.WAIT_RESOLVED, _wait(request, reason))]
    tool = tool or request.payload.get("action") or ""
    return [(kinds.APPROVAL_CANCELED, {"id": request.id, "tool": tool, "reason": reason})]


def _wait(request: Request, reason: str) -> Dict:
    return {"reason": reason, "external_id": request.id, "request_id": request.id}


def _resolved(request: Request, decision: str, reason: str | None, responses: list[Dict]) -> tuple[str, Dict]:
    given = approvals(request, responses)
    why = reason or next((response["reason"] for response in given if response.get("reason")), "")
    resolved: Dict = {"id": request.id, "decision": decision, "reason": why, "automated": False}
    reviewers = [response["reviewer"] for response in given if response.get("reviewer")]
    signatures = [response["signature"] for response in given if response.get("signature")]
    if reviewers:
        resolved["reviewers"] = reviewers
    if signatures:
        resolved["signatures"] = signatures
    return kinds.APPROVAL_RESOLVED, resolved
