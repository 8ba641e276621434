"""Standard input, real or mocked. Spec: 04 §1."""

from __future__ import annotations

from functools import partial
from math import inf

from harnpy.text.case import WHITESPACE
from harnpy.vm.declare.builtin import builtin as declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from harnpy.vm.vm import Vm

    Text = TypeVar("Text", str, str | None)

#: What all declarations here have in common.
builtin = partial(declare, family="io")


class Stdin:
    """``rest`` is the mocked text not read yet; None when nothing is mocked."""

    def __init__(self) -> None:
        self.rest: str | None = None


def read_in_time(vm: Vm, read: Callable[[float | None], Text]) -> Text:
    """What ``read(within)`` reads from standard input, unless a deadline passes before it comes."""
    while vm.signal.pending:
        seconds = vm.tasks.time_left()
        try:
            return read(None if seconds == inf else seconds)
        except TimeoutError:
            vm.poll()
    return read(None)


@builtin("read_line() -> string | nil")
def read_line(vm: Vm) -> str | None:
    r"""The next line of standard input without its end, or nil at the end of input.

    Example:
        mock_stdin("first\nsecond")
        read_line()  // "first"
    """
    stdin = vm.state(Stdin)
    line: str | None
    if stdin.rest is None:
        line = read_in_time(vm, vm.world.streams.read_line)
    elif stdin.rest:
        line, _, stdin.rest = stdin.rest.partition("\n")
    else:
        line = None
    return None if line is None else line.removesuffix("\r")


@builtin("read_stdin() -> string | nil")
def read_stdin(vm: Vm) -> str:
    r"""The rest of standard input.

    Example:
        mock_stdin("first\nsecond")
        read_line()
        read_stdin()  // "second"
    """
    stdin = vm.state(Stdin)
    if stdin.rest is None:
        return str(read_in_time(vm, vm.world.streams.read_all))
    text, stdin.rest = stdin.rest, ""
    return text


@builtin("prompt_user(msg: string) -> string | nil")
def prompt_user(vm: Vm, msg: str) -> str:
    """Print `msg`, then read a line of the real standard input; `""` at its end.

    White space at the line's end is removed.

    Example:
        prompt_user("Name? ")  // ""
    """
    vm.write(msg)
    return (read_in_time(vm, vm.world.streams.read_line) or "").rstrip(WHITESPACE)


@builtin("mock_stdin(text: string) -> nil")
def mock_stdin(vm: Vm, text: str) -> None:
    r"""Make `read_line` and `read_stdin` read `text`.

    Example:
        mock_stdin("one\ntwo\n")
        [read_line(), read_line(), read_line()]  // ["one", "two", nil]
    """
    vm.state(Stdin).rest = text


@builtin("unmock_stdin() -> nil")
def unmock_stdin(vm: Vm) -> None:
    """Read the real standard input again.

    Example:
        mock_stdin("a line")
        unmock_stdin()
        read_line()  // nil
    """
    vm.state(Stdin).rest = None
