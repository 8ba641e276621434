"""Standard input, standard error, the progress line, and the terminal's colours. Spec: 04 §1, 07 §14.1."""

from __future__ import annotations

from functools import partial
from math import inf

from harnpy.builtins import settings_of
from harnpy.formats.case import WHITESPACE
from harnpy.vm.declare import builtin
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

    Text = TypeVar("Text", str, str | None)

# Standard error, and its capture by the program itself. Spec: 04 §1.


class StderrCapture:
    """``pieces`` is what was written since the capture began; None: not capturing."""

    def __init__(self) -> None:
        self.pieces: list[str] | None = None


@builtin("eprint(msg: string) -> nil", family="io")
def eprint(vm: Vm, msg: str) -> None:
    """Write `msg` to standard error, without a newline.

    Example:
        capture_stderr_start()
        eprint("no newline")
        capture_stderr_take()  // "no newline"
    """
    captured = vm.state(StderrCapture).pieces
    if captured is None:
        vm.write_err(msg)
    else:
        captured.append(msg)


@builtin("eprintln(msg: string) -> nil", family="io")
def eprintln(vm: Vm, msg: str) -> None:
    r"""Write `msg` and a newline to standard error.

    Example:
        capture_stderr_start()
        eprintln("a line")
        capture_stderr_take()  // "a line\n"
    """
    eprint(vm, msg + "\n")


@builtin("capture_stderr_start() -> nil", family="io")
def capture_stderr_start(vm: Vm) -> None:
    """Capture what `eprint` and `eprintln` write from now on; an earlier capture is dropped.

    Example:
        capture_stderr_start()
        eprint("oh")
        capture_stderr_take()  // "oh"
    """
    vm.state(StderrCapture).pieces = []


@builtin("capture_stderr_take() -> string", family="io")
def capture_stderr_take(vm: Vm) -> str:
    r"""End the capture and return the captured text, or `""`.

    Example:
        capture_stderr_start()
        eprintln("oh")
        capture_stderr_take()  // "oh\n"
    """
    capture = vm.state(StderrCapture)
    text = "".join(capture.pieces or ())
    capture.pieces = None
    return text


# Standard input, real or mocked. Spec: 04 §1.


builtin = partial(declare, family="io")


class Stdin:
    """``rest`` is the mocked text not read yet; None when nothing is mocked."""

    def __init__(self) -> None:
        self.rest: str | None = None


def read_in_time(vm: Vm, read: Callable[[float | None], Text]) -> Text:
    """Return what ``read(within)`` reads from standard input, unless a deadline passes before it comes."""
    while vm.signal.pending:
        seconds = vm.tasks.time_left()
        try:
            return read(None if seconds == inf else seconds)
        except TimeoutError:
            vm.poll()
    return read(None)


