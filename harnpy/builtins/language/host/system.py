"""The environment of a program: variables, the machine, its directories. Spec: 04 §20."""

from __future__ import annotations

import os.path
from functools import partial

from harnpy.builtins.bridge.places import module_directory, runtime_root, state_root, workplace_of
from harnpy.project import RUNS_VARIABLE, WORKTREES_VARIABLE, runs_directory
from harnpy.project import project_root as root_of_project
from harnpy.vm.declare.builtin import builtin as declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="process")


@builtin("env(name: string) -> string | nil")
def env(vm: Vm, name: str) -> str | None:
    """The value of an environment variable; one of the running task's own comes first.

    Example:
        env("NO_SUCH_VARIABLE")  // nil
    """
    return workplace_of(vm).variable(name)


@builtin("env_or(name: string, default: any) -> any")
def env_or(vm: Vm, name: str, default: Value) -> Value:
    """The value of an environment variable, or `default` if it isn't set.

    Example:
        env_or("NO_SUCH_VARIABLE", "default")  // "default"
    """
    found = workplace_of(vm).variable(name)
    return default if found is None else found


def _first_set(vm: Vm, *names: str) -> str:
    return next(filter(None, map(workplace_of(vm).variable, names)), "")


@builtin("username() -> string")
def username(vm: Vm) -> str:
    """The name of the user: `USER`, `USERNAME`, or that of the process's account.

    Example:
        len(username()) > 0  // true
    """
    return _first_set(vm, "USER", "USERNAME") or vm.world.machine.user_name()


@builtin("hostname() -> string")
def hostname(vm: Vm) -> str:
    """The name of the machine: `HOSTNAME`, `COMPUTERNAME`, or what the system calls it.

    Example:
        len(hostname()) > 0  // true
    """
    return _first_set(vm, "HOSTNAME", "COMPUTERNAME") or vm.world.machine.host_name()


@builtin("home_dir() -> string")
def home_dir(vm: Vm) -> str:
    """The user's directory: `HOME`, `USERPROFILE`, or `""`.

    Example:
        path_is_absolute(home_dir())  // true
    """
    return _first_set(vm, "HOME", "USERPROFILE")


@builtin("platform() -> string")
def platform(vm: Vm) -> str:
    """The system: `linux`, `darwin` or `windows`.

    Example:
        ["linux", "darwin", "windows"].contains(platform())  // true
    """
    return vm.world.machine.platform()


@builtin("arch() -> string")
def arch(vm: Vm) -> str:
    """The processor: `x86_64`, `aarch64` …

    Example:
        len(arch()) > 0  // true
    """
    return vm.world.machine.arch()


@builtin("pid() -> int")
def pid(vm: Vm) -> int:
    """The number of the process.

    Example:
        pid() > 0  // true
    """
    return vm.world.machine.process_id()


@builtin("cwd() -> string")
@builtin("execution_root() -> string")
def execution_root(vm: Vm) -> str:
    """The directory that relative paths are relative to, and that programs are run in.

    Example:
        execution_root() == cwd()  // true
    """
    return workplace_of(vm).directory()


@builtin("source_dir() -> string")
@builtin("asset_root() -> string")
def source_dir(vm: Vm) -> str:
    """The directory of the executing source file; without one, the working directory.

    Example:
        asset_root() == source_dir()  // true
    """
    return module_directory(vm)


@builtin("project_root() -> string | nil")
def project_root(vm: Vm) -> str | None:
    """The nearest directory that has a `harn.toml`, from the task's own or the program's upwards.

    Example:
        project_root()  // nil
    """
    start = workplace_of(vm).own_directory() or vm.source_dir or vm.unguarded.files.cwd()
    return root_of_project(start, vm.unguarded.files)


@builtin("runtime_paths() -> dict")
def runtime_paths(vm: Vm) -> dict[str, Value]:
    """Where the runtime keeps its files.

    `{execution_root, asset_root, state_root, run_root, worktree_root}`

    Example:
        runtime_paths().execution_root == execution_root()  // true
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
