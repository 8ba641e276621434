"""Egress rules: how they are written, which one applies, and what hosts and addresses mean. Pure.

Hosts are read by `can_ada`, as `url_parse` reads URLs: `0x7f.1`, `2130706433`, `１２７。0.0.1` and
`0177.0.0.1` are all `127.0.0.1`, an international name is its `xn--` form. Spec: 04 §21.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

from can_ada import parse

from harnpy.faults import NamedFault, look, paced

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NO_HOST = re.compile(r"[/\\?#@]")
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
    """The target of a URL; ``host`` is canonical."""

    host: str
    port: int


def place_of(url: str) -> Place | None:
    """Return where a URL leads, on its scheme's port unless it names one; None when that can't be read."""
    try:
        read = parse(url)
    except (ValueError, TypeError):  # the latter for half a character
        return None
    host = host_in(read.hostname)
    port = int(read.port) if read.port else _PORTS.get(read.protocol[:-1])
    return None if host is None or port is None else Place(host, port)


def host_in(text: str) -> str | None:
    """Return a host as browsers read it, without brackets and final dots; None for what is no host."""
    if ":" in text and not text.startswith("["):
        text = f"[{text}]"
    if _NO_HOST.search(text):
        return None
    try:
        # Only special schemes have their hosts made canonical.
        return parse(f"http://{text}/").hostname.strip("[]").rstrip(".") or None
    except (ValueError, TypeError):
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


_BRACKETED = re.compile(r"\[([^\]]*)\](/[^:]*)?(?::(.*))?", re.DOTALL)
_MAPPED = IPv6Network("::ffff:0:0/96")
_SEPARATORS = re.compile(r"[,;\n]")
ALLOW, DENY = "allow", "deny"
#: Whose a policy is: a program's, by `egress_policy`; the environment's; the embedder's.
STDLIB, ENVIRONMENT, EMBEDDER = "stdlib", "environment", "embedder"


class PolicyError(NamedFault):
    """A policy that can't be read, or that can't come into force."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``text`` is the rule as written. It is for a ``name``, which is one host or ``*.`` and a suffix, or for
    the addresses of a ``network``; a ``port`` of None is any.
    """

    text: str
    name: str | None
    network: Network | None
    port: int | None


#: What reading a rule costs, in items.
_RULE = 32


def read_rule(text: str) -> Rule:
    """Raises `PolicyError`."""
    look(_RULE)
    given = text.strip()
    if not given:
        raise PolicyError("empty egress rule")
    host, port = _of_url(given) if "://" in given else _split(given)
    if "*" in host:
        return Rule(given, _wildcard(host, given), None, port)
    has_zone = ":" in host and "%" in host
    if "/" in host and not has_zone:
        return Rule(given, None, _network(host, given), port)
    name = None if has_zone else host_in(host)
    if name is None:
        raise PolicyError(f"invalid host in `{given}`: '{host}'")
    address = address_in(name)
    if address is None:
        return Rule(given, name, None, port)
    return Rule(given, None, ip_network(ipv4_of(address)), port)


def _of_url(text: str) -> tuple[str, int]:
    place = place_of(text)
    if place is None:
        raise PolicyError(f"invalid URL rule `{text}`: a host and a port can't be read from it")
    return place


def _split(text: str) -> tuple[str, int | None]:
    """Return a rule's host or range, and its port."""
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed is not None:
        host, length, port = bracketed.groups()
        return host + (length or ""), _port(port, text)
    if text.count(":") > 1:  # an IPv6 address or range, as it is
        return text, None
    host, colon, port = text.partition(":")
    return host, _port(port if colon else None, text)


def _port(port: str | None, text: str) -> int | None:
    if port is None:
        return None
    if port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65_536:
        return int(port)
    raise PolicyError(f"invalid port in `{text}`: '{port}' is no number from 0 to 65535")


def _wildcard(host: str, text: str) -> str:
    suffix = host.removeprefix("*.")
    if suffix != host and "*" not in suffix and not suffix.startswith("."):
        name = host_in(suffix)
        if name is not None and address_in(name) is None:
            return f"*.{name}"
    raise PolicyError(f"invalid wildcard rule `{text}`")


