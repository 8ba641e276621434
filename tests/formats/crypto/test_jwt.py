"""Tokens against the vectors of RFC 7515 and RFC 6979, and against PyJWT, both ways."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.formats.crypto import jwt as tokens
from harnpy.formats.crypto.encodings import to_base64url
from harnpy.formats.crypto.jwt import SigningError, TokenRefused
from tests.counts import COUNT

PKCS8 = serialization.PrivateFormat.PKCS8
PKCS1 = serialization.PrivateFormat.TraditionalOpenSSL

CLAIMS = st.dictionaries(
    st.text(max_size=5),
    st.one_of(st.integers(-9, 9), st.text(max_size=5), st.booleans(), st.none()),
    max_size=4,
).filter(lambda claims: not claims.keys() & {"exp", "nbf", "iat", "aud", "iss", "sub", "jti"})


def private_pem(key: Any, form: serialization.PrivateFormat = PKCS8, password: bytes | None = None) -> str:
    lock = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, lock).decode()  # type: ignore[no-any-return]


def public_pem(key: Any) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()  # type: ignore[no-any-return]


EC = ec.derive_private_key(12345678901234567890, ec.SECP256R1())
OTHER_EC = ec.derive_private_key(99, ec.SECP256R1())
P384 = ec.derive_private_key(99, ec.SECP384R1())
RSA = rsa.generate_private_key(65537, 2048)
ED = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
KEYS = {"ES256": EC, "RS256": RSA}


def brief(value: str) -> str | None:
    """A name for a parameter: keys are others in every process, and pytest's workers compare names."""
    return "key" if "-----" in value else None


def number(text: str) -> int:
    return int.from_bytes(urlsafe_b64decode(text + "=="), "big")


def test_rfc_7515_a_3() -> None:
    x = number("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU")
    y = number("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")
    d = number("jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI")
    key = ec.EllipticCurvePrivateNumbers(d, ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1())).private_key()
    token = (
        "eyJhbGciOiJFUzI1NiJ9"
        ".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
        ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
    )
    assert tokens.verified("ES256", token, public_pem(key)) == {
        "iss": "joe",
        "exp": 1300819380,
        "http://example.com/is_root": True,
    }


def test_rfc_6979_a_2_5() -> None:
    """An ES256 signature follows from key and message."""
    x = 0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721
    signature = tokens._signature(ec.derive_private_key(x, ec.SECP256R1()), b"sample")
    assert signature.hex() == (
        "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
        "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"
    )


@pytest.mark.parametrize("algorithm", KEYS)
@settings(max_examples=COUNT.examples(15))
@given(claims=CLAIMS)
def test_pyjwt_takes_our_tokens_and_we_take_its(algorithm: str, claims: dict[str, Any]) -> None:
    key = KEYS[algorithm]
    token = tokens.signed(algorithm, json.dumps(claims), private_pem(key))
    assert jwt.decode(token, public_pem(key), [algorithm]) == claims
    assert jwt.get_unverified_header(token) == {"typ": "JWT", "alg": algorithm}
    theirs = jwt.encode(claims, private_pem(key), algorithm)
    assert tokens.verified(algorithm, theirs, public_pem(key)) == claims


@settings(max_examples=COUNT.examples(12))
@given(claims=CLAIMS, secret=st.text(min_size=32, max_size=40))
def test_a_shared_secret(claims: dict[str, Any], secret: str) -> None:
    token = jwt.api_jws.encode(json.dumps(claims).encode(), secret.encode(), "HS256")
    assert tokens.verified("HS256", token, secret) == claims
    with pytest.raises(TokenRefused, match="invalid signature"):
        tokens.verified("HS256", token, secret + "x")


@settings(max_examples=COUNT.examples(12))
@given(
    place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 6), algorithm=st.sampled_from(sorted(KEYS))
)
def test_a_token_with_a_bit_changed_is_refused(place: float, bit: int, algorithm: str) -> None:
    token = tokens.signed(algorithm, '{"sub":"ann","n":1}', private_pem(KEYS[algorithm]))
    at = int(place * len(token))
    changed = token[:at] + chr(ord(token[at]) ^ 1 << bit) + token[at + 1 :]
    with pytest.raises(TokenRefused):
        tokens.verified(algorithm, changed, public_pem(KEYS[algorithm]))


def test_a_key_in_pkcs1() -> None:
    token = tokens.signed("RS256", "{}", private_pem(RSA, PKCS1))
    assert tokens.verified("RS256", token, public_pem(RSA)) == {}


