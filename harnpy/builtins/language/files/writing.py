"""Writing, copying, moving and deleting files. Spec: 04 §19."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.places import path_at_work
from harnpy.builtins.language.files.failures import thrown
from harnpy.vm.declare.builtin import ABSENT
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import Thrown
from harnpy.vm.values.objects import display, type_name
from harnpy.world.files import system_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="files", guarded=True)


@builtin("write_file(path: string, content: any) -> nil", counted=True)
def write_file(vm: Vm, path: Value = ABSENT, content: Value = ABSENT) -> None:
    """Write a file in a directory that is there; what was in it is replaced.

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
    r"""Add to the end of a file, which is created if need be. Without content nothing happens.

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
    """Write bytes to a file in a directory that is there.

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
    """Make a directory and those above it; one that is there is fine.

    Example:
        mkdir("deep/er")
        file_exists("deep/er")  // true
    """
    place = path_at_work(vm, path)
    with thrown(f"Failed to create directory {place}"):
        vm.world.files.make_directory(place)


@builtin("delete_file(path: string) -> nil")
def delete_file(vm: Vm, path: str) -> None:
    """Delete a file or a link, or a directory with everything below it.

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
    """Copy a file and its rights; what was at `dst` is replaced. Without `dst` nothing happens.

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
    """Give a file or directory another path, on another disk, too; a file at `dst` is replaced.

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
