"""Capability policies: tool checks, builtin checks, nesting (07 §8.1, 08 §6.4)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.agent.rules.policy import Policy, PolicyError, read_annotations, read_policy
from harnpy.faults import MisuseError

LEVELS = ("none", "read_only", "workspace_write", "process_exec", "network")


def policy(**fields: Any) -> Policy:
    read = read_policy(fields)
    assert read is not None
    return read


# Reading.


@pytest.mark.parametrize("given", [{}, {"tools": None, "capabilities": None}, {"side_effect_level": ""}])
def test_what_says_nothing_restricts_nothing(given: Any) -> None:
    assert read_policy(given) == Policy()


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": "read"},
        {"tools": [1]},
        {"capabilities": ["workspace"]},
        {"capabilities": {"workspace": "list"}},
        {"workspace_roots": [None]},
        {"side_effect_level": 1},
        {"recursion_limit": "3"},
        {"recursion_limit": True},
        {"tool_arg_constraints": {"tool": "x"}},
        {"tool_arg_constraints": [{"arg_patterns": ["a"]}]},
        {"tool_arg_constraints": [{"tool": "x", "arg_patterns": [1]}]},
        {"tool_annotations": {"x": "read"}},
    ],
)
def test_a_field_of_the_wrong_shape_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(MisuseError):
        read_policy({"tools": ["a"], **fields})


@pytest.mark.parametrize("given", [None, [], "x", {"unknown": 1}, {"side_effect_level": "readonly"}])
def test_what_is_not_understood_is_refused(given: Any) -> None:
    with pytest.raises(MisuseError):
        read_policy(given)


# Tool checks.


def test_tools_outside_the_list_exceed_the_tool_ceiling() -> None:
    ceiling = policy(tools=["read_file", "db_*"])
    assert ceiling.check_tool("read_file", {}) is None
    assert ceiling.check_tool("db_query", {}) is None
    assert ceiling.check_tool("exec", {}) == "tool 'exec' exceeds tool ceiling"


def test_annotated_capabilities_must_be_granted() -> None:
    annotations = {"put": {"capabilities": {"workspace": ["read_text", "write_text"]}}}
    granted = policy(capabilities={"workspace": ["read_text", "write_text"]}, tool_annotations=annotations)
    assert granted.check_tool("put", {}) is None
    reason = "tool 'put' exceeds capability ceiling: workspace.write_text"
    narrow = policy(capabilities={"workspace": ["read_text"]}, tool_annotations=annotations)
    assert narrow.check_tool("put", {}) == reason
    other = policy(capabilities={"llm": ["call"]}, tool_annotations=annotations)
    assert other.check_tool("put", {}) == "tool 'put' exceeds capability ceiling: workspace.read_text"
    assert other.check_tool("unannotated", {}) is None


@given(st.sampled_from(LEVELS), st.sampled_from(LEVELS))
def test_side_effects_must_not_reach_further_than_the_ceiling(tool: str, ceiling: str) -> None:
    limit = policy(side_effect_level=ceiling, tool_annotations={"t": {"side_effect_level": tool}})
    over = LEVELS.index(tool) > LEVELS.index(ceiling)
    assert limit.check_tool("t", {}) == (f"tool 't' exceeds side-effect ceiling: {tool}" if over else None)


def test_a_constrained_argument_must_match_a_pattern() -> None:
    limit = policy(
        tool_arg_constraints=[{"tool": "db_*", "arg_key": "table", "arg_patterns": ["log_*", "a"]}]
    )
    assert limit.check_tool("db_read", {"table": "log_1", "other": "x"}) is None
    assert limit.check_tool("db_read", {"table": "users"}) == (
        "tool 'db_read' table 'users' does not match allowed patterns: [\"log_*\", \"a\"]. "
        "Only the table argument is checked against this allow-list — other argument values are not."
    )
    assert limit.check_tool("db_read", {"table": 7}) is not None
    assert limit.check_tool("db_read", {}) is None
    assert limit.check_tool("db_read", {"table": None}) is None
    assert limit.check_tool("web_get", {"table": "users"}) is None


def test_a_constraint_without_key_is_about_the_first_path() -> None:
    annotations = {"edit": {"arg_schema": {"path_params": ["mode", "path"]}}}
    constraints = [{"tool": "edit", "arg_patterns": ["src/*"]}]
    limit = policy(tool_arg_constraints=constraints, tool_annotations=annotations)
    assert limit.check_tool("edit", {"mode": 1, "path": "src/a"}) is None
    refused = limit.check_tool("edit", {"mode": 1, "path": "/etc/passwd"})
    assert refused is not None
    assert refused.startswith("tool 'edit' path '/etc/passwd' does not match allowed patterns: [\"src/*\"].")
    assert policy(tool_arg_constraints=constraints).check_tool("edit", {"path": "/etc"}) is None


# Builtins.


@pytest.mark.parametrize(
    ("name", "fields", "ceiling"),
    [
        ("write_file", {"side_effect_level": "read_only"}, "workspace write"),
        ("write_file", {"capabilities": {"workspace": ["read_text"]}}, "workspace write"),
        ("delete_file", {"capabilities": {"workspace": ["write_text"]}}, "workspace write"),
        ("exec", {"side_effect_level": "workspace_write"}, "process.exec"),
        ("exec", {"capabilities": {"workspace": ["read_text"]}}, "process.exec"),
        ("http_get", {"side_effect_level": "process_exec"}, "network"),
        ("llm_call", {"side_effect_level": "process_exec"}, "LLM/network"),
        ("llm_call", {"capabilities": {"workspace": ["read_text"]}}, "LLM/network"),
        ("read_file", {"capabilities": {"workspace": ["list"]}}, "workspace.read_text"),
        ("read_file", {"side_effect_level": "none"}, "workspace.read_text"),
        ("list_dir", {"capabilities": {"workspace": ["read_text"]}}, "workspace.list"),
        ("host_tool_call", {"capabilities": {"host": ["other"]}}, "host.tool_call"),
    ],
)
def test_builtins_are_below_the_ceiling_too(name: str, fields: dict[str, Any], ceiling: str) -> None:
    assert policy(**fields).check_builtin(name) == f"builtin '{name}' exceeds {ceiling} ceiling"


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("write_file", {"side_effect_level": "workspace_write"}),
        ("write_file", {"capabilities": {"workspace": []}}),
        ("exec", {"capabilities": {"process": ["exec"]}}),
        ("llm_call", {"side_effect_level": "network", "capabilities": {"llm": ["call"]}}),
        ("llm_call", {"tools": ["read_file"]}),
        ("println", {"side_effect_level": "none", "capabilities": {"x": ["y"]}}),
    ],
)
def test_builtins_that_are_granted(name: str, fields: dict[str, Any]) -> None:
    assert policy(**fields).check_builtin(name) is None


def test_host_calls_need_their_capability() -> None:
    ceiling = policy(capabilities={"workspace": ["list"]})
    assert ceiling.check_host_call("workspace", "list") is None
    assert ceiling.check_host_call("process", "exec") == "host_call process.exec exceeds capability ceiling"


# Nesting.


def test_asking_for_more_is_an_error() -> None:
    ceiling = policy(tools=["read", "log_*"], capabilities={"workspace": ["list", "exists"]})
    with pytest.raises(PolicyError, match=r"^requested tools exceed host ceiling: write, exec$"):
        ceiling.intersect(policy(tools=["write", "read", "exec", "log_a"]))
    message = r"^requested capability operations exceed host ceiling: workspace\.delete,apply_edit$"
    with pytest.raises(PolicyError, match=message):
        ceiling.intersect(policy(capabilities={"workspace": ["delete", "list", "apply_edit"]}))
    with pytest.raises(PolicyError, match=r"^requested capability exceeds host ceiling: llm$"):
        ceiling.intersect(policy(capabilities={"llm": ["call"]}))


def test_what_one_side_leaves_open_the_other_decides() -> None:
    closed = policy(
        tools=["a"], capabilities={"w": ["r"]}, workspace_roots=["/w"], side_effect_level="read_only"
    )
    assert closed.intersect(Policy()) == closed
    assert Policy().intersect(closed) == closed


def test_the_lower_limits_win_and_constraints_add_up() -> None:
    outer = policy(
        tools=["a", "b"],
        workspace_roots=["/w", "/v"],
        side_effect_level="network",
        recursion_limit=3,
        tool_arg_constraints=[{"tool": "a", "arg_patterns": ["x"]}],
        tool_annotations={"a": {"kind": "edit"}, "b": {"kind": "read"}},
    )
    inner = policy(
        tools=["a"],
        workspace_roots=["/w/sub", "/elsewhere", "/w/../etc", "/v"],
        side_effect_level="read_only",
        recursion_limit=5,
        tool_arg_constraints=[{"tool": "a", "arg_patterns": ["y"]}],
        tool_annotations={"a": {"kind": "read"}},
    )
    both = outer.intersect(inner)
    assert (both.tools, both.roots, both.side_effect_level, both.recursion_limit) == (
        ("a",),
        ("/w/sub", "/v"),
        "read_only",
        3,
    )
    assert [constraint.patterns for constraint in both.constraints] == [("x",), ("y",)]
    assert both.tool_annotations == {"a": {"kind": "read"}}


def test_roots_without_anything_in_common_leave_no_path() -> None:
    assert policy(workspace_roots=["/a"]).intersect(policy(workspace_roots=["/b"])).roots == ()


@given(st.sampled_from((*LEVELS, None)), st.sampled_from((*LEVELS, None)), st.sampled_from(LEVELS))
def test_a_nested_policy_grants_nothing_that_either_refuses(
    outer: str | None, inner: str | None, level: str
) -> None:
    first, second = policy(side_effect_level=outer), policy(side_effect_level=inner)
    assert first.intersect(second).reaches(level) == (first.reaches(level) and second.reaches(level))


# Annotations.


@pytest.mark.parametrize(
    ("kind", "mutation", "reads"),
    [
        *((kind, "read_only", True) for kind in ("read", "search", "think", "fetch")),
        ("edit", "workspace_write", False),
        ("delete", "destructive", False),
        ("move", "destructive", False),
        ("execute", "ambient_side_effect", False),
        ("other", "other", False),
        (None, "other", False),
    ],
)
def test_kinds_of_tools(kind: str | None, mutation: str, reads: bool) -> None:
    annotations = read_annotations({"kind": kind})
    assert annotations is not None
    assert (annotations.mutation_class, annotations.read_only) == (mutation, reads)
