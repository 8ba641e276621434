"""Keys against the vectors of RFC 8032 and RFC 7748."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.formats.crypto import primitives
from harnpy.formats.crypto.primitives import KeyFault

#: RFC 8032, section 7.1, tests 1 to 3: private, public, message, signature.
ED25519 = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
        "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]


@pytest.mark.parametrize(("private", "public", "message", "signature"), ED25519)
def test_ed25519_vectors(private: str, public: str, message: str, signature: str) -> None:
    data = bytes.fromhex(message)
    assert primitives.ed25519_pair(bytes.fromhex(private)) == {"private": private, "public": public}
    assert primitives.ed25519_signature(private, data) == signature
    assert primitives.ed25519_verifies(public, data, signature)
    assert not primitives.ed25519_verifies(public, data + b"x", signature)


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=50), st.integers(0, 511))
def test_a_signature_with_a_bit_changed_is_none(secret: bytes, message: bytes, bit: int) -> None:
    pair = primitives.ed25519_pair(secret)
    signature = bytearray.fromhex(primitives.ed25519_signature(pair["private"], message))
    assert primitives.ed25519_verifies(pair["public"], message, signature.hex())
    signature[bit // 8] ^= 1 << bit % 8
    assert not primitives.ed25519_verifies(pair["public"], message, signature.hex())


@given(st.text(max_size=70), st.text(max_size=130))
def test_what_is_no_key_or_signature_verifies_nothing(public: str, signature: str) -> None:
    assert not primitives.ed25519_verifies(public, b"", signature)


def test_x25519_vectors() -> None:
    """RFC 7748, section 5.2: once, and a thousand times from the base point."""
    scalar = "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4"
    point = "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"
    assert primitives.x25519_agreement(scalar, point) == (
        "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"
    )
    k = u = "09" + "00" * 31
    for _ in range(1000):
        k, u = primitives.x25519_agreement(k, u), k
    assert k == "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51"


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_both_sides_agree(ours: bytes, theirs: bytes) -> None:
    a, b = primitives.x25519_pair(ours), primitives.x25519_pair(theirs)
    assert primitives.x25519_agreement(a["private"], b["public"]) == primitives.x25519_agreement(
        b["private"], a["public"]
    )


@pytest.mark.parametrize(
    ("private", "public", "message"),
    [
        ("zz", "00" * 32, "the private key is not hexadecimal: Invalid character 'z' at position 0"),
        ("00" * 32, "abc", "the public key is not hexadecimal: Odd number of digits"),
        ("00" * 31, "09" * 32, "the private key must have 64 hexadecimal digits, got 62"),
        (
            "00" * 32,
            "00" * 32,
            "the public key is a point of low order: anybody would know the shared secret",
        ),
    ],
)
def test_no_agreement(private: str, public: str, message: str) -> None:
    with pytest.raises(KeyFault) as caught:
        primitives.x25519_agreement(private, public)
    assert str(caught.value) == message
