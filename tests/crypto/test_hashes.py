"""Digests against published values, and in pieces as in one."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.formats.crypto import primitives

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
