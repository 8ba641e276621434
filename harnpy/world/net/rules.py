"""Rules for what may be reached: how they are written, and which applies. Pure. Spec: 04 §21.4."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TYPE_CHECKING

from harnpy.faults import NamedFault
from harnpy.world.net.hosts import address_in, host_in, ipv4_of, meanings, place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harnpy.world.net.hosts import Address

    Network = IPv4Network | IPv6Network

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


def read_rule(text: str) -> Rule:
    """Raises `PolicyError`."""
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
        self.texts = [rule.text for rule in rules]
        self._named: dict[str, list[Rule]] = {}
        for rule in rules:
            if rule.name is not None:
                self._named.setdefault(rule.name, []).append(rule)
        self._ranges = [(rule, rule.network) for rule in rules if rule.network is not None]

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
            for rule, network in self._ranges:
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
