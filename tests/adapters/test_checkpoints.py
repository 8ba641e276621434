"""What LangGraph's serializer writes, read without it. Spec: 10 §C20."""

from __future__ import annotations

import dataclasses
import re
from collections import deque
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from pathlib import PosixPath
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Interrupt, Send
from pydantic import BaseModel, SecretStr

from harnpy.adapters.checkpoints import Unread, is_internal, messages, plain, texts


class Colour(Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Order:
    item: str
    at: datetime


class Customer(BaseModel):
    name: str
    key: SecretStr


def written(value: Any) -> tuple[str, bytes]:
    return JsonPlusSerializer().dumps_typed(value)


PLAIN = [
    (None, None),
    ({"a": [1, 2.5, "x", None, True]}, {"a": [1, 2.5, "x", None, True]}),
    ({1: "one", "two": 2}, {"1": "one", "two": 2}),
    ((1, 2), [1, 2]),
    ({3}, [3]),
    (deque([1]), [1]),
    (b"raw", b"raw"),
    (Colour.RED, "red"),
    (Point(1, 2), {"x": 1, "y": 2}),
    (UUID("12345678123456781234567812345678"), "12345678-1234-5678-1234-567812345678"),
    (PosixPath("/a/b"), "/a/b"),
    (re.compile("x+"), "x+"),
    (date(2026, 1, 31), "2026-01-31"),
    (timedelta(days=1, seconds=2), [1, 2, 0]),
    (Order("tea", datetime(2026, 1, 2, tzinfo=UTC)), {"item": "tea", "at": "2026-01-02T00:00:00+00:00"}),
    (Customer(name="Ada", key=SecretStr("hidden")), {"name": "Ada", "key": "**********"}),
    (Send("node", {"x": 1}), {"node": "node", "arg": {"x": 1}}),
]


@pytest.mark.parametrize(("value", "expected"), PLAIN, ids=lambda value: type(value).__name__)
def test_objects_are_what_they_are_made_of(value: Any, expected: Any) -> None:
    assert plain(written(value)) == expected


def test_values_from_before_messagepack() -> None:
    made = b'{"lc": 2, "type": "constructor", "id": ["uuid", "UUID"], "kwargs": {"hex": "12"}}'
    assert plain(("json", b'{"a": ' + made + b"}")) == {"a": {"hex": "12"}}


@pytest.mark.parametrize(
    "value",
    [
        ("pickle", b"\x80\x04N."),
        ("msgpack+aes", b"????"),
        ("msgpack", b"\xc1"),
        ("msgpack", b"\xc7\x01\x05\xc0"),  # an object without a class
        ("json", b"{"),
        ("msgpack", b"\x91" * 2_000),
    ],
)
def test_what_is_not_plain_is_said_to_be_unread(value: tuple[str, bytes]) -> None:
    found = plain(value)
    assert found == Unread(f"{value[0]}, {len(value[1])} bytes")
    assert str(found).startswith("not readable here (")
    assert list(texts([("channel", value)])) == []


def test_messages_are_as_sessions_have_them() -> None:
    call = {"name": "look", "args": {"where": "barn"}, "id": "c"}
    said = [
        SystemMessage("Be brief."),
        HumanMessage("Which horse?"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("a mare", tool_call_id="c"),
        AIMessageChunk("A mare."),
        {"role": "developer", "content": "x"},
    ]
    found = messages(plain(written(said)))
    assert found is not None
    assert [(message["role"], message["content"]) for message in found] == [
        ("system", "Be brief."),
        ("user", "Which horse?"),
        ("assistant", ""),
        ("tool", "a mare"),
        ("assistant", "A mare."),
        ("developer", "x"),
    ]
    assert found[2]["tool_calls"] == [{"id": "c", "name": "look", "arguments": {"where": "barn"}}]
    assert [messages(value) for value in ([], ["a"], "a", {"content": "a"}, [found[0], 1])] == [None] * 5


def test_texts_are_what_was_said_and_no_names_or_ids() -> None:
    call = {"name": "look", "args": {"where": "the barn"}, "id": "c"}
    blocks = [{"type": "text", "text": "two\nlines"}, {"type": "image", "url": "http://x"}]
    channels = {
        "messages": [AIMessage(blocks, tool_calls=[call], id="an-id")],
        "notes": {"key": ["one", {"deep": "two"}]},
        "number": 1,
        "branch:to:a": "never",
        "__interrupt__": [Interrupt(value="Go on?", id="0123")],
    }
    found = list(texts((channel, written(value)) for channel, value in channels.items()))
    assert found == ["two lines", "look", "the barn", "one", "two", "Go on?"]


def test_the_channels_of_the_framework() -> None:
    assert [is_internal(name) for name in ("messages", "branch:to:a", "__start__")] == [False, True, True]
