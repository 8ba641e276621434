"""What a run asked people, and what they replied. Spec: 08 §8.1, `metadata.hitl`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.people.history import requests_of
from harnpy.agent.people.requests import QUESTION
from harnpy.reading.lenient import dicts_at
from harnpy.workflow.report import parts
from harnpy.workflow.report.figures import clock, count
from harnpy.workflow.report.markup import Markup, element

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.records.record_types import RunRecord
    from harnpy.workflow.report.markup import Child

TITLE = "People"
#: Parts of a payload that are shown as the request itself.
_SHOWN = frozenset(["prompt", "action", "reason"])


def people(run: RunRecord) -> Markup:
    """Show each request with its status and its replies; nothing if nobody was asked."""
    requests = requests_of(run["metadata"].get("hitl"), run["hitl_questions"])
    if not requests:
        return Markup()
    items = [element("li", _request(request)) for request in requests]
    return parts.section(
        TITLE, element("ol", items, class_="questions"), id=TITLE.lower(), note=count(len(items))
    )


def _request(request: Dict) -> list[Child]:
    """A request; in what programs and bundles hold, any value may be of another kind than it should."""
    kind, payload = _word(request.get("kind")), request.get("payload")
    more = (
        {key: value for key, value in payload.items() if key not in _SHOWN}
        if isinstance(payload, dict)
        else {}
    )
    return [
        element(
            "p",
            parts.pill(_word(request.get("status")) or "pending"),
            parts.tag(kind.replace("_", " ")) if kind not in ("", QUESTION) else None,
        ),
        _said(request.get("prompt")),
        element(
            "p", parts.apart(_word(request.get("agent")), _time(request.get("requested_at"))), class_="note"
        ),
        parts.folded("Details", parts.value(more)) if more else None,
        *(_response(response) for response in dicts_at(request, "responses")),
    ]


def _response(response: Dict) -> Markup:
    verdict = {
        ("approved", True): "approved",
        ("approved", False): "denied",
        ("accepted", True): "accepted",
    }
    decided = next((word for (key, value), word in verdict.items() if response.get(key) is value), None)
    who = parts.apart(_word(response.get("reviewer")), decided, _time(response.get("responded_at")))
    return element(
        "div",
        element("p", who, class_="note"),
        _said(response.get("answer")),
        _said(response.get("reason")),
        class_="said",
    )


def _said(given: Any) -> Child:
    """A text, or a value in its place, such as the length of one that was left out."""
    if given is None or given == "":
        return None
    return parts.prose(given) if isinstance(given, str) else parts.value(given)


def _word(given: Any) -> str:
    return given if isinstance(given, str) else ""


def _time(stamp: Any) -> str | None:
    return clock(stamp) if stamp else None
