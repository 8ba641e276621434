"""Colours, and which streams are terminals. Spec: 04 §1."""

from __future__ import annotations

from functools import partial

from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="io")

_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_COLORS = (
    {name: 30 + i for i, name in enumerate(_NAMES)}
    | {f"bright_{name}": 90 + i for i, name in enumerate(_NAMES)}
    | {"gray": 90, "grey": 90}
)
_STREAMS = ("stdin", "stdout", "stderr")
_BOLD, _DIM = 1, 2


class Terminal:
    """The colour mode, and which streams `mock_tty` has set."""

    def __init__(self) -> None:
        self.mode = "auto"
        self.mocked: dict[str, bool] = {}


def is_tty(vm: Vm, stream: str) -> bool:
    """Whether `stream` (``"stdin"``, ``"stdout"``, ``"stderr"``) is a terminal, mocks first."""
    mocked: bool | None = vm.state(Terminal).mocked.get(stream)
    return vm.world.streams.isatty(stream) if mocked is None else mocked


def _shows_color(vm: Vm) -> bool:
    mode = vm.state(Terminal).mode
    if mode != "auto":
        return bool(mode == "always")
    if vm.unguarded.environment.get("FORCE_COLOR") is not None:
        return True
    return vm.unguarded.environment.get("NO_COLOR") is None and is_tty(vm, "stdout")


def _styled(vm: Vm, text: str, code: int) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if _shows_color(vm) else text


@builtin("color(text: string, name: string) -> string")
def color(vm: Vm, text: str, name: str) -> str:
    """`text` in the colour `name` (`red`, `bright_blue`, `gray` …); unchanged if it is unknown.

    Unchanged also where colour is off: see `set_color_mode`.

    Example:
        set_color_mode("never")
        color("stop", "red")  // "stop"
    """
    code = _COLORS.get(name)
    return text if code is None else _styled(vm, text, code)


@builtin("bold(text: string) -> string")
def bold(vm: Vm, text: str) -> str:
    """`text` in bold, where colour is on.

    Example:
        set_color_mode("always")
        len(bold("!"))  // 9
    """
    return _styled(vm, text, _BOLD)


@builtin("dim(text: string) -> string")
def dim(vm: Vm, text: str) -> str:
    """`text` dimmed, where colour is on.

    Example:
        set_color_mode("never")
        dim("aside")  // "aside"
    """
    return _styled(vm, text, _DIM)


@builtin("set_color_mode(mode: string) -> nil")
def set_color_mode(vm: Vm, mode: str) -> None:
    """Colour `always`, `never`, or by `auto`: `FORCE_COLOR`, `NO_COLOR`, else on a terminal.

    Example:
        set_color_mode("never")
        bold("plain")  // "plain"
    """
    if mode not in ("auto", "always", "never"):
        raise Thrown(f"set_color_mode: invalid mode '{mode}'. Expected 'auto', 'always', or 'never'.")
    vm.state(Terminal).mode = mode


@builtin("is_stdin_tty() -> bool")
def is_stdin_tty(vm: Vm) -> bool:
    """Whether standard input is a terminal.

    Example:
        mock_tty("stdin", false)
        is_stdin_tty()  // false
    """
    return is_tty(vm, "stdin")


@builtin("is_stdout_tty() -> bool")
def is_stdout_tty(vm: Vm) -> bool:
    """Whether standard output is a terminal.

    Example:
        mock_tty("stdout", true)
        is_stdout_tty()  // true
    """
    return is_tty(vm, "stdout")


@builtin("is_stderr_tty() -> bool")
def is_stderr_tty(vm: Vm) -> bool:
    """Whether standard error is a terminal.

    Example:
        mock_tty("stderr", true)
        is_stderr_tty()  // true
    """
    return is_tty(vm, "stderr")


@builtin("mock_tty(stream: string, is_tty: bool) -> nil")
def mock_tty(vm: Vm, stream: str, is_tty: Value) -> None:
    """Pretend that `stream` is a terminal (`true`) or is not one (anything else).

    Example:
        mock_tty("stdout", true)
        is_stdout_tty()  // true
    """
    if stream not in _STREAMS:
        raise Thrown(f"mock_tty: invalid stream '{stream}'. Expected 'stdin', 'stdout', or 'stderr'.")
    vm.state(Terminal).mocked[stream] = is_tty is True


@builtin("unmock_tty() -> nil")
def unmock_tty(vm: Vm) -> None:
    """Undo `mock_tty`.

    Example:
        mock_tty("stdin", true)
        unmock_tty("stdin")  // nil
    """
    vm.state(Terminal).mocked.clear()
