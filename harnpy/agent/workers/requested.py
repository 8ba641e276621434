"""The ceilings that a worker asks for, and how its snapshot writes a ceiling. Spec: 07 §11.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.rules.policy import Policy, parse_policy
from harnpy.faults import MisuseError

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict


def requested_policies(policy: Any, tools: Any, caller: str) -> list[Policy]:
    """The ceilings in a policy and in the shorthand `tools`, a list of names.

    Raises `MisuseError` in the name of ``caller``.
    """
    asked = []
    if policy is not None:
        parsed = parse_policy(policy)
        if parsed is None:
            raise MisuseError(f"{caller}: policy parse error: not a capability policy")
        asked.append(parsed)
    if tools is None:
        return asked
    if not isinstance(tools, list) or not all(isinstance(name, str) for name in tools):
        raise MisuseError(f"{caller}: tools shorthand must be a list of strings")
    if not tools:
        raise MisuseError(f"{caller}: tools shorthand must include at least one tool name")
    return [*asked, Policy(tools=tuple(tools))]


def policy_dict(policy: Policy) -> Dict:
    """The dict that `parse_policy` reads."""
    return {
        "tools": list(policy.tools),
        "capabilities": {name: list(operations) for name, operations in policy.capabilities.items()},
        "workspace_roots": list(policy.roots or ()),
        "side_effect_level": policy.side_effect_level,
        "recursion_limit": policy.recursion_limit,
        "tool_arg_constraints": [
            {"tool": constraint.tool, "arg_patterns": list(constraint.patterns), "arg_key": constraint.key}
            for constraint in policy.constraints
        ],
        "tool_annotations": dict(policy.tool_annotations),
    }
