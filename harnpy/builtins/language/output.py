"""Printing. Spec: 04 §1, 02 §5.1. On the start-up path: imports nothing heavy."""

from __future__ import annotations

from harnpy.vm.declare import builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.vm import Vm


@builtin("print(msg: string) -> nil", family="io")
def print_text(vm: Vm, msg: str) -> None:
    """Write `msg` to standard output, without a newline. Only the first argument counts.

    Example: print("no newline")  // prints no newline
    """
    vm.write(msg)


@builtin("println(msg: string) -> nil", family="io")
def print_line(vm: Vm, msg: str) -> None:
    """Write `msg` and a newline to standard output. Only the first argument counts.

    Example: println("hello")  // prints hello
    """
    vm.write(msg + "\n")


@builtin("log(msg: string) -> nil", family="io")
def log(vm: Vm, msg: str) -> None:
    """Write `[harn] `, `msg` and a newline to standard output.

    Example: log("ready")  // prints [harn] ready
    """
    vm.write(f"[harn] {msg}\n")
