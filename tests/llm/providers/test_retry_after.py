"""When a service wants to be asked again, in every spelling (07 §1.7)."""

from __future__ import annotations

import asyncio
import json
import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from harnpy.llm.errors import CallError
from harnpy.llm.providers import make_provider
from harnpy.llm.providers.service_errors import call_error
from harnpy.world.http import RealHttp
from tests.llm.providers.test_providers import BOTH, _complete, config
from tests.llm.wire import OPENAI, Fail, Raw, Say, Wire


def _refused(protocol: str, answer: Fail | Raw) -> CallError:
    with Wire(protocol, answer) as wire:
        provider = make_provider(config(wire), RealHttp(), now=lambda: 1445412470.0)
        with pytest.raises(CallError) as caught:
            asyncio.run(_complete(provider))
    return caught.value


@BOTH
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"Retry-After": " 1.5 "}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 10),
        ({"retry-after": "Wednesday, 21-Oct-15 07:28:00 GMT"}, 10),
        ({"retry-after": "Wed Oct 21 07:28:00 2015"}, 10),
        ({"retry-after": "Wed, 21 Oct 2015 07:27:00 GMT"}, 0),  # has passed
        ({"retry-after": "86400"}, 60),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "1500.5", "retry-after": "9"}, 1.5005),
        ({"x-ms-retry-after-ms": "3000"}, 3),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_retry_after_is_a_number_on_the_last_line(
    protocol: str, headers: dict[str, str], seconds: float | None
) -> None:
    error = _refused(protocol, Fail(429, headers=tuple(headers.items())))
    assert error.retry_after == seconds
    last = error.message.splitlines()[-1]
    assert last == (f"retry-after: {seconds:g}" if seconds is not None else error.message)
    assert CallError(error.category, error.message).retry_after == pytest.approx(seconds)
    assert pickle.loads(pickle.dumps(error)).retry_after == seconds


@pytest.mark.parametrize(
    ("details", "seconds"),
    [
        ([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3s"}], 3),
        ([{"violations": []}, {"retryDelay": "0.250s"}], 0.25),
        ([{"retryDelay": "34.074824224s"}], 34.074824224),
        ([{"retryDelay": "3"}, {"retryDelay": 5}, "x"], None),
        ({"retryDelay": "3s"}, None),
        (None, None),
    ],
)
@pytest.mark.parametrize("listed", [True, False])
def test_google_says_when_to_try_again_in_the_body(details: Any, seconds: float | None, listed: bool) -> None:
    body = {"error": {"code": 429, "message": "Please retry in 7s.", "details": details}}
    answer = Raw(json.dumps([body] if listed else body).encode(), status=429)
    assert _refused(OPENAI, answer).retry_after == seconds


def test_a_header_comes_before_the_body() -> None:
    class Refused(Exception):
        status_code, body = 429, {"error": {"details": [{"retryDelay": "3s"}]}}
        response = SimpleNamespace(headers={"retry-after": "5"})

    with Wire(OPENAI, Say()) as wire:
        error = call_error(Refused(), config(wire), 0.0)
    assert error is not None
    assert error.retry_after == 5
