"""What an agent may use at all: tools, capabilities, side effects, argument values. Spec: 07 §8.1, 08 §6.4.

A `Policy` is a ceiling. Policies nest: a request inside another policy is restricted to it, and requesting
tools or capabilities beyond it is an error.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.rules.annotations import LEVELS, NETWORK, Annotations, rank, read_annotations
from harnpy.agent.rules.ceilings import BUILTIN_NEEDS, EFFECT_NEEDS
from harnpy.agent.rules.fields import policy_fields
from harnpy.agent.rules.paths import LEXICAL
from harnpy.agent.rules.roots import Roots, common_roots, meeting, outside
from harnpy.faults import MisuseError
from harnpy.text.globs import first_match
from harnpy.world.effects import described

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.agent.rules.ceilings import Need
    from harnpy.agent.rules.paths import Paths
    from harnpy.agent.rules.roots import RealPath
    from harnpy.reading.dicts import Dict


_FIELDS = {
    "tools": "list of strings",
    "capabilities": "dict of lists of strings",
    "workspace_roots": "list of strings",
    "side_effect_level": "string",
    "recursion_limit": "int",
    "tool_arg_constraints": "list of dicts",
    "tool_annotations": "dict of dicts",
}
_CONSTRAINT_FIELDS = {"tool": "string", "arg_patterns": "list of strings", "arg_key": "string"}


class PolicyError(MisuseError):
    """A request exceeds the enclosing policy."""


class Constraint(NamedTuple):
    """Calls of the tools that match ``tool`` must have an argument that matches one of ``patterns``.

    Without ``key`` it is the first path that the tool's annotations name.
    """

    tool: str
    patterns: tuple[str, ...]
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """Empty or None restricts nothing, except that ``roots`` () allow no path at all.

    ``tool_annotations`` is as given, by tool name. ``bounds`` are the roots of all policies that were
    intersected: a path must be in one of each; empty are those of this one.
    """

    tools: tuple[str, ...] = ()
    capabilities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    roots: tuple[str, ...] | None = None
    side_effect_level: str | None = None
    recursion_limit: int | None = None
    constraints: tuple[Constraint, ...] = ()
    tool_annotations: Mapping[str, Dict] = field(default_factory=dict)
    bounds: tuple[Roots, ...] = field(default=(), compare=False)

    def annotations(self, tool: str) -> Annotations | None:
        return read_annotations(self.tool_annotations.get(tool))

    @property
    def minds_annotations(self) -> bool:
        """Whether a tool's effects, operations or path arguments decide about its calls."""
        return bool(self.capabilities or self.constraints) or not self.reaches(NETWORK)

    # Checks: each returns why not, or None.

    def check_tool(self, name: str, arguments: Mapping[str, Any], paths: Paths = LEXICAL) -> str | None:
        """Whether a call stays below the ceiling. ``paths`` are those of the task that makes it."""
        if self.tools and first_match(self.tools, name) is None:
            return f"tool '{name}' exceeds tool ceiling"
        annotations = self.annotations(name)
        if annotations is not None:
            for capability, wanted in annotations.capabilities.items():
                for operation in wanted:
                    if not self.grants(capability, operation):
                        return f"tool '{name}' exceeds capability ceiling: {capability}.{operation}"
            if not self.reaches(annotations.side_effect_level):
                return f"tool '{name}' exceeds side-effect ceiling: {annotations.side_effect_level}"
        reasons = (_violation(each, name, arguments, annotations, paths) for each in self.constraints)
        return next((reason for reason in reasons if reason is not None), None)

    def check_builtin(self, name: str) -> str | None:
        """Whether scripts may call the builtin while the policy is active."""
        return self._exceeded(BUILTIN_NEEDS.get(name), lambda: f"builtin '{name}'")

    def check_effect(self, effect: str, target: str) -> str | None:
        """Whether scripts may have an effect while the policy is active."""
        return self._exceeded(EFFECT_NEEDS.get(effect), lambda: described(effect, target))

    def _exceeded(self, need: Need | None, what: Callable[[], str]) -> str | None:
        if need is None:
            return None
        granted = need.capability is None or self.grants(*need.capability.split(".", 1))
        return None if granted and self.reaches(need.level) else f"{what()} exceeds {need.ceiling} ceiling"

    def check_path(self, effect: str, path: str) -> str | None:
        """Whether what ``path``, absolute and free of links, names may be read, listed, written or deleted.

        Or whether it may be the working directory of a ``process``. Not before the policy is `placed`.
        """
        refusing = next((roots for roots in self._all_bounds() if not roots.contain(path)), None)
        return None if refusing is None else outside(refusing, effect, path)

    def check_host_call(self, capability: str, operation: str) -> str | None:
        if self.grants(capability, operation):
            return None
        return f"host_call {capability}.{operation} exceeds capability ceiling"

    def grants(self, capability: str, operation: str) -> bool:
        if not self.capabilities:
            return True
        granted = self.capabilities.get(capability)
        return granted is not None and (not granted or operation in granted)

    def reaches(self, level: str) -> bool:
        """Whether effects of that level stay below the ceiling."""
        return self.side_effect_level is None or rank(level) <= rank(self.side_effect_level)

    # Nesting.

    def placed(self, real_path: RealPath) -> Policy:
        """Return the policy as it is in force where ``real_path`` says what its roots lead to.

        Raises `MisuseError` for a root that is no path.
        """
        bounds = tuple(roots.place(real_path) for roots in self._all_bounds())
        return replace(self, bounds=bounds) if bounds != self.bounds else self

    def kept(self) -> Policy:
        """Return a placed policy whose own roots say what its bounds do, to be written down."""
        return replace(self, roots=meeting(self.bounds), bounds=()) if self.bounds else self

    def _all_bounds(self) -> tuple[Roots, ...]:
        return self.bounds or (() if self.roots is None else (Roots(self.roots),))

    def intersect(self, requested: Policy) -> Policy:
        """Return ``requested`` restricted to this ceiling. Raises `PolicyError`."""
        tools = self._common_tools(requested)
        names = {**self.tool_annotations, **requested.tool_annotations}
        return Policy(
            tools=tools,
            capabilities=self._common_capabilities(requested),
            roots=common_roots(self.roots, requested.roots),
            side_effect_level=_lower(self.side_effect_level, requested.side_effect_level),
            recursion_limit=_least(self.recursion_limit, requested.recursion_limit),
            constraints=self.constraints + requested.constraints,
            tool_annotations={
                name: given for name, given in names.items() if not tools or first_match(tools, name)
            },
            bounds=tuple(dict.fromkeys(self._all_bounds() + requested._all_bounds())),
        )

    def _common_tools(self, requested: Policy) -> tuple[str, ...]:
        if not self.tools or not requested.tools:
            return requested.tools or self.tools
        over = [tool for tool in requested.tools if first_match(self.tools, tool) is None]
        if over:
            raise PolicyError(f"requested tools exceed host ceiling: {', '.join(over)}")
        return requested.tools

    def _common_capabilities(self, requested: Policy) -> Mapping[str, tuple[str, ...]]:
        if not self.capabilities or not requested.capabilities:
            return requested.capabilities or self.capabilities
        return {name: self._common_operations(name, asked) for name, asked in requested.capabilities.items()}

    def _common_operations(self, capability: str, asked: tuple[str, ...]) -> tuple[str, ...]:
        granted = self.capabilities.get(capability)
        if granted is None:
            raise PolicyError(f"requested capability exceeds host ceiling: {capability}")
        over = [operation for operation in asked if granted and operation not in granted]
        if over:
            operations = ",".join(over)
            raise PolicyError(
                f"requested capability operations exceed host ceiling: {capability}.{operations}"
            )
        return asked or granted


