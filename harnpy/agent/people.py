"""Asking people: questions, approvals, escalations, and what their responses amount to. Spec: 07 §14.6.

Pure: a request and the responses so far determine an outcome, or none yet. Waiting for one and listing the
unanswered ones use the same function. Times are RFC 3339 text. Command line and servers ask people too, so
this module knows no sessions: what a session's log has of a request is in `rules.permissions`.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypedDict

from harnpy.faults import Fault
from harnpy.formats.dicts import as_dict, as_dicts, as_text
from harnpy.formats.json import compact_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harnpy.formats.dicts import Dict

QUESTION, APPROVAL, DUAL_CONTROL, ESCALATION = "question", "approval", "dual_control", "escalation"

TIMED_OUT, CANCELLED = "hitl.timeout", "hitl.cancelled"


class Question(TypedDict):
    """A question that a run asked a person, as its record has it. Spec: 08 §8.1."""

    request_id: str
    prompt: str
    agent: str
    asked_at: str
    trace_id: str | None


class _Kind(NamedTuple):
    """The topic of a kind's records, and the names of its requests and responses there."""

    topic: str
    asked: str
    answered: str = "hitl.response_received"


KINDS = {
    QUESTION: _Kind("hitl.questions", "hitl.question_asked"),
    APPROVAL: _Kind("hitl.approvals", "hitl.approval_requested"),
    DUAL_CONTROL: _Kind("hitl.dual_control", "hitl.dual_control_requested"),
    ESCALATION: _Kind("hitl.escalations", "hitl.escalation_issued", "hitl.escalation_accepted"),
}

_RESPONSE_KEYS = tuple("answer approved accepted reviewer reason metadata responded_at signature".split())


def questions(log: Iterable[tuple[str, Any]], run_id: str) -> list[Question]:
    """Return a run's questions as its record has them (08 §8.1); ``log`` holds kinds and payloads."""
    asked = (payload for kind, payload in log if kind == KINDS[QUESTION].asked and isinstance(payload, dict))
    return [_question(payload) for payload in asked if payload.get("run_id") == run_id]


def _question(payload: Dict) -> Question:
    details, trace_id = payload.get("payload"), payload.get("trace_id")
    return {
        "request_id": as_text(payload.get("request_id")) or "",
        "prompt": as_text(as_dict(details).get("prompt")) or "",
        "agent": as_text(payload.get("agent")) or "",
        "asked_at": as_text(payload.get("requested_at")) or "",
        "trace_id": trace_id if isinstance(trace_id, str) else None,
    }


def asked_for(metadata: Dict) -> str:
    """Return what the waitpoint of a request asks for, in a line: a tool and its arguments, or the words."""
    payload, tool = as_dict(metadata.get("request")), as_text(metadata.get("tool"))
    words = (as_text(payload.get(key)) for key in ("prompt", "action", "reason"))
    what = tool or next(filter(None, words), "")
    details = payload.get("args") or payload.get("detail")
    return f"{what} {compact_json(details)}" if what and details else what


class HumanCancelled(Exception):
    """Raised by the function that asks the person: there will be no answer. ``str()`` is the reason."""


class HitlError(Fault):
    """A request that ended without an answer; ``details`` are what scripts catch besides the message."""

    name: ClassVar[str]
    category: ClassVar[str]

    def __init__(self, message: str, request_id: str, **details: Any) -> None:
        super().__init__(message)
        self.request_id = request_id
        self.details = details

    def caught_from(self, builtin: str) -> Dict:
        return self.as_dict()

    def as_dict(self) -> Dict:
        """Return what the script catches."""
        known = {"name": self.name, "category": self.category, "message": str(self)}
        return {**known, "request_id": self.request_id, **self.details}


class ApprovalDenied(HitlError):
    name, category = "ApprovalDeniedError", "generic"

    def __init__(self, request_id: str, reviewers: list[str], reason: str | None) -> None:
        super().__init__(reason or "approval was denied", request_id, reviewers=reviewers, reason=reason)
        self.reason = reason


class TimedOut(HitlError):
    name, category = "HumanTimeoutError", "timeout"

    def __init__(self, request: Request) -> None:
        super().__init__(f"{request.kind} timed out", request.id, kind=request.kind)


class Cancelled(HitlError):
    name, category = "HumanCancelledError", "cancelled"

    def __init__(self, request: Request, reason: str | None) -> None:
        awaited: Dict = {"kind": request.kind, "wait_id": request.id, "waitpoint_ids": [request.id]}
        message = reason or f"{request.kind} cancelled"
        super().__init__(message, request.id, **awaited, reason=reason)


_RECORDED = ("kind", "agent", "trace_id", "requested_at", "payload")


class Request(NamedTuple):
    """A request to a person. ``payload`` holds the details of its kind."""

    id: str
    kind: str
    trace_id: str
    requested_at: str
    payload: Dict
    agent: str = ""

    def record(self) -> Dict:
        return {"request_id": self.id, **{key: getattr(self, key) for key in _RECORDED}}

    @property
    def prompt(self) -> str | None:
        """The program's words for the request."""
        return next(
            (self.payload[key] for key in ("prompt", "action", "reason") if key in self.payload), None
        )

    @property
    def reviewers(self) -> list[str]:
        """Names of those who may decide; anybody, if empty."""
        return self.payload.get("approvers") or self.payload.get("reviewers") or []

    @property
    def needed(self) -> int:
        """The number of approvals that it needs."""
        return int(self.payload["n"] if self.kind == DUAL_CONTROL else self.payload.get("quorum", 1))


