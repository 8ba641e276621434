"""gzip, Zstandard, Brotli, and tar and zip archives as values: no file is touched. Spec: 04 §22."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.arguments import PIECE, data_of, expect, option, options
from harnpy.faults import look, paced, pieces, watched
from harnpy.formats.archives import MODE, Entry
from harnpy.vm.declare import ABSENT
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

    Decompress = Callable[[Iterable[bytes]], Iterator[bytes]]

builtin = partial(declare, family="compression", counted=True)


@builtin("gzip_encode(data: bytes | string, level: int = 6) -> bytes")
def gzip_encode(vm: Vm, data: Value = ABSENT, level: Value = ABSENT) -> bytes:
    """Return the data compressed with gzip, reproducibly. `level`: 0 (stored) to 9 (smallest).

    Example: bytes_len(gzip_encode("ab".repeat(1000), 9)) < 100  // true
    """
    from harnpy.formats import compression

    expect("gzip_encode", data, 1, bytes, str)
    chosen = _level("gzip_encode", "level", level, 6, 0, 9)
    return b"".join(compression.gzip_compressed(pieces(data_of(data), PIECE), chosen))


@builtin("gzip_decode(b: bytes, opts?: dict) -> bytes")
def gzip_decode(vm: Vm, b: Value = ABSENT, opts: Value = ABSENT) -> bytes:
    """Return the content of gzip data. `opts`: `max_bytes` (268435456), the most that it may unpack to.

    Example: bytes_to_string(gzip_decode(gzip_encode("hello"), {max_bytes: 1000}))  // "hello"
    """
    from harnpy.formats import compression

    return _decoded(vm, "gzip_decode", b, opts, compression.gzip_decompressed)


@builtin("zstd_encode(data: bytes | string, level: int = 3) -> bytes")
def zstd_encode(vm: Vm, data: Value = ABSENT, level: Value = ABSENT) -> bytes:
    """Return the data as Zstandard, with a checksum. `level`: -131072 (fastest) to 22 (smallest).

    Example: bytes_len(zstd_encode("ab".repeat(1000))) < 100  // true
    """
    from harnpy.formats import compression

    expect("zstd_encode", data, 1, bytes, str)
    chosen = _level("zstd_encode", "level", level, 3, -131072, 22)
    content = data_of(data)
    return b"".join(compression.zstd_compressed(pieces(content, PIECE), chosen, len(content)))


@builtin("zstd_decode(b: bytes, opts?: dict) -> bytes")
def zstd_decode(vm: Vm, b: Value = ABSENT, opts: Value = ABSENT) -> bytes:
    """Return the content of Zstandard data. `opts`: `max_bytes` (268435456), the most that it may unpack to.

    Example: bytes_to_string(zstd_decode(zstd_encode("hello")))  // "hello"
    """
    from harnpy.formats import compression

    return _decoded(vm, "zstd_decode", b, opts, compression.zstd_decompressed)


@builtin("brotli_encode(data: bytes | string, quality: int = 11) -> bytes")
def brotli_encode(vm: Vm, data: Value = ABSENT, quality: Value = ABSENT) -> bytes:
    """Return the data compressed with Brotli. `quality`: 0 (fastest) to 11 (smallest).

    Example: bytes_len(brotli_encode("ab".repeat(1000))) < 100  // true
    """
    from harnpy.formats import compression

    expect("brotli_encode", data, 1, bytes, str)
    chosen = _level("brotli_encode", "quality", quality, 11, 0, 11)
    return b"".join(compression.brotli_compressed(pieces(data_of(data), PIECE), chosen))


@builtin("brotli_decode(b: bytes, opts?: dict) -> bytes")
def brotli_decode(vm: Vm, b: Value = ABSENT, opts: Value = ABSENT) -> bytes:
    """Return the content of Brotli data. `opts`: `max_bytes` (268435456), the most that it may unpack to.

    Example: bytes_to_string(brotli_decode(brotli_encode("hello")))  // "hello"
    """
    from harnpy.formats import compression

    return _decoded(vm, "brotli_decode", b, opts, compression.brotli_decompressed)


def _level(name: str, what: str, given: Value, default: int, least: int, most: int) -> int:
    if given is ABSENT or given is None:
        return default
    if type(given) is not int:
        raise RuntimeFault(f"{name}: {what} must be an int, got {type_name(given)}")
    if not least <= given <= most:
        raise RuntimeFault(f"{name}: {what} must be between {least} and {most}, got {given}")
    return given


def _decoded(vm: Vm, name: str, b: Value, opts: Value, decompress: Decompress) -> bytes:
    from harnpy.formats.compression import too_much

    expect(name, b, 1, bytes)
    most = max_bytes(vm, name, options(name, opts, ("max_bytes",)))
    found, size = [], 0
    for piece in decompress(pieces(b, PIECE)):
        size += len(piece)
        if size > most:
            raise too_much(most)
        found.append(piece)
        look()
    return b"".join(found)


def max_bytes(vm: Vm, name: str, given: dict[str, Value]) -> int:
    """Return the option of that name: by default as much as any result may have."""
    largest = vm.sizes.characters
    most: int = option(name, given, "max_bytes", int, largest)
    if not 0 <= most <= largest:
        raise RuntimeFault(f"{name}: option `max_bytes` must be between 0 and {largest}, got {most}")
    return most


_MOST_MODE = 0o7777


@builtin("tar_create(entries: list) -> bytes")
def tar_create(vm: Vm, entries: Value = ABSENT) -> bytes:
    """Pack `{path, content, mode?}` dicts as a tar archive; `content` is bytes or text, `mode` 420 (0o644).

    It has no times and no owners, so the same entries make the same archive.

    Example: tar_extract(tar_create([{path: "a.txt", content: "hi"}]))[0].path  // "a.txt"
    """
    from harnpy.formats.archives import tar_packed, tar_size

    found = _entries("tar_create", entries)
    vm.sizes.check_bytes(tar_size(found))
    return b"".join(tar_packed(found))


@builtin("tar_extract(b: bytes, opts?: dict) -> list")
def tar_extract(vm: Vm, b: Value = ABSENT, opts: Value = ABSENT) -> list[Value]:
    """Return the files of a tar archive: `{path, content: bytes, mode}` dicts.

    Paths that lead out of the archive are refused, and so are links and devices, unless `opts` has
    `skip_special: true`.

    Example:
        let files = tar_extract(tar_create([{path: "a.txt", content: "hi"}]))
        bytes_to_string(files[0].content)  // "hi"
    """
    from harnpy.formats.archives import tar_unpacked

    expect("tar_extract", b, 1, bytes)
    skip = _skip_special("tar_extract", options("tar_extract", opts, ("skip_special",)))
    return [entry._asdict() for entry in watched(tar_unpacked(b, skip))]


@builtin("zip_create(entries: list) -> bytes")
def zip_create(vm: Vm, entries: Value = ABSENT) -> bytes:
    """Return a compressed zip archive of `{path, content}` dicts; `content` is bytes or a string.

    It has no times, so the same entries make the same archive.

    Example: zip_extract(zip_create([{path: "a.txt", content: "hi"}]))[0].path  // "a.txt"
    """
    from harnpy.formats.archives import zip_packed

    return zip_packed(_entries("zip_create", entries))


@builtin("zip_extract(b: bytes, opts?: dict) -> list")
def zip_extract(vm: Vm, b: Value = ABSENT, opts: Value = ABSENT) -> list[Value]:
    """Return the files of a zip archive: `{path, content: bytes}` dicts.

    Paths that lead out of the archive are refused, and so are links, unless `opts` has `skip_special: true`.
    `opts.max_bytes` (268435456) is the most that all files together may unpack to.

    Example:
        let files = zip_extract(zip_create([{path: "a.txt", content: "hi"}]))
        bytes_to_string(files[0].content)  // "hi"
    """
    from harnpy.formats.archives import zip_unpacked

    expect("zip_extract", b, 1, bytes)
    given = options("zip_extract", opts, ("max_bytes", "skip_special"))
    skip, most = _skip_special("zip_extract", given), max_bytes(vm, "zip_extract", given)
    found = watched(zip_unpacked(b, most, skip))
    return [{"path": entry.path, "content": entry.content} for entry in found]


def _skip_special(name: str, given: dict[str, Value]) -> bool:
    skip: bool = option(name, given, "skip_special", bool, False)
    return skip


def _entries(name: str, given: Value) -> list[Entry]:
    if given is ABSENT:
        raise RuntimeFault(f"{name}: missing argument 1")
    if type(given) is not list:
        raise RuntimeFault(f"{name}: entries must be a list, got {type_name(given)}")
    return [_entry(f"{name}: entry {number}", value) for number, value in enumerate(paced(given))]


def _entry(where: str, value: Value) -> Entry:
    if type(value) is not dict:
        raise RuntimeFault(f"{where} must be a dict, got {type_name(value)}")
    path, content, mode = value.get("path"), value.get("content"), value.get("mode")
    if path is None:
        raise RuntimeFault(f"{where} is missing path")
    if type(path) is not str:
        raise RuntimeFault(f"{where} path must be a string, got {type_name(path)}")
    if content is None:
        raise RuntimeFault(f"{where} is missing content")
    if type(content) not in (bytes, str):
        raise RuntimeFault(f"{where} content must be bytes or string, got {type_name(content)}")
    if mode is None:
        mode = MODE
    if type(mode) is not int:
        raise RuntimeFault(f"{where} mode must be an int, got {type_name(mode)}")
    if not 0 <= mode <= _MOST_MODE:
        raise RuntimeFault(f"{where} mode must be between 0 and {_MOST_MODE}")
    return Entry(path, data_of(content), mode)
