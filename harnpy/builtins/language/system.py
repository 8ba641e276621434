"""The machine that a program runs on: environment, directories, shells, other programs.

Spec: 02 §27, 04 §20.
"""

from __future__ import annotations

import os.path
import sys
from functools import partial

from harnpy.builtins.bridge.contexts import module_directory, runtime_root, state_root, workplace_of
from harnpy.formats.json import lines_of
from harnpy.project import RUNS_VARIABLE, WORKTREES_VARIABLE, runs_directory
from harnpy.project import project_root as root_of_project
from harnpy.vm.declare import ABSENT, builtin
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault, Thrown
from harnpy.vm.values import display
from harnpy.world.files import system_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# The shells of this machine, and how each is started for a command. Spec: 02 §27.


_FALLBACKS = ("zsh", "bash", "sh")


class Chosen:
    """The id of the shell that the program chose as its default."""

    id: str | None = None


def shells(vm: Vm) -> dict[str, Dict]:
    """Descriptors by id, best first; of several paths with one id the first is kept."""
    found: dict[str, Dict] = {}
    for source, path in _candidates(vm):
        if path and path.startswith("/"):
            shell = descriptor(path, source, vm.unguarded.files.exists(path))
            found.setdefault(shell["id"], shell)
    return found


def _candidates(vm: Vm) -> Iterator[tuple[str, str | None]]:
    yield "configured", vm.unguarded.environment.get("HARN_DEFAULT_SHELL")
    yield "env", vm.unguarded.environment.get("SHELL")
    yield "login", vm.unguarded.environment.login_shell()
    if vm.unguarded.files.exists("/etc/shells"):
        for line in lines_of(vm.unguarded.files.read_text("/etc/shells")):
            yield "etc_shells", line.strip()
    for directory in ("/bin", "/usr/bin"):
        for name in _FALLBACKS:
            yield "fallback", f"{directory}/{name}"


def descriptor(path: str, source: str, available: bool) -> Dict:
    name = os.path.basename(path).lower()
    return {
        "id": name,
        "label": name,
        "path": path,
        "platform": "darwin" if sys.platform == "darwin" else "linux",
        "available": available,
        "supports_login": True,
        "supports_interactive": True,
        "default_args": ["-c"],
        "login_args": ["-l", "-c"],
        "source": source,
    }


def default_shell(vm: Vm) -> Dict | None:
    """Return the chosen shell if it exists, else the first that does."""
    found = shells(vm)
    chosen = found.get(vm.state(Chosen).id or "")
    if chosen and chosen["available"]:
        return chosen
    return next((shell for shell in found.values() if shell["available"]), None)


def set_default_shell(vm: Vm, params: Dict) -> Dict:
    id = params.get("shell_id") or params.get("id")
    if not id:
        raise RuntimeFault("process.set_default_shell missing shell_id")
    shell = shells(vm).get(id)
    if shell is None or not shell["available"]:
        raise RuntimeFault(f'process.set_default_shell: unknown or unavailable shell id "{id}"')
    vm.state(Chosen).id = id
    return shell


def invocation(vm: Vm, params: Dict, caller: str, command: str) -> Dict:
    """Return how the shell that ``params`` name is started for ``command``."""
    shell = _named(vm, params, caller)
    args = list(shell["login_args" if params.get("login") else "default_args"])
    if params.get("interactive"):
        args.insert(0, "-i")
    return {
        "program": shell["path"],
        "args": [*args, command],
        "command_arg_index": len(args),
        "shell": shell,
    }


def _named(vm: Vm, params: Dict, caller: str) -> Dict:
    given = params.get("shell")
    if given is None:
        id = params.get("shell_id")
        if not id:
            raise RuntimeFault(f"{caller}: shell mode requires `shell` or `shell_id`")
        return _known(vm, id, caller)
    path, id = (given.get("path"), given.get("id")) if type(given) is dict else (None, None)
    if path:
        shell = descriptor(path, "object", vm.world.sees(path))
        args = given.get("default_args")
        return {**shell, "default_args": args} if type(args) is list else shell
    if not id:
        raise RuntimeFault(f"{caller}: shell object requires `path` or `id`")
    return _known(vm, id, caller)


def _known(vm: Vm, id: Value, caller: str) -> Dict:
    shell = shells(vm).get(id) if type(id) is str else None
    if shell is None:
        raise RuntimeFault(f'{caller}: unknown shell id "{id}"')
    return shell


def required(params: Dict, key: str) -> Value:
    """Return a parameter that must be present and not empty."""
    value = params.get(key)
    if value is None or value == "":
        raise Thrown(f"host_call: missing required parameter '{key}'")
    return value


# Running other programs: `exec`, `shell`. Spec: 04 §20.


@builtin("exec(cmd: string, ...args: any) -> dict", family="process", counted=True, guarded=True)
def exec_(vm: Vm, cmd: Value = ABSENT, *args: Value) -> Value:
    r"""Run a program without a shell: `{stdout, stderr, status, success}`. A failure is not an error.

    Example: exec("echo", "hello").stdout  // "hello\n"
    """
    if cmd is ABSENT or not display(cmd):
        raise Thrown("exec: command is required")
    return _run(vm, workplace_of(vm).directory(), [cmd, *args], "exec")


