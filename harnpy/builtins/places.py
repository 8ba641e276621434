"""Where the files are that a program leaves for its next run. Spec: 04 §26, 09 §7."""

from __future__ import annotations

from harnpy.project import STATE_VARIABLE, project_root, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.machine import Vm


def runtime_root(vm: Vm) -> str:
    """The root of the program's project; without one, the directory of the program."""
    directory = vm.source_dir or vm.host.cwd()
    return project_root(directory) or directory


def state_root(vm: Vm) -> str:
    """The directory of the state that programs keep."""
    return state_directory(runtime_root(vm), vm.host.env(STATE_VARIABLE))
