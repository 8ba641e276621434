"""gzip, Zstandard and Brotli. Spec: 04 §22."""

from __future__ import annotations

from harnpy.builtins.language.codecs.arguments import data_of, expect, option, options, pieces
from harnpy.vm.declare.builtin import ABSENT, builtin
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values.objects import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

    Decompress = Callable[[Iterable[bytes]], Iterator[bytes]]


@builtin("gzip_encode(data: bytes | string, level: int = 6) -> bytes", family="compression", counted=True)
def gzip_encode(vm: Vm, data: Value = ABSENT, level: Value = ABSENT) -> bytes:
    """The data as gzip, always the same for the same data. `level`: 0 (stored) to 9 (smallest).

    Example:
        bytes_len(gzip_encode("ab".repeat(1000), 9)) < 100  // true
    """
    from harnpy.archives import gzip

    expect("gzip_encode", data, 1, bytes, str)
    chosen = _level("gzip_encode", "level", level, 6, 0, 9)
    return b"".join(gzip.compressed(pieces(vm, data_of(data)), chosen))


@builtin("gzip_decode(b: bytes, opts?: dict) -> bytes", family="compression", counted=True)
def gzip_decode(vm: Vm, b: Value = ABSENT, opts: Value = ABSENT) -> bytes:
    """The content of gzip data. `opts`: `max_bytes` (268435456), the most that it may unpack to.

    Example:
        bytes_to_string(gzip_decode(gzip_encode("hello"), {max_bytes: 1000}))  // "hello"
    """
    from harnpy.archives import gzip

    return _decoded(vm, "gzip_decode", b, opts, gzip.decompressed)


@builtin("zstd_encode(data: bytes | string, level: int = 3) -> bytes", family="compression", counted=True)
def zstd_encode(vm: Vm, data: Value = ABSENT, level: Value = ABSENT) -> bytes:
    """The data as Zstandard, with a checksum. `level`: -131072 (fastest) to 22 (smallest).

    Example:
        bytes_len(zstd_encode("ab".repeat(1000))) < 100  // true
    """
    from harnpy.archives import zstd

    expect("zstd_encode", data, 1, bytes, str)
    chosen = _level("zstd_encode", "level", level, 3, -131072, 22)
    content = data_of(data)
    return b"".join(zstd.compressed(pieces(vm, content), chosen, len(content)))


@builtin("zstd_decode(b: bytes, opts?: dict) -> bytes", family="compression", counted=True)
def zstd_decode(vm: Vm, b: Value = ABSENT, opts: Value = ABSENT) -> bytes:
    """The content of Zstandard data. `opts`: `max_bytes` (268435456), the most that it may unpack to.

    Example:
        bytes_to_string(zstd_decode(zstd_encode("hello")))  // "hello"
    """
    from harnpy.archives import zstd

    return _decoded(vm, "zstd_decode", b, opts, zstd.decompressed)


@builtin(
    "brotli_encode(data: bytes | string, quality: int = 11) -> bytes", family="compression", counted=True
)
def brotli_encode(vm: Vm, data: Value = ABSENT, quality: Value = ABSENT) -> bytes:
    """The data as Brotli. `quality`: 0 (fastest) to 11 (smallest).

    Example:
        bytes_len(brotli_encode("ab".repeat(1000))) < 100  // true
    """
    from harnpy.archives import brotli

    expect("brotli_encode", data, 1, bytes, str)
    chosen = _level("brotli_encode", "quality", quality, 11, 0, 11)
    return b"".join(brotli.compressed(pieces(vm, data_of(data)), chosen))


@builtin("brotli_decode(b: bytes, opts?: dict) -> bytes", family="compression", counted=True)
def brotli_decode(vm: Vm, b: Value = ABSENT, opts: Value = ABSENT) -> bytes:
    """The content of Brotli data. `opts`: `max_bytes` (268435456), the most that it may unpack to.

    Example:
        bytes_to_string(brotli_decode(brotli_encode("hello")))  // "hello"
    """
    from harnpy.archives import brotli

    return _decoded(vm, "brotli_decode", b, opts, brotli.decompressed)


def _level(name: str, what: str, given: Value, default: int, least: int, most: int) -> int:
    if given is ABSENT or given is None:
        return default
    if type(given) is not int:
        raise RuntimeFault(f"{name}: {what} must be an int, got {type_name(given)}")
    if not least <= given <= most:
        raise RuntimeFault(f"{name}: {what} must be between {least} and {most}, got {given}")
    return given


def _decoded(vm: Vm, name: str, b: Value, opts: Value, decompress: Decompress) -> bytes:
    from harnpy.archives.errors import too_much

    expect(name, b, 1, bytes)
    most = max_bytes(vm, name, options(name, opts, ("max_bytes",)))
    found, size = [], 0
    for piece in decompress(pieces(vm, b)):
        size += len(piece)
        if size > most:
            raise too_much(most)
        found.append(piece)
        if vm.signal.pending:
            vm.poll()
    return b"".join(found)


def max_bytes(vm: Vm, name: str, given: dict[str, Value]) -> int:
    """Return the option of that name: by default as much as any result may have."""
    largest = vm.sizes.characters
    most: int = option(name, given, "max_bytes", int, largest)
    if not 0 <= most <= largest:
        raise RuntimeFault(f"{name}: option `max_bytes` must be between 0 and {largest}, got {most}")
    return most