@pytest.mark.parametrize(
    ("algorithm", "key", "message"),
    [
        ("HS256", "secret", "unsupported algorithm `HS256`; expected ES256 or RS256"),
        ("es256", private_pem(EC), "unsupported algorithm `es256`; expected ES256 or RS256"),
        ("ES256", "", "invalid ES256 PEM private key: the text has no `-----BEGIN …-----` line"),
        ("ES256", public_pem(EC), "invalid ES256 PEM private key: there is no such key in the text"),
        ("ES256", private_pem(P384), "invalid ES256 PEM private key: the key is not a P-256 key"),
        ("ES256", private_pem(RSA), "invalid ES256 PEM private key: the key is not a P-256 key"),
        ("RS256", private_pem(EC), "invalid RS256 PEM private key: the key is not an RSA key"),
        ("RS256", private_pem(ED), "invalid RS256 PEM private key: the key is not an RSA key"),
        ("RS256", private_pem(RSA, password=b"x"), "invalid RS256 PEM private key: the key is encrypted"),
        ("RS256", "-----BEGIN PRIVATE KEY-----\nnonsense", "invalid RS256 PEM private key: "),
    ],
    ids=brief,
)
def test_keys_that_cannot_sign(algorithm: str, key: str, message: str) -> None:
    with pytest.raises(SigningError) as caught:
        tokens.signed(algorithm, "{}", key)
    assert str(caught.value).startswith(message)


def part(value: Any) -> str:
    return to_base64url(json.dumps(value).encode())


def signed_by_hand(header: str, claims: str, secret: str = "s") -> str:
    from harnpy.formats.crypto.primitives import hmac_sha256

    content = f"{header}.{claims}"
    return f"{content}.{to_base64url(hmac_sha256(secret.encode(), [content.encode()]))}"


HS = part({"alg": "HS256"})


@pytest.mark.parametrize(
    ("algorithm", "token", "key", "message"),
    [
        ("none", "a.b.c", "s", "unsupported algorithm 'none'"),
        ("HS256", "a.b", "s", "a token has three parts, separated by dots"),
        ("HS256", "a.b.c.d", "s", "a token has three parts, separated by dots"),
        ("HS256", "", "s", "a token has three parts, separated by dots"),
        ("HS256", "a?.b.c", "s", "the header is not base64url: Invalid character '?' at position 1"),
        ("HS256", "YQ.b.c", "s", "the header is not JSON"),
        ("HS256", part([]) + ".b.c", "s", "the header is not a JSON object"),
        ("HS256", part({}) + ".b.c", "s", "the token is signed with no algorithm, not with HS256"),
        ("HS256", part({"alg": "none"}) + ".e30.", "s", "the token is signed with none, not with HS256"),
        ("HS256", part({"alg": "RS256"}) + ".e30.", "s", "the token is signed with RS256, not with HS256"),
        (
            "HS256",
            signed_by_hand(part({"alg": "HS256", "crit": ["exp"]}), "e30"),
            "s",
            "the header has critical extensions, and none is supported",
        ),
        (
            "HS256",
            f"{HS}.e30.AA==",
            "s",
            "the signature is not base64url: Invalid character '=' at position 2",
        ),
        ("HS256", f"{HS}.e30.AA", "s", "invalid signature"),
        ("HS256", f"{HS}.e30.", "", "the shared secret is empty"),
        (
            "HS256",
            f"{HS}.e30.AA",
            public_pem(EC),
            "a PEM key is no shared secret: HS256 needs the text that the signer used",
        ),
        ("HS256", signed_by_hand(HS, "YQ"), "s", "the payload is not JSON"),
        ("HS256", signed_by_hand(HS, part([1])), "s", "the payload is not a JSON object"),
        ("ES256", part({"alg": "ES256"}) + ".e30.AA", public_pem(EC), "invalid signature"),
        ("ES256", part({"alg": "ES256"}) + ".e30." + "A" * 86, public_pem(EC), "invalid signature"),
        (
            "ES256",
            part({"alg": "ES256"}) + ".e30.AA",
            public_pem(RSA),
            "invalid ES256 PEM public key: the key is not a P-256 key",
        ),
        (
            "RS256",
            part({"alg": "RS256"}) + ".e30.AA",
            "x",
            "invalid RS256 PEM public key: the text has no `-----BEGIN …-----` line",
        ),
    ],
    ids=brief,
)
def test_tokens_that_are_refused(algorithm: str, token: str, key: str, message: str) -> None:
    with pytest.raises(TokenRefused) as caught:
        tokens.verified(algorithm, token, key)
    assert str(caught.value) == message


def test_another_key_s_token() -> None:
    token = tokens.signed("ES256", "{}", private_pem(OTHER_EC))
    with pytest.raises(TokenRefused, match="invalid signature"):
        tokens.verified("ES256", token, public_pem(EC))


@given(st.text("aeyJ.0IiLCJ9=-_", max_size=40), st.sampled_from(["HS256", "ES256", "RS256"]))
def test_any_text_is_refused_cleanly(token: str, algorithm: str) -> None:
    with pytest.raises(TokenRefused):
        tokens.verified(algorithm, token, public_pem(RSA))
