"""A program's request to a person as a form that an MCP client shows, and what was filled in as the response.

Spec: 07 §14.6, 09 §11.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.people.requests import ESCALATION, QUESTION, HumanCancelled
from harnpy.text.display import display

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.reading.dicts import Dict

_TEXT = {"type": "string"}
#: What a field of a form can be; a question about anything else is answered by a text.
_FIELDS = ("string", "number", "integer", "boolean")
_DETAILS = ("detail", "args", "principal", "capabilities_requested")


class Form(NamedTuple):
    """A message, and the schema of what is to be filled in: an object of plain fields."""

    message: str
    schema: dict[str, Any]


def form(request: Dict) -> Form:
    """The form for a request."""
    payload = request["payload"]
    if request["kind"] == QUESTION:
        return Form(payload["prompt"], _fields({"answer": _answer_field(payload)}, "answer"))
    if request["kind"] == ESCALATION:
        message = f"For {payload['role']}: {payload['reason']}"
        return Form(message, _fields({"accepted": _yes_or_no("Accept"), "reason": _reason()}, "accepted"))
    details = [f"{key}: {display(payload[key])}" for key in _DETAILS if payload.get(key)]
    message = "\n".join([f"Approve: {payload.get('action') or 'an action'}", *details])
    fields = {"approved": _yes_or_no("Approve"), "reviewer": _reviewer(request), "reason": _reason()}
    return Form(message, _fields(fields, "approved", "reviewer"))


def response(request: Dict, content: Mapping[str, Any]) -> Dict:
    """The response that a filled-in form comes to. Raises HumanCancelled for a declined escalation."""
    if request["kind"] == ESCALATION and content.get("accepted") is not True:
        raise HumanCancelled("escalation was declined")
    return dict(content)


def _fields(fields: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(required)}


def _answer_field(payload: Dict) -> dict[str, Any]:
    schema, default = payload.get("schema"), payload.get("default")
    field = dict(schema) if isinstance(schema, dict) and schema.get("type") in _FIELDS else dict(_TEXT)
    return field if default is None else {**field, "default": default}


def _yes_or_no(title: str) -> dict[str, Any]:
    return {"type": "boolean", "title": title}


def _reason() -> dict[str, Any]:
    return {**_TEXT, "title": "Reason"}


def _reviewer(request: Dict) -> dict[str, Any]:
    """Who decides: one of those who may and haven't, or anybody."""
    payload = request["payload"]
    allowed = payload.get("approvers") or payload.get("reviewers") or []
    left = [name for name in allowed if name not in request["approved_by"]]
    return {**_TEXT, "title": "Who decides", **({"enum": left} if left else {})}
