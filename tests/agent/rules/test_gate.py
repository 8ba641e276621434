"""The gate before a tool call, and the rules that nest around it (07 §6.7 steps 4–7, §8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harnpy import Vm
from harnpy.agent.context import NO_RULES, AgentContext, Rules
from harnpy.agent.rules.gate import Decision, Gate
from harnpy.agent.rules.hooks import Hooks
from harnpy.agent.rules.policy import BUILTIN_NEEDS, PolicyError
from harnpy.agent.rules.policy_paths import Lexical
from harnpy.builtins import catalog
from harnpy.builtins.bridge.contexts import context_of
from harnpy.formats.dicts import Options
from harnpy.vm.errors import VmError

ADVICE = "Use one of the declared tools exactly as named and put extra fields inside that tool's arguments."


def rules(outer: Rules = NO_RULES, **options: Any) -> Rules:
    return outer.for_options(Options(options), "agent_loop")


def decide(
    tool: str, hooks: Hooks | None = None, ask: Any = None, arguments: Any = None, **options: Any
) -> Decision:
    return Gate(rules(**options), hooks, "s1", Lexical(), ask).decide(tool, arguments or {"n": 1}, "call_1")


def kinds(decision: Decision) -> list[str]:
    return [note["kind"] for note in decision.notes]


# The steps.


def test_without_rules_everything_passes_unchanged() -> None:
    assert decide("t") == Decision({"n": 1}, [])
    assert decide("t").allowed


def test_a_policy_denies() -> None:
    denied = decide("t", policy={"tools": ["x"]}, permissions={"deny": ["t"]})
    assert denied.reason == f"Error [tool_rejected]: tool 't' exceeds tool ceiling. {ADVICE}"
    assert (denied.step, denied.metadata) == ("policy", {"arguments": {"n": 1}})
    assert [(note["kind"], note["metadata"]) for note in denied.notes] == [
        (
            "PermissionDeny",
            {"tool_name": "t", "arguments": {"n": 1}, "reason": denied.reason, "escalated": False},
        )
    ]


def test_permissions_deny_before_the_approval_policy() -> None:
    denied = decide("t", permissions={"deny": ["t"]}, approval_policy={"auto_deny": ["t"]})
    assert (denied.reason, denied.step) == ("permission denied by deny rule: t", "permissions")
    assert denied.metadata == {"arguments": {"n": 1}, "permission": "denied", "escalated": False}
    assert kinds(denied) == ["PermissionDeny"]


def test_an_approval_policy_denies() -> None:
    denied = decide("t", approval_policy={"auto_deny": ["t"]})
    assert (denied.reason, denied.step) == ("tool 't' matches deny pattern 't'", "approval")
    assert denied.metadata == {"arguments": {"n": 1}, "approval": "auto_denied"}
    assert kinds(denied) == ["PermissionDeny"]


def test_approval_without_a_host_is_denied() -> None:
    denied = decide("t", approval_policy={"require_approval": ["*"]})
    assert denied.reason is not None
    assert denied.reason.startswith(
        "approval required but no host bridge is available (nobody can be asked: "
    )
    assert "harnpy run --attended" in denied.reason
    assert denied.metadata["approval"] == "host_denied"


def test_the_host_is_asked() -> None:
    policy = {"require_approval": ["*"]}
    denied = decide("t", ask=lambda tool, arguments: f"no {tool}", approval_policy=policy)
    assert (denied.reason, denied.metadata["approval"]) == ("no t", "host_denied")
    granted = decide("t", ask=lambda tool, arguments: None, approval_policy=policy)
    assert granted.allowed
    (note,) = granted.notes
    assert (note["kind"], note["metadata"]) == (
        "tool_execution",
        {"tool_name": "t", "tool_use_id": "call_1", "rejected": False, "approval": "host_granted"},
    )


def test_a_granted_permission_and_a_denied_approval_are_two_events() -> None:
    denied = decide("t", permissions={"allow": ["t"]}, approval_policy={"auto_deny": ["t"]})
    assert kinds(denied) == ["PermissionGrant", "PermissionDeny"]


def test_hooks_come_last() -> None:
    hooks = Hooks()
    hooks.add("PreToolUse", lambda payload: {"args": {"n": 2}})
    assert decide("t", hooks).arguments == {"n": 2}
    hooks.add_tool_rule("t", deny="hook says no")
    denied = decide("t", hooks, permissions={})
    assert (denied.reason, denied.step, denied.metadata) == ("hook says no", "hooks", {})
    assert kinds(denied) == ["PermissionGrant"]


def test_allowlists_look_at_the_policy_s_annotations() -> None:
    annotations = {"edit": {"kind": "edit", "arg_schema": {"path_params": ["path"]}}}
    denied = decide(
        "edit",
        arguments={"path": "/etc"},
        policy={"tool_annotations": annotations},
        approval_policy={"write_path_allowlist": ["src/*"]},
    )
    assert denied.reason == "tool 'edit' targets '/etc' which is not in the write-path allowlist"


# Nesting.


def test_rules_inside_rules() -> None:
    outer = rules(policy={"tools": ["a", "b"]}, approval_policy={"auto_deny": ["a"]}, permissions={})
    assert rules(outer) == outer
    inner = rules(
        outer, policy={"tools": ["b"]}, approval_policy={"auto_deny": ["c"]}, permissions={"deny": ["x"]}
    )
    assert inner.policy is not None
    assert inner.approval is not None
    assert (inner.policy.tools, inner.approval.auto_deny, len(inner.permissions)) == (("b",), ("a", "c"), 2)
    with pytest.raises(PolicyError, match="requested tools exceed host ceiling: c"):
        rules(outer, policy={"tools": ["c"]})


def test_what_holds_in_a_task_is_taken_over_by_its_branches() -> None:
    context = AgentContext()
    with context.sessions.enter("s"), context.govern(rules(policy={"side_effect_level": "none"})):
        branch = context.branch()
    assert context.refuses("llm_call") is None
    assert branch.refuses("llm_call") == "builtin 'llm_call' exceeds LLM/network ceiling"
    assert branch.sessions.current() == "s"
    assert context.refuses_host_call("process", "exec") is None


# Builtins in scripts.


@pytest.fixture
def governed() -> Callable[[str], Any]:
    """Runs Harn code in which ``governed(closure)`` calls the closure under a policy."""
    vm = Vm()

    def call(function: Any) -> Any:
        with context_of(vm).govern(rules(policy={"side_effect_level": "read_only"})):
            return vm.call(function)

    vm.register("governed(f: closure) -> any", call)
    return lambda code: vm.run_source(f"pipeline main(task) {{ {code} }}")


@pytest.mark.parametrize(
    "code",
    [
        'return governed({ -> llm_call("hi", nil, {provider: "mock"}) })',
        'let f = llm_call; return governed({ -> f("hi") })',
        'return governed({ -> await(spawn { llm_call("hi") }) })',
        'return governed({ -> llm_call(...["hi"]) })',
        'return governed({ -> "hi" |> llm_call })',
    ],
)
def test_a_policy_refuses_builtins_however_they_are_called(governed: Any, code: str) -> None:
    with pytest.raises(VmError) as error:
        governed(code)
    assert str(error.value) == "Error [tool_rejected]: builtin 'llm_call' exceeds LLM/network ceiling"


def test_the_policy_ends_with_its_block(governed: Any) -> None:
    after = 'return llm_call("hi", nil, {provider: "mock"}).text'
    code = f'try {{ governed({{ -> llm_call("hi") }}) }} catch (e) {{ }}; {after}'
    assert governed(code) == "Mock response to 1-word prompt: hi"


def test_the_builtins_below_a_ceiling_are_the_guarded_ones() -> None:
    declared = {declaration.name: declaration.guarded for declaration in catalog.all_declarations()}
    assert {name for name, guarded in declared.items() if guarded} == declared.keys() & BUILTIN_NEEDS.keys()
