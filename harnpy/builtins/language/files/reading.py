"""Reading files and looking at them. Spec: 04 §19."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.places import path_at_work
from harnpy.builtins.language.files.failures import thrown
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import Interrupted, LimitExceeded, Thrown, VmError
from harnpy.vm.values.objects import EnumValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="files", guarded=True)


@builtin("read_file(path: string) -> string")
def read_file(vm: Vm, path: str) -> str:
    """The text of a UTF-8 file.

    Example:
        write_file("a.txt", "hello")
        read_file("a.txt")  // "hello"
    """
    place = path_at_work(vm, path)
    with thrown(f"Failed to read file {place}"):
        return _text(vm, place)


@builtin("read_file_result(path: string) -> Result")
def read_file_result(vm: Vm, path: str) -> EnumValue:
    """`Ok(text)`, or `Err(message)` where `read_file` would throw.

    Example:
        unwrap_or(read_file_result("no such file"), "nothing")  // "nothing"
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
    """The bytes of a file.

    Example:
        write_file("a.txt", "hi")
        bytes_to_hex(read_file_bytes("a.txt"))  // "6869"
    """
    place = path_at_work(vm, path)
    with thrown(f"Failed to read file {place}"):
        return vm.world.files.read_bytes(place, vm.sizes.characters)


@builtin("read_lines(path: string) -> list")
def read_lines(vm: Vm, path: str) -> list[Value]:
    r"""The lines of a UTF-8 file without their ends (`\n` or `\r\n`).

    Example:
        write_file("a.txt", "one\ntwo\n")
        read_lines("a.txt")  // ["one", "two"]
    """
    place = path_at_work(vm, path)
    with thrown(f"read_lines: {place}"):
        text = _text(vm, place)
    lines: list[Value] = [line.removesuffix("\r") for line in text.split("\n")]
    if not lines[-1]:
        lines.pop()
    return lines


def _text(vm: Vm, place: str) -> str:
    return vm.world.files.read_bytes(place, vm.sizes.characters).decode()


@builtin("file_exists(path: string) -> bool")
def file_exists(vm: Vm, path: str) -> bool:
    """Whether there is a file or directory.

    Example:
        file_exists("no such file")  // false
    """
    return vm.world.files.exists(path_at_work(vm, path))


@builtin("stat(path: string) -> dict")
def stat(vm: Vm, path: str) -> dict[str, Value]:
    """`{size, is_file, is_dir, readonly, modified}`; `modified` is in seconds since 1970.

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
