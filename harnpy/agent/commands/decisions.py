"""Decisions on a command: those of the policy itself, and what its hooks answer. Spec: 02 §28."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.commands.risks import ALLOW, DENY, REQUIRE_APPROVAL, denied_by, scan
from harnpy.faults import MisuseError
from harnpy.reading.option_tables import expected
from harnpy.text.display import display, type_name

if TYPE_CHECKING:
    from harnpy.agent.commands.policy import CommandPolicy
    from harnpy.agent.commands.risks import Command
    from harnpy.reading.dicts import Dict

DRY_RUN, EXPLAIN_ONLY, REWRITE = "dry_run", "explain_only", "rewrite"
#: Where decisions come from.
DETERMINISTIC, DENY_PATTERNS, RECURSION_GUARD = "deterministic", "deny_patterns", "recursion_guard"
PRE_HOOK, POST_HOOK = "pre_hook", "post_hook"

#: The strictest first: it decides where an answer names more than one.
_ACTIONS = (DENY, REQUIRE_APPROVAL, DRY_RUN, EXPLAIN_ONLY, ALLOW)
_REWRITABLE = frozenset(
    "mode argv command shell cwd env env_mode stdin timeout timeout_ms capture capture_stderr "
    "max_inline_bytes".split()
)
#: What is said of a hook's decision that gives no reason.
_USUAL_REASONS = {
    DENY: "command denied by policy hook",
    REQUIRE_APPROVAL: "command requires approval by policy hook",
    DRY_RUN: "command dry-run requested by policy",
    EXPLAIN_ONLY: "command explanation requested by policy",
}
_RECURSIVE = "command policy hooks cannot recursively call process.exec"


class Decision(NamedTuple):
    """``action`` is what to do, ``reason`` why, ``display`` what a hook would have shown of it."""

    action: str
    reason: str | None
    source: str
    labels: tuple[str, ...] = ()
    confidence: float = 1.0
    display: Any = None

    @property
    def stops(self) -> bool:
        """Whether the command isn't run."""
        return self.action in _USUAL_REASONS

    def as_fact(self) -> Dict:
        """Return what is recorded of it: JSON, which ``display`` need not be."""
        return {
            "action": self.action,
            "reason": self.reason,
            "source": self.source,
            "risk_labels": list(self.labels),
            "confidence": self.confidence,
        }

    def as_dict(self) -> Dict:
        return {**self.as_fact(), "display": self.display}


RECURSIVE = Decision(DENY, _RECURSIVE, RECURSION_GUARD)


def checked(policy: CommandPolicy, command: Command, subject: str) -> Decision:
    """Return what a policy without its hooks decides; messages call the command ``subject``."""
    found = scan(command, policy.deny_patterns)
    pattern = denied_by(policy.deny_patterns, command.text)
    if pattern is not None:
        reason = f'{subject} denied by policy pattern "{pattern}"'
        return Decision(DENY, reason, DENY_PATTERNS, found.labels, found.confidence)
    label = next((label for label in found.labels if label in policy.require_approval), None)
    if label is not None:
        reason = f"{subject} requires approval for risk class {label}"
        return Decision(REQUIRE_APPROVAL, reason, DETERMINISTIC, found.labels, found.confidence)
    return Decision(ALLOW, found.rationale, DETERMINISTIC, found.labels, found.confidence)


class Answer(NamedTuple):
    """What a pre-hook decided, None for nothing, and the fields of the request that it changes."""

    decision: Decision | None = None
    rewrite: Dict | None = None


def read_pre(answer: Any) -> Answer:
    """Return what a pre-hook's answer means. Raises `MisuseError` for one that means nothing."""
    if answer is None:
        return Answer()
    if answer == ALLOW:
        return Answer(_by_hook(ALLOW, None))
    if not isinstance(answer, dict):
        raise MisuseError(
            f"command policy pre-hook must return nil, 'allow', or a decision dict, got {type_name(answer)}"
        )
    action, reason = _action(answer)
    if action in _USUAL_REASONS:
        return Answer(_by_hook(action, reason or _USUAL_REASONS[action], answer.get("display")))
    rewrite = _rewrite(answer)
    if rewrite is not None:
        return Answer(_by_hook(REWRITE, reason, answer.get("display")), rewrite)
    return Answer(_by_hook(ALLOW, reason, answer.get("display")) if action == ALLOW else None)


def _action(answer: Dict) -> tuple[str, str | None]:
    """Return the action that a dict names, "" for none, and its reason."""
    reason = next((answer[key] for key in ("reason", "message") if answer.get(key) is not None), None)
    named = answer.get("action")
    if named is not None and named not in _ACTIONS:
        hint = expected(display(named), _ACTIONS)
        raise MisuseError(f"command policy pre-hook: unknown action '{display(named)}' ({hint})")
    flags = {**answer, DENY: True} if answer.get(ALLOW) is False and not answer.get(DENY) else answer
    for action in _ACTIONS:
        flag = flags.get(action)
        if action == named or flag not in (None, False):
            said = flag if isinstance(flag, str) and flag else reason
            return action, None if said is None else display(said)
    return "", None if reason is None else display(reason)


def _rewrite(answer: Dict) -> Dict | None:
    given = answer.get("rewrite") if answer.get("rewrite") is not None else answer.get("request")
    if given is None:
        return None
    if not isinstance(given, dict):
        raise MisuseError("command policy pre-hook rewrite must be a dict")
    fixed = next((key for key in given if key not in _REWRITABLE), None)
    if fixed is not None:
        raise MisuseError(f'command policy rewrite cannot modify field "{fixed}"')
    return given


def _by_hook(action: str, reason: str | None, shown: Any = None) -> Decision:
    return Decision(action, reason, PRE_HOOK, display=shown)
