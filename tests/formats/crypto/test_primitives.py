"""Digests against published values, keys against the vectors of RFC 8032 and RFC 7748."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.formats.crypto import primitives
from harnpy.formats.crypto.primitives import KeyFault

#: The digests of "abc": FIPS 180-4, FIPS 202, RFC 1321, and BLAKE3's paper.
ABC = {
    "md5": "900150983cd24fb0d6963f7d28e17f72",
    "sha224": "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7",
    "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    "sha384": "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed"
    "8086072ba1e7cc2358baeca134c825a7",
    "sha512": "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
    "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
    "sha512_256": "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23",
    "sha3_256": "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532",
    "sha3_512": "b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e"
    "10e116e9192af3c91a7ec57647e3934057340b4cf408d5a56592f8274eec53f0",
    "blake3": "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
}

#: BLAKE3's own test vectors: the bytes 0, 1, … 250, 0, 1, … of each length.
BLAKE3 = {
    0: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    1: "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
    1024: "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
    1025: "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
}


@pytest.mark.parametrize("algorithm", ABC)
def test_the_published_digest(algorithm: str) -> None:
    assert primitives.digest(algorithm, [b"abc"]) == ABC[algorithm]


@pytest.mark.parametrize("length", BLAKE3)
def test_blake3_s_own_vectors(length: int) -> None:
    data = bytes(i % 251 for i in range(length))
    assert primitives.digest("blake3", [data]) == BLAKE3[length]


@pytest.mark.parametrize("algorithm", ABC)
@given(data=st.lists(st.binary(max_size=200), max_size=5))
def test_pieces_are_one_message(algorithm: str, data: list[bytes]) -> None:
    whole = b"".join(data)
    found = primitives.digest(algorithm, data)
    assert found == primitives.digest(algorithm, [whole])
    if algorithm != "blake3":
        assert found == hashlib.new(algorithm, whole).hexdigest()


@given(st.binary(max_size=150), st.lists(st.binary(max_size=100), max_size=3))
def test_message_authentication(key: bytes, data: list[bytes]) -> None:
    assert primitives.hmac_sha256(key, data) == hmac.digest(key, b"".join(data), "sha256")


@given(st.binary(max_size=4), st.binary(max_size=4))
def test_equality(a: bytes, b: bytes) -> None:
    assert primitives.equal_in_constant_time(a, b) is (a == b)
    assert primitives.equal_in_constant_time(a, bytes(bytearray(a)))


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
