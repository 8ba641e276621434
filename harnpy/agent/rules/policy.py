"""The ceiling of an agent: the tools, capabilities, side effects, argument values. Spec: 07 §8.1, 08 §6.4.

A `Policy` is a ceiling. Policies nest: a request inside another policy is restricted to it, and requesting
tools or capabilities beyond it is an error. What a tool declares about itself are its `Annotations` (07
§4.6).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypedDict

from harnpy.agent.rules.policy_paths import LEXICAL, Roots, common_roots, meeting_roots, outside_roots
from harnpy.faults import MisuseError
from harnpy.formats.dicts import Dict, errors_after, read_fields
from harnpy.formats.globs import common, first_match
from harnpy.formats.options import expected
from harnpy.formats.shapes import Field, fields_of
from harnpy.world import effects
from harnpy.world.effects import described

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from harnpy.agent.rules.policy_paths import Paths, RealPath

# Reading policies: what isn't understood is an error, as it would restrict nothing. Spec: 07 §8.


def policy_fields(given: Any, shape: type[Any], name: str, path: str = "") -> Dict:
    """Return the fields of a policy, or of the part of it at ``path``; ``name`` is that of the policy.

    Raises `MisuseError` for an unknown field and for one of another type.
    """
    known = fields_of(shape)
    refuse_unknown(given, known.always, f"{name}.{path}" if path else name)
    with errors_after(f"{name} parse error: "):
        return read_fields(given, known.kinds(), path, known.required)


def refuse_unknown(given: Any, known: Iterable[str], name: str) -> None:
    """Raise `MisuseError` for a key of a dict that isn't ``known``."""
    if isinstance(given, dict):
        unknown = next((key for key in given if key not in known), None)
        if unknown is not None:
            raise MisuseError(f"unknown option key '{name}.{unknown}' ({expected(unknown, tuple(known))})")


READ_ONLY_KINDS = frozenset({"read", "search", "think", "fetch"})

#: What each kind of tool may change; other kinds count as ``other``.
_MUTATION_CLASSES = {
    **dict.fromkeys(READ_ONLY_KINDS, "read_only"),
    "edit": "workspace_write",
    "delete": "destructive",
    "move": "destructive",
    "execute": "ambient_side_effect",
}

NETWORK = "network"
SIDE_EFFECT_LEVELS = ("none", "read_only", "workspace_write", "process_exec", NETWORK)


def side_effect_rank(level: str) -> int:
    """Return how far the effects of a side-effect level reach; an unknown level reaches furthest."""
    return SIDE_EFFECT_LEVELS.index(level) if level in SIDE_EFFECT_LEVELS else len(SIDE_EFFECT_LEVELS)


@dataclass(frozen=True, slots=True)
class Annotations:
    """``path_params`` are the arguments that name files; ``arg_aliases`` other names for arguments."""

    kind: str = "other"
    side_effect_level: str = "none"
    path_params: tuple[str, ...] = ()
    arg_aliases: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    capabilities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    emits_artifacts: bool = False
    result_readers: tuple[str, ...] = ()
    inline_result: bool = False

    @property
    def read_only(self) -> bool:
        return self.kind in READ_ONLY_KINDS

    @property
    def mutation_class(self) -> str:
        return _MUTATION_CLASSES.get(self.kind, "other")


#: Those of a tool of which nothing is said.
UNKNOWN = Annotations()


def read_annotations(given: Any) -> Annotations | None:
    """Return the annotations in a dict, None unless given one. The argument keys may also be top-level."""
    if not isinstance(given, dict):
        return None
    schema = given.get("arg_schema")
    arguments = {**given, **schema} if isinstance(schema, dict) else given
    aliases = arguments.get("arg_aliases")
    capabilities = given.get("capabilities")
    return Annotations(
        kind=_text(given.get("kind"), "other"),
        side_effect_level=_text(given.get("side_effect_level"), "none"),
        path_params=strings(arguments.get("path_params")) or (),
        arg_aliases=aliases if isinstance(aliases, dict) else {},
        required=strings(arguments.get("required")) or (),
        capabilities=operations(capabilities) or {},
        emits_artifacts=bool(given.get("emits_artifacts")),
        result_readers=strings(given.get("result_readers")) or (),
        inline_result=bool(given.get("inline_result")),
    )


def strings(given: Any) -> tuple[str, ...] | None:
    """Return a list of strings; None for anything else."""
    if isinstance(given, list) and all(isinstance(item, str) for item in given):
        return tuple(given)
    return None


