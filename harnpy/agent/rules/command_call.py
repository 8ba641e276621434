"""A call of `process.exec` under a command policy, from the request to the result. Spec: 02 §28.

    recursion → deny patterns → labels → pre-hook (→ deny patterns → labels, rewritten) → run → post-hook

The first decision that stops it ends it: what it returns then is a result as well. Hooks receive the command
in its context, without secrets.
"""

from __future__ import annotations

import hashlib
import os.path
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.rules.command_policy import (
    ALLOW,
    DENY,
    MARK_UNSAFE,
    REQUIRE_APPROVAL,
    Command,
    denying_pattern,
    scan_command,
    scan_result,
)
from harnpy.agent.rules.policy import policy_dict
from harnpy.faults import MisuseError
from harnpy.formats.display import display, type_name
from harnpy.formats.options import expected
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.context import AgentContext
    from harnpy.agent.rules.command_policy import CommandPolicy, Hook
    from harnpy.agent.rules.policy import Policy
    from harnpy.formats.dicts import Dict
    from harnpy.world import World

    #: Queues a note for a session's loop: ``(session_id, kind, content)``.
    Notify = Callable[[str, str, str], None]

_REDACTED = "<redacted>"


class Surroundings(NamedTuple):
    """The place of a request for a command: the absolute ``directory`` that commands run in, the ``ceiling``
    that is in force, the session that the task drives."""

    directory: str
    ceiling: Policy | None
    session_id: str | None


def context_dict(params: Dict, policy: CommandPolicy, around: Surroundings) -> Dict:
    """Return the context of a call of `process.exec`, as hooks get it and results show it."""
    cwd, ceiling = params.get("cwd"), around.ceiling
    roots = (around.directory,) if policy.workspace_roots is None else policy.workspace_roots
    return {
        "request": _request(params),
        "active_cwd": _path(around.directory, "" if cwd is None else display(cwd)),
        "workspace_roots": [_path(around.directory, root) for root in roots],
        "policy": {
            "default_shell_mode": policy.default_shell_mode,
            "deny_patterns": list(policy.deny_patterns),
            "require_approval": list(policy.require_approval),
            "ceiling": None if ceiling is None else policy_dict(ceiling),
        },
        "tool_annotations": {} if ceiling is None else dict(ceiling.tool_annotations),
        "transcript": {"summary": None, "recent_messages": [], "redacted": True},
        "caller": {
            "surface": "host_call",
            "capability": "process",
            "operation": "exec",
            "session_id": around.session_id,
        },
    }


def _request(params: Dict) -> Dict:
    shell, id = params.get("shell"), params.get("shell_id")
    timeout = params.get("timeout")
    timeout = params.get("timeout_ms") if timeout is None else timeout
    command = params.get("command")
    return {
        "mode": params.get("mode", "shell"),
        "argv": params.get("argv"),
        "command": None if command is None else display(command),
        "shell": {"id": id} if shell is None and id is not None else shell,
        "cwd": params.get("cwd"),
        "env_diff": _variables(params.get("env")),
        "env_mode": params.get("env_mode"),
        "stdin": _input(params.get("stdin")),
        "timeout_ms": getattr(timeout, "ms", timeout),
    }


def _variables(env: Any) -> Dict:
    given = env if isinstance(env, dict) else {}
    return {
        name: {"present": True, "redacted": True, "value_sha256": _sha256(display(value))}
        for name, value in given.items()
    }


def _input(given: Any) -> Dict | None:
    if given is None:
        return None
    text = display(given)
    return {"size": len(_bytes(text)), "sha256": _sha256(text)}


def _sha256(text: str) -> str:
    return hashlib.sha256(_bytes(text)).hexdigest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def shown_command(params: Dict) -> Dict:
    """Return the parameters of a call without the values that may be secrets."""
    return {key: _REDACTED if key in ("env", "stdin") else value for key, value in params.items()}


def rewritten_command(params: Dict, fields: Dict) -> Dict:
    """Return the parameters with the fields that a hook changes; its `timeout_ms` isn't overruled."""
    kept = {key: value for key, value in params.items() if key != "timeout" or "timeout_ms" not in fields}
    return {**kept, **fields}


def command_of(context: Dict, directory: str) -> Command:
    """Return the command that a context is about; one that a program writes may leave things out.

    ``directory`` is where commands run that don't say it.
    """
    request = context.get("request")
    asked = request if isinstance(request, dict) else context
    base = _text(context.get("active_cwd")) or _path(directory, _text(asked.get("cwd")))
    given = context.get("workspace_roots")
    roots = [_text(root) for root in given] if isinstance(given, list) and given else [directory]
    return Command(
        _command_text(asked), _path(directory, base), tuple(_path(directory, root) for root in roots)
    )


