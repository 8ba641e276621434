"""Where a program works, and where it leaves the files for its next run. Spec: 04 §19, §20, §26, 09 §7."""

from __future__ import annotations

import os

from harnpy.builtins.bridge.contexts import context_of
from harnpy.project import STATE_VARIABLE, project_root, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.vm.vm import Vm


def runtime_root(vm: Vm) -> str:
    """The root of the program's project; without one, the directory of the program."""
    directory = vm.source_dir or vm.world.files.cwd()
    return project_root(directory) or directory


def state_root(vm: Vm) -> str:
    """The directory of the state that programs keep."""
    return state_directory(runtime_root(vm), vm.world.environment.get(STATE_VARIABLE))


def execution_root(vm: Vm) -> str:
    """The directory that the running task works in."""
    return own_directory(vm) or vm.world.files.cwd()


def own_directory(vm: Vm) -> str | None:
    """The directory that a worker or a workflow has been given, if it has one."""
    place = context_of(vm).place
    return None if place is None or place.cwd is None else os.path.join(vm.world.files.cwd(), place.cwd)


def execution_environment(vm: Vm) -> Mapping[str, str] | None:
    """The environment of the programs that the running task starts; None is ours."""
    place = context_of(vm).place
    return {**vm.world.environment.all(), **place.env} if place is not None and place.env else None
