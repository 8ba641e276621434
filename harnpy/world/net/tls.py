"""TLS as `Settings` ask for it. Spec: 04 §21.1."""

from __future__ import annotations

import ssl
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harnpy.world.net.settings import Settings


def context(settings: Settings) -> ssl.SSLContext:
    """The context for connections with these settings. Raises OSError, an SSLError for what isn't PEM."""
    try:
        made = ssl.create_default_context(cafile=settings.ca)
        if settings.certificate is not None:
            made.load_cert_chain(settings.certificate, settings.key, password=_no_password)
    except ssl.SSLError as error:
        problem = ssl.SSLError(ssl.SSL_ERROR_SSL, _in_words(error))
    else:
        return _with_pins(made, settings)
    raise problem


def _in_words(error: ssl.SSLError) -> str:
    reason: str | None = getattr(error, "reason", None)
    if reason:
        return reason.replace("_", " ").lower()
    said = error.strerror or ""
    return "no PEM of a certificate with its key" if said.startswith("[") else said


def _with_pins(made: ssl.SSLContext, settings: Settings) -> ssl.SSLContext:
    if settings.pins:
        made.sslobject_class = _pinned(settings.pins)
    return made


def _no_password() -> str:
    # OpenSSL would ask on the terminal.
    raise ssl.SSLError(ssl.SSL_ERROR_SSL, "the key is encrypted")


def _pinned(pins: frozenset[str]) -> type[ssl.SSLObject]:
    """Return a class of connections that end, before anything is sent, at another certificate."""

    class PinnedConnection(ssl.SSLObject):
        def do_handshake(self) -> None:
            super().do_handshake()
            certificate = self.getpeercert(binary_form=True)
            if certificate is None or sha256(certificate).hexdigest() not in pins:
                raise ssl.SSLError("the server's certificate isn't one of pinned_sha256")

    return PinnedConnection
