"""The permissions of an agent, decided call by call: by permission rules, or by a person's approval.

A `PermissionPolicy` has deny rules, allow rules, and a callback for refused calls. Several may be in force,
one inside the other: all of them must grant a call. An `ApprovalPolicy` says which calls are approved, which
are denied, and which a human decides. A session's log records the requests to people, and refused calls that
a callback may still allow. Spec: 07 §8.2–8.3, 08 §6.4, 10 §A1.18, §C16.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from harnpy.agent.people import QUESTION, approvals, votes
from harnpy.agent.rules.policy import policy_fields, refuse_unknown
from harnpy.agent.rules.policy_paths import LEXICAL, Paths, texts_in
from harnpy.faults import MisuseError
from harnpy.formats.dicts import errors_after
from harnpy.formats.display import display, type_name
from harnpy.formats.globs import affix_matches, common, first_match
from harnpy.formats.json import compact_json
from harnpy.session import events as kinds
from harnpy.session.transcript import lifecycle_event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harnpy.agent.people import Request
    from harnpy.agent.rules.policy import Annotations
    from harnpy.formats.dicts import Dict

    Record = Callable[[list[tuple[str, Dict]]], None]
    Facts = list[tuple[str, Dict]]
    Matcher = Callable[["Arguments"], bool]


class ApprovalLists(TypedDict):
    """An approval policy as programs and records write it."""

    auto_approve: list[str]
    auto_deny: list[str]
    require_approval: list[str]
    write_path_allowlist: list[str]


class Verdict(Enum):
    """A call that is neither approved nor left to a human is denied, with a reason."""

    APPROVED = "approved"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """Lists of patterns. None is a missing list; an allow-list that nesting emptied is ().

    ``path_allowlists`` are those of all policies that were intersected, each of which a path must match: by
    their text, patterns of paths don't show what they have in common. Empty are those of this one.
    """

    auto_approve: tuple[str, ...] | None = None
    auto_deny: tuple[str, ...] = ()
    require_approval: tuple[str, ...] = ()
    write_path_allowlist: tuple[str, ...] | None = None
    path_allowlists: tuple[tuple[str, ...], ...] = field(default=(), compare=False)

    def evaluate(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        annotations: Annotations | None,
        paths: Paths = LEXICAL,
    ) -> Verdict | str:
        """Return the verdict on a call of the task with these ``paths``, or why it is denied."""
        pattern = first_match(self.auto_deny, tool)
        if pattern is not None:
            return f"tool '{tool}' matches deny pattern '{pattern}'"
        path = self._forbidden_path(arguments, annotations, paths)
        if path is not None:
            return f"tool '{tool}' targets '{path}' which is not in the write-path allowlist"
        if first_match(self.auto_approve or (), tool) is not None:
            return Verdict.APPROVED
        return Verdict.APPROVED if first_match(self.require_approval, tool) is None else Verdict.ASK

    def _forbidden_path(
        self, arguments: Mapping[str, Any], annotations: Annotations | None, paths: Paths
    ) -> str | None:
        if annotations is None or annotations.read_only:
            return None
        given = [arguments[name] for name in annotations.path_params if arguments.get(name) is not None]
        refused = (paths.refused(allowed, value) for allowed in self._all_allowlists() for value in given)
        return next((path for path in refused if path is not None), None)

    def _all_allowlists(self) -> tuple[tuple[str, ...], ...]:
        own = self.write_path_allowlist
        return self.path_allowlists or (() if own is None else (own,))

    def intersect(self, inner: ApprovalPolicy) -> ApprovalPolicy:
        """Return the policy that enforces both."""
        return ApprovalPolicy(
            _narrowed(self.auto_approve, inner.auto_approve),
            _joined(self.auto_deny, inner.auto_deny),
            _joined(self.require_approval, inner.require_approval),
            _narrowed(self.write_path_allowlist, inner.write_path_allowlist),
            self._all_allowlists() + inner._all_allowlists(),
        )


def read_approval_policy(given: Any) -> ApprovalPolicy | None:
    """Return the policy in a dict; None without one. Raises `MisuseError` for one that isn't understood."""
    if given is None:
        return None
    fields = policy_fields(given, ApprovalLists, "approval_policy")
    lists = {key: tuple(patterns or ()) for key, patterns in fields.items()}
    return ApprovalPolicy(
        lists["auto_approve"] or None,
        lists["auto_deny"],
        lists["require_approval"],
        lists["write_path_allowlist"] or None,
    )