@builtin(
    "exec_at(dir: string, cmd: string, ...args: any) -> dict", family="process", counted=True, guarded=True
)
def exec_at(vm: Vm, dir: Value = ABSENT, cmd: Value = ABSENT, *args: Value) -> Value:
    """Run a program in a directory, relative to the worker's, or else to the script's.

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

    Example: shell("echo one; exit 3").status  // 3
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
    default = default_shell(vm)
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
    except (OSError, ValueError) as error:
        raise _not_started(caller, system_reason(error)) from None
    code = -1 if ended.code is None or ended.code < 0 else ended.code
    return {
        "stdout": ended.out.decode("utf-8", "replace"),
        "stderr": ended.err.decode("utf-8", "replace"),
        "status": code,
        "success": code == 0,
    }


def _not_started(caller: str, reason: str) -> Thrown:
    return Thrown(f"{caller} failed: process spawn failed: {reason}")


# The environment of a program: variables, the machine, its directories. Spec: 04 §20.


process_builtin = partial(declare, family="process")


@process_builtin("env(name: string) -> string | nil")
def env(vm: Vm, name: str) -> str | None:
    """Return the value of an environment variable; the running task's own values take precedence.

    Example: env("NO_SUCH_VARIABLE")  // nil
    """
    return workplace_of(vm).variable(name)


@process_builtin("env_or(name: string, default: any) -> any")
def env_or(vm: Vm, name: str, default: Value) -> Value:
    """Return the value of an environment variable, or `default` if it isn't set.

    Example: env_or("NO_SUCH_VARIABLE", "default")  // "default"
    """
    found = workplace_of(vm).variable(name)
    return default if found is None else found


def _first_set(vm: Vm, *names: str) -> str:
    return next(filter(None, map(workplace_of(vm).variable, names)), "")


@process_builtin("username() -> string")
def username(vm: Vm) -> str:
    """Return the user's name: `USER`, `USERNAME`, or that of the process's account.

    Example: len(username()) > 0  // true
    """
    return _first_set(vm, "USER", "USERNAME") or vm.world.machine.user_name()


@process_builtin("hostname() -> string")
def hostname(vm: Vm) -> str:
    """Return the machine's name: `HOSTNAME`, `COMPUTERNAME`, or what the system reports.

    Example: len(hostname()) > 0  // true
    """
    return _first_set(vm, "HOSTNAME", "COMPUTERNAME") or vm.world.machine.host_name()


@process_builtin("home_dir() -> string")
def home_dir(vm: Vm) -> str:
    """Return the user's home directory: `HOME`, `USERPROFILE`, or `""`.

    Example: path_is_absolute(home_dir())  // true
    """
    return _first_set(vm, "HOME", "USERPROFILE")


@process_builtin("platform() -> string")
def platform(vm: Vm) -> str:
    """Return the operating system: `linux`, `darwin` or `windows`.

    Example: ["linux", "darwin", "windows"].contains(platform())  // true
    """
    return vm.world.machine.platform()


@process_builtin("arch() -> string")
def arch(vm: Vm) -> str:
    """Return the processor: `x86_64`, `aarch64` …

    Example: len(arch()) > 0  // true
    """
    return vm.world.machine.arch()


@process_builtin("pid() -> int")
def pid(vm: Vm) -> int:
    """Return the id of the process.

    Example: pid() > 0  // true
    """
    return vm.world.machine.process_id()


@process_builtin("cwd() -> string")
@process_builtin("execution_root() -> string")
def execution_root(vm: Vm) -> str:
    """Return the directory for relative paths, in which commands run.

    Example: execution_root() == cwd()  // true
    """
    return workplace_of(vm).directory()


@process_builtin("source_dir() -> string")
@process_builtin("asset_root() -> string")
def source_dir(vm: Vm) -> str:
    """Return the directory of the executing source file; without one, the working directory.

    Example: asset_root() == source_dir()  // true
    """
    return module_directory(vm)


@process_builtin("project_root() -> string?")
def project_root(vm: Vm) -> str | None:
    """Return the nearest directory with a `harn.toml`, from the task's own or the program's upwards.

    Example: project_root()  // nil
    """
    start = workplace_of(vm).own_directory() or vm.source_dir or vm.unguarded.files.cwd()
    return root_of_project(start, vm.unguarded.files)


@process_builtin("runtime_paths() -> dict")
def runtime_paths(vm: Vm) -> dict[str, Value]:
    """Return the paths where the runtime keeps its files.

    `{execution_root, asset_root, state_root, run_root, worktree_root}`

    Example: runtime_paths().execution_root == execution_root()  // true
    """
    variables = vm.unguarded.environment
    state = state_root(vm)
    named = (variables.get(WORKTREES_VARIABLE) or "").strip()
    return {
        "execution_root": workplace_of(vm).directory(),
        "asset_root": module_directory(vm),
        "state_root": state,
        "run_root": runs_directory(vm.world.files.cwd(), variables.get(RUNS_VARIABLE)),
        "worktree_root": os.path.join(runtime_root(vm), named) if named else os.path.join(state, "worktrees"),
    }
