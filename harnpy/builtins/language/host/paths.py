"""The parts of a path, as text. Spec: 04 §18."""

from __future__ import annotations

import os.path

from harnpy.vm.declare.builtin import builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.vm import Vm

_SEPARATORS = os.path.sep + (os.path.altsep or "")


def _cut(path: str) -> tuple[str, str]:
    """The directory and the last component; a trailing separator or `.` doesn't count."""
    head, tail = os.path.split(path.rstrip(_SEPARATORS))
    while tail == "." and head:
        head, tail = os.path.split(head.rstrip(_SEPARATORS))
    return head, tail


def _name(path: str) -> str:
    name = _cut(path)[1]
    return "" if name in (".", "..") else name


@builtin("dirname(path: string) -> string", family="strings")
def dirname(vm: Vm, path: str) -> str:
    """The path without its last component; `""` if that was all."""
    return _cut(path)[0]


@builtin("basename(path: string) -> string", family="strings")
def basename(vm: Vm, path: str) -> str:
    """The last component; `""` if there is none."""
    return _name(path)


@builtin("extname(path: string) -> string", family="strings")
def extname(vm: Vm, path: str) -> str:
    """The last extension of the file name with its dot; `""` if there is none, as for `.env`."""
    stem, dot, extension = _name(path).rpartition(".")
    return dot + extension if stem else ""
