"""Asking people: questions, approvals, escalations, and what is still open. Spec: 07 §14.6."""

from __future__ import annotations

from functools import partial

from harnpy.agent.people import APPROVAL, DUAL_CONTROL, ESCALATION, KINDS, QUESTION, TimedOut, unanswered
from harnpy.builtins.agents.agent_runtime import runtime_of
from harnpy.builtins.agents.hitl_requests import LONGEST, ask, coerced, expected
from harnpy.builtins.bridge.live_event_log import log_of
from harnpy.builtins.options import check_options
from harnpy.formats.schemas import canonical
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values import Duration, Fn, display
from harnpy.world.clock import is_rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from harnpy.agent.people import Request
    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="hitl", counted=True)

_DEFAULT_LIMIT, _MAX_LIMIT = 500, 5000
#: Keys that an approval's request keeps as given.
_DETAILS = ("detail", "args", "principal", "evidence_refs", "undo_metadata")


@builtin("ask_user<T>(prompt: string, options?: {schema?: Schema<T>, timeout?: duration, default?: T}) -> T")
def ask_user(vm: Vm, prompt: Value = None, options: Value = None) -> Value:
    """Ask a person a question and wait for the answer.

    Options: `schema` that the answer must fit; `default`, to whose type it is converted and which is
    the answer once `timeout` (24 h) is over. Without a default a timeout throws.

    Example:
        host_mock("hitl", "question", {answer: "blue"})
        ask_user("Which colour?")  // "blue"
    """
    text, given = _string("ask_user", prompt, 1), _options("ask_user", options)
    check_options(vm, "ask_user", given)
    default, schema = given.get("default"), given.get("schema")
    wanted = None if schema is None else canonical(schema)
    payload = {"prompt": text, **_present(given, ("schema", "default"))}
    try:
        answer = ask(vm, runtime_of(vm), QUESTION, payload, _seconds(given.get("timeout")))
    except TimedOut:
        if default is None:
            raise
        return default
    if wanted is not None:
        return expected(vm, answer, wanted)
    return answer if default is None else coerced(vm, answer, default)


@builtin(
    "request_approval(action: string, options?: dict) ->"
    " {approved: bool, reviewers: list<string>, approved_at: string, reason: string | nil,"
    " signatures: list<{reviewer: string, signed_at: string, signature: string}>}",
)
def request_approval(vm: Vm, action: Value = None, options: Value = None) -> Value:
    """Ask for approval of an action: `{approved, reviewers, approved_at, reason, signatures}`.

    `quorum` distinct reviewers must approve, of `reviewers` if there is such a list; a denial throws.

    Example:
        host_mock("hitl", "approval", {approved: true, reviewer: "ann"})
        request_approval("delete 3 files").reviewers  // ["ann"]
    """
    caller = "request_approval"
    text, given = _string(caller, action, 1), _options(caller, options)
    check_options(vm, caller, given)
    quorum = given.get("quorum")
    if quorum is not None and (type(quorum) is not int or quorum < 1):
        raise RuntimeFault("request_approval: quorum must be positive")
    payload = {
        "action": text,
        **_present(given, _DETAILS),
        "quorum": quorum or 1,
        "reviewers": _strings(caller, given.get("reviewers")),
        "capabilities_requested": _strings(caller, given.get("capabilities_requested")),
    }
    seconds = _seconds(given.get("deadline"))
    return ask(vm, runtime_of(vm), APPROVAL, payload, seconds)


@builtin("dual_control<T>(n: int, m: int, action: fn() -> T, approvers?: list) -> T")
def dual_control(
    vm: Vm, n: Value = None, m: Value = None, action: Value = None, approvers: Value = None
) -> Value:
    """Run `action()` once `n` of `m` people have approved; throw if one denies.

    Example:
        host_mock("hitl", "dual_control", [
          {approved: true, reviewer: "ann"},
          {approved: true, reviewer: "bob"},
        ])
        dual_control(2, 3, { -> "shipped" }, ["ann", "bob", "cyd"])  // "shipped"
    """
    needed, of = _positive(n, 1), _positive(m, 2)
    if needed > of:
        raise RuntimeFault("dual_control: n must be less than or equal to m")
    if type(action) is not Fn:
        raise RuntimeFault("dual_control: action must be a closure")
    names = _strings("dual_control", approvers)
    if names and len(names) < of:
        raise RuntimeFault(f"dual_control: expected at least {of} approvers, got {len(names)}")
    payload = {"n": needed, "m": of, "approvers": names}
    if action.name:
        payload["action"] = action.name
    ask(vm, runtime_of(vm), DUAL_CONTROL, payload)
    return vm.call(action)