def operations(given: Any) -> dict[str, tuple[str, ...]] | None:
    """Return ``{capability: [operations]}``; None for anything else."""
    if not isinstance(given, dict):
        return None
    read = {capability: strings(names) for capability, names in given.items()}
    known = {capability: names for capability, names in read.items() if names is not None}
    return known if len(known) == len(read) else None


def _text(given: Any, default: str) -> str:
    return given if isinstance(given, str) and given else default


# What effects and builtins need of a policy. Spec: 07 §8.1, §8.5.
#
# The builtins listed here are declared ``guarded``; others never consult the policy, but what they have the
# world do does.


class Need(NamedTuple):
    """``ceiling`` is the name in messages, ``effect`` the one that a builtin is there for, if any."""

    ceiling: str
    level: str
    capability: str | None
    effect: str | None


_READ = Need("workspace.read_text", "read_only", "workspace.read_text", effects.READ)
_LIST = Need("workspace.list", "read_only", "workspace.list", effects.LIST)
_WRITE = Need("workspace write", "workspace_write", "workspace.write_text", effects.WRITE)
_DELETE = Need("workspace write", "workspace_write", "workspace.delete", effects.DELETE)
_PROCESS = Need("process.exec", "process_exec", "process.exec", effects.PROCESS)
_NETWORK = Need("network", "network", None, effects.NETWORK)
_MODEL = Need("LLM/network", "network", "llm.call", effects.MODEL)

#: What each effect needs; the others need nothing of a policy.
EFFECT_NEEDS: Mapping[str, Need] = {
    **{str(need.effect): need for need in (_READ, _LIST, _WRITE, _DELETE, _PROCESS, _NETWORK, _MODEL)},
    effects.ENVIRONMENT: Need("environment", "read_only", None, effects.ENVIRONMENT),
}

_BUILTINS: Mapping[Need, str] = {
    _READ: "read_file read_file_bytes read_file_result read_lines agent_session_seed_from_jsonl",
    _LIST: "list_dir walk_dir glob",
    Need("workspace.exists", "read_only", "workspace.exists", effects.LIST): "file_exists stat",
    _WRITE: "write_file write_file_bytes append_file copy_file move_file mkdir",
    _DELETE: "delete_file",
    Need("workspace write", "workspace_write", "workspace.apply_edit", effects.WRITE): (
        "artifact_apply_intent"
    ),
    _PROCESS: "exec exec_at shell shell_at mcp_connect",
    _NETWORK: (
        "http_get http_post http_put http_patch http_delete http_request http_download http_session "
        "http_session_request http_server_listen http_server_serve http_stream_open sse_connect "
        "websocket_connect websocket_send websocket_server llm_healthcheck"
    ),
    _MODEL: (
        "llm_call llm_call_safe llm_call_structured llm_call_structured_safe "
        "llm_call_structured_result llm_completion llm_stream"
    ),
    _MODEL._replace(effect=None): (
        "agent_loop sub_agent_run spawn_agent daemon_spawn daemon_resume self_review"
    ),
    Need("connector.call", "network", "connector.call", effects.NETWORK): "connector_call",
    Need("vision.ocr", "read_only", "vision.ocr", None): "vision_ocr",
    Need("agent_state.access", "read_only", "agent_state.access", effects.STATE): (
        "__agent_state_resume __agent_state_read __agent_state_list"
    ),
    Need("agent_state.access", "workspace_write", "agent_state.access", effects.STATE): (
        "__agent_state_init __agent_state_write __agent_state_delete __agent_state_handoff"
    ),
    Need("host.tool_call", "none", "host.tool_call", None): "host_tool_call",
}

#: What each restricted builtin needs.
BUILTIN_NEEDS: Mapping[str, Need] = {
    name: need for need, names in _BUILTINS.items() for name in names.split()
}


def effects_of(builtins: Iterable[str]) -> frozenset[str]:
    """Return the effects that the named builtins are there for."""
    needs = (BUILTIN_NEEDS.get(name) for name in builtins)
    return frozenset(need.effect for need in needs if need is not None and need.effect is not None)


class ToolConstraint(TypedDict):
    tool: Annotated[str, Field("string", required=True)]
    arg_patterns: list[str]
    arg_key: str | None


