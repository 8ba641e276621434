"""Files and directories: reading, writing, copying and listing them. Spec: 04 §19."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

from harnpy.builtins.bridge.contexts import path_at_work
from harnpy.faults import paced
from harnpy.vm.declare import ABSENT
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import Interrupted, LimitExceeded, Thrown, VmError
from harnpy.vm.values import EnumValue, display, type_name
from harnpy.world.files import system_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# What a program is told about a file that can't be read or written. Spec: 04 §19.


@contextmanager
def thrown(what: str) -> Iterator[None]:
    """Throw ``what: <reason>`` where the system refuses."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise Thrown(f"{what}: {system_reason(error)}") from None


builtin = partial(declare, family="files", guarded=True)


@builtin("read_file(path: string) -> string")
def read_file(vm: Vm, path: str) -> str:
    """Return the text of a UTF-8 file.

    Example:
        write_file("a.txt", "hello")
        read_file("a.txt")  // "hello"
    """
    place = path_at_work(vm, path)
    with thrown(f"Failed to read file {place}"):
        return _text(vm, place)


@builtin("read_file_result(path: string) -> Result")
def read_file_result(vm: Vm, path: str) -> EnumValue:
    """Return `Ok(text)`, or `Err(message)` where `read_file` would throw.

    Example: unwrap_or(read_file_result("no such file"), "nothing")  // "nothing"
    """
    try:
        return EnumValue("Result", "Ok", (read_file(vm, path),))
    except (Interrupted, LimitExceeded):
        raise
    except Thrown as failed:
        return EnumValue("Result", "Err", (failed.value,))
    except VmError as refused:
        return EnumValue("Result", "Err", (refused.text,))


@builtin("read_file_bytes(path: string) -> bytes")
def read_file_bytes(vm: Vm, path: str) -> bytes:
    """Return the bytes of a file.

    Example:
        write_file("a.txt", "hi")
        bytes_to_hex(read_file_bytes("a.txt"))  // "6869"
    """
    place = path_at_work(vm, path)
    with thrown(f"Failed to read file {place}"):
        return vm.world.files.read_bytes(place, vm.sizes.characters)


@builtin("read_lines(path: string) -> list")
def read_lines(vm: Vm, path: str) -> list[Value]:
    r"""Return the lines of a UTF-8 file without their line endings (`\n` or `\r\n`).

    Example:
        write_file("a.txt", "one\ntwo\n")
        read_lines("a.txt")  // ["one", "two"]
    """
    place = path_at_work(vm, path)
    with thrown(f"read_lines: {place}"):
        text = _text(vm, place)
    lines: list[Value] = [line.removesuffix("\r") for line in paced(text.split("\n"))]
    if not lines[-1]:
        lines.pop()
    return lines


def _text(vm: Vm, place: str) -> str:
    return vm.world.files.read_bytes(place, vm.sizes.characters).decode()


@builtin("file_exists(path: string) -> bool")
def file_exists(vm: Vm, path: str) -> bool:
    """Return true if a file or directory exists.

    Example: file_exists("no such file")  // false
    """
    return vm.world.files.exists(path_at_work(vm, path))


@builtin("stat(path: string) -> dict")
def stat(vm: Vm, path: str) -> dict[str, Value]:
    """Return `{size, is_file, is_dir, readonly, modified}`; `modified` is in seconds since 1970.

    Example:
        write_file("a.txt", "hello")
        stat("a.txt").size  // 5
    """
    from stat import S_ISDIR, S_ISREG

    place = path_at_work(vm, path)
    with thrown(f"Failed to stat {place}"):
        found = vm.world.files.status(place)
    return {
        "size": found.st_size,
        "is_file": S_ISREG(found.st_mode),
        "is_dir": S_ISDIR(found.st_mode),
        "readonly": not found.st_mode & 0o222,
        "modified": found.st_mtime,
    }


@builtin("write_file(path: string, content: any) -> nil", counted=True)
def write_file(vm: Vm, path: Value = ABSENT, content: Value = ABSENT) -> None:
    """Write a file in an existing directory, replacing its content.

    Without content nothing happens.

    Example:
        write_file("a.txt", "hello")
        read_file("a.txt")  // "hello"
    """
    if content is not ABSENT:
        place = path_at_work(vm, display(path))
        with thrown(f"Failed to write file {place}"):
            vm.world.files.write_bytes(place, _encoded(content))


@builtin("append_file(path: string, content: any) -> nil", counted=True)
def append_file(vm: Vm, path: Value = ABSENT, content: Value = ABSENT) -> None:
    r"""Append to a file, which is created if necessary. Without content nothing happens.

    Example:
        append_file("log.txt", "one\n")
        append_file("log.txt", "two\n")
        read_lines("log.txt")  // ["one", "two"]
    """
    if content is not ABSENT:
        place = path_at_work(vm, display(path))
        with thrown(f"Failed to open file {place}"):
            vm.world.files.write_bytes(place, _encoded(content), append=True)


@builtin("write_file_bytes(path: string, content: bytes) -> nil")
def write_file_bytes(vm: Vm, path: str, content: Value) -> None:
    """Write bytes to a file in an existing directory.

    Example:
        write_file_bytes("raw", bytes_from_hex("00ff"))
        stat("raw").size  // 2
    """
    if type(content) is not bytes:
        raise Thrown(f"write_file_bytes expects bytes content, got {type_name(content)}")
    place = path_at_work(vm, path)
    with thrown(f"Failed to write file {place}"):
        vm.world.files.write_bytes(place, content)


