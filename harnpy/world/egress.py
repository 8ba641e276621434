"""Egress: what one program may reach; who sends asks an `Egress`. URLs in messages are without secrets.

On the way to every model call: without a policy, nothing is loaded to decide by. Spec: 04 §21.3, §21.4.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harnpy.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.world.egress_rules import Policy

    OnBlocked = Callable[["EgressBlocked"], object]

URL_MASK = "%5Bredacted%5D"
_SECRET = re.compile(
    r"api_?key|(?:.*_)?token|(?:.*_)?secret|.*password", re.IGNORECASE | re.DOTALL
)  # access_token, refresh_token, id_token and client_secret are among them, and libpq's sslpassword
_USER = re.compile(r"(?<=//)[^/\\?#]*@")


def redacted_url(url: str) -> str:
    """Return a URL without user, password and fragment; the values of secret parameters are `MASK`."""
    from urllib.parse import unquote_plus

    place, marked, query = _USER.sub("", url.partition("#")[0]).partition("?")
    pairs = []
    for pair in query.split("&"):
        name, has_value, _ = pair.partition("=")
        hides = has_value and _SECRET.fullmatch(unquote_plus(name))
        pairs.append(f"{name}={URL_MASK}" if hides else pair)
    return f"{place}{marked}{'&'.join(pairs)}"


#: The variables of a policy of the environment.
VARIABLES = ("HARN_EGRESS_ALLOW", "HARN_EGRESS_DENY", "HARN_EGRESS_DEFAULT")
_UNREADABLE = "the URL names no host and port that can be read"


class EgressBlocked(Fault):
    """A request that may not be sent; ``url`` is redacted. Programs catch `as_dict()`."""

    def __init__(self, surface: str, url: str, host: str, port: int, reason: str) -> None:
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        super().__init__(f"EgressBlocked: {surface} blocked {place} for {url} ({reason})")
        self.surface = surface
        self.url = url
        self.host = host
        self.port = port
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.surface, self.url, self.host, self.port, self.reason)

    def as_dict(self) -> dict[str, Any]:
        error = {"type": "EgressBlocked", "category": "egress_blocked", "message": self.message}
        return error | self.place()

    def place(self) -> dict[str, Any]:
        """Return what was to be reached, how, and why it wasn't."""
        return {
            "surface": self.surface,
            "url": self.url,
            "host": self.host,
            "port": self.port,
            "reason": self.reason,
        }

    def caught_from(self, builtin: str) -> object:
        return self.as_dict()


class Forbidden(Exception):
    """A connection that may not be made."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"{host}:{port}: {reason}")
        self.host = host
        self.port = port
        self.reason = reason


class Egress:
    """Asked before each request, redirects included, and before each connection. Without a policy: anything.

    ``on_blocked`` is called with each `EgressBlocked`.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        on_blocked: OnBlocked = lambda blocked: None,
    ) -> None:
        self.policy = policy
        self._on_blocked = on_blocked

    def configure(self, policy: Policy) -> None:
        """Put a policy into force, once. Raises `PolicyError` when there is one."""
        if self.policy is not None:
            from harnpy.world.egress_rules import PolicyError

            raise PolicyError(f"policy already configured from {self.policy.source}")
        self.policy = policy

    def admit(self, surface: str, url: str, host: str | None = None) -> None:
        """Raise `EgressBlocked` unless ``surface``, as `http_request`, may send a request to ``url``.

        ``host`` is how its sender reads the host in it: another reading than ours would pass our rules by.
        """
        if self.policy is None:
            return
        from harnpy.world.egress_rules import host_in, place_of

        place = place_of(url)
        if place is None or (host is not None and host_in(host) != place.host):
            self.admit_place(surface, url, "", 0)
        else:
            self.admit_place(surface, url, *place)

    def admit_place(self, surface: str, url: str, host: str, port: int) -> None:
        """Raise `EgressBlocked` unless ``surface`` may reach ``host``, which ``url`` leads to."""
        if self.policy is None:
            return
        from harnpy.world.egress_rules import host_in

        name = host_in(host)
        refusal = _UNREADABLE if name is None else self.policy.refusal(name, port)
        if refusal is not None:
            raise self.blocked(surface, url, Forbidden(name or host, port, refusal))

    def admit_address(self, host: str, port: int, address: str) -> None:
        """Raise `Forbidden` unless ``address``, which ``host`` has, may be connected to."""
        if self.policy is None:
            return
        from harnpy.world.egress_rules import address_in, host_in

        found, name = address_in(address), host_in(host)
        if found is None or name is None:
            raise Forbidden(host, port, _UNREADABLE)
        # Of what is written as an address only the address counts, whatever a resolver made of it.
        written = name if address_in(name) is None else str(found)
        refusal = self.policy.refusal(written, port) or self.policy.refusal_of_address(found, port)
        if refusal is not None:
            raise Forbidden(name, port, refusal)

    def blocked(self, surface: str, url: str, forbidden: Forbidden) -> EgressBlocked:
        """Return the error of a request to ``url`` whose connection was forbidden."""

        blocked = EgressBlocked(surface, redacted_url(url), forbidden.host, forbidden.port, forbidden.reason)
        self._on_blocked(blocked)
        return blocked


def environment_egress(
    get: Callable[[str], str | None], on_blocked: OnBlocked = lambda blocked: None
) -> Egress:
    """Return an egress under the policy of the environment's variables, if one of them is set."""
    allow, deny, default = map(get, VARIABLES)
    if not (allow or deny or default):
        return Egress(None, on_blocked)
    from harnpy.world.egress_rules import listed_policy

    return Egress(listed_policy(allow, deny, default), on_blocked)