class CapabilityPolicy(TypedDict):
    """A ceiling as programs and records write it; what is empty or nil restricts nothing."""

    tools: list[str]
    capabilities: dict[str, list[str]]
    workspace_roots: list[str]
    side_effect_level: str | None
    recursion_limit: int | None
    tool_arg_constraints: Annotated[list[ToolConstraint], Field("list of dicts", [], ToolConstraint)]
    tool_annotations: dict[str, Dict]


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
        """Return True if a tool's effects, operations or path arguments decide about its calls."""
        return bool(self.capabilities or self.constraints) or not self.reaches(NETWORK)

    # Checks: each returns why not, or None.

    def check_tool(self, name: str, arguments: Mapping[str, Any], paths: Paths = LEXICAL) -> str | None:
        """Return why a call exceeds the ceiling, or None. ``paths`` are those of the task that makes it."""
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
        """Return why scripts may not call the builtin while the policy is active, or None."""
        return self._exceeded(BUILTIN_NEEDS.get(name), lambda: f"builtin '{name}'")

    def check_effect(self, effect: str, target: str) -> str | None:
        """Return why scripts may not have an effect while the policy is active, or None."""
        return self._exceeded(EFFECT_NEEDS.get(effect), lambda: described(effect, target))

    def _exceeded(self, need: Need | None, what: Callable[[], str]) -> str | None:
        if need is None:
            return None
        granted = need.capability is None or self.grants(*need.capability.split(".", 1))
        return None if granted and self.reaches(need.level) else f"{what()} exceeds {need.ceiling} ceiling"

    def check_path(self, effect: str, path: str) -> str | None:
        """Return why an absolute path without links may not be read, listed, written or deleted, or None.

        With ``process``: why it may not be a working directory. Only once the policy is `placed`.
        """
        refusing = next((roots for roots in self._all_bounds() if not roots.contain(path)), None)
        return None if refusing is None else outside_roots(refusing, effect, path)

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
        """Return True if effects of that level stay below the ceiling."""
        return self.side_effect_level is None or side_effect_rank(level) <= side_effect_rank(
            self.side_effect_level
        )

    # Nesting.

    def placed(self, real_path: RealPath) -> Policy:
        """Return the policy as it is in force where ``real_path`` says what its roots lead to.

        Raises `MisuseError` for a root that is no path.
        """
        bounds = tuple(roots.place(real_path) for roots in self._all_bounds())
        return replace(self, bounds=bounds) if bounds != self.bounds else self

    def kept(self) -> Policy:
        """Return a placed policy whose own roots say what its bounds do, to be written down."""
        return replace(self, roots=meeting_roots(self.bounds), bounds=()) if self.bounds else self

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
    fields = policy_fields(given, CapabilityPolicy, "policy")
    level = fields["side_effect_level"] or None
    if level is not None and level not in SIDE_EFFECT_LEVELS:
        raise MisuseError(
            f"policy parse error: side_effect_level: unknown level '{level}' "
            f"(expected one of: {', '.join(SIDE_EFFECT_LEVELS)})"
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
    fields = policy_fields(given, ToolConstraint, "policy", "tool_arg_constraints")
    return Constraint(fields["tool"], tuple(fields["arg_patterns"] or ()), fields["arg_key"] or None)


def policy_dict(policy: Policy) -> CapabilityPolicy:
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
    return min((level for level in (a, b) if level is not None), key=side_effect_rank, default=None)


def _least(a: int | None, b: int | None) -> int | None:
    return min((limit for limit in (a, b) if limit is not None), default=None)


# Two policies in force at once, neither of which asked for the other. Spec: 07 §8.1, §8.5.


#: What allows nothing: nothing at all would restrict nothing.
_NO_TOOL = ("",)
_NO_CAPABILITY: Mapping[str, tuple[str, ...]] = {"": ()}


def meet_policies(first: Policy, second: Policy) -> Policy:
    """Return the policy that allows what both allow. Tools that only some patterns share may be refused."""
    if first == second and first.bounds == second.bounds:
        return first
    return replace(
        first.intersect(replace(second, tools=(), capabilities={})),
        tools=_common_tools(first.tools, second.tools),
        capabilities=_common_capabilities(first.capabilities, second.capabilities),
    )


def _common_tools(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    if not first or not second:
        return first or second
    return common(first, second) or _NO_TOOL


def _common_capabilities(
    first: Mapping[str, tuple[str, ...]], second: Mapping[str, tuple[str, ...]]
) -> Mapping[str, tuple[str, ...]]:
    if not first or not second:
        return first or second
    shared = {}
    for name in sorted(first.keys() & second.keys()):
        operations = _common_operations(first[name], second[name])
        if operations is not None:
            shared[name] = operations
    return shared or _NO_CAPABILITY


def _common_operations(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the operations in both, of which none are all; None when there is none in both."""
    if not first or not second:
        return first or second
    return tuple(operation for operation in first if operation in second) or None