@builtin("read_line() -> string | nil")
def read_line(vm: Vm) -> str | None:
    r"""Return the next line of standard input without its line ending, or nil at the end of input.

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
    r"""Return the rest of standard input.

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
    """Print `msg`, then read a line of the real standard input; return `""` at its end.

    White space at the line's end is removed.

    Example: prompt_user("Name? ")  // ""
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


# ``progress``: one line that says how far a program is. Spec: 04 §1, 07 §14.1.


_FRAMES = "|/-\\"
_DEFAULT_WIDTH, _MIN_WIDTH, _MAX_WIDTH = 10, 3, 40


@builtin("progress(phase: string, message: string, progress?: any, total?: int) -> nil", family="io")
def progress(vm: Vm, phase: str, message: str, progress: Value, total: int | None) -> None:
    """Print `[phase] message` with a percentage, `(progress/total)`, a spinner or a bar.

    `progress` is an int, or a dict: `{mode: "spinner", step}` or `{mode: "bar", current, total, width}`.

    Example: progress("copy", "a file", 1, 4)  // prints [copy] a file (1/4)
    """
    if type(progress) is int:
        text = f"{message} ({progress}%)" if total is None else f"{message} ({progress}/{total})"
    elif type(progress) is dict and progress.get("mode") == "spinner":
        text = f"{_FRAMES[_int(progress, 'step', _int(progress, 'current', 0)) % 4]} {message}"
    elif type(progress) is dict and progress.get("mode") == "bar":
        text = _bar(message, progress)
    else:
        text = message
    report = settings_of(vm).on_progress
    if report is not None:
        report(*_reading(progress, total), f"[{phase}] {message}")
    vm.write(f"[{phase}] {text}\n")


def _reading(progress: Value, total: int | None) -> tuple[float | None, float | None]:
    """Return how far, and of how much."""
    if type(progress) is int:
        return progress, 100 if total is None else total
    if type(progress) is dict and progress.get("mode") == "bar":
        return _int(progress, "current", 0), _int(progress, "total", 0)
    return None, None


def _bar(message: str, options: dict[str, Value]) -> str:
    current, total = _int(options, "current", 0), _int(options, "total", 0)
    width = min(max(_int(options, "width", _DEFAULT_WIDTH), _MIN_WIDTH), _MAX_WIDTH)
    # Halves round up: 2 * width * current / total is never negative here.
    filled = (2 * width * min(max(current, 0), total) + total) // (2 * total) if total > 0 else 0
    return f"[{'#' * filled}{'-' * (width - filled)}] {message} ({current}/{total})"


def _int(options: dict[str, Value], key: str, default: int) -> int:
    value = options.get(key)
    return value if type(value) is int else default


# Colours, and which streams are terminals. Spec: 04 §1.


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
    """Return true if `stream` (``"stdin"``, ``"stdout"``, ``"stderr"``) is a terminal, mocks first."""
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
    """Return `text` in the colour `name` (`red`, `bright_blue`, `gray` …), unchanged if the name is unknown.

    Unchanged also where colour is off: see `set_color_mode`.

    Example:
        set_color_mode("never")
        color("stop", "red")  // "stop"
    """
    code = _COLORS.get(name)
    return text if code is None else _styled(vm, text, code)


@builtin("bold(text: string) -> string")
def bold(vm: Vm, text: str) -> str:
    """Return `text` in bold where colour is on.

    Example:
        set_color_mode("always")
        len(bold("!"))  // 9
    """
    return _styled(vm, text, _BOLD)


@builtin("dim(text: string) -> string")
def dim(vm: Vm, text: str) -> str:
    """Return `text` dimmed where colour is on.

    Example:
        set_color_mode("never")
        dim("aside")  // "aside"
    """
    return _styled(vm, text, _DIM)


@builtin("set_color_mode(mode: string) -> nil")
def set_color_mode(vm: Vm, mode: str) -> None:
    """Use colour `always`, `never`, or by `auto`: `FORCE_COLOR`, `NO_COLOR`, otherwise on a terminal.

    Example:
        set_color_mode("never")
        bold("plain")  // "plain"
    """
    if mode not in ("auto", "always", "never"):
        raise Thrown(f"set_color_mode: invalid mode '{mode}'. Expected 'auto', 'always', or 'never'.")
    vm.state(Terminal).mode = mode


@builtin("is_stdin_tty() -> bool")
def is_stdin_tty(vm: Vm) -> bool:
    """Return true if standard input is a terminal.

    Example:
        mock_tty("stdin", false)
        is_stdin_tty()  // false
    """
    return is_tty(vm, "stdin")


@builtin("is_stdout_tty() -> bool")
def is_stdout_tty(vm: Vm) -> bool:
    """Return true if standard output is a terminal.

    Example:
        mock_tty("stdout", true)
        is_stdout_tty()  // true
    """
    return is_tty(vm, "stdout")


@builtin("is_stderr_tty() -> bool")
def is_stderr_tty(vm: Vm) -> bool:
    """Return true if standard error is a terminal.

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
