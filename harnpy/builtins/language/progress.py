"""``progress``: one line that says how far a program is. Spec: 04 §1, 07 §14.1."""

from __future__ import annotations

from harnpy.builtins import settings_of
from harnpy.vm.declare.builtin import builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

_FRAMES = "|/-\\"
_DEFAULT_WIDTH, _MIN_WIDTH, _MAX_WIDTH = 10, 3, 40


@builtin("progress(phase: string, message: string, progress?: any, total?: int) -> nil", family="io")
def progress(vm: Vm, phase: str, message: str, progress: Value, total: int | None) -> None:
    """Print `[phase] message` with a percentage, `(progress/total)`, a spinner or a bar.

    `progress` is an int, or a dict: `{mode: "spinner", step}` or `{mode: "bar", current, total, width}`.

    Example:
        progress("copy", "a file", 1, 4)  // prints [copy] a file (1/4)
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
    """How far, and of how much."""
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
