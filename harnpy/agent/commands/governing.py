"""A call of `process.exec` under a command policy, from the request to the result. Spec: 02 §28.

    recursion → deny patterns → labels → pre-hook (→ deny patterns → labels, rewritten) → run → post-hook

The first decision that stops it ends it: what it returns then is a result as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.commands import decisions
from harnpy.agent.commands.decisions import Decision, checked, read_pre
from harnpy.agent.commands.post_hooks import read_post
from harnpy.agent.commands.request import Surroundings, command_of, context_dict, rewritten, shown
from harnpy.agent.commands.results import scan_result
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.commands.policy import CommandPolicy, Hook
    from harnpy.agent.commands.post_hooks import Feedback
    from harnpy.agent.context import AgentContext
    from harnpy.reading.dicts import Dict
    from harnpy.world import World

    #: Queues a note for a session's loop: ``(session_id, kind, content)``.
    Notify = Callable[[str, str, str], None]

_STATUSES = {decisions.DRY_RUN: "dry_run", decisions.EXPLAIN_ONLY: "explain_only"}
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
        return self._decided(decisions.RECURSIVE)

    def _check(self, subject: str) -> Decision | None:
        command = command_of(self._shown, self._around.directory)
        return self._decided(checked(self._policy, command, subject))

    def _before(self) -> Decision | None:
        """Ask the pre-hooks, each about what the one before has made of the request."""
        for hook in self._policy.pre:
            decision, rewrite = read_pre(self._ask(hook, self._shown))
            stop = None if decision is None else self._decided(decision)
            if stop is None and rewrite is not None:
                self._params = rewritten(self._params, rewrite)
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
            "request": shown(self._params),
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
