"""The verbs of `SessionRegistry`: results, refusals, lineage, use order (08 §1.1–1.8)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harnpy.faults import Interruption
from harnpy.session import InvalidArgument, SessionError, SessionRegistry, SessionStack
from tests.support import assert_linear, processor_time
from tests.worlds import world_with

USER = {"role": "user", "content": "hi"}


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


def contents(store: SessionRegistry, id: str) -> list[Any]:
    return [message["content"] for message in store.messages(id)]


@pytest.fixture
def store() -> SessionRegistry:
    store = SessionRegistry(world=world_with(now=lambda: 1767225600.042, cwd=lambda: "/work"))
    store.open("s")
    for text in "abc":
        store.inject("s", said(text))
    return store


REFUSALS: list[tuple[Callable[[SessionRegistry], Any], str]] = [
    (lambda s: s.open(" "), "agent_session_open: `id` must not be empty"),
    (
        lambda s: s.open("t", {"z": 1, "x": 2}),
        "agent_session_open: unknown option key 'x' "
        "(expected one of: store, workspace_anchor, workspace_policy)",
    ),
    (
        lambda s: s.open("t", {"store": 1}),
        "agent_session_open: `store` must be a bool or a string",
    ),
    (lambda s: s.length("t"), "agent_session_length: unknown session id 't'"),
    (lambda s: s.reset("t"), "agent_session_reset: unknown session id 't'"),
    (lambda s: s.fork("t"), "agent_session_fork: unknown session id 't'"),
    (lambda s: s.fork("t", "t"), "agent_session_fork: unknown session id 't'"),
    (lambda s: s.fork("s", "s"), "agent_session_fork: `dst` must differ from `src`"),
    (lambda s: s.fork("s", ""), "agent_session_fork: `dst` must not be empty"),
    (lambda s: s.fork_at("t", -1), "agent_session_fork_at: `keep_first` must be >= 0"),
    (lambda s: s.fork_at("t", 1), "agent_session_fork_at: unknown session id 't'"),
    (lambda s: s.fork_at("s", 1, "s"), "agent_session_fork_at: `dst` must differ from `src`"),
    (lambda s: s.fork_at("s", 1, " "), "agent_session_fork_at: `dst` must not be empty"),
    (lambda s: s.trim("t", -1), "agent_session_trim: `keep_last` must be >= 0"),
    (lambda s: s.trim("t", 1), "agent_session_trim: unknown session id 't'"),
    (lambda s: s.inject("t", {}), "agent_session_inject: unknown session id 't'"),
    (lambda s: s.inject("s", None), "agent_session_inject: `message` required"),  # type: ignore[arg-type]
    (lambda s: s.inject("s", [1]), "agent_session_inject: message must be a dict"),  # type: ignore[arg-type]
    (
        lambda s: s.inject("s", {"role": 1}),
        "agent_session_inject: message must have a string `role` (user|assistant|tool_result|system)",
    ),
    (
        lambda s: s.close("t", 3),  # type: ignore[arg-type]
        "agent_session_close: `status` must be a string, dict, or nil",
    ),
    (lambda s: s.close("t", {"reason": 3}), "agent_session_close: `status.reason` must be a string"),
    (lambda s: s.close("t"), "agent_session_close: unknown session id 't'"),
    (
        lambda s: s.append_event("t", 3),  # type: ignore[arg-type]
        "agent_session_append_event: event must be a dict",
    ),
    (lambda s: s.append_event("t", {}), "agent_session_append_event: unknown session id 't'"),
    (lambda s: s.append_event("s", {}), "agent_session_append_event: event must have a string `kind`"),
    (
        lambda s: s.open("s", {"workspace_policy": {"default_mount_mode": "rw"}}),
        "agent_session_open: invalid mount mode 'rw' (expected one of: read_only, read_write)",
    ),
    (
        lambda s: s.open("s", {"workspace_policy": {"default_mount_mode": 1}}),
        "agent_session_open: `default_mount_mode` must be a string",
    ),
    (
        lambda s: s.open("s", {"workspace_policy": {"mode": 1}}),
        "agent_session_open: unknown workspace policy key 'mode' (expected one of: default_mount_mode)",
    ),
    (
        lambda s: s.open("s", {"workspace_anchor": {"primary": ""}}),
        "agent_session_open: `anchor.primary` must be a non-empty string",
    ),
    (
        lambda s: s.open("s", {"workspace_anchor": {"primary": "/a", "root": 1}}),
        "agent_session_open: unknown workspace anchor key 'root' "
        "(expected one of: primary, additional_roots, anchored_at)",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS, ids=[message for _, message in REFUSALS])
def test_a_refused_call_says_why_and_changes_nothing(
    store: SessionRegistry, call: Callable[[SessionRegistry], Any], message: str
) -> None:
    store.open("other")
    session = store.session("s")
    assert session
    before = (session.version, store.ids(), store.ancestry("s"))
    with pytest.raises(SessionError) as caught:
        call(store)
    assert str(caught.value) == message
    assert (session.version, store.ids(), store.ancestry("s")) == before


def test_unknown_ids_are_tolerated_where_the_reference_says_so(store: SessionRegistry) -> None:
    assert not store.exists("t")
    assert store.snapshot("t") is None
    assert store.snapshot_value("t") is None
    assert store.ancestry("t") is None
    store.store_transcript("t", {"messages": []})
    store.inject_feedback("t", "note", "x")
    assert not store.exists("t")


def test_open_is_idempotent(store: SessionRegistry) -> None:
    assert store.open("s") == "s"
    assert contents(store, "s") == ["a", "b", "c"]


def test_open_mints_an_id(store: SessionRegistry) -> None:
    id = store.open()
    assert len(id) == 36
    assert store.exists(id)


def test_trim_keeps_the_newest_and_counts_them(store: SessionRegistry) -> None:
    assert store.trim("s", 5) == 3
    assert store.trim("s", 2) == 2
    assert contents(store, "s") == ["b", "c"]
    assert store.trim("s", 0) == 0
    assert contents(store, "s") == []


def test_reset_empties_the_transcript_and_keeps_the_rest(store: SessionRegistry) -> None:
    child = store.fork("s")
    heard: list[dict[str, Any]] = []
    store.subscribe(child, heard.append)
    store.append_event(child, {"kind": "note"})
    store.reset(child)
    snapshot = dict(store.snapshot(child) or {})
    assert (snapshot["messages"], snapshot["events"]) == ([], [])
    assert "metadata" not in snapshot
    assert snapshot["parent_id"] == "s"
    assert store.subscriber_count(child) == 1


def test_a_snapshot_has_every_key(store: SessionRegistry) -> None:
    snapshot = store.snapshot("s")
    assert snapshot
    assert set(snapshot) == {
        *("_type", "version", "id", "messages", "events", "assets", "length", "created_at"),
        *("system_prompt", "tool_format", "scratchpad", "scratchpad_version", "parent_id", "child_ids"),
        *("branched_at_event_index", "live_clients", "live_controller_id"),
        *("workspace_anchor", "workspace_policy"),
    }
    assert snapshot["created_at"] == "2026-01-01T00:00:00.042Z"
    assert snapshot["length"] == 3
    assert dict(snapshot) == store.snapshot_value("s")


def test_a_fork_has_the_transcript_its_own_metadata_and_a_parent(store: SessionRegistry) -> None:
    store.append_event("s", {"kind": "note", "text": "n"})
    child = store.fork("s", "child")
    parent, fork = dict(store.snapshot("s") or {}), dict(store.snapshot(child) or {})
    assert fork["messages"] == parent["messages"]
    assert fork["events"] == parent["events"]
    assert fork["metadata"] == {"parent_session_id": "s"}
    assert (fork["parent_id"], parent["child_ids"]) == ("s", ["child"])
    store.inject("s", said("only here"))
    store.inject(child, said("only there"))
    assert contents(store, "s")[-1] == "only here"
    assert contents(store, child)[-1] == "only there"


def test_forking_onto_a_session_replaces_its_transcript_and_its_parent(store: SessionRegistry) -> None:
    store.fork("s", "child")
    heard: list[dict[str, Any]] = []
    store.subscribe("child", heard.append)
    store.open("t")
    store.inject("t", said("t"))
    store.fork("t", "child")
    assert contents(store, "child") == ["t"]
    assert store.ancestry("child") == {"parent_id": "t", "child_ids": [], "root_id": "t"}
    assert (store.ancestry("s") or {})["child_ids"] == []
    assert store.subscriber_count("child") == 1
    assert (store.snapshot("child") or {})["metadata"] == {"parent_session_id": "t"}


def test_fork_at_counts_events_up_to_the_kept_message(store: SessionRegistry) -> None:
    store.open("t")
    store.inject("t", said("m1"))
    store.append_event("t", {"kind": "sub_agent_start"})
    store.inject("t", said("m2"))
    store.append_event("t", {"kind": "sub_agent_result"})

    def branch(keep_first: int) -> tuple[Any, list[Any], list[Any]]:
        snapshot = store.snapshot(store.fork_at("t", keep_first)) or {}
        kinds = [event["kind"] for event in snapshot["events"]]
        return snapshot["branched_at_event_index"], [m["content"] for m in snapshot["messages"]], kinds

    assert branch(0) == (0, [], [])
    assert branch(1) == (1, ["m1"], ["message"])
    assert branch(2) == (3, ["m1", "m2"], ["message", "sub_agent_start", "message"])
    everything = ["message", "sub_agent_start", "message", "sub_agent_result"]
    assert branch(3) == (4, ["m1", "m2"], everything)


def test_a_plain_fork_forgets_where_its_parent_branched(store: SessionRegistry) -> None:
    first = store.fork_at("s", 1)
    second = store.fork(first)
    assert (store.snapshot(first) or {})["branched_at_event_index"] == 1
    assert (store.snapshot(second) or {})["branched_at_event_index"] is None


def test_the_root_is_the_highest_id_still_reachable(store: SessionRegistry) -> None:
    store.fork("s", "child")
    store.fork("child", "grandchild")
    assert (store.ancestry("grandchild") or {})["root_id"] == "s"
    store.close("s")
    assert (store.ancestry("grandchild") or {})["root_id"] == "s"
    store.close("child")
    assert (store.ancestry("grandchild") or {})["root_id"] == "child"
    store.open("child")
    assert (store.ancestry("grandchild") or {})["root_id"] == "child"


def test_a_cycle_of_parents_ends_the_walk(store: SessionRegistry) -> None:
    store.fork("s", "t")
    store.fork("t", "s")
    assert (store.ancestry("s") or {})["root_id"] == "t"
    assert (store.ancestry("t") or {})["root_id"] == "s"


def test_closed_children_stay_listed(store: SessionRegistry) -> None:
    store.fork("s", "child")
    store.close("child")
    assert (store.ancestry("s") or {})["child_ids"] == ["child"]


@pytest.mark.parametrize(
    ("status", "reason", "verbatim"),
    [
        (None, None, None),
        ("timeout", "timeout", {"reason": "timeout"}),
        ({"reason": "x", "code": 3}, "x", {"reason": "x", "code": 3}),
        ({"code": 3}, None, {"code": 3}),
    ],
)
def test_closing_tells_subscribers_before_the_session_goes(
    store: SessionRegistry, status: Any, reason: Any, verbatim: Any
) -> None:
    heard: list[dict[str, Any]] = []

    def on_event(event: dict[str, Any]) -> None:
        heard.append(event)
        heard.append((store.snapshot("s") or {})["events"][-1])

    store.subscribe("s", on_event)
    store.close("s", status)
    event, logged = heard
    assert event == {
        "type": "agent_session_closed",
        "session_id": "s",
        "reason": reason,
        "status": verbatim,
    }
    assert (logged["kind"], logged["text"]) == ("agent_session_closed", reason or "")
    assert logged["metadata"] == {"reason": reason, "status": verbatim}
    assert not store.exists("s")


def test_a_subscriber_may_close_what_is_closing(store: SessionRegistry) -> None:
    heard: list[str] = []

    def on_event(event: dict[str, Any]) -> None:
        heard.append(event["type"])
        store.close("s")

    store.subscribe("s", on_event)
    store.close("s")
    assert heard == ["agent_session_closed"]
    assert not store.exists("s")


def test_what_a_subscriber_raises_is_a_warning_and_the_next_one_is_called() -> None:
    warnings: list[tuple[str, str]] = []
    store = SessionRegistry(world=world_with(warn=lambda topic, text: warnings.append((topic, text))))
    heard: list[dict[str, Any]] = []

    def broken(event: dict[str, Any]) -> None:
        raise ValueError("no")

    store.subscribe("s", broken)
    store.subscribe("s", heard.append)
    store.emit("s", {"type": "turn_start"})
    assert warnings == [("agent.subscriber", "no")]
    assert heard == [{"type": "turn_start"}]


# Eviction.


def test_the_least_recently_used_session_makes_room() -> None:
    store = SessionRegistry(cap=2)
    store.open("a")
    store.open("b")
    store.open("a")
    store.open("c")
    assert store.ids() == ["a", "c"]


@pytest.mark.parametrize("read", ["exists", "length", "snapshot", "ancestry", "messages"])
def test_reads_are_no_use(read: str) -> None:
    store = SessionRegistry()
    store.open("a")
    store.open("b")
    getattr(store, read)("a")
    assert store.ids() == ["a", "b"]


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s.open("a"),
        lambda s: s.reset("a"),
        lambda s: s.trim("a", 1),
        lambda s: s.inject("a", USER),
        lambda s: s.append_event("a", {"kind": "x"}),
        lambda s: s.subscribe("a", print),
        lambda s: s.store_transcript("a", {}),
    ],
)
def test_all_else_is_use(use: Callable[[SessionRegistry], Any]) -> None:
    store = SessionRegistry()
    store.open("a")
    store.open("b")
    use(store)
    assert store.ids() == ["b", "a"]


def test_an_evicted_session_hears_why_and_is_gone() -> None:
    store = SessionRegistry(cap=1)
    heard: list[dict[str, Any]] = []
    store.subscribe("a", heard.append)
    store.open("b")
    assert [(event["type"], event["reason"]) for event in heard] == [("agent_session_closed", "lru_evicted")]
    assert store.ids() == ["b"]


def test_a_driven_session_is_never_evicted() -> None:
    store = SessionRegistry(cap=1)
    store.open("a")
    with store.enter("a"):
        store.open("b")
        assert store.ids() == ["a", "b"]
        store.open("c")
        assert store.ids() == ["a", "c"]
    store.open("d")
    assert store.ids() == ["c", "d"]


def test_with_cap_one_a_fork_outlives_its_parent() -> None:
    store = SessionRegistry(cap=1)
    store.open("a")
    store.inject("a", USER)
    store.fork("a", "b")
    assert store.ids() == ["b"]
    assert store.messages("b") == [USER]
    assert store.ancestry("b") == {"parent_id": "a", "child_ids": [], "root_id": "a"}


def test_a_fork_that_evicts_its_source_has_the_transcript_from_before() -> None:
    store = SessionRegistry(cap=2)
    store.open("driven")
    store.open("a")
    store.inject("a", USER)
    with store.enter("driven"):
        store.fork("a", "b")
    assert store.ids() == ["driven", "b"]
    assert [event["kind"] for event in (store.snapshot("b") or {})["events"]] == ["message"]


def test_a_lower_cap_takes_effect_as_sessions_come() -> None:
    store = SessionRegistry()
    for id in "abc":
        store.open(id)
    store.set_cap(0)
    assert (store.cap, store.ids()) == (1, ["a", "b", "c"])
    store.open("d")
    assert store.ids() == ["b", "c", "d"]


def test_a_subscriber_of_the_evicted_may_open_the_very_session_that_needs_room() -> None:
    store = SessionRegistry(cap=1)

    def on_event(event: dict[str, Any]) -> None:
        store.open("b")
        store.inject("b", USER)

    store.subscribe("a", on_event)
    store.open("b")
    assert store.messages("b") == [USER]


# The current-session stack.


def test_the_innermost_session_is_current(store: SessionRegistry) -> None:
    assert store.current_id() is None
    with store.enter("s"):
        with store.enter("inner"):
            assert store.current_id() == "inner"
        with store.enter(" "):
            assert store.current_id() == "s"
        with pytest.raises(ValueError, match="x"), store.enter("t"):
            raise ValueError("x")
        assert store.current_id() == "s"
    assert store.current_id() is None


def test_each_task_has_its_own_stack() -> None:
    stacks = {"one": SessionStack(), "two": SessionStack()}
    running = "one"
    store = SessionRegistry(stack=lambda: stacks[running])
    with store.enter("a"):
        running = "two"
        assert store.current_id() is None
        running = "one"
        assert store.current_id() == "a"
        assert stacks["one"].branch().current() == "a"


# What is in Python's hands.


def test_what_is_given_and_what_is_got_can_be_changed_without_harm(store: SessionRegistry) -> None:
    block = {"type": "text", "text": "x"}
    message = {"role": "user", "content": [block]}
    store.inject("s", message)
    block["text"] = "changed"
    store.messages("s")[-1]["content"][0]["text"] = "changed"
    snapshot = store.snapshot("s") or {}
    snapshot["messages"].clear()
    snapshot["events"][-1]["blocks"].clear()
    assert snapshot["messages"] == []
    assert contents(store, "s")[-1] == [{"type": "text", "text": "x"}]
    assert (store.snapshot("s") or {})["events"][-1]["text"] == "x"


def test_a_snapshot_stands_still(store: SessionRegistry) -> None:
    snapshot = store.snapshot("s") or {}
    store.inject("s", USER)
    store.fork("s")
    assert (snapshot["length"], len(snapshot["messages"]), snapshot["child_ids"]) == (3, 3, [])


# Workspace options of open.


def test_open_takes_a_workspace(store: SessionRegistry) -> None:
    anchor = {
        "primary": "src/./lib/..",
        "additional_roots": [{"path": "//x//", "mount_mode": "read_write"}, "y"],
    }
    store.open("w", {"workspace_anchor": anchor, "workspace_policy": {"default_mount_mode": "read_only"}})
    snapshot = store.snapshot("w") or {}
    stamp = "2026-01-01T00:00:00.042Z"
    assert snapshot["workspace_anchor"] == {
        "primary": "/work/src",
        "additional_roots": [
            {"path": "/x", "mount_mode": "read_write", "mounted_at": stamp},
            {"path": "/work/y", "mount_mode": "read_only", "mounted_at": stamp},
        ],
        "anchored_at": stamp,
    }
    assert [(event["kind"], event["text"]) for event in snapshot["events"]] == [
        ("session_workspace", "policy_set"),
        ("session_workspace", "anchor_set"),
    ]
    store.open("w", {"workspace_anchor": None})
    assert (store.snapshot("w") or {})["workspace_anchor"] is None
    assert (store.snapshot("w") or {})["events"][-1]["text"] == "anchor_cleared"


def test_a_fork_takes_the_workspace_along(store: SessionRegistry) -> None:
    store.open("w", {"workspace_anchor": "/a", "workspace_policy": {"default_mount_mode": "read_write"}})
    child = store.snapshot(store.fork("w")) or {}
    assert child["workspace_anchor"]["primary"] == "/a"
    assert child["workspace_policy"] == {"default_mount_mode": "read_write"}


# Transcripts from outside.


def test_a_stored_transcript_replaces_the_messages_and_keeps_the_rest(store: SessionRegistry) -> None:
    store.append_event("s", {"kind": "early"})
    store.store_transcript(
        "s",
        {
            "messages": [said("x")],
            "events": [{"id": "m", "kind": "message"}, {"id": "e", "kind": "late"}],
            "summary": "sum",
            "state": "paused",
        },
    )
    snapshot = store.snapshot("s") or {}
    assert [event["kind"] for event in snapshot["events"]] == ["message", "early", "late"]
    assert (snapshot["summary"], snapshot["state"], contents(store, "s")) == ("sum", "paused", ["x"])
    messages, summary = store.prompt_state("s")
    assert (messages[0], summary) == (said("sum"), "sum")


def test_a_summary_that_stands_first_isnt_put_there_again(store: SessionRegistry) -> None:
    store.store_transcript("s", {"messages": [said("sum"), said("x")], "summary": "sum"})
    assert store.prompt_state("s")[0] == [said("sum"), said("x")]


def test_clear_forgets_everything(store: SessionRegistry) -> None:
    store.clear()
    assert store.ids() == []
    store.open("s")
    assert store.messages("s") == []


def test_a_scratchpad_that_holds_itself_is_refused() -> None:
    store = SessionRegistry()
    store.open("s")
    scratchpad: dict[str, Any] = {}
    scratchpad["self"] = scratchpad
    for value in (scratchpad, {1: 2}, {"x": float("nan")}, {"x": {1, 2}}):
        with pytest.raises(InvalidArgument, match="must be JSON-serializable"):
            store.set_scratchpad("s", value)  # type: ignore[arg-type]
    assert store.session("s").version == 1  # type: ignore[union-attr]


def test_a_session_seeded_while_another_takes_its_id_is_refused(tmp_path: Path) -> None:
    sidecar = tmp_path / "x.jsonl"
    sidecar.write_text('{"type": "message", "role": "user", "content": "recorded"}\n')
    store = SessionRegistry(cap=1)

    def on_event(event: dict[str, Any]) -> None:
        store.open("z")
        store.inject("z", USER)

    store.subscribe("a", on_event)
    seeded = store.seed_from_jsonl(str(sidecar), {"rename_session": "z"})
    assert seeded["error"] == "agent_session_seed_from_jsonl: session id 'z' already exists"
    assert store.messages("z") == [USER]
    assert [event.type for event in store.session("z").events()] == ["session_created", "message_added"]  # type: ignore[union-attr]


def test_a_fork_that_is_interrupted_leaves_nothing_behind() -> None:
    store = SessionRegistry(cap=2)

    def on_event(event: dict[str, Any]) -> None:
        raise Interruption

    store.subscribe("victim", on_event)
    store.open("src")
    store.inject("src", USER)
    with pytest.raises(Interruption):
        store.fork("src", "dst")
    assert store.ids() == ["src"]
    assert store.fork("src", "dst") == "dst"
    assert store.messages("dst") == [USER]


def test_a_long_chain_of_forks_costs_the_same_at_every_link() -> None:
    def seconds(size: int) -> float:
        store = SessionRegistry(cap=size + 1)
        store.open("0")
        store.inject("0", USER)
        return processor_time(lambda: [store.fork(str(link), str(link + 1)) for link in range(size)])

    assert_linear(seconds, 1_000)