def _network(host: str, text: str) -> Network:
    address, _, length = host.partition("/")
    try:
        if not (length.isascii() and length.isdigit()):
            raise ValueError(f"'{length}' is no length of a prefix")
        network = ip_network(f"{address}/{length}", strict=False)
    except ValueError as error:
        raise PolicyError(f"invalid CIDR rule `{text}`: {error}") from None
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        mapped = network.network_address.ipv4_mapped
        return IPv4Network(f"{mapped}/{network.prefixlen - 96}")
    return network


class Rules:
    """Rules of one kind."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        """Raises `PolicyError`."""
        rules = [read_rule(text) for text in texts]
        self.texts = [rule.text for rule in paced(rules)]
        self._named: dict[str, list[Rule]] = {}
        for rule in paced(rules):
            if rule.name is not None:
                self._named.setdefault(rule.name, []).append(rule)
        self._ranges = [(rule, rule.network) for rule in paced(rules) if rule.network is not None]

    def for_name(self, name: str, port: int) -> Rule | None:
        """Return the first rule for a canonical name."""
        for key in _keys(name):
            for rule in self._named.get(key, ()):
                if rule.port in (None, port):
                    return rule
        return None

    def for_addresses(self, addresses: Iterable[Address], port: int) -> Rule | None:
        """Return the first rule that one of the addresses is in the range of."""
        for address in addresses:
            for rule, network in paced(self._ranges):
                if rule.port in (None, port) and address in network:
                    return rule
        return None


def _keys(name: str) -> Iterator[str]:
    """Yield the names of the rules that hold for a name."""
    yield name
    while "." in name:
        name = name.partition(".")[2]
        yield f"*.{name}"


@dataclass(frozen=True, slots=True)
class Policy:
    """Deny beats allow beats ``default``, which is `ALLOW` or `DENY`. ``source`` says whose it is.

    ``fault`` is why a policy couldn't be read: it lets nothing pass.
    """

    allow: Rules
    deny: Rules
    default: str
    source: str
    fault: str | None = None

    def refusal(self, host: str, port: int) -> str | None:
        """Return why a canonical host may not be reached, as it is written; None when it may."""
        if self.fault is not None:
            return self.fault
        address = address_in(host)
        if address is not None:
            denied = self.deny.for_addresses(meanings(address), port)
            allowed = self.allow.for_addresses([ipv4_of(address)], port)
        else:
            denied, allowed = self.deny.for_name(host, port), self.allow.for_name(host, port)
        if denied is not None:
            return _matched(denied)
        return None if allowed is not None or self.default == ALLOW else "no allow rule matched"

    def refusal_of_address(self, address: Address, port: int) -> str | None:
        """Return why an address may not be connected to, whatever name it was found by."""
        denied = self.deny.for_addresses(meanings(address), port)
        return None if denied is None else _matched(denied)


def _matched(rule: Rule) -> str:
    return f"matched deny rule `{rule.text}`"


def read_policy(
    allow: Iterable[str] | None, deny: Iterable[str] | None, default: str | None, source: str
) -> Policy:
    """Return the policy of these rules. Raises `PolicyError`.

    Unless ``default`` is given, it is `DENY` beside a list of what is allowed, even an empty one.
    """
    otherwise = (ALLOW if allow is None else DENY) if default is None else _read_default(default)
    return Policy(Rules(allow or ()), Rules(deny or ()), otherwise, source)


def _read_default(text: str) -> str:
    default = text.strip().lower()
    if default not in (ALLOW, DENY):
        raise PolicyError(f"default must be `allow` or `deny`, got `{text}`")
    return default


def listed_policy(allow: str | None, deny: str | None, default: str | None) -> Policy:
    """Return the policy of the environment's variables; an empty one counts as unset.

    One that can't be read lets nothing pass: the requests that it refuses say why.
    """
    try:
        return read_policy(_listed(allow), _listed(deny), default or None, ENVIRONMENT)
    except PolicyError as error:
        return Policy(Rules(), Rules(), DENY, ENVIRONMENT, f"HARN_EGRESS_*: {error}")


def _listed(text: str | None) -> list[str] | None:
    if not text:
        return None
    return [rule for each in _SEPARATORS.split(text) if (rule := each.strip())]
