"""Responses: no header of a program's can end the head of a response. Spec: 04 §21.5."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.net.server_messages import body_to_send, headers_to_send, response
from harnpy.net.server_options import ServerFault


@given(st.dictionaries(st.text(max_size=6), st.text(max_size=6) | st.lists(st.text(max_size=6), max_size=2)))
def test_headers_are_refused_or_can_be_sent(headers: dict[str, str | list[str]]) -> None:
    try:
        made = response(200, "x", headers)
    except ServerFault:
        return
    pairs = list(headers_to_send(made["headers"]))
    sent = h11.Connection(h11.SERVER).send(h11.Response(status_code=200, headers=pairs))
    assert sent is not None
    assert sent.count(b"\r\n") == len(pairs) + 3  # the status, `connection`, the end


@pytest.mark.parametrize("name", ["content-length", "Transfer-Encoding", "connection"])
def test_the_framing_is_the_servers(name: str) -> None:
    assert list(headers_to_send(response(200, None, {name: "9", "a": "b"})["headers"])) == [(b"a", b"b")]


@pytest.mark.parametrize(("status", "sent"), [(200, b"x"), (204, b""), (304, b"")])
def test_some_statuses_have_no_body(status: int, sent: bytes) -> None:
    assert body_to_send(response(status, "x")) == sent
