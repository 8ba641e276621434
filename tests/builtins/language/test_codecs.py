"""Bytes, keys, compressed data: sizes that are refused, work that can be stopped, entropy that is given."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy import Vm, World
from harnpy.faults import TooLarge
from harnpy.vm.errors import VmError
from harnpy.vm.values.operators import Sizes
from tests.builtins.conftest import FakeVm

MANY = 1 << 20


@pytest.fixture
def small(vm: FakeVm) -> FakeVm:
    """A Vm whose results have at most 1000 characters or bytes."""
    sizes = vm.sizes
    sizes.characters = 1000
    return vm


@pytest.mark.parametrize(
    ("call", "size"),
    [
        (("bytes_concat", bytes(600), bytes(401)), "1001 bytes"),
        (("bytes_to_hex", bytes(501)), "1002 characters"),
        (("bytes_to_base64", bytes(760)), "1013 characters"),
        (("base64_encode", "x" * 760), "1013 characters"),
        (("base64url_encode", "x" * 760), "1013 characters"),
        (("base32_encode", "x" * 640), "1024 characters"),
        (("hex_encode", "é" * 260), "1040 characters"),
        (("url_encode", "é" * 180), "1080 characters"),
        (("tar_create", [{"path": "a", "content": "x" * 600}]), "1112 bytes"),
    ],
)
def test_what_would_be_too_large_is_refused(small: FakeVm, call: tuple[Any, ...], size: str) -> None:
    with pytest.raises(TooLarge, match=f"^result too large: {size}, and at most 1000 are allowed$"):
        small.run(*call)


@pytest.mark.parametrize("name", ["gzip", "zstd", "brotli"])
def test_data_unpacks_to_no_more_than_a_result_may_be(small: FakeVm, name: str) -> None:
    packed = small.run(f"{name}_encode", "x" * 1001)
    message = f"Runtime error: {name}_decode: the data unpacks to more than max_bytes = 1000"
    assert small.failure(f"{name}_decode", packed) == message


def test_the_limit_is_that_of_all_results() -> None:
    assert Sizes().characters == 268_435_456


class _Stopped(VmError):
    pass


@pytest.mark.parametrize(
    "call",
    [
        ("sha256", bytes(MANY)),
        ("blake3", bytes(MANY)),
        ("hmac_sha256", "key", "x" * MANY),
        ("gzip_encode", bytes(MANY)),
        ("zstd_encode", bytes(MANY)),
        ("brotli_encode", bytes(MANY), 1),
        ("zip_create", [{"path": "a", "content": bytes(MANY)}]),
        ("gzip_decode", FakeVm().run("gzip_encode", bytes(MANY))),
        ("zstd_decode", FakeVm().run("zstd_encode", bytes(MANY))),
        ("brotli_decode", FakeVm().run("brotli_encode", bytes(MANY), 1)),
        ("tar_extract", FakeVm().run("tar_create", [{"path": "a", "content": ""}])),
        ("zip_extract", FakeVm().run("zip_create", [{"path": "a", "content": ""}])),
    ],
    ids=lambda call: call[0],
)
def test_long_work_is_stopped_by_what_is_pending(vm: FakeVm, call: tuple[Any, ...]) -> None:
    def stop() -> None:
        raise _Stopped("stopped")

    vm.signal.pending = True
    vm.poll = stop  # type: ignore[method-assign]
    with pytest.raises(_Stopped):
        vm.run(*call)


class _Zeros:
    def bytes(self, count: int) -> bytes:
        return bytes(count)


def test_keys_are_made_of_the_world_s_entropy() -> None:
    vm = Vm(World(entropy=_Zeros()))
    pair = vm.run_source("return [ed25519_keypair(), x25519_keypair()]")
    assert [each["private"] for each in pair] == ["00" * 32] * 2
    assert pair[0]["public"] == "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"


def test_keys_differ() -> None:
    assert len({FakeVm().run("ed25519_keypair")["private"] for _ in range(20)}) == 20
