"""TLS of a server: none, behind a proxy that ends it, or by a certificate of its own. Spec: 04 §21.5."""

from __future__ import annotations

from harnpy.formats.display import display, type_name
from harnpy.formats.options import expected
from harnpy.net.server_options import ServerFault, flag_option, number_option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MODES = ("plain", "edge", "pem", "self_signed_dev")
#: What a server needs of a configuration to end TLS itself.
_NEEDED = {"pem": ("cert_path", "key_path"), "self_signed_dev": ("cert_pem", "key_pem")}
#: Of own certificates: short, as a wrong one is hard to take back.
_OWN_MAX_AGE = 300


def plain() -> dict[str, Any]:
    return {"mode": "plain", "scheme": "http", "terminate_tls": False, "hsts": None}


def edge(options: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration behind a proxy; ``options`` are those of `EDGE`, which were checked."""
    hsts = _hsts(
        number_option(options, "hsts_max_age_seconds", 31_536_000),
        flag_option(options, "hsts_include_subdomains", False),
        flag_option(options, "hsts_preload", False),
    )
    return {"mode": "edge", "scheme": "https", "terminate_tls": False, "hsts": hsts}


def pem(cert_path: str, key_path: str) -> dict[str, Any]:
    """Return the configuration for a certificate and its key in PEM files."""
    return {
        "mode": "pem",
        "scheme": "https",
        "terminate_tls": True,
        "hsts": _hsts(_OWN_MAX_AGE, True, False),
        "cert_path": cert_path,
        "key_path": key_path,
    }


def self_signed_dev(hosts: list[str], certificate: str, key: str) -> dict[str, Any]:
    """Return the configuration for a certificate that was made for tests. Browsers remember nothing of it."""
    return {
        "mode": "self_signed_dev",
        "scheme": "https",
        "terminate_tls": True,
        "hsts": None,
        "hosts": hosts,
        "cert_pem": certificate,
        "key_pem": key,
    }


def security_headers(config: Any) -> dict[str, str]:
    """Return the headers that a configuration asks for. Raises ServerFault for what is none."""
    hsts = checked_tls(config).get("hsts")
    if type(hsts) is not dict or not hsts.get("max_age_seconds"):
        return {}
    parts = [f"max-age={hsts['max_age_seconds']}"]
    if hsts.get("include_subdomains"):
        parts.append("includeSubDomains")
    if hsts.get("preload"):
        parts.append("preload")
    return {"strict-transport-security": "; ".join(parts)}


def checked_tls(config: Any) -> dict[str, Any]:
    """Return a configuration that one of the functions above made. Raises ServerFault for another value."""
    if type(config) is not dict:
        raise ServerFault(f"a TLS configuration is a dict, got {type_name(config)}")
    mode = config.get("mode")
    if mode not in MODES:
        raise ServerFault(f"unknown TLS mode {display(mode)!r} ({expected(display(mode), MODES)})")
    return config


def to_listen(config: Any) -> dict[str, Any]:
    """Return a `checked` configuration that a server can listen with. Raises ServerFault for another."""
    found = checked_tls(config)
    for key in _NEEDED.get(found["mode"], ()):
        if type(found.get(key)) is not str:
            raise ServerFault(f"the TLS mode '{found['mode']}' needs the string `{key}`")
    return found


def _hsts(max_age: int, subdomains: bool, preload: bool) -> dict[str, Any]:
    return {"max_age_seconds": max_age, "include_subdomains": subdomains, "preload": preload}
