"""The context that the running task works under, and the directories that it works in.

Spec: 04 §19, §20, §26, 09 §7.
"""

from __future__ import annotations

import os.path
import sys

from harnpy.agent.context import AgentContext
from harnpy.agent.workplace import Workplace
from harnpy.builtins import settings_of
from harnpy.builtins.bridge.agent_tasks import AgentTasks
from harnpy.faults import paced
from harnpy.project import STATE_VARIABLE, project_root, state_directory
from harnpy.vm.run.backtrace import calling, unit_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.vm import Vm


def context_of(vm: Vm) -> AgentContext:
    """The running task's context, an empty one if it had none."""
    task = vm.tasks.current
    if task.context is None:
        task.context = AgentContext()
    assert isinstance(task.context, AgentContext)
    return task.context


def under_rules_of_now(vm: Vm, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a callback that obeys the rules in force now besides those of whoever calls it."""
    rules = context_of(vm).rules
    if not rules.restricts:
        return function

    def governed(*args: Any) -> Any:
        context = context_of(vm)
        with context.govern(context.rules.met(rules)):
            return function(*args)

    return governed


def runtime_root(vm: Vm) -> str:
    """The root of the program's project; without one, the directory of the program."""
    directory = settings_of(vm).home or vm.source_dir or vm.unguarded.files.cwd()
    return project_root(directory, vm.unguarded.files) or directory


def state_root(vm: Vm) -> str:
    """The directory of the state that programs keep."""
    return state_directory(runtime_root(vm), vm.unguarded.environment.get(STATE_VARIABLE))


def state_place(vm: Vm, *names: str) -> str:
    """Return a path in that directory, for what is kept there. Raises `ManifestError` (09 §12.1)."""
    from harnpy.formats.manifest import require_inside

    return require_inside(vm.unguarded, runtime_root(vm), os.path.join(state_root(vm), *names))


def workplace_of(vm: Vm) -> Workplace:
    """Where the running task works."""
    return Workplace(vm.world, AgentTasks(vm), lambda: context_of(vm).place, lambda: vm.source_dir)


def path_at_work(vm: Vm, path: str) -> str:
    """The absolute path of a file that a program names; an empty path stays one that nothing has."""
    if not path:
        return path
    directory = workplace_of(vm).directory()
    names = [name for name in paced(path.split("/")) if name not in ("", ".")]
    return "/".join(["" if path.startswith("/") else directory.rstrip("/"), *names]) or "/"


def module_directory(vm: Vm) -> str:
    """The directory of the module whose code is executing; the working directory if it is no file."""
    unit = next(map(unit_of, calling(sys._getframe(1))), None)
    return (unit and unit.directory) or vm.world.files.cwd()
