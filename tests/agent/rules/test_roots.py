"""The roots of a policy: which paths are in them, when they are resolved, how they nest (04 §19, 08 §6.4)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.agent.rules.policy import Policy, policy_dict, read_policy
from harnpy.faults import MisuseError


def lexical(path: str) -> str | None:
    return os.path.normpath(os.path.join("/here", path)) if path else None


def bounded(*roots: str) -> Policy:
    return Policy(roots=roots).placed(lexical)


def test_a_policy_without_roots_restricts_no_path() -> None:
    assert Policy().placed(lexical).check_path("write", "/etc/passwd") is None


@pytest.mark.parametrize(
    ("root", "path", "inside"),
    [
        ("/w", "/w", True),
        ("/w", "/w/a/b", True),
        ("/w/", "/w/a", True),
        ("/w/a/..", "/w/b", True),
        ("/w", "/w2", False),
        ("/w", "/", False),
        ("/", "/etc", True),
        (".", "/here/a", True),
        ("src", "/here/src/a", True),
        ("src", "/src/a", False),
        ("../there", "/there/a", True),
        ("../there", "/here/a", False),
    ],
)
def test_what_is_in_a_root(root: str, path: str, inside: bool) -> None:
    assert (bounded(root).check_path("read", path) is None) is inside


def test_why_a_path_is_refused() -> None:
    policy = bounded("/w", "src")
    assert policy.check_path("delete", "/etc/passwd") == (
        "sandbox violation: attempted to delete '/etc/passwd' outside workspace_roots [/w, /here/src]"
    )
    assert policy.check_path("process", "/") == (
        "sandbox violation: process cwd '/' is outside workspace_roots [/w, /here/src]"
    )


def test_roots_lead_where_they_led_when_they_were_placed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    link = tmp_path / "root"
    link.symlink_to(tmp_path / "in")
    policy = Policy(roots=(str(link),)).placed(os.path.realpath)
    link.unlink()
    link.symlink_to(tmp_path / "out")
    again = policy.placed(os.path.realpath)
    for placed in (policy, again):
        assert placed.check_path("read", os.path.realpath(tmp_path / "in" / "a")) is None
        assert placed.check_path("read", os.path.realpath(tmp_path / "out" / "a")) is not None


def test_a_root_that_is_no_path() -> None:
    with pytest.raises(MisuseError, match="workspace_roots: '' is no path of a directory"):
        bounded("")


def test_roots_that_were_never_placed_contain_no_relative_path() -> None:
    assert Policy(roots=(".",)).check_path("read", "/here/a") is not None


def test_a_link_to_outside_in_an_inner_root_leads_out_of_the_outer_one(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "link").symlink_to("/etc")
    both = Policy(roots=(str(tmp_path / "w"),)).intersect(Policy(roots=(str(tmp_path / "w" / "link"),)))
    placed = both.placed(os.path.realpath)
    assert placed.check_path("read", "/etc/passwd") is not None
    assert placed.check_path("read", os.path.realpath(tmp_path / "w" / "a")) is not None


PATHS = st.lists(st.sampled_from(["a", "b", "..", "."]), max_size=5).map("/".join)


@given(PATHS, PATHS, PATHS, st.booleans())
def test_nested_roots_allow_what_each_of_them_allows(outer: str, inner: str, path: str, early: bool) -> None:
    first, second = Policy(roots=(f"/r/{outer}",)), Policy(roots=(f"/r/{inner}",))
    if early:
        first, second = first.placed(lexical), second.placed(lexical)
    both = first.intersect(second).placed(lexical)
    real = lexical(f"/r/{path}")
    assert real is not None
    alone = [each.placed(lexical).check_path("read", real) is None for each in (first, second)]
    assert (both.check_path("read", real) is None) is all(alone)


def test_roots_shown_are_the_requested_ones_inside_the_ceiling_s() -> None:
    outer = Policy(roots=("/w", "rel"))
    inner = Policy(roots=("/w/sub", "/w/../etc", "rel/a/..", "rel/../..", "/v"))
    assert outer.intersect(inner).roots == ("/w/sub", "rel/a/..")
    assert Policy(roots=(".",)).intersect(Policy(roots=("a", "..", "/a"))).roots == ("a",)


@given(st.lists(st.lists(PATHS, min_size=1, max_size=3), min_size=1, max_size=3), PATHS)
def test_what_is_kept_of_nested_roots_allows_the_same(nested: list[list[str]], path: str) -> None:
    policy = Policy()
    for roots in nested:
        policy = policy.intersect(bounded(*(f"/r/{root}" for root in roots)))
    kept = read_policy(policy_dict(policy.kept())).placed(lexical)
    real = lexical(f"/r/{path}")
    assert real is not None
    assert (kept.check_path("read", real) is None) is (policy.check_path("read", real) is None)


def test_roots_that_allow_nothing_are_kept_as_such() -> None:
    nothing = bounded("/a").intersect(bounded("/b"))
    kept = read_policy(policy_dict(nothing.kept())).placed(lexical)
    assert kept.check_path("read", "/a/x") is not None
    assert kept.check_path("read", "/") is not None
