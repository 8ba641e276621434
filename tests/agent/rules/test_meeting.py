"""Two policies that are in force at once allow what both allow, and nothing else. Spec: 07 §8.5."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harnpy.agent.rules.policy import EFFECT_NEEDS, Policy, meet_policies
from harnpy.agent.rules.policy_paths import Roots

_TOOLS = ("read", "read_file", "write", "")
_PATHS = ("/a", "/a/b", "/b", "/")
_PATTERNS = st.lists(st.sampled_from(["read", "read*", "*file", "write", "*"]), max_size=3).map(tuple)
_OPERATIONS = st.lists(st.sampled_from(["read_text", "list", "write_text"]), max_size=2).map(tuple)
_ROOTS = st.lists(st.sampled_from(_PATHS), min_size=1, max_size=2).map(
    lambda paths: Roots(tuple(paths), True)
)
_POLICIES = st.builds(
    Policy,
    tools=_PATTERNS,
    capabilities=st.dictionaries(st.sampled_from(["workspace", "process", "llm"]), _OPERATIONS, max_size=3),
    side_effect_level=st.sampled_from([None, "none", "read_only", "workspace_write", "network"]),
    recursion_limit=st.none() | st.integers(0, 3),
    bounds=st.lists(_ROOTS, max_size=2).map(tuple),
)


@given(_POLICIES, _POLICIES)
def test_effects_and_places_are_those_that_both_allow(first: Policy, second: Policy) -> None:
    both = meet_policies(first, second)
    for effect in EFFECT_NEEDS:
        allowed = [policy.check_effect(effect, "x") is None for policy in (first, second)]
        assert (both.check_effect(effect, "x") is None) == all(allowed)
    for path in _PATHS:
        allowed = [policy.check_path("read", path) is None for policy in (first, second)]
        assert (both.check_path("read", path) is None) == all(allowed)


@given(_POLICIES, _POLICIES)
def test_no_tool_that_one_refuses(first: Policy, second: Policy) -> None:
    both = meet_policies(first, second)
    for tool in _TOOLS:
        if both.check_tool(tool, {}) is None and tool:
            assert first.check_tool(tool, {}) is None
            assert second.check_tool(tool, {}) is None


@given(_POLICIES)
def test_a_policy_that_is_met_by_itself_stays(policy: Policy) -> None:
    assert meet_policies(policy, policy) is policy