@builtin("escalate_to(role: string, reason: string) -> dict")
def escalate_to(vm: Vm, role: Value = None, reason: Value = None) -> Value:
    """Escalate to a role and wait, without a timeout, until somebody accepts.

    Example:
        host_mock("hitl", "escalation", {accepted: true, reviewer: "ann"})
        escalate_to("ops", "The disk is full.").reviewer  // "ann"
    """
    payload = {"role": _string("escalate_to", role, 1), "reason": _string("escalate_to", reason, 2)}
    return ask(vm, runtime_of(vm), ESCALATION, payload, None)


@builtin("hitl_pending(filters?: dict) -> list", counted=False)
def hitl_pending(vm: Vm, filters: Value) -> list[Dict]:
    """Return the unanswered requests, newest first. Filters: `since, until, kinds, agent, limit`.

    Example: hitl_pending({kinds: ["question"]})  // []
    """
    if filters is not None and type(filters) is not dict:
        raise RuntimeFault("hitl_pending: filters must be a dict or nil")
    given = filters or {}
    limit, kinds = _limit(given.get("limit")), _kinds(given.get("kinds"))
    since, until = _time(given, "since"), _time(given, "until")
    agent = _filter(given, "agent")
    log = log_of(vm)
    found = [
        request
        for kind in kinds
        for request in unanswered(
            (event.kind, event.payload) for _, event in log.read_range(KINDS[kind].topic)
        )
        if (agent is None or request.agent == agent)
        and (since is None or _moment(request.requested_at) >= since)
        and (until is None or _moment(request.requested_at) <= until)
    ]
    found.sort(key=lambda request: (request.requested_at, request.trace_id), reverse=True)
    return [_row(request) for request in found[:limit]]


def _row(request: Request) -> Dict:
    return {
        "request_id": request.id,
        "request_kind": request.kind,
        "agent": request.agent,
        "prompt": request.prompt,
        "trace_id": request.trace_id,
        "timestamp": request.requested_at,
        "approvers": request.reviewers,
        "metadata": request.payload,
    }


# Arguments.


def _string(caller: str, value: Value, position: int) -> str:
    text = "" if value is None else display(value)
    if not text:
        raise RuntimeFault(f"{caller}: expected string argument at {position}")
    return text


def _options(caller: str, value: Value) -> Dict:
    if value is not None and type(value) is not dict:
        raise RuntimeFault(f"{caller}: options must be a dict")
    return value or {}


def _positive(value: Value, position: int) -> int:
    if type(value) is not int:
        raise RuntimeFault(f"dual_control: expected int argument at {position}")
    if value < 1:
        raise RuntimeFault(f"dual_control: expected a positive int at {position}")
    return value


def _strings(caller: str, value: Value) -> list[str]:
    if value is None:
        return []
    if type(value) is not list or not all(type(item) is str for item in value):
        raise RuntimeFault(f"{caller}: expected list<string>")
    return value


def _seconds(value: Value) -> float:
    """Return a timeout in seconds: from a duration, or a number of milliseconds."""
    if value is None:
        return LONGEST
    ms = value.ms if type(value) is Duration else value
    if type(ms) is not int and type(ms) is not float:
        raise RuntimeFault("expected a duration or millisecond count")
    return max(ms, 0) / 1000


def _present(given: Dict, keys: tuple[str, ...]) -> Dict:
    return {key: given[key] for key in keys if given.get(key) is not None}


def _limit(value: Value) -> int:
    if value is None:
        return _DEFAULT_LIMIT
    if type(value) is not int or value < 1:
        raise RuntimeFault("hitl_pending: limit must be a positive int")
    return min(value, _MAX_LIMIT)


def _kinds(value: Value) -> list[str]:
    if value is None:
        return list(KINDS)
    if type(value) is not list or not all(type(item) is str for item in value):
        raise RuntimeFault("hitl_pending: kinds must be a list<string>")
    for kind in value:
        if kind not in KINDS:
            raise RuntimeFault(f"hitl_pending: unsupported kind '{kind}'")
    return list(dict.fromkeys(value))


def _filter(given: Dict, key: str) -> str | None:
    value = given.get(key)
    if value is not None and type(value) is not str:
        raise RuntimeFault(f"hitl_pending: {key} must be a string")
    return value


def _time(given: Dict, key: str) -> datetime | None:
    text = _filter(given, key)
    if text is None:
        return None
    if not is_rfc3339(text):
        raise RuntimeFault(f"hitl_pending: invalid {key}: '{text}' is no RFC 3339 time")
    try:
        return _moment(text)
    except ValueError:
        raise RuntimeFault(f"hitl_pending: invalid {key}: '{text}' is no RFC 3339 time") from None


def _moment(text: str) -> datetime:
    from datetime import datetime

    return datetime.fromisoformat(text.upper())