def patterns_of(context: Dict) -> list[str]:
    """Return the deny patterns of the policy that a context tells of."""
    policy = context.get("policy")
    given = policy.get("deny_patterns") if isinstance(policy, dict) else None
    return [_text(pattern) for pattern in given] if isinstance(given, list) else []


def _command_text(asked: Dict) -> str:
    argv, command = asked.get("argv"), asked.get("command")
    in_shell = asked.get("mode") == "shell" and command is not None
    if isinstance(argv, list) and not in_shell:
        return " ".join(display(word) for word in argv)
    return _text(command)


def _text(value: Any) -> str:
    return "" if value is None else display(value)


def _path(directory: str, path: str) -> str:
    """Return the absolute path, free of `..`; a pair of leading slashes is one."""
    return os.path.normpath("/" + os.path.join(directory, path).lstrip("/"))


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
        """Return True if the command isn't run."""
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


def checked_decision(policy: CommandPolicy, command: Command, subject: str) -> Decision:
    """Return what a policy without its hooks decides; messages call the command ``subject``."""
    found = scan_command(command, policy.deny_patterns)
    pattern = denying_pattern(policy.deny_patterns, command.text)
    if pattern is not None:
        reason = f'{subject} denied by policy pattern "{pattern}"'
        return Decision(DENY, reason, DENY_PATTERNS, found.labels, found.confidence)
    label = next((label for label in found.labels if label in policy.require_approval), None)
    if label is not None:
        reason = f"{subject} requires approval for risk class {label}"
        return Decision(REQUIRE_APPROVAL, reason, DETERMINISTIC, found.labels, found.confidence)
    return Decision(ALLOW, found.rationale, DETERMINISTIC, found.labels, found.confidence)


class Answer(NamedTuple):
    """The decision of a pre-hook, None for none, and the fields of the request that it changes."""

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


_WHAT = "command policy post-hook"
_ANNOTATIONS = ("annotations", "audit", "unsafe")
_FEEDBACK = ("session_id", "kind", "content")


class Feedback(NamedTuple):
    """A note for a session's loop; ``session_id`` None is the session that the task drives."""

    session_id: str | None
    kind: str
    content: str


class PostAnswer(NamedTuple):
    """``result`` replaces that of the command, ``annotation`` is kept beside it; None is neither."""

    decision: Decision
    result: Dict | None
    feedback: Feedback | None
    annotation: Dict | None


def read_post(answer: Any) -> PostAnswer | None:
    """Return what a post-hook's answer means, None for nil. Raises `MisuseError`."""
    if answer is None:
        return None
    if not isinstance(answer, dict):
        raise MisuseError(f"{_WHAT} must return nil or a dict, got {type_name(answer)}")
    result, feedback = _dict(answer, "result"), _dict(answer, "feedback")
    annotation = None
    if any(answer.get(key) is not None for key in _ANNOTATIONS):
        annotation = {key: value for key, value in answer.items() if key not in ("result", "feedback")}
    return PostAnswer(
        _decision(answer, result), result, None if feedback is None else _feedback(feedback), annotation
    )


def _decision(answer: Dict, result: Dict | None) -> Decision:
    """Return what stands among the decisions on the command."""
    action = MARK_UNSAFE if answer.get("unsafe") else ALLOW if result is None else REWRITE
    reason = answer.get("reason")
    return Decision(action, None if reason is None else display(reason), POST_HOOK)


def _dict(answer: Dict, key: str) -> Dict | None:
    given = answer.get(key)
    if given is not None and not isinstance(given, dict):
        raise MisuseError(f"{_WHAT} {key} must be a dict, got {type_name(given)}")
    return given


def _feedback(given: Dict) -> Feedback:
    for key, value in given.items():
        if key not in _FEEDBACK:
            raise MisuseError(f"{_WHAT} feedback: unknown key '{key}' ({expected(key, _FEEDBACK)})")
        if value is not None and not isinstance(value, str):
            raise MisuseError(f"{_WHAT} feedback.{key} must be a string, got {type_name(value)}")
    content = given.get("content")
    if content is None:
        raise MisuseError(f"{_WHAT} feedback.content is required")
    return Feedback(given.get("session_id"), given.get("kind") or "command_policy", content)


_STATUSES = {DRY_RUN: "dry_run", EXPLAIN_ONLY: "explain_only"}
_NOT_RUN = -1


