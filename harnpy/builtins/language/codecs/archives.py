"""tar and zip archives as values: no file is touched. Spec: 04 §22."""

from __future__ import annotations

from harnpy.archives.entries import MODE, Entry
from harnpy.builtins.language.codecs.arguments import data_of, expect, option, options, pieces
from harnpy.builtins.language.codecs.compression import max_bytes
from harnpy.vm.declare.builtin import ABSENT, builtin
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values.objects import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

_MOST_MODE = 0o7777


@builtin("tar_create(entries: list) -> bytes", family="compression", counted=True)
def tar_create(vm: Vm, entries: Value = ABSENT) -> bytes:
    """A tar archive of `{path, content, mode?}` dicts; `content` is bytes or a string, `mode` 420 (0o644).

    It has no times and no owners, so the same entries make the same archive.

    Example:
        tar_extract(tar_create([{path: "a.txt", content: "hi"}]))[0].path  // "a.txt"
    """
    from harnpy.archives.tar import packed, packed_size

    found = _entries("tar_create", entries)
    vm.sizes.check_bytes(packed_size(found))
    return b"".join(packed(found))


@builtin("tar_extract(b: bytes, opts?: dict) -> list", family="compression", counted=True)
def tar_extract(vm: Vm, b: Value = ABSENT, opts: Value = ABSENT) -> list[Value]:
    """The files of a tar archive: `{path, content: bytes, mode}` dicts.

    Paths that lead out of the archive are refused, and so are links and devices, unless `opts` has
    `skip_special: true`.

    Example:
        let files = tar_extract(tar_create([{path: "a.txt", content: "hi"}]))
        bytes_to_string(files[0].content)  // "hi"
    """
    from harnpy.archives.tar import unpacked

    expect("tar_extract", b, 1, bytes)
    skip = _skip_special("tar_extract", options("tar_extract", opts, ("skip_special",)))
    return [entry._asdict() for entry in _paced(vm, unpacked(b, skip))]


@builtin("zip_create(entries: list) -> bytes", family="compression", counted=True)
def zip_create(vm: Vm, entries: Value = ABSENT) -> bytes:
    """A zip archive of `{path, content}` dicts, deflated; `content` is bytes or a string.

    It has no times, so the same entries make the same archive.

    Example:
        zip_extract(zip_create([{path: "a.txt", content: "hi"}]))[0].path  // "a.txt"
    """
    from harnpy.archives.zip import packed

    return packed(_entries("zip_create", entries), lambda content: pieces(vm, content))


@builtin("zip_extract(b: bytes, opts?: dict) -> list", family="compression", counted=True)
def zip_extract(vm: Vm, b: Value = ABSENT, opts: Value = ABSENT) -> list[Value]:
    """The files of a zip archive: `{path, content: bytes}` dicts.

    Paths that lead out of the archive are refused, and so are links, unless `opts` has `skip_special: true`.
    `opts.max_bytes` (268435456) is the most that all files together may unpack to.

    Example:
        let files = zip_extract(zip_create([{path: "a.txt", content: "hi"}]))
        bytes_to_string(files[0].content)  // "hi"
    """
    from harnpy.archives.zip import unpacked

    expect("zip_extract", b, 1, bytes)
    given = options("zip_extract", opts, ("max_bytes", "skip_special"))
    skip, most = _skip_special("zip_extract", given), max_bytes(vm, "zip_extract", given)
    found = _paced(vm, unpacked(b, most, skip))
    return [{"path": entry.path, "content": entry.content} for entry in found]


def _skip_special(name: str, given: dict[str, Value]) -> bool:
    skip: bool = option(name, given, "skip_special", bool, False)
    return skip


def _paced(vm: Vm, entries: Iterable[Entry]) -> Iterator[Entry]:
    for entry in entries:
        yield entry
        if vm.signal.pending:
            vm.poll()


def _entries(name: str, given: Value) -> list[Entry]:
    if given is ABSENT:
        raise RuntimeFault(f"{name}: missing argument 1")
    if type(given) is not list:
        raise RuntimeFault(f"{name}: entries must be a list, got {type_name(given)}")
    return [_entry(f"{name}: entry {number}", value) for number, value in enumerate(given)]


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
