"""The gate that tool calls pass: steps 4–7 of 07 §6.7, in their order.

    policy → permissions → approval → hooks

The first refusal decides. `Gate.decide` changes nothing but the session grants that it remembers.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from harnpy.agent.rules.permissions import PermissionDecision, Permissions, Verdict, permission_events
from harnpy.agent.rules.policy_paths import Noting, Paths
from harnpy.session.transcript import lifecycle_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.context import Rules
    from harnpy.agent.rules.hooks import Hooks
    from harnpy.agent.rules.permissions import ApprovalLog
    from harnpy.agent.rules.policy import Annotations
    from harnpy.agent.rules.policy_paths import Lead, Resolver
    from harnpy.formats.dicts import Dict

    #: Asks a human: ``(tool, arguments)`` returns why not, or None.
    Ask = Callable[[str, Dict], str | None]

POLICY, PERMISSIONS, APPROVAL, HOOKS = "policy", "permissions", "approval", "hooks"

_NO_HOST = (
    "approval required but no host bridge is available (nobody can be asked: run it with "
    "`harnpy run --attended` or `harnpy run --durable`, serve the agent, or give the Vm's world `people`)"
)
_ADVICE = "Use one of the declared tools exactly as named and put extra fields inside that tool's arguments."


class Decision(NamedTuple):
    """``arguments`` are those to call with. A denial has a ``reason``, the ``step`` that denied it, and
    ``metadata`` for its transcript event. ``notes`` are further transcript events,
    ``leads`` the paths that were asked about.
    """

    arguments: Dict
    notes: list[Dict]
    reason: str | None = None
    step: str | None = None
    metadata: Dict = {}  # noqa: RUF012
    leads: tuple[Lead, ...] = ()

    @property
    def allowed(self) -> bool:
        return self.reason is None


class Gate:
    """The checks between one loop's model and its tools.

    ``place`` is what its tasks mean by paths; ``ask`` is None without a host to ask. ``log`` is told of
    every question to a callback.
    """

    def __init__(
        self,
        rules: Rules,
        hooks: Hooks | None,
        session_id: str,
        place: Resolver,
        ask: Ask | None = None,
        log: ApprovalLog | None = None,
    ) -> None:
        self._rules = rules
        self._hooks = hooks
        self._place = place
        self._session_id = session_id
        self._log = log
        self._ask = ask

    @property
    def has_functions(self) -> bool:
        """Return whether functions of the program are among the rules."""
        return any(policy.has_functions for policy in self._rules.permissions)

    @cached_property
    def _permissions(self) -> Permissions:
        return Permissions(self._rules.permissions, self._session_id, self._log)

    def decide(self, name: str, arguments: Dict, call_id: str | None = None) -> Decision:
        """Decide on a call. Raises what a callback raises, and `MisuseError` for an invalid answer."""
        if not self._rules:
            return self._after_hooks(name, arguments, [])
        noting = Noting(self._place)
        decision = self._decide(name, arguments, call_id, Paths(noting))
        return decision._replace(leads=noting.leads())

    def _decide(self, name: str, arguments: Dict, call_id: str | None, paths: Paths) -> Decision:
        notes: list[Dict] = []
        if self._rules.policy is not None:
            reason = self._rules.policy.check_tool(name, arguments, paths)
            if reason is not None:
                return _denied(name, arguments, f"Error [tool_rejected]: {reason}. {_ADVICE}", POLICY, notes)
        decision = self._permissions.decide(name, arguments, self._of(name), paths)
        if decision is not None:
            notes += permission_events(name, arguments, decision)
            if not decision.granted:
                metadata = {"arguments": arguments, "permission": "denied", "escalated": decision.escalated}
                return Decision(arguments, notes, decision.reason, PERMISSIONS, metadata)
        verdict = self._approval(name, arguments, paths)
        if isinstance(verdict, str):
            return _denied(name, arguments, verdict, APPROVAL, notes, approval="auto_denied")
        if verdict is Verdict.ASK:
            reason = _NO_HOST if self._ask is None else self._ask(name, arguments)
            if reason is not None:
                return _denied(name, arguments, reason, APPROVAL, notes, approval="host_denied")
            notes.append(_granted_by_host(name, call_id))
        return self._after_hooks(name, arguments, notes)

    def _approval(self, name: str, arguments: Dict, paths: Paths) -> Verdict | str:
        approval = self._rules.approval
        if approval is None:
            return Verdict.APPROVED
        return approval.evaluate(name, arguments, self._of(name), paths)

    def _of(self, name: str) -> Annotations | None:
        return None if self._rules.policy is None else self._rules.policy.annotations(name)

    def _after_hooks(self, name: str, arguments: Dict, notes: list[Dict]) -> Decision:
        if not self._hooks:
            return Decision(arguments, notes)
        made = self._hooks.before(name, arguments)
        if made.denial is not None:
            return Decision(made.arguments, notes, made.denial, HOOKS)
        return Decision(made.arguments, notes)


def _denied(
    name: str, arguments: Dict, reason: str, step: str, notes: list[Dict], **metadata: str
) -> Decision:
    notes += permission_events(name, arguments, PermissionDecision(False, reason))
    return Decision(arguments, notes, reason, step, {"arguments": arguments, **metadata})


def _granted_by_host(name: str, call_id: str | None) -> Dict:
    metadata = {"tool_name": name, "tool_use_id": call_id, "rejected": False, "approval": "host_granted"}
    return lifecycle_event("tool_execution", role="tool", metadata=metadata)