def request_from(record: Dict) -> Request:
    return Request(record["request_id"], **{key: record[key] for key in _RECORDED})


class Outcome(NamedTuple):
    """The end of a request: a value or an error."""

    value: Any = None
    error: HitlError | None = None


def response_from(given: Any, now: str) -> Dict:
    """Return a response with its known keys, and a time."""
    known = {key: given[key] for key in _RESPONSE_KEYS if given.get(key) is not None}
    return {"responded_at": now, **known}


def outcome(request: Request, responses: Iterable[Dict]) -> Outcome | None:
    """Return the outcome of the responses, in the order of their arrival; None while more are needed."""
    if request.kind == QUESTION:
        return next((Outcome(response.get("answer")) for response in responses), None)
    if request.kind == ESCALATION:
        accepted = (response for response in responses if response.get("accepted") is True)
        return next((Outcome(_acceptance(request, response)) for response in accepted), None)
    return _ballot(request, responses)


def approvals(request: Request, responses: Iterable[Dict]) -> list[Dict]:
    """Return the responses that count as approvals: one for each entitled reviewer."""
    return [response for response in votes(request, responses) if response.get("approved") is True]


def votes(request: Request, responses: Iterable[Dict]) -> Iterator[Dict]:
    """Return the responses that count: approvals with a reviewer, and denials."""
    counted = set()
    for response in responses:
        reviewer = response.get("reviewer")
        if reviewer in counted or (reviewer and request.reviewers and reviewer not in request.reviewers):
            continue
        if response.get("approved") is not True:
            yield response
        elif reviewer:
            counted.add(reviewer)
            yield response


def _ballot(request: Request, responses: Iterable[Dict]) -> Outcome | None:
    given: list[Dict] = []
    for response in votes(request, responses):
        given.append(response)
        if response.get("approved") is not True:
            names = sorted(vote["reviewer"] for vote in given if vote.get("reviewer"))
            return Outcome(error=ApprovalDenied(request.id, names, response.get("reason")))
        if len(given) == request.needed:
            return Outcome(_approval(request, given))
    return None


def _approval(request: Request, votes: list[Dict]) -> Dict:
    return {
        "approved": True,
        "reviewers": sorted(vote["reviewer"] for vote in votes),
        "approved_at": votes[-1]["responded_at"],
        "reason": votes[-1].get("reason"),
        "signatures": [
            {
                "reviewer": vote["reviewer"],
                "signed_at": vote["responded_at"],
                "signature": vote.get("signature") or signature(request.id, vote),
            }
            for vote in votes
        ],
    }


def _acceptance(request: Request, response: Dict) -> Dict:
    return {
        "request_id": request.id,
        "role": request.payload["role"],
        "reason": request.payload["reason"],
        "trace_id": request.trace_id,
        "status": "accepted",
        "accepted_at": response["responded_at"],
        "reviewer": response.get("reviewer"),
    }


def signature(request_id: str, vote: Dict) -> str:
    """Return the signature of an approval whose response has none."""
    lines = (
        "harn-hitl-approval-v1",
        f"request_id:{request_id}",
        f"reviewer:{vote['reviewer']}",
        f"signed_at:{vote['responded_at']}",
        "approved:true",
        f"reason:{vote.get('reason') or ''}",
        "",
    )
    return "sha256:" + sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def unanswered(records: Iterable[tuple[str, Dict]]) -> list[Request]:
    """Return the open requests of a topic; ``records`` are its kinds and payloads, oldest first."""
    asked: dict[str, Request] = {}
    responses: dict[str, list[Dict]] = {}
    beginnings = {kind.asked for kind in KINDS.values()}
    for name, record in records:
        id = record["request_id"]
        if name in beginnings:
            asked[id], responses[id] = request_from(record), []
        elif name in (TIMED_OUT, CANCELLED):
            asked.pop(id, None)
        elif id in asked:
            responses[id].append(record)
            if outcome(asked[id], responses[id]):
                del asked[id]
    return list(asked.values())


# What a run asked people, and what they replied, as its record has it. Spec: 08 §8.1, `metadata.hitl`.


#: How requests end without an outcome, by the name of their last record.
_ENDS = {TIMED_OUT: "timed_out", CANCELLED: "cancelled"}
_TEXTS = ("trace_id", "requested_at", "agent")
_GIVEN = ("approved", "accepted", "answer")
#: The kinds of requests by the names of their records.
_BEGINNINGS = {kind.asked: name for name, kind in KINDS.items()}


def history_entry(request: Request, responses: Iterable[Dict], end: str | None = None) -> Dict:
    """Return a request and its responses; ``end`` is the name of the record that ended it without them."""
    given = list(responses)
    return {
        **request.record(),
        "prompt": request.prompt or "",
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
    entries = [history_entry(request, responses[id], ends.get(id)) for id, request in asked.items()]
    return sorted(entries, key=lambda item: str(item["requested_at"]))


def merged_history(known: Any, news: Iterable[Dict]) -> list[Dict]:
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
