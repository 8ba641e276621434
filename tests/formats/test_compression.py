"""gzip, Zstandard and Brotli: round trips, other writers' data, damaged data, and data that never ends."""

from __future__ import annotations

import gzip as judge
import sys
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import brotli as brotli_library
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.formats import compression
from harnpy.world.unpacking import DataError
from tests.counts import COUNT

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Decompress = Callable[[Iterable[bytes]], Iterator[bytes]]

FORMATS = {
    "gzip": compression.gzip_decompressed,
    "zstd": compression.zstd_decompressed,
    "brotli": compression.brotli_decompressed,
}
#: Contents that compress well, badly, and to several blocks.
CONTENTS = st.one_of(
    st.binary(max_size=300), st.builds(bytes.__mul__, st.binary(max_size=5), st.integers(0, 70_000))
)
LEVELS = {"gzip": (0, 9), "zstd": (-131072, 12), "brotli": (0, 5)}
HELLO = {
    "gzip": bytes.fromhex("1f8b08000000000000ffcb48cdc9c9070086a6103605000000"),
    # A frame of one segment with one raw block, by RFC 8878, section 3.1.1.
    "zstd": bytes.fromhex("28b52ffd2005290000") + b"hello",
    "brotli": bytes.fromhex("0b0280") + b"hello\x03",
}


def compressed(name: str, data: bytes, level: int, piece: int = 1 << 16) -> bytes:
    pieces = cut(data, piece)
    if name == "zstd":
        return b"".join(compression.zstd_compressed(pieces, level, len(data)))
    pack = {"gzip": compression.gzip_compressed, "brotli": compression.brotli_compressed}[name]
    return b"".join(pack(pieces, level))


def decompressed(name: str, data: bytes, piece: int = 1 << 16) -> bytes:
    return b"".join(FORMATS[name](cut(data, piece)))


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=COUNT.examples(20), deadline=None)
@given(data=CONTENTS, chance=st.floats(0, 1), piece=st.sampled_from([1, 7, 1000, 1 << 16]))
def test_there_and_back(name: str, data: bytes, chance: float, piece: int) -> None:
    least, most = LEVELS[name]
    packed = compressed(name, data, least + int(chance * (most - least)), max(piece, 1000))
    assert decompressed(name, packed, max(piece, len(packed) // 500)) == data


@pytest.mark.parametrize("name", FORMATS)
def test_hello(name: str) -> None:
    assert decompressed(name, HELLO[name]) == b"hello"


@given(data=CONTENTS, level=st.integers(0, 9))
@settings(max_examples=COUNT.examples(20), deadline=None)
def test_others_read_what_we_write(data: bytes, level: int) -> None:
    packed = compressed("gzip", data, level)
    assert judge.decompress(packed) == data
    assert packed[4:8] == bytes(4), "a time"
    assert zstd.decompress(compressed("zstd", data, level)) == data
    assert zstd.get_frame_info(compressed("zstd", data, level)).decompressed_size == len(data)
    assert brotli_library.decompress(compressed("brotli", data, level)) == data


@given(data=CONTENTS, level=st.integers(1, 9))
@settings(max_examples=COUNT.examples(20), deadline=None)
def test_we_read_what_others_write(data: bytes, level: int) -> None:
    assert decompressed("gzip", judge.compress(data, level)) == data
    packer = zstd.ZstdCompressor(level)  # unlike `zstd.compress`, it writes no size
    assert decompressed("zstd", packer.compress(data) + packer.flush()) == data
    assert (
        decompressed("brotli", brotli_library.compress(data, quality=level, mode=brotli_library.MODE_TEXT))
        == data
    )


@pytest.mark.parametrize("name", ["gzip", "zstd"])
@pytest.mark.parametrize("piece", [1, 3, 1 << 16])
def test_members_follow_each_other(name: str, piece: int) -> None:
    two = compressed(name, b"one", 3) + compressed(name, b"", 3) + compressed(name, b"two", 3)
    assert decompressed(name, two, piece) == b"onetwo"


def test_zeros_may_follow_gzip_data_and_nothing_else() -> None:
    packed = compressed("gzip", b"one", 6)
    assert decompressed("gzip", packed + bytes(700)) == b"one"
    assert decompressed("gzip", packed + bytes(700) + packed, 100) == b"oneone"
    for name in FORMATS:
        with pytest.raises(DataError, match=r"damaged|too early"):
            decompressed(name, HELLO[name] + b"\x01rest")


def test_zstd_skips_skippable_frames() -> None:
    frame = bytes.fromhex("502a4d18") + (4).to_bytes(4, "little") + b"note"
    assert decompressed("zstd", frame + HELLO["zstd"] + frame) == b"hello"


@pytest.mark.parametrize("name", FORMATS)
def test_cut_data_ends_too_early(name: str) -> None:
    packed = compressed(name, b"some text, some text, some more text", 5)
    for end in range(len(packed)):
        with pytest.raises(DataError, match="the data ends too early"):
            decompressed(name, packed[:end])


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.binary(max_size=60))
def test_any_bytes_are_refused_or_read(name: str, data: bytes) -> None:
    try:
        decompressed(name, data)
    except DataError as error:
        assert "damaged" in str(error) or "too early" in str(error)  # noqa: PT017


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_a_changed_bit_never_changes_the_content(name: str) -> None:
    """Brotli has no checksum."""
    content = b"the content of the data, the content of the data"
    packed = compressed(name, content, 6)
    for bit in range(8 * len(packed)):
        changed = bytearray(packed)
        changed[bit // 8] ^= 1 << bit % 8
        with suppress(DataError):
            assert decompressed(name, bytes(changed)) == content


@pytest.mark.parametrize("name", FORMATS)
def test_a_bomb_is_unpacked_in_small_pieces(name: str) -> None:
    """So whoever gathers them can stop long before they fill the memory."""
    size = 64 << 20
    if name == "gzip":
        bomb = _gzip_bomb(size)
    elif name == "zstd":
        bomb = b"".join(compression.zstd_compressed([bytes(1 << 20)] * (size >> 20), 3, size))
    else:
        bomb = b"".join(compression.brotli_compressed([bytes(1 << 20)] * (size >> 20), 5))
    assert len(bomb) < 100_000
    tracemalloc.start()
    try:
        found, largest = 0, 0
        for piece in FORMATS[name]([bomb]):
            found, largest = found + len(piece), max(largest, len(piece))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == size
    assert largest <= 16 << 20
    assert peak < 40 << 20


def _gzip_bomb(size: int) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)), packer.flush()])


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_data_gives_the_same_bytes(name: str) -> None:
    data = b"abc" * 1000
    assert compressed(name, data, 5) == compressed(name, data, 5)
