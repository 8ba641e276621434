"""Messages to events: blocks, visibility, text (08 §2.1–2.3)."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.session import EventDraft, Session
from harnpy.session.transcript import content_blocks, lifecycle_event, message_event, plain_message


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "text", "text": "hi"}, "hi"),
        ({"type": "output_text", "content": "hi"}, "hi"),
        ({"type": "text"}, ""),
        ({"text": "no type"}, "no type"),
        ({"type": "reasoning", "text": "hm"}, ""),
        ({"type": "tool_call", "name": "read"}, "<tool_call:read>"),
        ({"type": "tool_call"}, "<tool_call:tool>"),
        ({"type": "tool_result", "name": "read"}, "<tool_result:read>"),
        ({"type": "image", "path": "a.png"}, "<image:a.png>"),
        ({"type": "input_image"}, "<image:image>"),
        ({"type": "file", "title": "T", "name": "N"}, "<file:N>"),
        ({"type": "document", "asset_id": "x"}, "<document:x>"),
        ({"type": "attachment"}, "<attachment:attachment>"),
        ({"type": "audio"}, "<audio>"),
    ],
)
def test_block_renderings(block: dict[str, Any], text: str) -> None:
    assert message_event({"role": "user", "content": [block]}, "id")["text"] == text


def test_non_empty_renderings_are_joined_by_one_space() -> None:
    blocks = [{"text": "a"}, {"type": "reasoning", "text": "b"}, {"type": "image"}, "c"]
    event = message_event({"role": "user", "content": blocks}, "id")
    assert event["text"] == "a <image:image> c"


@pytest.mark.parametrize(
    ("content", "blocks"),
    [
        (None, []),
        ("hi", [{"type": "text", "text": "hi", "visibility": "public"}]),
        (3, [{"type": "text", "text": "3", "visibility": "public"}]),
        ({"type": "image"}, [{"type": "image", "visibility": "public"}]),
        ([{"type": "x", "visibility": "private"}], [{"type": "x", "visibility": "private"}]),
    ],
)
def test_content_becomes_blocks(content: Any, blocks: list[dict[str, Any]]) -> None:
    assert content_blocks(content, "user") == blocks


@pytest.mark.parametrize(
    ("role", "visibilities", "expected"),
    [
        ("user", [], "public"),
        ("tool_result", [], "internal"),
        ("user", ["internal"], "internal"),
        ("user", ["internal", "public"], "public"),
        ("user", ["private"], "public"),
        ("tool_result", ["public", "internal"], "public"),
    ],
)
def test_visibility_follows_the_blocks(role: str, visibilities: list[str], expected: str) -> None:
    blocks = [{"type": "text", "text": "x", "visibility": visibility} for visibility in visibilities]
    assert message_event({"role": role, "content": blocks}, "id")["visibility"] == expected


def test_a_message_without_role_reads_as_the_users() -> None:
    event = message_event({"content": "x"}, "id")
    assert (event["kind"], event["role"]) == ("message", "user")


def test_a_tool_result_is_its_own_kind() -> None:
    assert message_event({"role": "tool_result", "content": "x"}, "id")["kind"] == "tool_result"


def test_only_dict_metadata_is_carried_over() -> None:
    assert message_event({"role": "user", "metadata": {"a": 1}}, "id")["metadata"] == {"a": 1}
    assert "metadata" not in message_event({"role": "user", "metadata": "a"}, "id")


def test_lifecycle_events_show_their_text_as_a_block() -> None:
    event = lifecycle_event("compaction", "done", metadata={"n": 1})
    assert event["blocks"] == [{"type": "text", "text": "done", "visibility": "internal"}]
    assert (event["role"], event["visibility"], event["metadata"]) == ("system", "internal", {"n": 1})


@pytest.mark.parametrize(
    ("message", "plain"),
    [
        ({"role": "user", "content": "x", "name": "n"}, {"role": "user", "content": "x"}),
        ({"role": "tool", "content": "x", "name": "n"}, {"role": "tool", "content": "x", "name": "n"}),
        ({"role": "assistant", "tool_calls": []}, {"role": "assistant", "tool_calls": []}),
        ({"role": "assistant"}, {"role": "assistant", "content": None}),
        ({"role": 3, "content": "x"}, None),
        (
            {"role": "user", "content": "x", "name": "n", "metadata": {"a": 1}},
            {"role": "user", "content": "x", "metadata": {"a": 1}},
        ),
        ({"role": "user", "content": "x", "metadata": "a"}, {"role": "user", "content": "x"}),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]},
            {"role": "tool_result", "tool_use_id": "t", "content": "r"},
        ),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [1]}]},
            {"role": "tool_result", "tool_use_id": "t", "content": [1]},
        ),
    ],
)
def test_loop_messages_in_a_transcript(message: dict[str, Any], plain: dict[str, Any] | None) -> None:
    assert plain_message(message) == plain


def test_a_transcript_shows_whatever_a_log_takes() -> None:
    session = Session("s")
    session.append(
        EventDraft("step_completed", {"reply": None}),
        EventDraft("step_completed", {"reply": {"model": "m", "details": None}, "purpose": None}),
        EventDraft("tool_started", {"tool": "grep", "args": "not {json", "id": "c"}),
        EventDraft("tool_completed", {"tool": "grep", "id": "c", "output": "found", "error": None}),
    )
    events = session.view.transcript("s")["events"]
    assert [event["kind"] for event in events] == ["provider_payload", "tool_intent", "tool_execution"]
    assert [event["metadata"].get("model") for event in events] == ["m", None, None]
    assert events[1]["metadata"]["arguments"] == "not {json"
    assert events[2]["text"] == "found"
