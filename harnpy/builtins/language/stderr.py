"""Standard error, and its capture by the program itself. Spec: 04 §1."""

from __future__ import annotations

from harnpy.vm.declare.builtin import builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.vm import Vm


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
    """Keep what `eprint` and `eprintln` write from now on; an earlier capture is dropped.

    Example:
        capture_stderr_start()
        eprint("oh")
        capture_stderr_take()  // "oh"
    """
    vm.state(StderrCapture).pieces = []


@builtin("capture_stderr_take() -> string", family="io")
def capture_stderr_take(vm: Vm) -> str:
    r"""What was captured, `""` if nothing; the capture ends.

    Example:
        capture_stderr_start()
        eprintln("oh")
        capture_stderr_take()  // "oh\n"
    """
    capture = vm.state(StderrCapture)
    text = "".join(capture.pieces or ())
    capture.pieces = None
    return text
