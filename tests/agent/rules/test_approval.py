"""Approval policies: who decides on a call, and how two of them nest (07 §8.2)."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.agent.rules.permissions import ApprovalPolicy, Verdict, read_approval_policy
from harnpy.agent.rules.policy import read_annotations

EDIT = {"kind": "edit", "arg_schema": {"path_params": ["path", "target"]}}


def approval(**lists: Any) -> ApprovalPolicy:
    read = read_approval_policy(lists)
    assert read is not None
    return read


def verdict(policy: ApprovalPolicy, tool: str, annotated: Any = None, **arguments: Any) -> Verdict | str:
    return policy.evaluate(tool, arguments, read_annotations(annotated))


def test_what_no_list_names_is_approved() -> None:
    assert verdict(approval(), "anything") is Verdict.APPROVED
    assert read_approval_policy(None) is None


def test_denying_comes_first() -> None:
    policy = approval(auto_deny=["rm_*"], auto_approve=["*"], require_approval=["*"])
    assert verdict(policy, "rm_all") == "tool 'rm_all' matches deny pattern 'rm_*'"
    assert verdict(policy, "add") is Verdict.APPROVED


def test_approval_that_is_required_is_asked_for() -> None:
    assert verdict(approval(require_approval=["*_file"]), "write_file") is Verdict.ASK
    assert verdict(approval(require_approval=["*_file"]), "add") is Verdict.APPROVED


def test_declared_paths_must_be_on_the_allowlist() -> None:
    policy = approval(write_path_allowlist=["src/*"], auto_approve=["*"])
    outside = "tool 'edit' targets '/etc/x' which is not in the write-path allowlist"
    assert verdict(policy, "edit", EDIT, path="src/a", target="/etc/x") == outside
    assert verdict(policy, "edit", EDIT, path=["src/a", "/etc/x"]) == outside
    assert verdict(policy, "edit", EDIT, path="src/a", other="/etc/x") is Verdict.APPROVED


def test_the_allowlist_is_not_for_readers_and_unannotated_tools() -> None:
    policy = approval(write_path_allowlist=["src/*"])
    assert verdict(policy, "look", {**EDIT, "kind": "read"}, path="/etc/x") is Verdict.APPROVED
    assert verdict(policy, "edit", None, path="/etc/x") is Verdict.APPROVED


@pytest.mark.parametrize(
    ("outer", "inner", "both"),
    [
        ({}, {"auto_approve": ["a"]}, {"auto_approve": ["a"]}),
        ({"auto_approve": ["a", "b"]}, {"auto_approve": ["b", "c"]}, {"auto_approve": ["b"]}),
        (
            {"auto_approve": ["read_*"]},
            {"auto_approve": ["read_file", "exec"]},
            {"auto_approve": ["read_file"]},
        ),
        (
            {"auto_deny": ["a"], "require_approval": ["x"]},
            {"auto_deny": ["b", "a"], "require_approval": ["y"]},
            {"auto_deny": ["a", "b"], "require_approval": ["x", "y"]},
        ),
        ({"write_path_allowlist": ["src/*"]}, {}, {"write_path_allowlist": ["src/*"]}),
    ],
)
def test_nested_policies_intersect(outer: Any, inner: Any, both: Any) -> None:
    assert approval(**outer).intersect(approval(**inner)) == approval(**both)


def test_allowlists_without_anything_in_common_allow_no_path() -> None:
    both = approval(write_path_allowlist=["a/*"]).intersect(approval(write_path_allowlist=["b/*"]))
    third = both.intersect(approval(write_path_allowlist=["*"]))
    for policy in (both, third):
        assert isinstance(verdict(policy, "edit", EDIT, path="a/x"), str)
