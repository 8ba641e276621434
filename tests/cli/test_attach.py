"""What `harnpy attach` shows, at any terminal; tests/client tries it with a server. Spec: 11 §3.2."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from harnpy.cli.attach_screen import Screen, last_rows
from harnpy.cli.attachment import Attachment, Refused, event_text, message_text, request_text
from harnpy.client import ApiError, AsyncClient
from harnpy.client.types import Client, Event, Request, Session
from tests.support import Command


def event(type: str, **data: Any) -> Event:
    return Event(id="e", seq=1, type=type, time="", turn=None, cost=None, data=data)


def session(**more: Any) -> Session:
    facts: dict[str, Any] = dict.fromkeys(("agent", "label", "created_at", "updated_at"), "")
    facts |= dict.fromkeys(("owner", "parent", "fork_seq", "messages"))
    facts |= {"status": "active", "execution": "idle", "depth": 0, "cost": 1.25, "seq": 1, "revision": 1}
    return Session(id="s", **facts, controller="desk", **more)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ({"role": "user", "content": "one\n\ntwo"}, "user: one\n\n  two"),
        (
            {"role": "assistant", "content": [{"type": "text", "text": "\x1b[2J\u202e"}]},
            "assistant: ␛[2J\\u202e",
        ),
        ({"role": "tool", "content": "日本語の返事\nand more"}, "  <- 日本語の返…"),
        (
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}],
            },
            "  -> f {}",
        ),
    ],
)
def test_messages(message: dict[str, Any], shown: str) -> None:
    assert message_text(message, 16) == shown
    assert event_text(event("message_added", **message), 16) == shown


@pytest.mark.parametrize(
    ("type", "data", "shown"),
    [
        ("turn_completed", {"turn_stop_reason": "completed"}, None),
        (
            "turn_completed",
            {"turn_stop_reason": "failed", "error": "no\nmodel"},
            "(the turn failed: no model)",
        ),
        ("approval_resolved", {"decision": "deny", "reason": "\x07no"}, "(denied: ␇no)"),
        ("approval_resolved", {"decision": "deny", "reviewers": ["bo\x07b"]}, "(denied by bo␇b)"),
        ("step_started", {}, None),
    ],
)
def test_events(type: str, data: dict[str, Any], shown: str | None) -> None:
    assert event_text(event(type, **data), 40) == shown


def test_requests() -> None:
    request = Request(
        id="r", session="s", kind="approval", prompt="", since="", tool="rm", args='{"path":"\x1b"}'
    )
    assert request_text(request) == '? Approve: rm {"path":"␛"}\n  /allow or /deny REASON'


def test_the_last_rows_of_an_answer() -> None:
    assert last_rows("a long line\n日本語", 4, 3) == ["ine", "日本", "語"]
    assert last_rows("one\n\ntwo" * 999, 3, 2) == ["", "two"]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (80, "parcel-42-of-ada · desk controls · waits for you · $1.2500"),
        (50, "parcel-… · desk controls · waits for you · $1.2500"),
        (30, "desk controls · waits for you "),
    ],
)
def test_the_status(width: int, shown: str) -> None:
    attachment = Attachment(AsyncClient("http://a"), "parcel-42-of-ada", "me", lambda text: None)
    request = Request(id="r", session="s", kind="question", prompt="?", since="")
    attachment.session = session(requests=[request], may=["approve"])
    assert attachment.status(width) == shown
    assert len(shown) <= width


def test_the_status_names_the_principal_and_for_whom_a_turn_waits() -> None:
    attachment = Attachment(AsyncClient("http://a"), "s", "me", lambda text: None)
    desk = Client(client_id="desk", mode="controller", attached_at="", last_seen_at="", principal="ada")
    request = Request(id="r", session="s", kind="question", prompt="?", since="")
    attachment.session = session(requests=[request], may=["read"], clients=[desk])
    assert attachment.status(80) == "s · ada controls · waits for somebody else · $1.2500"
    for may, why in ((["read"], "you may read this session and not send to it"), (["write"], "/take takes")):
        attachment.session = session(may=may)
        with pytest.raises(Refused, match=why):
            asyncio.run(attachment.enter("hi"))


def test_what_was_refused_is_in_the_history_and_not_before_the_next_command() -> None:
    async def typed() -> tuple[str, list[str]]:
        screen = Screen()
        screen._attachment = Attachment(AsyncClient("http://a"), "s", "me", screen.show)
        screen._attachment.session = session(may=["write"])
        screen._buffer.text = "hi there"
        screen._buffer.validate_and_handle()
        await asyncio.gather(*screen._tasks)
        return screen._buffer.text, screen._buffer.history.get_strings()

    with create_pipe_input() as stdin, create_app_session(input=stdin, output=DummyOutput()):
        assert asyncio.run(typed()) == ("", ["hi there"])


def test_only_the_request_that_was_seen_is_answered() -> None:
    """Somebody else may have answered it while the person was typing, and another one may be open."""
    attachment = Attachment(AsyncClient("http://127.0.0.1:1"), "s", "me", lambda text: None)
    attachment.session = session(
        requests=[Request(id="b", session="s", kind="approval", prompt="", since="")]
    )
    for line, seen in [("y", "a"), ("/allow", "a"), ("/deny no", "")]:
        with pytest.raises(Refused, match=r"^another request is open by now: look at it first$"):
            asyncio.run(attachment.enter(line, seen=seen))
    for line, seen in [("y", "b"), ("/allow b", "a"), ("/deny", None)]:
        with pytest.raises(ApiError, match="connection refused"):  # it was on its way
            asyncio.run(attachment.enter(line, seen=seen))


def test_wrong_ways_to_attach(harnpy: Command) -> None:
    done = harnpy("attach", "127.0.0.1:4721", "s")
    assert done.stderr == "error: the address of a server is a URL such as http://127.0.0.1:4721\n"
    done = harnpy("attach", "http://127.0.0.1:1", "s", "--token-env", "NOPE")
    assert done.stderr == "error: there is no variable NOPE in the environment, which --token-env names\n"
    done = harnpy("attach", "http://127.0.0.1:1", "s")
    assert done.stderr.startswith("error: there is no connection to http://127.0.0.1:1: connection refused")
    assert (done.returncode, done.stdout) == (1, "")
