"""Events from bytes: the same however the bytes come, as the HTML standard says, in bounded memory."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.net.sse import Decoder, Event, EventTooLong
from tests.counts import COUNT

EXAMPLES = settings(max_examples=COUNT.examples(12), deadline=None)
PIECES = st.sampled_from(
    [
        "data",
        "id",
        "event",
        "retry",
        ":",
        ": ",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "7",
        "x",
        "ä",
        "\0",
        "\ufeff",
        "data:a\n\n",
    ]
)
STREAMS = st.lists(PIECES, max_size=24).map("".join)


def decoded(*pieces: bytes, most: int = 1000) -> list[Event]:
    decoder = Decoder(most)
    return [event for piece in pieces for event in decoder.feed(piece)]


def by_the_standard(text: str) -> list[Event]:
    """The events of a stream that is there as a whole (HTML, 9.2.6)."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]
    found, last_id, name, data, retry = [], None, "", "", None
    for line in lines:
        field, _, value = line.partition(":")
        value = value[1:] if value[:1] == " " else value
        if line == "":
            if data:
                found.append(Event(name or "message", data[:-1], last_id, retry))
            name, data, retry = "", "", None
        elif field == "data":
            data += value + "\n"
        elif field == "event":
            name = value
        elif field == "id" and "\0" not in value:
            last_id = value
        elif field == "retry" and value.isascii() and value.isdigit():
            retry = int(value)
    return found


@EXAMPLES
@given(STREAMS, st.data())
def test_events_are_those_of_the_standard_however_they_come(text: str, data: st.DataObject) -> None:
    stream = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decoded(*pieces) == by_the_standard(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("data: a\ndata:b\ndata\n\n", [Event("message", "a\nb\n")]),
        ("event: x\n\n: ping\n\ndata: a\n\n", [Event("message", "a")]),
        (
            "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
            [Event("message", *ab) for ab in ("a1", "b1")] + [Event("message", "c", "")],
        ),
        ("id: 1\0\ndata: a\n\n", [Event("message", "a")]),
        (
            "retry: 10\ndata: a\n\nretry: soon\ndata: b\n\n",
            [Event("message", "a", None, 10), Event("message", "b")],
        ),
        ("data: cut", []),
        ("data: cut\n", []),
        ("\ufeffdata: a\n\n", [Event("message", "a")]),
    ],
)
def test_fields(text: str, expected: list[Event]) -> None:
    assert decoded(text.encode()) == expected


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert decoded(b"data: \xff\n\n") == [Event("message", "\ufffd")]


def test_an_id_without_data_is_where_to_go_on() -> None:
    decoder = Decoder(100, "before")
    assert [*decoder.feed(b"id: 7\nretry: 5\n")] == []
    assert (decoder.last_id, decoder.retry_ms) == ("before", 5)
    assert [*decoder.feed(b"\n")] == []
    assert decoder.last_id == "7"


@pytest.mark.parametrize("line", [b"data: 12345\n", b"id: 12345\n", b"whatever\n", b"data\n" * 3])
def test_an_event_is_bounded(line: bytes) -> None:
    size = len(line.replace(b"\n", b""))
    decoded(line + b"\n", most=size)
    with pytest.raises(EventTooLong):
        decoded(line[:-1], b"x", most=size)
    with pytest.raises(EventTooLong):
        decoded(*[line] * 2, most=size)


def test_comments_and_many_events_are_not() -> None:
    assert len(decoded(*[b": ping\n", b"data: a\n\n"] * 100, most=8)) == 100
