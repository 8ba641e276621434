"""Laws of selection (08 §5.3): what is taken, in which order, and what is left out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harnpy.workflow.artifacts import (
    ArtifactIndex,
    normalised_artifact,
    read_context_policy,
    select_artifacts,
    select_artifacts_adaptive,
)
from tests.worlds import world_with

Dict = dict[str, Any]

WORLD = world_with(now=lambda: 0.0)
KINDS = st.sampled_from(["plan", "diff", "note"])
STAGES = st.sampled_from(["s1", "s2"])
PATHS = st.lists(st.sampled_from(["a", "b"]), max_size=2)
ARTIFACTS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "kind": KINDS,
            "stage": STAGES,
            "text": st.sampled_from(["", "x", "y", "long " * 600]),
            "priority": st.integers(0, 2),
            "freshness": st.sampled_from(["fresh", "recent", "stale", "odd"]),
            "relevance": st.sampled_from([0, 0.5]),
            "created_at": st.sampled_from(["1", "2"]),
            "metadata": st.fixed_dictionaries({"evidence_paths": PATHS, "changed_paths": PATHS}),
        },
    ),
    max_size=8,
).map(lambda given: [normalised_artifact({**each, "id": f"a{n}"}, WORLD) for n, each in enumerate(given)])
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "max_artifacts": st.integers(0, 5),
        "max_tokens": st.integers(0, 900),
        "reserve_tokens": st.integers(0, 300),
        "include_kinds": st.lists(KINDS, max_size=2),
        "exclude_kinds": st.lists(KINDS, max_size=1),
        "include_stages": st.lists(STAGES, max_size=1),
        "prioritize_kinds": st.lists(KINDS, max_size=1),
        "pinned_ids": st.lists(st.sampled_from(["a0", "a3"]), max_size=1),
        "prefer_recent": st.booleans(),
        "prefer_fresh": st.booleans(),
    },
).map(read_context_policy)


def ids(artifacts: Iterable[Dict]) -> list[str]:
    return [each["id"] for each in artifacts]


def tokens(artifacts: list[Dict]) -> int:
    return sum(each["estimated_tokens"] or 0 for each in artifacts)


@given(ARTIFACTS, POLICIES)
def test_limits_hold(artifacts: list[Dict], policy: Dict) -> None:
    for chosen in (select_artifacts(artifacts, policy), select_artifacts_adaptive(artifacts, policy)):
        if policy["max_artifacts"] is not None:
            assert len(chosen) <= policy["max_artifacts"]
        if policy["max_tokens"] is not None:
            assert tokens(chosen) <= max(0, policy["max_tokens"] - (policy["reserve_tokens"] or 0))


@given(ARTIFACTS, POLICIES)
def test_only_what_the_policy_lets_through_is_taken(artifacts: list[Dict], policy: Dict) -> None:
    for each in select_artifacts(artifacts, policy):
        assert each in artifacts
        assert not policy["include_kinds"] or each["kind"] in policy["include_kinds"]
        assert each["kind"] not in (policy["exclude_kinds"] or [])
        assert not policy["include_stages"] or each["stage"] in policy["include_stages"]


@given(ARTIFACTS, POLICIES)
def test_a_second_selection_changes_nothing(artifacts: list[Dict], policy: Dict) -> None:
    once = select_artifacts(artifacts, policy)
    assert select_artifacts(once, policy) == once


@given(ARTIFACTS, POLICIES)
def test_limits_take_from_the_order_of_a_selection_without_them(artifacts: list[Dict], policy: Dict) -> None:
    everything = ids(select_artifacts(artifacts, policy | {"max_artifacts": None, "max_tokens": None}))
    chosen = ids(select_artifacts(artifacts, policy))
    assert chosen == [id for id in everything if id in chosen]


@given(ARTIFACTS, POLICIES)
def test_pins_kinds_and_priorities_come_first(artifacts: list[Dict], policy: Dict) -> None:
    def rank(each: Dict) -> tuple[bool, bool, int]:
        pinned, kinds = policy["pinned_ids"] or [], policy["prioritize_kinds"] or []
        return each["id"] in pinned, each["kind"] in kinds, each["priority"]

    ranks = [rank(each) for each in select_artifacts(artifacts, policy)]
    assert ranks == sorted(ranks, reverse=True)


@given(ARTIFACTS, st.lists(st.tuples(st.integers(0, 8), POLICIES), max_size=6))
def test_an_index_selects_what_a_look_at_all_artifacts_does(
    artifacts: list[Dict], asked: list[tuple[int, Dict]]
) -> None:
    """Also while it grows between the selections, as a run's does."""
    there: list[Dict] = []
    index, rest = ArtifactIndex(there), [*artifacts]
    for count, policy in [*asked, (len(artifacts), read_context_policy(None))]:
        there += rest[:count]
        rest = rest[count:]
        assert select_artifacts(index, policy) == select_artifacts(there, policy)
        assert select_artifacts_adaptive(index, policy) == select_artifacts_adaptive(there, policy)


def test_a_selection_in_a_long_run_looks_at_few_artifacts() -> None:
    class Counted(dict):
        looks = 0

        def __getitem__(self, key: str) -> Any:
            Counted.looks += 1
            return super().__getitem__(key)

    policy = read_context_policy({"max_artifacts": 2, "prefer_recent": True, "exclude_kinds": ["plan"]})
    there: list[Any] = []
    index, looks = ArtifactIndex(there), []
    for number in range(600):
        given = {"id": f"a{number}", "kind": "note", "text": f"text {number}", "stage": f"s{number}"}
        there.append(Counted(normalised_artifact({**given, "created_at": f"{number:04}"}, WORLD)))
        Counted.looks = 0
        assert ids(select_artifacts(index, policy)) == ids(reversed(there[-2:]))
        assert ids(select_artifacts_adaptive(index, policy)) == ids(reversed(there[-2:]))
        looks.append(Counted.looks)
    assert looks[599] == looks[2]


@given(ARTIFACTS)
def test_adaptive_selection_repeats_no_text_and_keeps_what_is_current(artifacts: list[Dict]) -> None:
    chosen = select_artifacts_adaptive(artifacts, read_context_policy(None))
    texts = [each["text"] for each in chosen if each["text"]]
    assert len(set(texts)) == len(texts)
    changed = {
        path
        for each in artifacts
        if each["freshness"] in ("fresh", "recent")
        for path in each["metadata"].get("changed_paths", [])
    }
    for each in chosen:
        if each["freshness"] not in ("fresh", "recent"):
            assert changed.isdisjoint(each["metadata"].get("evidence_paths", []))
