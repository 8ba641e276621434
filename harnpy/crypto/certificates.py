"""Certificates that a server makes for itself, for tests. Spec: 04 §21.5."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.x509 import GeneralName

#: How many random bytes a certificate is made of: its number and its key.
SECRET_BYTES = 56
_SERIAL_BYTES = 16
_VALID = timedelta(days=30)


def self_signed(hosts: Sequence[str], secret: bytes, now: float) -> tuple[str, str]:
    """Return a certificate for names and addresses, valid for 30 days, and its key (P-256), both as PEM.

    ``secret`` are `SECRET_BYTES` random bytes, ``now`` are seconds since 1970. Raises ValueError for a name
    that can't be in a certificate.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    serial, scalar = secret[:_SERIAL_BYTES], secret[_SERIAL_BYTES:]
    curve = ec.SECP256R1()
    # 320 random bits, reduced: as good as even over the group's 256 bits. Zero is no key.
    key = ec.derive_private_key(int.from_bytes(scalar, "big") % (curve.group_order - 1) + 1, curve)
    begin = datetime.fromtimestamp(now, UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "harnpy development")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(int.from_bytes(serial, "big") >> 1 | 1)
        .not_valid_before(begin - timedelta(hours=1))
        .not_valid_after(begin + _VALID)
        .add_extension(x509.SubjectAlternativeName([_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem).decode(), private.decode()


def _name(host: str) -> GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host.encode("idna").decode())