def read_policy(given: Any) -> Policy:
    """Return the policy in a dict; a field that is nil or absent restricts nothing.

    Raises `MisuseError` for everything that isn't understood: it would restrict nothing.
    """
    fields = policy_fields(given, _FIELDS, "policy")
    level = fields["side_effect_level"] or None
    if level is not None and level not in LEVELS:
        raise MisuseError(
            f"policy parse error: side_effect_level: unknown level '{level}' "
            f"(expected one of: {', '.join(LEVELS)})"
        )
    return Policy(
        tools=tuple(fields["tools"] or ()),
        capabilities={name: tuple(asked) for name, asked in (fields["capabilities"] or {}).items()},
        roots=tuple(fields["workspace_roots"] or ()) or None,
        side_effect_level=level,
        recursion_limit=fields["recursion_limit"],
        constraints=tuple(map(_constraint, fields["tool_arg_constraints"] or ())),
        tool_annotations=fields["tool_annotations"] or {},
    )


def _constraint(given: Dict) -> Constraint:
    path = "tool_arg_constraints"
    fields = policy_fields(given, _CONSTRAINT_FIELDS, "policy", path=path, required=("tool",))
    return Constraint(fields["tool"], tuple(fields["arg_patterns"] or ()), fields["arg_key"] or None)


def policy_dict(policy: Policy) -> Dict:
    """Return the dict that `read_policy` reads."""
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


def _violation(
    constraint: Constraint,
    tool: str,
    arguments: Mapping[str, Any],
    annotations: Annotations | None,
    paths: Paths,
) -> str | None:
    """Return what is wrong with a call under a constraint; a missing argument violates nothing."""
    if not constraint.patterns or first_match((constraint.tool,), tool) is None:
        return None
    declared = () if annotations is None else annotations.path_params
    key = constraint.key or next((name for name in declared if _may_be_paths(arguments.get(name))), None)
    value = None if key is None else arguments.get(key)
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if declared and key not in declared:
        matches = first_match(constraint.patterns, text) is not None
    else:
        matches = paths.allow(constraint.patterns, value, key in declared)
    if matches:
        return None
    allowed = json.dumps(constraint.patterns, ensure_ascii=False)
    return (
        f"tool '{tool}' {key} '{text}' does not match allowed patterns: {allowed}. "
        f"Only the {key} argument is checked against this allow-list — other argument values are not."
    )


def _may_be_paths(value: Any) -> bool:
    return isinstance(value, str | list | dict)


def _lower(a: str | None, b: str | None) -> str | None:
    return min((level for level in (a, b) if level is not None), key=rank, default=None)


def _least(a: int | None, b: int | None) -> int | None:
    return min((limit for limit in (a, b) if limit is not None), default=None)
