"""Redirects: credentials stay with the origin that they were meant for."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import openai
import pytest

from harnpy.world.http import RealHttp

CREDENTIALS = {
    "authorization": "Bearer k",
    "x-api-key": "k",
    "api-key": "k",
    "cookie": "sid=k",
    "x-goog-api-key": "k",
    "x-my-own-header": "k",
}


def received(hops: list[str], **options: Any) -> list[Any]:
    """The requests that arrive when each URL redirects to the next one."""
    import httpx2

    arrived: list[Any] = []

    def handle(request: Any) -> Any:
        arrived.append(request)
        after = hops[hops.index(str(request.url)) + 1 :]
        return (
            httpx2.Response(307, headers={"location": after[0]})
            if after
            else httpx2.Response(200, text="end")
        )

    class Client(openai.DefaultAsyncHttpxClient):
        def __init__(self, verify: object) -> None:
            super().__init__(transport=httpx2.MockTransport(handle), follow_redirects=True, max_redirects=3)

    async def send() -> None:
        client = RealHttp().sdk_client(SimpleNamespace(DefaultAsyncHttpxClient=Client), 1 << 20)
        async with client:
            response = await client.post(hops[0], headers=CREDENTIALS, json={"a": 1}, **options)
            assert response.status_code == (200 if len(arrived) == len(hops) else 307)

    asyncio.run(send())
    return arrived


@pytest.mark.parametrize(
    "other",
    ["https://elsewhere.test/a", "http://api.test/a", "https://api.test:8443/a", "https://sub.api.test/"],
)
def test_another_origin_receives_no_credentials(other: str) -> None:
    first, second = received(["https://api.test/v1", other])
    assert set(CREDENTIALS) <= set(first.headers)
    assert not set(CREDENTIALS) & set(second.headers)
    assert second.content == first.content
    assert second.headers["content-type"] == "application/json"


def test_the_same_origin_receives_them_again() -> None:
    _, second = received(["https://api.test/v1", "https://api.test/v2"])
    assert set(CREDENTIALS) - {"cookie"} <= set(second.headers)


def test_credentials_do_not_come_back_with_the_origin() -> None:
    hops = ["https://api.test/v1", "https://elsewhere.test/a", "https://api.test/v2"]
    assert not set(CREDENTIALS) & set(received(hops)[-1].headers)


def test_redirects_end() -> None:
    assert len(received([f"https://api.test/{n}" for n in range(9)])) == 4


def test_a_call_may_refuse_redirects() -> None:
    assert len(received(["https://api.test/1", "https://api.test/2"], follow_redirects=False)) == 1
