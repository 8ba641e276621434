"""Connections go to addresses that were asked about, and are asked about again under another policy."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpcore2
import pytest

from harnpy.world import http_client
from harnpy.world.egress import Egress, Forbidden
from harnpy.world.egress_rules import Policy, read_policy
from harnpy.world.http_client import Connecting


def denying(*rules: str) -> Policy:
    return read_policy(None, rules, None, "stdlib")


class Net:
    """A resolver with given answers, and a system that connects to any address but those that are ``down``.

    Who connects to an address that ``hangs`` waits for ever.
    """

    def __init__(self, *answers: list[str], down: tuple[str, ...] = (), hangs: tuple[str, ...] = ()) -> None:
        self.answers = list(answers)
        self.down = down
        self.hangs = hangs
        self.connected: list[str] = []
        self.sent: list[bytes] = []

    async def resolve(self, host: str, port: int) -> list[str]:
        return self.answers.pop(0)

    async def connect_tcp(self, host: str, port: int, *rest: Any) -> httpcore2.AsyncNetworkStream:
        if host in self.hangs:
            await anyio.sleep_forever()
        if host in self.down:
            raise httpcore2.ConnectError(f"{host} is down")
        self.connected.append(host)
        return Stream(self)


class Stream(httpcore2.AsyncNetworkStream):
    def __init__(self, net: Net) -> None:
        self._net = net

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return b"x"

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._net.sent.append(buffer)

    async def start_tls(self, *rest: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        return self

    async def aclose(self) -> None:
        self._net.sent.append(b"closed")

    def get_extra_info(self, info: str) -> Any:
        return False if info == "is_readable" else None


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def connected(net: Net, egress: Egress, host: str = "a.test", **options: Any) -> Awaitable[Any]:
        monkeypatch.setattr(
            httpcore2.AnyIOBackend, "connect_tcp", lambda self, *given: net.connect_tcp(*given)
        )
        return Connecting(egress, net.resolve).connect_tcp(host, 80, **options)

    return connected


def test_the_address_that_was_looked_at_is_connected_to(connect: Any) -> None:
    net = Net(["1.1.1.1"], ["10.0.0.1"])
    asyncio.run(connect(net, Egress(denying("10.0.0.0/8"))))
    assert net.connected == ["1.1.1.1"]
    with pytest.raises(Forbidden, match=r"a.test:80: matched deny rule `10.0.0.0/8`"):
        asyncio.run(connect(net, Egress(denying("10.0.0.0/8"))))
    assert net.connected == ["1.1.1.1"]


def test_addresses_that_are_denied_or_down_are_passed_over(connect: Any) -> None:
    net = Net(["10.0.0.1", "1.1.1.1", "2.2.2.2"], down=("1.1.1.1",))
    asyncio.run(connect(net, Egress(denying("10.0.0.0/8"))))
    assert net.connected == ["2.2.2.2"]


def test_an_address_that_is_down_may_come_up_and_so_is_what_failed(connect: Any) -> None:
    net = Net(["10.0.0.1", "1.1.1.1"], [], down=("1.1.1.1",))
    with pytest.raises(httpcore2.ConnectError, match="is down"):
        asyncio.run(connect(net, Egress(denying("10.0.0.0/8"))))
    with pytest.raises(httpcore2.ConnectError, match="the host has no address"):
        asyncio.run(connect(net, Egress()))


def test_the_next_address_is_tried_while_one_takes_its_time(
    connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "_HEAD_START", 0)
    net = Net(["fd00::1", "1.1.1.1"], hangs=("fd00::1",))
    asyncio.run(connect(net, Egress()))
    assert net.connected == ["1.1.1.1"]


def test_a_connection_has_its_time(connect: Any) -> None:
    with pytest.raises(httpcore2.ConnectTimeout):
        asyncio.run(connect(Net(["1.1.1.1"], hangs=("1.1.1.1",)), Egress(), timeout=0.01))


def test_nobody_is_asked_where_an_address_is(connect: Any) -> None:
    for written in ("0x7f.1", "2130706433", "127.0.0.1.", "::ffff:127.0.0.1", "0177.1"):
        net = Net()
        asyncio.run(connect(net, Egress(), written))
        assert net.connected == ["::ffff:7f00:1" if ":" in written else "127.0.0.1"]
        with pytest.raises(Forbidden):
            asyncio.run(connect(net, Egress(denying("127.0.0.1")), written))


def test_a_host_that_cannot_be_read_is_forbidden_under_a_policy(connect: Any) -> None:
    net = Net(["1.1.1.1"], ["1.1.1.1"])
    with pytest.raises(Forbidden, match="no host"):
        asyncio.run(connect(net, Egress(denying("a")), "a b"))
    asyncio.run(connect(net, Egress(), "a b"))


def test_a_host_without_an_address_is_a_failure_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*given: Any, **options: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(anyio, "getaddrinfo", unknown)
    with pytest.raises(httpcore2.ConnectError) as error:
        asyncio.run(Connecting(Egress()).connect_tcp("a.test", 80))
    assert isinstance(error.value.__cause__, socket.gaierror)


@pytest.mark.parametrize("secured", [False, True])
def test_a_policy_ends_connections_made_before_it(connect: Any, secured: bool) -> None:
    async def use() -> None:
        net, egress = Net(["1.1.1.1"], ["10.0.0.1"]), Egress()
        fine, denied = await connect(net, egress), await connect(net, egress)
        if secured:
            fine, denied = await fine.start_tls(None), await denied.start_tls(None)
        await denied.write(b"before")
        assert not fine.get_extra_info("is_readable")
        egress.configure(denying("10.0.0.0/8"))
        # To a pool an idle connection that can be read from is one that the peer has closed.
        assert fine.get_extra_info("is_readable")
        assert denied.get_extra_info("is_readable")
        assert await fine.read(1) == b"x"
        await fine.write(b"after")
        with pytest.raises(httpcore2.ReadError, match="cut by the egress policy"):
            await denied.read(1)
        with pytest.raises(httpcore2.WriteError):
            await denied.write(b"lost")
        await denied.aclose()
        assert net.sent == [b"before", b"after", b"closed"]

    asyncio.run(use())
