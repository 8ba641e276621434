"""What a run asked people, and what they replied, as its record has it. Spec: 08 §8.1, `metadata.hitl`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.people.requests import (
    CANCELLED,
    ESCALATION,
    KINDS,
    QUESTION,
    TIMED_OUT,
    Request,
    outcome,
)
from harnpy.reading.lenient import as_dicts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.agent.people.requests import Question
    from harnpy.reading.dicts import Dict

#: How requests end without an outcome, by the name of their last record.
_ENDS = {TIMED_OUT: "timed_out", CANCELLED: "cancelled"}
_TEXTS = ("trace_id", "requested_at", "agent")
_GIVEN = ("approved", "accepted", "answer")
#: The kinds of requests by the names of their records.
_BEGINNINGS = {kind.asked: name for name, kind in KINDS.items()}


def entry(request: Request, responses: Iterable[Dict], end: str | None = None) -> Dict:
    """Return a request and its responses; ``end`` is the name of the record that ended it without them."""
    given = list(responses)
    return {
        "request_id": request.id,
        "kind": request.kind,
        "prompt": request.prompt or "",
        "payload": request.payload,
        "agent": request.agent,
        "trace_id": request.trace_id,
        "requested_at": request.requested_at,
        "status": _ENDS[end] if end is not None else _status(request, given),
        "responses": [_response(response) for response in given],
    }


def history(records: Iterable[tuple[str, Any]], run_id: str) -> list[Dict]:
    """Return a run's requests in order; ``records`` are the kinds and payloads of the ``hitl.*`` topics."""
    asked: dict[str, Request] = {}
    responses: dict[str, list[Dict]] = {}
    ends: dict[str, str] = {}
    for name, record in records:
        id = record.get("request_id") if isinstance(record, dict) else None
        if not isinstance(id, str):
            continue
        if name in _BEGINNINGS:
            if record.get("run_id") == run_id:
                asked[id], responses[id] = _request(id, _BEGINNINGS[name], record), []
        elif name in _ENDS:
            ends[id] = name
        elif id in asked:
            responses[id].append(record)
    entries = [entry(request, responses[id], ends.get(id)) for id, request in asked.items()]
    return sorted(entries, key=lambda item: str(item["requested_at"]))


def merged(known: Any, news: Iterable[Dict]) -> list[Dict]:
    """Return the entries of a record with ``news``, each in the place of the one of its request."""
    found = {item["request_id"]: item for item in known} if isinstance(known, list) else {}
    found |= {item["request_id"]: item for item in news}
    return list(found.values())


def requests_of(known: Any, questions: Iterable[Question]) -> list[Dict]:
    """Return the entries of a record, then those of its questions that it lacks, which have no replies."""
    found = as_dicts(known)
    ids = {str(item.get("request_id")) for item in found}
    return found + [_pending(each) for each in questions if each["request_id"] not in ids]


def _pending(question: Question) -> Dict:
    known: Dict = {**question, "requested_at": question["asked_at"], "kind": QUESTION, "payload": {}}
    del known["asked_at"]
    return {**known, "status": "pending", "responses": []}


def _request(id: str, kind: str, record: Dict) -> Request:
    """Return the request of a record, which a program may have written."""
    details, texts = record.get("payload"), {key: record.get(key) for key in _TEXTS}
    known = {key: text if isinstance(text, str) else "" for key, text in texts.items()}
    return Request(id=id, kind=kind, payload=details if isinstance(details, dict) else {}, **known)


def _status(request: Request, responses: list[Dict]) -> str:
    ended = outcome(request, responses)
    if ended is None:
        return "pending"
    if ended.error is not None:
        return "denied"
    return {QUESTION: "answered", ESCALATION: "accepted"}.get(request.kind, "approved")


def _response(response: Dict) -> Dict:
    shown = {"reviewer": response.get("reviewer"), "reason": response.get("reason")}
    shown |= {key: response[key] for key in _GIVEN if key in response}
    shown["responded_at"] = response.get("responded_at")
    return {**shown, "signature": response["signature"]} if "signature" in response else shown
