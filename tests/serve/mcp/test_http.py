"""The streamable HTTP transport: the SDK's client, keys, and what a browser may not do. Spec: 09 §11.4."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
import mcp_types as types
import pytest
import trustme
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from harnpy import World
from harnpy.serve.mcp_http import serve_http
from harnpy.serve.site import Site
from tests.mcp.test_http import client_of
from tests.serve.mcp.serving import served, text_of

FILE = """
var waiting = 0
pub fn hello(name: string) -> string { return "hello ${name}" }
pub fn sleepy() {
  waiting = waiting + 1
  defer { waiting = waiting - 1 }
  sleep(600000)
}
pub fn asleep() { return waiting }
pub fn long(size: int) -> string { return "x".repeat(size) }
pub fn told(size: int) -> string {
  progress("half", "way", 1, 2)
  return "x".repeat(size)
}
pub fn order() -> string { return "for ${ask_user("Who?")}" }
"""
LOOPBACK = "127.0.0.1"


def at(site: Site, path: Path, session: Callable[[str], Awaitable[None]]) -> None:
    """Serve `FILE` at a site, and do ``session`` with its URL."""

    async def main() -> None:
        async with served(path / "hello.harn", FILE) as server:
            url = asyncio.get_running_loop().create_future()
            serving = asyncio.create_task(serve_http(server, site, World().listening, url.set_result))
            try:
                await session(await url)
            finally:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(main())


def test_the_sdk_calls_it(tmp_path: Path) -> None:
    async def session(url: str) -> None:
        assert url.endswith("/harn")
        async with Client(url) as client:
            calls = (client.call_tool("hello", {"name": f"n{i}"}) for i in range(30))
            results = await asyncio.gather(*calls)
            assert [text_of(result) for result in results] == [f"hello n{i}" for i in range(30)]

    at(Site(LOOPBACK, 0, "/harn"), tmp_path, session)


def test_a_client_cancels_a_call_and_another_one_leaves(tmp_path: Path) -> None:
    async def session(url: str) -> None:
        async with Client(url) as client:
            call = asyncio.create_task(client.call_tool("sleepy", {}))
            async with Client(url) as other:
                leaving = asyncio.create_task(other.call_tool("sleepy", {}))
                await until(client, "2")
                leaving.cancel()
            await until(client, "1")
            call.cancel()
            await until(client, "0")
        await asyncio.gather(call, leaving, return_exceptions=True)

    at(Site(LOOPBACK, 0), tmp_path, session)


async def until(client: Client, text: str) -> None:
    while text_of(await client.call_tool("asleep", {})) != text:
        await asyncio.sleep(0)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_long_result_is_no_event(tmp_path: Path, mode: str) -> None:
    """The SDK's client takes events of at most 1 MiB, and a result is there twice: as text and structured."""

    async def session(url: str) -> None:
        async with Client(url, mode=mode) as client:
            for size in (1, 100_000, 150_000, 700_000, 3_000_000):
                result = await client.call_tool("long", {"size": size})
                assert result.structured_content == {"result": "x" * size}
            assert text_of(await client.call_tool("hello", {"name": "you"})) == "hello you"

            notes: list[float] = []

            async def note(progress: float, total: float | None, message: str | None) -> None:
                notes.append(progress)

            result = await client.call_tool("told", {"size": 100_000}, progress_callback=note)
            assert (len(text_of(result)), notes) == (100_000, [1])

    at(Site(LOOPBACK, 0), tmp_path, session)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_call_asks_the_user_of_its_client(tmp_path: Path, mode: str) -> None:
    async def user(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"answer": "Ada"})

    async def session(url: str) -> None:
        async with (
            httpx2.AsyncClient(headers={"X-API-Key": "first"}) as http,
            Client(
                streamable_http_client(url, http_client=http), mode=mode, elicitation_callback=user
            ) as client,
        ):
            assert text_of(await client.call_tool("order", {})) == "for Ada"

    at(Site(LOOPBACK, 0, keys=("first", "second")), tmp_path, session)


