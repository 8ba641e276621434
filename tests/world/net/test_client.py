"""Clients ask before every request, redirects included, and before every connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from harnpy.world.egress import Egress, EgressBlocked, Forbidden
from harnpy.world.http import RealHttp, Unreachable
from harnpy.world.http_client import Connecting, admitted
from harnpy.world.redirects import careful


class Allowing(Egress):
    """Admits the URLs that ``allows`` says yes to, and writes down what it was asked."""

    def __init__(self, allows: Callable[[str], bool] = lambda url: True) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []
        self._allows = allows

    def admit(self, surface: str, url: str, host: str | None = None) -> None:
        self.asked.append((surface, url))
        if not self._allows(url):
            raise EgressBlocked(surface, url, "h", 1, "no allow rule matched")


def with_server(use: Callable[[str, list[str]], Awaitable[Any]]) -> Any:
    """What ``use(base_url, arrived)`` returns, beside a server that redirects each `/N` to `/N-1`."""
    arrived: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            path = head.split()[1].decode()
            arrived.append(path)
            left = int(path[1:])
            line = f"307 Go\r\nLocation: /{left - 1}" if left else "200 OK"
            writer.write(f"HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n".encode())

    async def run() -> Any:
        server = await asyncio.start_server(lambda r, w: quiet(serve(r, w), w), "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        async with server:
            return await use(f"http://{host}:{port}", arrived)

    async def quiet(serving: Awaitable[None], writer: asyncio.StreamWriter) -> None:
        try:
            await serving
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    return asyncio.run(run())


def test_every_hop_is_asked_for_with_its_surface() -> None:
    egress, permitted = Allowing(), list[str]()

    async def use(base: str, arrived: list[str]) -> None:
        async with RealHttp().behind(egress).client("http_request", permit=permitted.append) as client:
            await client.get(base + "/2")
            await client.get(base + "/0", extensions={"surface": "http_download"})
        hops = [f"{base}/{n}" for n in (2, 1, 0)]
        assert egress.asked == [*(("http_request", url) for url in hops), ("http_download", hops[-1])]
        assert permitted == [*hops, hops[-1]]

    with_server(use)


def test_a_redirect_to_what_is_blocked_is_not_followed() -> None:
    async def use(base: str, arrived: list[str]) -> None:
        http = RealHttp().behind(Allowing(lambda url: not url.endswith("/1")))
        async with http.client("http_request") as client:
            with pytest.raises(EgressBlocked):
                await client.get(base + "/2")
        assert arrived == ["/2"]

    with_server(use)


def test_a_redirect_to_what_is_no_host_is_the_server_s_mistake() -> None:
    def handle(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(302, headers={"location": "http://xn--bcher-kva.test\\.good.test/"})

    class Answered(httpx2.AsyncClient):
        def __init__(self) -> None:
            super().__init__(transport=httpx2.MockTransport(handle), follow_redirects=True)

    async def use() -> None:
        async with careful(admitted(Answered, Egress(), "http_request"))() as client:
            with pytest.raises(httpx2.RemoteProtocolError, match="invalid URL in Location"):
                await client.get("http://good.test/")

    asyncio.run(use())


def test_a_forbidden_connection_blocks_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(self: Connecting, host: str, port: int, *rest: Any, **options: Any) -> Any:
        raise Forbidden(host, port, "matched deny rule `10.0.0.0/8`")

    monkeypatch.setattr(Connecting, "connect_tcp", refuse)

    async def use() -> None:
        async with RealHttp().client("http_request") as client:
            with pytest.raises(EgressBlocked, match=r"http_request blocked h.test:80 for http://h.test/ "):
                await client.get("http://h.test/")

    asyncio.run(use())


@pytest.mark.parametrize("sdk", [openai, anthropic])
@pytest.mark.parametrize("proxy", [None, "http://proxy.test:3128"])
def test_an_sdk_s_client_opens_all_connections_that_way(
    sdk: Any, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def refuse(self: Connecting, host: str, port: int, *rest: Any, **options: Any) -> Any:
        asked.append(host)
        raise Forbidden(host, port, "matched deny rule")

    monkeypatch.setattr(Connecting, "connect_tcp", refuse)
    if proxy is not None:
        monkeypatch.setenv("https_proxy", proxy)

    async def use() -> None:
        async with RealHttp().sdk_client(sdk, 1000) as client:
            with pytest.raises(EgressBlocked, match="llm_call blocked"):
                await client.get("https://h.test/")

    asyncio.run(use())
    assert asked == ["proxy.test" if proxy else "h.test"]


def test_a_check_of_a_service_is_a_model_s_call_and_follows_nothing() -> None:
    egress = Allowing()

    async def use(base: str, arrived: list[str]) -> None:
        assert await RealHttp(egress).status("GET", base + "/1", {}, 5.0) == 307
        assert arrived == ["/1"]
        assert egress.asked == [("llm_call", base + "/1")]

    with_server(use)


def test_nothing_is_asked_of_an_unreachable_service_but_its_url() -> None:
    with pytest.raises(Unreachable, match="ConnectError"):
        asyncio.run(RealHttp(Allowing()).status("GET", "http://127.0.0.1:1/", {}, 5.0))


def test_a_client_is_one_of_httpx2() -> None:
    async def use() -> None:
        async with RealHttp().client("http_request") as client:
            assert isinstance(client, httpx2.AsyncClient)
            assert client.follow_redirects

    asyncio.run(use())
