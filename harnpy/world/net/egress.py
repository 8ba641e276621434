"""What one program may reach. Spec: 04 §21.4."""

from __future__ import annotations


class EgressBlocked(Exception):
    """A request that may not be sent; ``url`` is redacted."""

    def __init__(self, surface: str, url: str, host: str, port: int, reason: str) -> None:
        super().__init__(f"EgressBlocked: {surface} blocked {host}:{port} for {url} ({reason})")
        self.surface = surface
        self.url = url
        self.host = host
        self.port = port
        self.reason = reason


class Forbidden(Exception):
    """A connection that may not be made."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"{host}:{port}: {reason}")
        self.host = host
        self.port = port
        self.reason = reason


class Egress:
    """Asked before each request, redirects included, and each connection. Without a policy: anything."""

    def admit(self, surface: str, url: str) -> None:
        """Raise `EgressBlocked` unless ``surface``, as `http_request`, may send a request to ``url``."""

    def admit_address(self, host: str, port: int, address: str) -> None:
        """Raise `Forbidden` unless ``address``, which ``host`` has, may be connected to."""

    def blocked(self, surface: str, url: str, forbidden: Forbidden) -> EgressBlocked:
        """What a request to ``url`` fails with when its connection was forbidden."""
        return EgressBlocked(surface, url, forbidden.host, forbidden.port, forbidden.reason)
