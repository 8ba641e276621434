"""Hosts by what they are, each with ways to write it: what a test knows without reading URLs itself."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Any

from hypothesis import strategies as st

IP = IPv4Address | IPv6Address


@dataclass(frozen=True)
class Host:
    """A name, or an address; ``plain`` are spellings that a client accepts, ``odd`` others that it may.

    ``leads_to``: where who connects to the address may arrive.
    """

    key: str
    plain: tuple[str, ...]
    odd: tuple[str, ...] = ()
    address: IP | None = None
    leads_to: tuple[IP, ...] = ()


def name(key: str, *odd: str) -> Host:
    return Host(key, (key, key.upper(), f"{key}."), (*odd, f"%{ord(key[0]):02x}{key[1:]}"))


def ipv4(text: str, *leads_to: str) -> Host:
    address = IPv4Address(text)
    a, b, c, d = address.packed
    number = int(address)
    plain = (text, str(number), hex(number), f"{a}.{number & 0xFFFFFF}", f"{a}.{b}.{c * 256 + d}", f"{text}.")
    wide = text.translate({ord("0") + n: ord("０") + n for n in range(10)})
    odd = (
        f"0{a:o}.{b}.{c}.{d}",
        wide,
        text.replace(".", "。"),
        f"%3{text[0]}{text[1:]}",
        f"0x{a:x}.0x{b:x}.{c}.{d}",
    )
    return Host(text, plain, odd, address, (address, *map(IPv4Address, leads_to)))


def ipv6(number: int | str, *leads_to: IP) -> Host:
    address = IPv6Address(number)
    low = IPv4Address(int(address) & 0xFFFF_FFFF)
    head = ":".join(address.exploded.split(":")[:6])
    plain = (str(address), address.exploded, str(address).upper(), f"{head}:{low}")
    odd = (f"{address}%25eth0", f"{address}%eth0")
    return Host(
        str(address),
        tuple(f"[{each}]" for each in plain),
        tuple(f"[{each}]" for each in odd),
        address,
        (address, *leads_to),
    )


def _local_nat64(number: int) -> Host:
    """An address that is translated within a network, by a prefix of one of four lengths."""
    digits = f"{number:032x}"
    read = (digits[12:16] + digits[18:22], digits[14:16] + digits[18:24], digits[18:26], digits[24:])
    return ipv6(number, *(IPv4Address(int(each, 16)) for each in read if int(each, 16)))


def around(v4: Host) -> list[Host]:
    """The IPv6 addresses that lead to an IPv4 one."""
    n, to = int(v4.address or 0), v4.leads_to
    return [
        ipv6(0xFFFF << 32 | n, *to),
        ipv6(0xFFFF_0000 << 32 | n, *to),
        ipv6(0x64FF9B << 96 | n, *to),
        _local_nat64(0x64FF9B_0001 << 80 | (n >> 16) << 64 | (n & 0xFFFF) << 40),
        _local_nat64(0x64FF9B_0001 << 80 | n),
        ipv6(0x2002 << 112 | n << 80 | 1, *to),
        ipv6(0x20010000 << 96 | (n ^ 0xFFFF_FFFF), *to),
        ipv6(0xFE80 << 112 | 0x5EFE << 32 | n, *to),
    ]


NAMES = [
    name("good.test"), name("a.good.test"), name("evil.test"), name("b.evil.test"), name("localhost"),
    Host("xn--bcher-kva.test", ("bücher.test", "BÜCHER.test.", "xn--bcher-kva.test"), ("bu\u0308cher.test",)),
]  # fmt: skip
_IPV4 = [
    ipv4("127.0.0.1"), ipv4("10.1.2.3"), ipv4("169.254.169.254"), ipv4("8.8.8.8"), ipv4("192.168.0.7"),
    ipv4("0.0.0.0", "127.0.0.1"),
]  # fmt: skip
ADDRESSES = [
    *_IPV4,
    *(each for v4 in _IPV4 for each in around(v4)),
    *map(ipv6, ("::1", "fd00::1", "fe80::1", "2606:4700::1111")),
    ipv6("::", IPv6Address("::1"), *_IPV4[-1].leads_to),
]
BY_ADDRESS = {host.address: host for host in ADDRESSES}
PORTS = [80, 8080]


@dataclass(frozen=True)
class RuleOf:
    """A rule by what it holds for: one name, or what ends in it, or a network."""

    text: str
    name: str | None = None
    below: bool = False
    network: Any = None
    port: int | None = None

    def holds_for_name(self, key: str, port: int) -> bool:
        if self.name is None or self.port not in (None, port):
            return False
        return key.endswith(f".{self.name}") if self.below else key == self.name

    def holds_for(self, address: IP, port: int) -> bool:
        return self.network is not None and self.port in (None, port) and address in self.network


def _named(host: Host) -> list[RuleOf]:
    key, written = host.key, host.plain[-1]
    return [
        RuleOf(written, key), RuleOf(f"{written}:80", key, port=80),
        RuleOf(f"http://{written}/x", key, port=80),
        RuleOf(f"*.{key}", key, below=True), RuleOf(f"*.{key}:8080", key, below=True, port=8080),
    ]  # fmt: skip


def _ranges(host: Host) -> list[RuleOf]:
    assert host.address is not None
    whole = ip_network(host.address)
    if (v4 := getattr(host.address, "ipv4_mapped", None)) is not None:
        whole = ip_network(v4)
    wide = ip_network(f"{host.address}/{8 if host.address.version == 4 else 16}", strict=False)
    close = f"[{wide}]" if wide.version == 6 else str(wide)
    return [
        RuleOf(host.plain[1], network=whole), RuleOf(f"{host.plain[0]}:8080", network=whole, port=8080),
        RuleOf(str(wide), network=wide), RuleOf(f"{close}:80", network=wide, port=80),
    ]  # fmt: skip


@dataclass(frozen=True)
class PolicyOf:
    allow: tuple[RuleOf, ...]
    deny: tuple[RuleOf, ...]
    default: str

    def may_connect(self, address: IP, port: int) -> bool:
        """Whether no rule denies the address, or where it leads to."""
        found = BY_ADDRESS[address]
        return not any(rule.holds_for(each, port) for rule in self.deny for each in found.leads_to)

    def may_reach(self, host: Host, port: int) -> bool:
        """Whether a host may be reached as far as it is written."""
        if host.address is None:
            denied = any(rule.holds_for_name(host.key, port) for rule in self.deny)
            allowed = any(rule.holds_for_name(host.key, port) for rule in self.allow)
        else:
            real = getattr(host.address, "ipv4_mapped", None) or host.address
            denied = not self.may_connect(host.address, port)
            allowed = any(rule.holds_for(real, port) for rule in self.allow)
        return not denied and (allowed or self.default == "allow")


@dataclass(frozen=True)
class UrlOf:
    """A URL; ``host`` is None when readers differ about where it leads."""

    text: str
    host: Host | None
    port: int


HOSTS = [*NAMES, *NAMES, *NAMES, *ADDRESSES]  # a third of them are names


@st.composite
def urls(draw: st.DrawFn, odd: bool = True) -> UrlOf:
    """With ``odd``, some are such as readers differ about."""
    host, port = draw(st.sampled_from(HOSTS)), draw(st.sampled_from(PORTS))
    at = "" if port == 80 else f":{port}"
    if not odd or draw(st.integers(0, 2)):
        before = draw(
            st.sampled_from(["http://", "HTTP://", "http://u:p@", "http://good.test@", "http://8.8.8.8:80@"])
        )
        after = draw(st.sampled_from(["", "/", "/@good.test", "?@good.test/", "#@good.test/"]))
        return UrlOf(f"{before}{draw(st.sampled_from(host.plain))}{at}{after}", host, port)
    before = draw(
        st.sampled_from(["http://", "http:\\\\", "http:/", "\thttp://", "http:///", "http://good.test\\@"])
    )
    after = draw(
        st.sampled_from(["/", "\\@good.test/", "\\.good.test/", "%00.good.test/", "%2f@good.test/", "/"])
    )
    return UrlOf(f"{before}{draw(st.sampled_from(host.plain + host.odd))}{at}{after}", None, port)


@dataclass(frozen=True)
class Scenario:
    """``hops``: a URL, and where it redirects to. ``answers``: what a resolver says about each name, one time
    after the other; the last one repeats.
    """

    policy: PolicyOf
    hops: list[UrlOf]
    answers: dict[str, list[list[Host]]]


_answers = st.fixed_dictionaries(
    {
        host.key: st.lists(
            st.lists(st.sampled_from(ADDRESSES), min_size=1, max_size=3), min_size=1, max_size=2
        )
        for host in NAMES
    }
)


@st.composite
def scenarios(draw: st.DrawFn, odd: bool = True) -> Scenario:
    """Most rules are about something that the URLs lead to."""
    hops, answers = draw(st.lists(urls(odd), min_size=1, max_size=3)), draw(_answers)
    near = [_rules(meant, answers) for hop in hops if (meant := hop.host) is not None]
    some = st.lists(st.sampled_from([*_FAR, *(rule for rules in near for rule in rules)]), max_size=3).map(
        tuple
    )
    policy = PolicyOf(draw(some), draw(some), draw(st.sampled_from(["allow", "deny"])))
    return Scenario(policy, hops, answers)


def _rules(host: Host, answers: dict[str, list[list[Host]]]) -> list[RuleOf]:
    if host.address is not None:
        return [rule for each in host.leads_to if each in BY_ADDRESS for rule in _ranges(BY_ADDRESS[each])]
    resolved = [_rules(each, answers) for said in answers[host.key] for each in said]
    return [*_named(host), *(rule for rules in resolved for rule in rules)]


_FAR = [*_named(NAMES[1]), *_ranges(ADDRESSES[1]), *_ranges(ADDRESSES[-1])]
