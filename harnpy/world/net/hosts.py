"""Hosts as URLs name them, and what else an address stands for. Pure. Spec: 04 §21.4.

By `ada_url`, as `url_parse` reads URLs: `0x7f.1`, `2130706433`, `１２７。0.0.1` and `0177.0.0.1` are all
`127.0.0.1`, an international name is its `xn--` form.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, NamedTuple

from ada_url import URL

if TYPE_CHECKING:
    from collections.abc import Iterator

    Address = IPv4Address | IPv6Address

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "socks5": 1080, "socks5h": 1080}

#: The upper 96 bits of IPv6 addresses whose lower 32 are an IPv4 address: mapped, compatible, translated
#: (RFC 2765), NAT64 (RFC 6052).
_ENDING_IN_IPV4 = frozenset({0xFFFF, 0, 0xFFFF_0000, 0x0064_FF9B << 64})
#: The same of ISATAP's interface ids (RFC 5214), which have any network before them.
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})
#: 64:ff9b:1::/48, NAT64 within a network (RFC 8215), and 2002::/16, 6to4 (RFC 3056).
_LOCAL_NAT64, _6TO4 = 0x0064_FF9B_0001, 0x2002
_32_BITS = 0xFFFF_FFFF


class Place(NamedTuple):
    """Where a URL leads; ``host`` is canonical."""

    host: str
    port: int


def place_of(url: str) -> Place | None:
    """Return where a URL leads, on its scheme's port unless it names one; None when that can't be read."""
    try:
        read = URL(url)
    except ValueError:
        return None
    host = host_in(read.hostname)
    port = int(read.port) if read.port else _PORTS.get(read.protocol[:-1])
    return None if host is None or port is None else Place(host, port)


def host_in(text: str) -> str | None:
    """Return a host as browsers read it, without brackets and final dots; None for what is no host."""
    if ":" in text and not text.startswith("["):
        text = f"[{text}]"
    if any(each in "/\\?#@" for each in text):
        return None
    try:
        # Only special schemes have their hosts made canonical.
        return URL(f"http://{text}/").hostname.strip("[]").rstrip(".") or None
    except ValueError:
        return None


def address_in(host: str) -> Address | None:
    """Return the address, without its zone, that a canonical host or a resolver's answer is; else None."""
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None


def ipv4_of(address: Address) -> Address:
    """Return the IPv4 address that a mapped one is: that is where the system connects to. Others as is."""
    return getattr(address, "ipv4_mapped", None) or address


def meanings(address: Address) -> Iterator[Address]:
    """Yield an address, and the others at which who connects to it may arrive.

    Translators and tunnels take an IPv4 address from within an IPv6 one, and the system takes the address
    that means none for its own loopback.
    """
    yield address
    if isinstance(address, IPv4Address):
        if address.is_unspecified:
            yield IPv4Address("127.0.0.1")
        return
    if address.is_unspecified:
        yield IPv6Address("::1")
    for bits in _embedded(int(address)):
        yield from meanings(IPv4Address(bits))


def _embedded(bits: int) -> Iterator[int]:
    """Yield the IPv4 addresses within an IPv6 one."""
    prefix, low = bits >> 32, bits & _32_BITS
    if (prefix in _ENDING_IN_IPV4 or prefix & _32_BITS in _ISATAP) and bits != 1:
        yield low
    if bits >> 80 == _LOCAL_NAT64:
        yield from filter(None, _translated(bits))
    if bits >> 112 == _6TO4:
        yield bits >> 80 & _32_BITS
    if teredo := IPv6Address(bits).teredo:
        server, client = map(int, teredo)
        yield client
        yield server or client  # not every address names a server


def _translated(bits: int) -> Iterator[int]:
    """Yield what NAT64 may take from an address: its network decides how long the prefix is, 96, 64, 56 or 48
    (RFC 6052)."""
    yield bits & _32_BITS
    yield bits >> 24 & _32_BITS
    yield (bits >> 64 & 0xFF) << 24 | bits >> 32 & 0xFF_FFFF
    yield (bits >> 64 & 0xFFFF) << 16 | bits >> 40 & 0xFFFF
