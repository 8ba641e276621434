"""Running other programs: `exec`, `shell`. Spec: 04 §20."""

from __future__ import annotations

from harnpy.builtins.bridge.places import workplace_of
from harnpy.builtins.language.host import shells
from harnpy.vm.declare.builtin import ABSENT, builtin
from harnpy.vm.errors import Thrown
from harnpy.vm.values.objects import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("exec(cmd: string, ...args: any) -> dict", family="process", counted=True, guarded=True)
def exec_(vm: Vm, cmd: Value = ABSENT, *args: Value) -> Value:
    r"""Run a program, without a shell: `{stdout, stderr, status, success}`. A failure is not an error.

    Example:
        exec("echo", "hello").stdout  // "hello\n"
    """
    if cmd is ABSENT or not display(cmd):
        raise Thrown("exec: command is required")
    return _run(vm, workplace_of(vm).directory(), [cmd, *args], "exec")


@builtin(
    "exec_at(dir: string, cmd: string, ...args: any) -> dict", family="process", counted=True, guarded=True
)
def exec_at(vm: Vm, dir: Value = ABSENT, cmd: Value = ABSENT, *args: Value) -> Value:
    """Run a program in a directory, relative to the worker's, else to that of the script.

    Example:
        mkdir("box")
        exec_at("box", "pwd").stdout.trim().ends_with("/box")  // true
    """
    if dir is ABSENT or cmd is ABSENT or not display(cmd):
        raise Thrown("exec_at: directory and command are required")
    return _run(vm, _directory(vm, dir), [cmd, *args], "exec")


@builtin("shell(cmd: string) -> dict", family="process", counted=True, guarded=True)
def shell(vm: Vm, cmd: Value = ABSENT) -> Value:
    """Run a command in the default shell: `{stdout, stderr, status, success}`.

    Example:
        shell("echo one; exit 3").status  // 3
    """
    if cmd is ABSENT or not display(cmd):
        raise Thrown("shell: command string is required")
    return _run(vm, workplace_of(vm).directory(), _in_shell(vm, cmd), "shell")


@builtin("shell_at(dir: string, cmd: string) -> dict", family="process", counted=True, guarded=True)
def shell_at(vm: Vm, dir: Value = ABSENT, cmd: Value = ABSENT) -> Value:
    """Run a command in the default shell in a directory, as `exec_at` runs a program.

    Example:
        mkdir("box")
        shell_at("box", "pwd").stdout.trim().ends_with("/box")  // true
    """
    if dir is ABSENT or cmd is ABSENT:
        raise Thrown("shell_at: directory and command string are required")
    if not display(cmd):
        raise Thrown("shell_at: command string is required")
    return _run(vm, _directory(vm, dir), _in_shell(vm, cmd), "shell")


def _directory(vm: Vm, given: Value) -> str:
    return workplace_of(vm).path(display(given))


def _in_shell(vm: Vm, command: Value) -> list[Value]:
    default = shells.default_shell(vm)
    if default is None:
        raise Thrown("shell failed: there is no shell")
    return [default["path"], *default["default_args"], command]


def _run(vm: Vm, directory: str, argv: Sequence[Value], caller: str) -> Value:
    words = [display(word) for word in argv]
    return vm.tasks.awaited(_ended(vm, directory, words, workplace_of(vm).environment(), caller))


async def _ended(
    vm: Vm, directory: str, argv: list[str], environment: Mapping[str, str] | None, caller: str
) -> dict[str, Any]:
    try:
        ended = await vm.world.processes.run(argv, directory, environment)
    except OSError as error:
        raise _not_started(caller, f"{error.strerror} (os error {error.errno})") from None
    except ValueError as error:
        raise _not_started(caller, str(error)) from None
    code = -1 if ended.code is None or ended.code < 0 else ended.code
    return {
        "stdout": ended.out.decode("utf-8", "replace"),
        "stderr": ended.err.decode("utf-8", "replace"),
        "status": code,
        "success": code == 0,
    }


def _not_started(caller: str, reason: str) -> Thrown:
    return Thrown(f"{caller} failed: process spawn failed: {reason}")
