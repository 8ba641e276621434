"""Nothing forbidden is connected to: however it is written, wherever it resolves to and redirects lead.

The resolver is a fake one; whatever is connected to, a recording listener accepts it instead. The rules are
judged by `places.PolicyOf`, which knows what hosts are and reads no URL.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

import anyio
import httpcore2
import httpx2
import pytest
from hypothesis import given, settings

from harnpy.world.connections import Settings
from harnpy.world.egress import Egress, EgressBlocked
from harnpy.world.egress_rules import read_policy
from harnpy.world.http import RealHttp
from tests.counts import COUNT
from tests.world.net.places import BY_ADDRESS, NAMES, Host, PolicyOf, Scenario, UrlOf, scenarios, urls

_KEYS = {host.key for host in NAMES}


class Internet:
    """Every address of the world at one loopback listener. Who connects is written down."""

    def __init__(self) -> None:
        self.egress = Egress()
        self.answers: dict[str, list[list[Host]]] = {}
        self.redirects: list[str] = []
        self.asked: list[str] = []
        self.connected: list[tuple[Any, int]] = []
        self.requested: list[str] = []

    def begin(self, policy: PolicyOf, answers: dict[str, list[list[Host]]], redirects: list[str]) -> None:
        allow, deny = ([rule.text for rule in rules] for rules in (policy.allow, policy.deny))
        self.egress.policy = read_policy(allow, deny, policy.default, "stdlib")
        self.answers = {key: list(said) for key, said in answers.items()}
        self.redirects = list(redirects)
        self.asked, self.connected, self.requested = [], [], []

    async def getaddrinfo(self, host: str, port: int, **options: Any) -> list[Any]:
        key = host.lower().rstrip(".")
        if key not in _KEYS:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        self.asked.append(key)
        said = self.answers[key]
        found = said.pop(0) if len(said) > 1 else said[0]
        return [(0, 0, 0, "", (str(each.address), port)) for each in found]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requested.append((await reader.readuntil(b"\r\n")).decode())
        to = self.redirects.pop(0) if self.redirects else None
        line = "200 OK" if to is None else f"302 Found\r\nLocation: {to}"
        writer.write(f"HTTP/1.1 {line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async def get(self, client: httpx2.AsyncClient, url: str) -> str:
        """The status, else the name of the error."""
        try:
            return str((await client.get(url)).status_code)
        except (EgressBlocked, httpx2.HTTPError, httpx2.InvalidURL) as error:
            return type(error).__name__


Net = tuple[Internet, asyncio.Runner, httpx2.AsyncClient]


@pytest.fixture(scope="module")
def net() -> Iterator[Net]:
    """The internet, and a client of it."""
    world = Internet()
    direct = httpcore2.AnyIOBackend.connect_tcp

    async def connect_tcp(self: Any, host: str, port: int, *rest: Any, **options: Any) -> Any:
        world.connected.append((ip_address(host), port))
        return await direct(self, "127.0.0.1", server.sockets[0].getsockname()[1], *rest, **options)

    with asyncio.Runner() as runner, pytest.MonkeyPatch.context() as patch:
        server = runner.run(_listening(world))
        patch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect_tcp)
        patch.setattr(anyio, "getaddrinfo", world.getaddrinfo)
        client = RealHttp().behind(world.egress).client("http_request")
        yield world, runner, client
        runner.run(client.aclose())
        server.close()


async def _listening(world: Internet) -> asyncio.Server:
    return await asyncio.start_server(world.serve, "127.0.0.1", 0)


@settings(max_examples=COUNT.examples(20), deadline=None)
@given(scenario=scenarios())
def test_only_what_may_be_reached_is_connected_to(net: Net, scenario: Scenario) -> None:
    internet, runner, client = net
    policy, hops, answers = scenario.policy, scenario.hops, scenario.answers
    internet.begin(policy, answers, [hop.text for hop in hops[1:]])
    outcome = runner.run(internet.get(client, hops[0].text))
    names = [host for host in NAMES if host.key in internet.asked]
    for address, port in internet.connected:
        assert policy.may_connect(address, port)
        written = [BY_ADDRESS[address], *(host for host in names if _resolved(host, address, answers))]
        assert any(policy.may_reach(host, port) for host in written)
    expected = _expected(policy, answers, hops)
    if expected is not None:
        assert outcome == expected
        assert len(internet.requested) == len(internet.connected)


@settings(max_examples=COUNT.examples(10), deadline=None)
@given(scenario=scenarios(odd=False), proxy=urls(odd=False))
def test_a_proxy_must_be_allowed_and_so_must_what_it_is_asked_for(
    net: Net, scenario: Scenario, proxy: UrlOf
) -> None:
    internet, runner, _ = net
    policy, hops = scenario.policy, scenario.hops
    assert proxy.host is not None
    internet.begin(policy, scenario.answers, [hop.text for hop in hops[1:]])
    http = RealHttp().behind(internet.egress)
    through = Settings(proxy=f"http://{proxy.host.plain[0]}:{proxy.port}")
    client = http.client("http_request", settings=through)
    outcome = runner.run(internet.get(client, hops[0].text))
    runner.run(client.aclose())
    expected = "200"
    left = {key: list(said) for key, said in scenario.answers.items()}
    for hop in hops:
        if not (_may_go(policy, hop) and _may_go(policy, proxy) and _arrives(policy, proxy, left)):
            expected = "EgressBlocked"
            break
    assert outcome == expected
    assert all(policy.may_connect(address, port) for address, port in internet.connected)
    assert {port for _, port in internet.connected} <= {proxy.port}
    assert len(internet.requested) == len(internet.connected)


def _resolved(host: Host, address: Any, answers: dict[str, list[list[Host]]]) -> bool:
    return any(each.address == address for said in answers[host.key] for each in said)


def _expected(policy: PolicyOf, answers: dict[str, list[list[Host]]], hops: list[UrlOf]) -> str | None:
    """The outcome when every reader reads the URLs alike."""
    left = {key: list(said) for key, said in answers.items()}
    for hop in hops:
        if hop.host is None:
            return None
        if not (_may_go(policy, hop) and _arrives(policy, hop, left)):
            return "EgressBlocked"
    return "200"


def _may_go(policy: PolicyOf, url: UrlOf) -> bool:
    return url.host is not None and policy.may_reach(url.host, url.port)


def _arrives(policy: PolicyOf, url: UrlOf, left: dict[str, list[list[Host]]]) -> bool:
    """Whether one of the addresses that the resolver says next may be connected to."""
    if url.host is None or url.host.address is not None:
        return True
    said = left[url.host.key]
    found = said.pop(0) if len(said) > 1 else said[0]
    return any(policy.may_connect(each.address, url.port) for each in found if each.address)