def test_a_state_is_of_the_client_that_got_it(tmp_path: Path) -> None:
    async def user(context: object, params: object) -> types.ElicitResult:
        raise AssertionError("asked")

    async def session(url: str) -> None:
        async with (
            httpx2.AsyncClient(headers={"X-API-Key": "first"}) as first,
            httpx2.AsyncClient(headers={"X-API-Key": "second"}) as second,
            Client(streamable_http_client(url, http_client=first), elicitation_callback=user) as ada,
            Client(streamable_http_client(url, http_client=second), elicitation_callback=user) as eve,
        ):
            asked = await ada.session.call_tool("order", {}, allow_input_required=True)
            assert isinstance(asked, types.InputRequiredResult)
            with pytest.raises(MCPError, match="Unknown request state"):
                await eve.session.call_tool("order", {}, request_state=asked.request_state)

    at(Site(LOOPBACK, 0, keys=("first", "second")), tmp_path, session)


@pytest.mark.parametrize("version", [None, "2025-11-25"])
def test_our_own_client_calls_it(tmp_path: Path, version: str | None) -> None:
    async def session(url: str) -> None:
        async with client_of(url, protocol_version=version) as client:
            assert await client.call("hello", {"name": "you"}) == "hello you"
            assert await client.call("asleep", {}) == "0"
            assert len(await client.call("long", {"size": 2_000_000})) == 2_000_000
            call = asyncio.ensure_future(client.call("sleepy", {}))
            while await client.call("asleep", {}) != "1":
                await asyncio.sleep(0)
            call.cancel()
            while await client.call("asleep", {}) != "0":
                await asyncio.sleep(0)

    at(Site(LOOPBACK, 0), tmp_path, session)


def test_keys(tmp_path: Path) -> None:
    async def session(url: str) -> None:
        async with httpx2.AsyncClient() as http:
            for headers in (
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": "Basic first"},
                {"X-API-Key": "firs"},
                {"X-API-Key": "ö".encode()},
                {"Authorization": "Bearer first", "X-API-Key": "wrong"},
            ):
                refused = await http.post(url, json={}, headers=headers)
                assert (refused.status_code, refused.text) == (401, "auth failed")
                assert refused.headers["WWW-Authenticate"] == "Bearer"
        for headers in ({"Authorization": "bearer first"}, {"X-API-Key": "second"}):
            async with (
                httpx2.AsyncClient(headers=headers) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                assert text_of(await client.call_tool("hello", {"name": "x"})) == "hello x"

    at(Site(LOOPBACK, 0, keys=("first", "second")), tmp_path, session)


def test_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    own = authority.issue_cert(LOOPBACK)
    certificate = b"".join(blob.bytes() for blob in own.cert_chain_pems).decode()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def session(url: str) -> None:
        assert url.startswith("https://")
        async with (
            httpx2.AsyncClient(verify=trusting) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            assert text_of(await client.call_tool("hello", {"name": "x"})) == "hello x"

    key = own.private_key_pem.bytes().decode()
    at(Site(LOOPBACK, 0, certificate=certificate, key=key), tmp_path, session)


def test_web_pages_are_refused(tmp_path: Path) -> None:
    async def session(url: str) -> None:
        port = url.rpartition(":")[2].partition("/")[0]
        async with httpx2.AsyncClient() as http:
            for headers, status in (
                ({"Host": "evil.example"}, 421),
                ({"Host": f"evil.example:{port}"}, 421),
                ({"Host": f"127.0.0.1.evil.example:{port}"}, 421),
                ({"Origin": "http://evil.example"}, 403),
                ({"Origin": "null"}, 403),
                ({"Origin": "http://localhost.evil.example"}, 403),
                ({"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"}, 400),
                ({"Host": "box.example", "Origin": "https://box.example"}, 400),
            ):
                answer = await http.post(url, json={}, headers=headers)
                assert answer.status_code == status, headers

    at(Site(LOOPBACK, 0, hosts=("box.example",)), tmp_path, session)


@pytest.mark.parametrize(
    ("site", "exposed"),
    [
        (Site("127.0.0.1", 1), False),
        (Site("::1", 1), False),
        (Site("0.0.0.0", 1), True),
        (Site("::", 1), True),
        (Site("192.0.2.1", 1), True),
        (Site("0.0.0.0", 1, keys=("k",)), False),
    ],
)
def test_an_address_that_anybody_may_call(site: Site, exposed: bool) -> None:
    assert site.is_exposed is exposed
