"""The rules that the matrix puts in force, and what each allows: written down from 07 §8.5, not computed
with what is tested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.rules.recording import Happened

ALL = frozenset(
    ["read", "list", "write", "delete", "process", "network", "environment", "model", "person", "state"]
)

_LEVELS = ("none", "read_only", "workspace_write", "process_exec", "network")

#: The table of 07 §8.5: level and capability that an effect needs. Of the others, nothing is asked.
_NEEDS = {
    "read": ("read_only", "workspace.read_text"),
    "list": ("read_only", "workspace.list"),
    "write": ("workspace_write", "workspace.write_text"),
    "delete": ("workspace_write", "workspace.delete"),
    "process": ("process_exec", "process.exec"),
    "network": ("network", None),
    "environment": ("read_only", None),
    "model": ("network", "llm.call"),
}

#: The builtins that `Vm(deny=)` may name, and the effect that each is there for, if it is one.
_DENIED = {
    "exec": "process",
    "exec_at": "process",
    "shell": "process",
    "shell_at": "process",
    "agent_session_seed_from_jsonl": "read",
    "artifact_apply_intent": "write",
    "llm_healthcheck": "network",
    "llm_call": "model",
    "llm_stream": "model",
    "__agent_state_write": "state",
    "agent_loop": None,
    "spawn_agent": None,
}

Policy = Mapping[str, Any]


class Rules(NamedTuple):
    """``policy`` is a program's, ``vm`` are the options of the Vm; ``root`` is where all paths must be."""

    name: str
    allowed: frozenset[str]
    policy: Policy | None = None
    vm: Mapping[str, Any] = {}
    root: str = "/"

    def permit(self, happened: Happened) -> bool:
        return happened.is_among(self.allowed) and happened.is_below(self.root)


UNRESTRICTED = Rules("unrestricted", ALL)


def _allowed_by(policy: Policy) -> frozenset[str]:
    level = policy.get("side_effect_level", "network")
    capabilities: Mapping[str, list[str]] = policy.get("capabilities", {})

    def grants(capability: str | None) -> bool:
        if not capabilities or capability is None:
            return True
        name, operation = capability.split(".")
        return name in capabilities and (not capabilities[name] or operation in capabilities[name])

    def allows(effect: str) -> bool:
        least, capability = _NEEDS.get(effect, ("none", None))
        return _LEVELS.index(least) <= _LEVELS.index(level) and grants(capability)

    return frozenset(filter(allows, ALL))


def _policy(name: str, policy: Policy) -> Rules:
    (root,) = policy.get("workspace_roots", ["/"])
    return Rules(name, _allowed_by(policy), policy, root=root)


def _single(capability: str) -> Policy:
    name, operation = capability.split(".")
    return {"capabilities": {name: [operation]}}


_CAPABILITIES = (
    "workspace.read_text", "workspace.list", "workspace.exists", "workspace.write_text", "workspace.delete",
    "workspace.apply_edit", "process.exec", "llm.call", "agent_state.access", "host.tool_call",
)  # fmt: skip

POLICIES = (
    *(_policy(f"level {level}", {"side_effect_level": level}) for level in _LEVELS),
    *(_policy(f"only {name}", _single(name)) for name in _CAPABILITIES),
    _policy("root", {"workspace_roots": ["/program"]}),
    _policy("root, no writing", {"workspace_roots": ["/program"], "side_effect_level": "read_only"}),
    _policy("only workspace", {"capabilities": {"workspace": []}}),
    _policy("models that read", {"capabilities": {"llm": [], "workspace": ["read_text"]}}),
    _policy("process, but read_only", {"capabilities": {"process": []}, "side_effect_level": "read_only"}),
    _policy("models, but process_exec", {"capabilities": {"llm": []}, "side_effect_level": "process_exec"}),
)

VMS = (
    Rules("no capability", frozenset(), None, {"capabilities": []}),
    *(Rules(f"capability {name}", frozenset([name]), None, {"capabilities": [name]}) for name in sorted(ALL)),
    *(Rules(f"all but {name}", ALL - {name}, None, {"capabilities": ALL - {name}}) for name in sorted(ALL)),
    Rules("all capabilities", ALL, None, {"capabilities": ALL}),
    *(Rules(f"deny {name}", ALL - {effect}, None, {"deny": [name]}) for name, effect in _DENIED.items()),
    Rules("deny exec and models", ALL - {"process", "model"}, None, {"deny": ["exec", "llm_call"]}),
)