def _narrowed(outer: tuple[str, ...] | None, inner: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if outer is None or inner is None:
        return inner if outer is None else outer
    return common(outer, inner)


def _joined(outer: tuple[str, ...], inner: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(outer + inner))


#: The kind of these approvals.
PERMISSION = "permission"


class ApprovalLog:
    """``record`` appends facts to the log of the session; ``new_id`` mints the id of a request."""

    def __init__(self, session_id: str, record: Record, new_id: Callable[[], str]) -> None:
        self._session_id = session_id
        self._record = record
        self._new_id = new_id

    def asked(self, tool: str, arguments: Dict, reason: str) -> str:
        """Record that the callback is asked; ``reason`` is why the rules refuse. Return the request's id."""
        id = f"approval_{self._new_id()}"
        asked = {"id": id, "session_id": self._session_id, "tool": tool, "args": arguments}
        metadata = {"reason": reason}
        self._record([(kinds.APPROVAL_REQUESTED, {**asked, "kind": PERMISSION, "metadata": metadata})])
        return id

    def resolved(self, id: str, granted: bool, reason: str) -> None:
        decision = "allow" if granted else "deny"
        resolved = {"id": id, "decision": decision, "reason": reason, "automated": True}
        self._record([(kinds.APPROVAL_RESOLVED, resolved)])

    def canceled(self, id: str, tool: str, reason: str) -> None:
        self._record([(kinds.APPROVAL_CANCELED, {"id": id, "tool": tool, "reason": reason})])


# What a session's log has of a request to a person. Spec: 10 §A1.18, §C16.1.
#
# A question is an ``external_input`` that the session waits for; everything else is an approval.


#: What an approval's request keeps apart from the action and its arguments.
_ASIDE = ("action", "args", "role")


def request_facts(request: Request, session_id: str, tool: str | None) -> Facts:
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


def answer_facts(request: Request, value: Any, responses: list[Dict]) -> Facts:
    """Return the facts of an answer; ``value`` is what the program gets."""
    if request.kind == QUESTION:
        received = {"prompt": request.prompt or "", "status": "received", "input": value}
        return [
            (kinds.WAIT_RESOLVED, _wait(request, "input")),
            (kinds.EXTERNAL_INPUT, {**received, "request_id": request.id}),
        ]
    return [_resolved(request, "allow", None, responses)]


def denial_facts(request: Request, reason: str, responses: list[Dict]) -> Facts:
    return [_resolved(request, "deny", reason, responses)]


def cancellation_facts(request: Request, tool: str | None, reason: str) -> Facts:
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
    reviewers = [each["reviewer"] for each in votes(request, responses) if each.get("reviewer")]
    signatures = [response["signature"] for response in given if response.get("signature")]
    if reviewers:
        resolved["reviewers"] = reviewers
    if signatures:
        resolved["signatures"] = signatures
    return kinds.APPROVAL_RESOLVED, resolved


_ONCE, _SESSION = "once", "session"
_DENIALS = ("deny", "denied", "false")
_NOT_CALLABLE = "permission escalation callback is not callable"
#: The keys of `permissions`.
PERMISSION_KEYS = ("allow", "deny", "on_escalation")
_ESCALATION = "permissions on_escalation"


class Arguments(NamedTuple):
    """The arguments of a call, those that were ``declared`` to be paths, and what paths lead to."""

    given: Dict
    declared: tuple[str, ...] = ()
    paths: Paths = LEXICAL


class Rule(NamedTuple):
    """``tool`` is a pattern of tool names; ``applies`` tests a call's arguments, by a function of the program
    if it ``is_function``."""

    tool: str
    applies: Matcher
    is_function: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PermissionPolicy:
    """``on_escalation(request)`` is asked about what the rules deny; anything but a function denies too."""

    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    on_escalation: Any = None

    @property
    def has_functions(self) -> bool:
        """Return whether functions of the program are among the rules; `on_escalation` is none of them."""
        return any(rule.is_function for rule in (*self.allow, *self.deny))

    def denial(self, tool: str, arguments: Arguments) -> str | None:
        """Return why the rules alone deny a call, None when they grant it."""
        rule = _applicable(self.deny, tool, arguments)
        if rule is not None:
            return f"permission denied by deny rule: {rule.tool}"
        if self.allow and _applicable(self.allow, tool, arguments) is None:
            return f"permission denied: tool '{tool}' is not allowed by this agent's permissions"
        return None


class PermissionDecision(NamedTuple):
    granted: bool
    reason: str
    escalated: bool = False


class Permissions:
    """The policies in force in one loop, outermost first, and what was granted for the session.

    ``log`` is told of every question to a callback.
    """

    def __init__(
        self, policies: Sequence[PermissionPolicy], session_id: str, log: ApprovalLog | None = None
    ) -> None:
        self._policies = policies
        self._session_id = session_id
        self._log = log
        self._granted: set[tuple[int, str]] = set()

    def decide(
        self,
        tool: str,
        arguments: Dict,
        annotations: Annotations | None = None,
        paths: Paths = LEXICAL,
    ) -> PermissionDecision | None:
        """Return the first denial, else the innermost policy's grant; None when no policy is in force.

        Raises `MisuseError` when a callback returns an invalid answer.
        """
        declared = () if annotations is None else annotations.path_params
        decision = None
        for policy in self._policies:
            decision = self._decide(policy, tool, Arguments(arguments, declared, paths))
            if not decision.granted:
                break
        return decision

    def _decide(self, policy: PermissionPolicy, tool: str, arguments: Arguments) -> PermissionDecision:
        reason = policy.denial(tool, arguments)
        if reason is None:
            return PermissionDecision(True, "permission allow rule matched")
        if policy.on_escalation is None:
            return PermissionDecision(False, reason)
        call = (id(policy), compact_json([tool, arguments.given]))
        if call in self._granted:
            return PermissionDecision(True, "session grant")
        if not callable(policy.on_escalation):
            return PermissionDecision(False, _NOT_CALLABLE, escalated=True)
        scope, why = self._asked(policy.on_escalation, tool, arguments.given, reason)
        if scope == _SESSION:
            self._granted.add(call)
        return PermissionDecision(scope is not None, why, escalated=True)

    def _asked(self, callback: Any, tool: str, arguments: Dict, reason: str) -> tuple[str | None, str]:
        """Ask the callback. Return the scope of the grant, None for a denial, and why."""
        id = None if self._log is None else self._log.asked(tool, arguments, reason)
        try:
            scope, why = self._answer(callback(self._request(tool, arguments, reason)))
        except BaseException as error:
            if self._log is not None and id is not None:
                self._log.canceled(id, tool, str(error) or "cancelled")
            raise
        why = why or f"permission escalation {'granted' if scope else 'denied'}"
        if self._log is not None and id is not None:
            self._log.resolved(id, scope is not None, why)
        return scope, why

    def _request(self, tool: str, arguments: Dict, reason: str) -> Dict:
        return {
            "_type": "PermissionRequest",
            "tool": tool,
            "args": arguments,
            "session_id": self._session_id,
            "reason": reason,
            "grant_options": [_ONCE, _SESSION, False],
        }

    def _answer(self, answer: Any) -> tuple[str | None, str]:
        """Return the scope of the grant, None for a denial, and the reason given."""
        if not isinstance(answer, dict):
            expected = "must return false, true, 'once', 'session', or {grant}"
            return _scope(answer, expected), ""
        grant = answer["grant"] if answer.get("grant") is not None else answer.get("granted")
        reason = answer.get("reason")
        scope = _scope(grant, "grant must be false, true, 'once', or 'session'")
        return scope, "" if reason is None else display(reason)


def permission_events(tool: str, arguments: Dict, decision: PermissionDecision) -> list[Dict]:
    """Return the transcript events of a decision."""
    kinds = ["PermissionGrant" if decision.granted else "PermissionDeny"]
    if decision.escalated:
        kinds.insert(0, "PermissionEscalation")
    metadata = {
        "tool_name": tool,
        "arguments": arguments,
        "reason": decision.reason,
        "escalated": decision.escalated,
    }
    return [lifecycle_event(kind, decision.reason, role="tool", metadata=metadata) for kind in kinds]


def read_permissions(given: Any, label: str) -> PermissionPolicy | None:
    """Return the policy in a dict; None without one. Functions are Python callables.

    Raises `MisuseError`, which names ``label``.
    """
    if given is None:
        return None
    if not isinstance(given, dict):
        raise MisuseError(f"{label}: permissions must be a dict")
    with errors_after(f"{label}: "):
        refuse_unknown(given, PERMISSION_KEYS, "permissions")
    return PermissionPolicy(
        _rules(given.get("allow"), f"{label}.allow", _ALLOW),
        _rules(given.get("deny"), f"{label}.deny", _DENY),
        given.get("on_escalation"),
    )


def _applicable(rules: Sequence[Rule], tool: str, arguments: Arguments) -> Rule | None:
    return next((rule for rule in rules if affix_matches(rule.tool, tool) and rule.applies(arguments)), None)


def _scope(grant: Any, expected: str) -> str | None:
    if grant is None or grant is False:
        return None
    if grant is True or grant == _ONCE:
        return _ONCE
    if grant == _SESSION:
        return _SESSION
    if not isinstance(grant, str):
        raise MisuseError(f"{_ESCALATION} {expected}, got {type_name(grant)}")
    if grant in _DENIALS:
        raise MisuseError(f"{_ESCALATION} string denial must return false")
    raise MisuseError(f"{_ESCALATION} unsupported grant scope '{grant}'")


class _Compare(NamedTuple):
    """The comparisons of a kind of rules: patterns with one argument, and with all."""

    one: Callable[[Sequence[str], Arguments, str], bool]
    all: Callable[[Sequence[str], Arguments], bool]


def _allows_one(patterns: Sequence[str], arguments: Arguments, key: str) -> bool:
    given, declared, paths = arguments
    if declared and key not in declared:
        return any(first_match(patterns, text) is not None for text in _texts(given[key]))
    return paths.allow(patterns, given[key], key in declared)


def _allows_all(patterns: Sequence[str], arguments: Arguments) -> bool:
    """Return True if all declared paths match; if none are declared, if any text does."""
    given, declared, paths = arguments
    named = [given[key] for key in declared if given.get(key) is not None]
    if named:
        return all(paths.allow(patterns, value, declared=True) for value in named)
    return any(paths.allow(patterns, text, declared=False) for text in _texts(given))


def _denies_one(patterns: Sequence[str], arguments: Arguments, key: str) -> bool:
    return arguments.paths.touch(patterns, arguments.given[key])


def _denies_all(patterns: Sequence[str], arguments: Arguments) -> bool:
    return arguments.paths.touch(patterns, arguments.given)


_ALLOW, _DENY = _Compare(_allows_one, _allows_all), _Compare(_denies_one, _denies_all)


def _texts(value: Any) -> list[str]:
    """The strings in a value; if it has none, its JSON."""
    return texts_in(value, keys=False)[0] or [compact_json(value)]


def _rules(given: Any, label: str, compare: _Compare) -> tuple[Rule, ...]:
    if given is None:
        return ()
    if isinstance(given, list):
        return tuple(Rule(pattern, _anything) for pattern in _patterns(given, label))
    if isinstance(given, dict):
        return tuple(
            Rule(pattern, _matcher(wanted, label, compare), callable(wanted))
            for pattern, wanted in given.items()
        )
    raise MisuseError(f"{label}: expected a list or dict, got {type_name(given)}")


def _patterns(given: Any, label: str) -> list[str]:
    found = [given] if isinstance(given, str) else given
    if not all(isinstance(pattern, str) for pattern in found):
        raise MisuseError(f"{label}: list entries must be strings")
    return list(found)


def _matcher(wanted: Any, label: str, compare: _Compare) -> Matcher:
    if wanted is None:
        return _anything
    if isinstance(wanted, bool):
        return lambda arguments: wanted
    if isinstance(wanted, str | list):
        patterns = _patterns(wanted, label)
        return lambda arguments: compare.all(patterns, arguments)
    if isinstance(wanted, dict):
        return _argument_matcher(wanted, label, compare)
    if callable(wanted):
        return lambda arguments: bool(wanted(arguments.given))
    raise MisuseError(f"{label}: unsupported matcher type {type_name(wanted)}")


def _argument_matcher(wanted: Dict, label: str, compare: _Compare) -> Matcher:
    """Return a matcher of one argument: ``{arg_key, patterns}``."""
    key = wanted["arg_key"] if wanted.get("arg_key") is not None else wanted.get("key")
    found = (wanted.get(name) for name in ("patterns", "arg_patterns", "allow"))
    given = next((value for value in found if value is not None), None)
    if not isinstance(key, str) or not isinstance(given, str | list):
        raise MisuseError(f"{label}: dict matchers must include arg_key and patterns")
    patterns = _patterns(given, label)
    return lambda arguments: key in arguments.given and compare.one(patterns, arguments, key)


def _anything(arguments: Arguments) -> bool:
    return True