@builtin("mkdir(path: string) -> nil")
def mkdir(vm: Vm, path: str) -> None:
    """Create a directory and its parents; an existing one is fine.

    Example:
        mkdir("deep/er")
        file_exists("deep/er")  // true
    """
    place = path_at_work(vm, path)
    with thrown(f"Failed to create directory {place}"):
        vm.world.files.make_directory(place)


@builtin("delete_file(path: string) -> nil")
def delete_file(vm: Vm, path: str) -> None:
    """Delete a file, a link, or a directory with everything below it.

    Example:
        write_file("old.txt", "")
        delete_file("old.txt")
        file_exists("old.txt")  // false
    """
    place = path_at_work(vm, path)
    try:
        vm.world.files.remove(place)
    except (OSError, ValueError) as error:
        is_directory = vm.world.sees(place) and vm.world.files.is_dir(place)
        kind = "directory" if is_directory else "file"
        raise Thrown(f"Failed to delete {kind} {place}: {system_reason(error)}") from None


@builtin("copy_file(src: string, dst: string) -> nil", counted=True)
def copy_file(vm: Vm, src: Value = ABSENT, dst: Value = ABSENT) -> None:
    """Copy a file and its permissions; replace what is at `dst`. Without `dst` nothing happens.

    Example:
        write_file("a.txt", "hi")
        copy_file("a.txt", "b.txt")
        read_file("b.txt")  // "hi"
    """
    if dst is not ABSENT:
        source, target = path_at_work(vm, display(src)), path_at_work(vm, display(dst))
        with thrown(f"Failed to copy {source} to {target}"):
            vm.world.files.copy(source, target)


@builtin("move_file(src: string, dst: string) -> nil", counted=True)
def move_file(vm: Vm, src: Value = ABSENT, dst: Value = ABSENT) -> None:
    """Move a file or directory, also to another disk; a file at `dst` is replaced.

    Example:
        write_file("draft.txt", "hi")
        move_file("draft.txt", "final.txt")
        file_exists("draft.txt")  // false
    """
    if dst is ABSENT or not display(src) or not display(dst):
        raise Thrown("move_file: src and dst are required")
    source, target = path_at_work(vm, display(src)), path_at_work(vm, display(dst))
    files = vm.world.files
    try:
        files.rename(source, target)
    except (OSError, ValueError):
        with thrown("move_file: copy failed"):
            files.copy(source, target)
        with thrown("move_file: remove src failed"):
            files.remove(source)


def _encoded(content: Value) -> bytes:
    return display(content).encode("utf-8", "surrogatepass")


@builtin('list_dir(path: string = ".") -> list')
def list_dir(vm: Vm, path: str) -> list[Value]:
    """Return the names in a directory, sorted.

    Example:
        mkdir("box/inner")
        list_dir("box")  // ["inner"]
    """
    place = path_at_work(vm, path)
    with thrown(f"Failed to list directory {place}"):
        return [entry.name for entry in vm.world.files.entries(place)]


@builtin("walk_dir(path: string, opts?: dict) -> list")
def walk_dir(vm: Vm, path: str, opts: Value) -> list[Value]:
    """List everything below a directory: `{path, is_dir, is_file, depth}`, sorted; `[]` if it doesn't exist.

    `opts`: `max_depth`, `follow_symlinks` (false). Directories that can't be listed are left out.

    Example:
        mkdir("tree/leaf")
        walk_dir("tree").map({ found -> found.depth })  // [0, 1]
    """
    from harnpy.world.walk import walk

    if not path:
        raise Thrown("walk_dir: root path is required")
    given = opts if type(opts) is dict else {}
    depth = given.get("max_depth")
    follow = given.get("follow_symlinks") is True
    most = max(depth, 0) if type(depth) is int else None
    found = walk(vm.world.files, path_at_work(vm, path), most, follow)
    return [
        {"path": each.path, "is_dir": each.is_dir, "is_file": each.is_file, "depth": each.depth}
        for each in found
    ]


@builtin('glob(pattern: string, base: string | dict = ".") -> list')
def glob(vm: Vm, pattern: str, base: Value) -> list[Value]:
    """Return the paths below `base` (or `{base}`) that match, sorted.

    `*` and `?` match `/`, too; `**/` is any directories or none; `[ab]`, `[!ab]` and `{a,b}` are choices.

    Example:
        mkdir("src")
        write_file("src/a.md", "")
        write_file("src/b.txt", "")
        glob("**/*.md", "src").map({ path -> basename(path) })  // ["a.md"]
    """
    from harnpy.formats.globs import PatternError, path_matcher
    from harnpy.world.walk import walk

    if not pattern:
        raise Thrown("glob: pattern is required")
    try:
        matches = path_matcher(pattern)
    except PatternError as error:
        raise Thrown(f"glob: {error}") from None
    if type(base) is dict:
        base = base.get("base")
    root = path_at_work(vm, "." if base is None else display(base))
    start = len(root.rstrip("/")) + 1
    return sorted(
        each.path for each in walk(vm.world.files, root) if each.depth and matches(each.path[start:])
    )