class CommandCall:
    """One call: ``params`` are those of `process.exec`, and ``policy`` is in force in ``context``.

    ``directory`` is where commands run that don't say it.
    """

    def __init__(
        self,
        policy: CommandPolicy,
        params: Dict,
        context: AgentContext,
        directory: str,
        world: World,
        notify: Notify,
    ) -> None:
        self._policy = policy
        self._params = params
        self._context = context
        self._around = Surroundings(directory, context.rules.policy, context.sessions.current())
        self._world = world
        self._notify = notify
        self._shown = context_dict(params, policy, self._around)
        self._decisions: list[Decision] = []
        self._reported = 0
        self._annotation: Dict | None = None

    def run(self, perform: Callable[[Dict], Any]) -> Any:
        """Have ``perform`` run the command unless something stops it, and return the result.

        Raises what a hook raises, and `MisuseError` for an answer that isn't understood.
        """
        stop = self._recursion() or self._check("command") or self._before()
        if stop is not None:
            result: Any = self._not_run(stop)
            self._report(result["status"])
            return self._governed(result)
        self._report("allowed")
        result = perform(self._params)
        for hook in self._policy.post:
            result = self._after(hook, result)
        self._report(_status(result))
        return self._governed(result)

    def _report(self, status: str) -> None:
        """Have the loop around it, if there is one, note the decisions since the last time."""
        new, self._reported = self._decisions[self._reported :], len(self._decisions)
        if new and self._context.note is not None:
            command = command_of(self._shown, self._around.directory).text
            told = {"command": command, "status": status, "decisions": [each.as_fact() for each in new]}
            self._context.note("command_policy", new[-1].reason or "", told)

    def _recursion(self) -> Decision | None:
        if not self._context.rules.commands.in_hook or self._policy.allow_recursive:
            return None
        return self._decided(RECURSIVE)

    def _check(self, subject: str) -> Decision | None:
        command = command_of(self._shown, self._around.directory)
        return self._decided(checked_decision(self._policy, command, subject))

    def _before(self) -> Decision | None:
        """Ask the pre-hooks, each about what the one before has made of the request."""
        for hook in self._policy.pre:
            decision, rewrite = read_pre(self._ask(hook, self._shown))
            stop = None if decision is None else self._decided(decision)
            if stop is None and rewrite is not None:
                self._params = rewritten_command(self._params, rewrite)
                self._shown = context_dict(self._params, self._policy, self._around)
                stop = self._check("rewritten command")
            if stop is not None:
                return stop
        return None

    def _after(self, hook: Hook, result: Any) -> Any:
        """Show a hook the result, and return the one that it makes of it."""
        scan = scan_result(result).as_dict()
        answer = read_post(self._ask(hook, {**self._shown, "result": result, "post_scan": scan}))
        if answer is None:
            return result
        if answer.annotation is not None:
            self._annotation = {**(self._annotation or {}), **answer.annotation}
        if answer.feedback is not None:
            self._pass_on(answer.feedback)
        self._decided(answer.decision)
        return result if answer.result is None else answer.result

    def _pass_on(self, feedback: Feedback) -> None:
        """Queue a hook's note for its session's loop; outside every session nobody would read it."""
        session_id = feedback.session_id or self._around.session_id
        if session_id is not None:
            self._notify(session_id, feedback.kind, feedback.content)

    def _ask(self, hook: Hook, shown: Dict) -> Any:
        rules = self._context.rules
        with self._context.govern(rules.commanded(rules.commands.in_a_hook())):
            return hook(shown)

    def _decided(self, decision: Decision) -> Decision | None:
        """Keep a decision, and return it if the command isn't run for it."""
        self._decisions.append(decision)
        return decision if decision.stops else None

    def _not_run(self, stop: Decision) -> Dict:
        """Return the result of a command that wasn't run."""
        id, now = f"cmd_{self._world.ids.new()}", rfc3339(self._world.clock.now())
        status = _STATUSES.get(stop.action, "blocked")
        return {
            "command_id": id,
            "status": status,
            "pid": None,
            "process_group_id": None,
            "handle_id": None,
            "started_at": now,
            "ended_at": now,
            "duration_ms": 0,
            "exit_code": _NOT_RUN,
            "signal": None,
            "timed_out": False,
            "stdout": "",
            "stderr": stop.reason,
            "combined": stop.reason,
            "exit_status": _NOT_RUN,
            "legacy_status": _NOT_RUN,
            "success": False,
            "error": "permission_denied" if status == "blocked" else None,
            "reason": stop.reason,
            "audit_id": f"audit_{id}",
            "request": shown_command(self._params),
        }

    def _governed(self, result: Any) -> Any:
        """Return a result with what the policy decided; what a host answers may be no dict."""
        if not isinstance(result, dict):
            return result
        told: Dict = {"context": self._shown, "decisions": [each.as_dict() for each in self._decisions]}
        if self._annotation is not None:
            told["annotation"] = self._annotation
        return {**result, "command_policy": told}


def _status(result: Any) -> str:
    """Return the status of a command that has run; a host may answer anything."""
    status = result.get("status") if isinstance(result, dict) else None
    return status if isinstance(status, str) else "completed"
