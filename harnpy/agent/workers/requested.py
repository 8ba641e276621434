"""Reading what a worker is asked for: task, ceilings, place, mutation session. Spec: 07 §11.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.rules.policy import Policy, read_policy
from harnpy.agent.workers.worktrees import read_worktree
from harnpy.faults import MisuseError
from harnpy.reading.strict import errors_after

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict


_LISTS = {
    "research_questions": "questions",
    "action_items": "actions",
    "workflow_stages": "stages",
    "verification_steps": "verification",
}


def requested_policies(policy: Any, tools: Any, caller: str) -> list[Policy]:
    """Return the ceilings in a policy and in the shorthand `tools`, a list of names.

    Raises `MisuseError`, which names ``caller``.
    """
    asked = []
    if policy is not None:
        with errors_after(f"{caller}: "):
            asked.append(read_policy(policy))
    if tools is None:
        return asked
    if not isinstance(tools, list) or not all(isinstance(name, str) for name in tools):
        raise MisuseError(f"{caller}: tools shorthand must be a list of strings")
    if not tools:
        raise MisuseError(f"{caller}: tools shorthand must include at least one tool name")
    return [*asked, Policy(tools=tuple(tools))]


def read_request(task: str, system: str | None, given: Dict) -> Dict:
    """Return what a worker was asked for; the lists of ``given`` also have shorter names."""
    lists = {key: _list(given, key) or _list(given, alias) for key, alias in _LISTS.items()}
    payload = given.get("request")
    if payload is None:
        payload = {key: items for key, items in lists.items() if items}
    return {"task": task, "system": system, "payload": payload, **lists}


def _list(given: Dict, key: str) -> list[Any]:
    value = given.get(key)
    return value if isinstance(value, list) else []


def read_execution(given: Any, caller: str) -> Dict:
    """Return where a worker works: `{cwd?, env?, worktree?}`. Raises `MisuseError`."""
    if given is None:
        return {}
    name = f"{caller}: execution"
    if not isinstance(given, dict):
        raise MisuseError(f"{name} must be a dict")
    cwd, env = given.get("cwd"), given.get("env")
    if cwd is not None and not isinstance(cwd, str):
        raise MisuseError(f"{name}.cwd must be a string")
    if env is not None and not _is_environment(env):
        raise MisuseError(f"{name}.env must be a dict of strings")
    if given.get("worktree") is None:
        return given
    return {**given, "worktree": read_worktree(given["worktree"], caller)}


def _is_environment(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def mutation_session(
    given: Any, worker_id: str, session_id: str, caller: str, outer: Dict | None = None
) -> Dict:
    """Return a worker's mutation session; its id defaults to ``session_id``. Spec: 08 §8.1.

    ``outer`` is that of the workflow that started the worker.
    """
    if given is not None and not isinstance(given, dict):
        raise MisuseError(f"{caller}: audit parse error: expected a dict")
    outer = outer or {}
    inherited = {
        "parent_session_id": outer.get("session_id"),
        "run_id": outer.get("run_id"),
        "mutation_scope": outer.get("mutation_scope", "read_only"),
        "approval_policy": outer.get("approval_policy"),
    }
    made = {**inherited, "execution_kind": "worker", **(given or {})}
    return {**made, "session_id": made.get("session_id") or session_id, "worker_id": worker_id}
