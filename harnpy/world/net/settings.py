"""How connections are made: through which proxy, and which servers are trusted. Spec: 04 §21.1."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``proxy`` is a URL without user and password; None leaves it to the environment (`HTTPS_PROXY`, …).

    ``no_proxy``: hosts that are reached without it, their subdomains too. ``ca``, ``certificate`` and ``key``
    are paths of PEM files: whom to trust instead of the system's roots, and what a server receives that asks.
    ``pins``: the SHA-256 of the certificates that a server may have, in lower-case hex.
    """

    proxy: str | None = None
    proxy_auth: tuple[str, str] | None = None
    no_proxy: tuple[str, ...] = ()
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    pins: frozenset[str] = frozenset()

    @property
    def has_tls(self) -> bool:
        return bool(self.ca or self.certificate or self.pins)


#: The usual ones.
USUAL = Settings()
