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
    """
    if content is not ABSENT:
        place = path_at_work(vm, display(path))
        with thrown(f"Failed to write file {place}"):
            vm.world.files.write_bytes(place, _encoded(content))


@builtin("append_file(path: string, content: any) -> nil", counted=True)
def append_file(vm: Vm, path: Value = ABSENT, content: Value = ABSENT) -> None:
    """Add to the end of a file, which is created if need be. Without content nothing happens."""
    if content is not ABSENT:
        place = path_at_work(vm, display(path))
        with thrown(f"Failed to open file {place}"):
            vm.world.files.write_bytes(place, _encoded(content), append=True)


@builtin("write_file_bytes(path: string, content: bytes) -> nil")
def write_file_bytes(vm: Vm, path: str, content: Value) -> None:
    """Write bytes to a file in a directory that is there."""
    if type(content) is not bytes:
        raise Thrown(f"write_file_bytes expects bytes content, got {type_name(content)}")
    place = path_at_work(vm, path)
    with thrown(f"Failed to write file {place}"):
        vm.world.files.write_bytes(place, content)


@builtin("mkdir(path: string) -> nil")
def mkdir(vm: Vm, path: str) -> None:
    """Make a directory and those above it; one that is there is fine."""
    place = path_at_work(vm, path)
    with thrown(f"Failed to create directory {place}"):
        vm.world.files.make_directory(place)


@builtin("delete_file(path: string) -> nil")
def delete_file(vm: Vm, path: str) -> None:
    """Delete a file or a link, or a directory with everything below it."""
    place = path_at_work(vm, path)
    try:
        vm.world.files.remove(place)
    except (OSError, ValueError) as error:
        is_directory = vm.world.sees(place) and vm.world.files.is_dir(place)
        kind = "directory" if is_directory else "file"
        raise Thrown(f"Failed to delete {kind} {place}: {system_reason(error)}") from None


@builtin("copy_file(src: string, dst: string) -> nil", counted=True)
def copy_file(vm: Vm, src: Value = ABSENT, dst: Value = ABSENT) -> None:
    """Copy a file and its rights; what was at `dst` is replaced. Without `dst` nothing happens."""
    if dst is not ABSENT:
        source, target = path_at_work(vm, display(src)), path_at_work(vm, display(dst))
        with thrown(f"Failed to copy {source} to {target}"):
            vm.world.files.copy(source, target)


@builtin("move_file(src: string, dst: string) -> nil", counted=True)
def move_file(vm: Vm, src: Value = ABSENT, dst: Value = ABSENT) -> None:
    """Give a file or directory another path, on another disk, too; a file at `dst` is replaced."""
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
