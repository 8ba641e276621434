"""A command as its policy sees it: the context that hooks get, without secrets. Spec: 02 §28."""

from __future__ import annotations

import hashlib
import os.path
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.commands.risks import Command
from harnpy.agent.rules.policy import policy_dict
from harnpy.text.display import display

if TYPE_CHECKING:
    from harnpy.agent.commands.policy import CommandPolicy
    from harnpy.agent.rules.policy import Policy
    from harnpy.reading.dicts import Dict

_REDACTED = "<redacted>"


class Surroundings(NamedTuple):
    """Where a command is asked for: the absolute ``directory`` that commands run in, the ``ceiling`` that is
    in force, the session that the task drives."""

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


def shown(params: Dict) -> Dict:
    """Return the parameters of a call without the values that may be secrets."""
    return {key: _REDACTED if key in ("env", "stdin") else value for key, value in params.items()}


def rewritten(params: Dict, fields: Dict) -> Dict:
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
