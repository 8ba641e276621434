"""How tasks of a program wait for a session, run children, and resize in the background.

Spec: 10 §A1.15, §A1.17, §C7.2.
"""

from __future__ import annotations

from asyncio import CancelledError
from typing import TYPE_CHECKING, Any, Final

from harnpy.builtins.bridge.agent_tasks import AgentTasks, BackgroundTasks
from harnpy.builtins.bridge.contexts import context_of
from harnpy.session.errors import SessionError
from harnpy.storage.errors import StorageError
from harnpy.vm.errors import VmError
from harnpy.vm.run.tasks import start_beside

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.run.tasks import Task
    from harnpy.vm.vm import Vm

# Waiting for a session as tasks do, so that others go on meanwhile. Spec: 10 §C7.2, §C9.


#: How long a task waits for its session. Seconds.
WAIT: Final = 30.0


class TaskCaller:
    """Calls the functions of one action, in the task that runs: a `harnpy.session.calling.Caller`."""

    def __init__(self, vm: Vm) -> None:
        self._tasks = AgentTasks(vm)
        self._stopped = False

    def __call__(self, fn: Callable[..., Any], *args: Any) -> Any:
        self.check()
        found = fn(*args)
        return self._tasks.wait(found) if hasattr(found, "__await__") else found

    def check(self) -> None:
        """Raise what ends the task, or the action."""
        self._tasks.go_on()
        if self._stopped:
            raise CancelledError

    def stop(self) -> None:
        """End the action when it next calls something, or is saved."""
        self._stopped = True


# Children as tasks of the program: beginning them, ending them, waiting for them. Spec: 10 §A1.15, §C9.


class ChildTasks:
    """The children of one program. Their tasks end with it at the latest."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm
        self._bell = BackgroundTasks(vm.tasks, "session_child").bell()
        self._tasks: dict[str, Task] = {}
        self._planned: set[str] = set()

    def caller(self) -> ParentTaskCaller:
        return ParentTaskCaller(self._vm, self)

    def begin(self, work: Callable[[], object], name: str) -> Task:
        """Have the work go on in a task of its own, under the rules of now."""

        def body(depth: int) -> None:
            try:
                work()
            finally:
                self._bell.ring()

        task = start_beside(self._vm.tasks, body, "session_child")
        task.context = context_of(self._vm).branch()
        self._tasks[name] = task
        return task

    def plan(self, child_id: str, seconds: float, begin: Callable[[], object]) -> None:
        """Have a child begin in so many seconds."""
        self._planned.add(child_id)

        def later() -> None:
            try:
                self._vm.tasks.sleep(seconds)
                begin()
            finally:
                self._planned.discard(child_id)

        self.begin(later, f"plan of {child_id}")

    def give_way(self) -> None:
        """Let others run, as far as they can: a child has begun when whoever wanted it goes on."""
        self._vm.tasks.give_way()

    def wait(self, child_id: str, seconds: float | None) -> bool:
        """Wait until a child has ended, at most so long. Return whether it has."""
        now = self._vm.tasks.now
        gives_up = None if seconds is None else now() + seconds
        while self._is_under_way(child_id):
            left = None if gives_up is None else gives_up - now()
            if left is not None and left <= 0:
                return False
            self._bell.wait(seconds=left)
        return True

    def _is_under_way(self, child_id: str) -> bool:
        task = self._tasks.get(_name(child_id))
        return child_id in self._planned or (task is not None and not task.done)


def _name(child_id: str) -> str:
    """Return what the session runtime calls the work of a child."""
    return f"child {child_id}"


class ParentTaskCaller(TaskCaller):
    """A `harnpy.session.calling.ParentCaller`."""

    def __init__(self, vm: Vm, children: ChildTasks) -> None:
        super().__init__(vm)
        self._vm = vm
        self._children = children

    def apart(self) -> ChildTaskCaller:
        return ChildTaskCaller(self._vm, self._children)


class ChildTaskCaller(ParentTaskCaller):
    """Calls the functions of a child, in its task: a `harnpy.session.calling.ChildCaller`."""

    _task: Task | None = None

    def begin(self, work: Callable[[], object], name: str) -> None:
        self._task = self._children.begin(work, name)

    def __call__(self, fn: Callable[..., Any], *args: Any) -> Any:
        try:
            return super().__call__(fn, *args)
        except Exception:
            raise
        except BaseException as stop:  # the task is over, and so is the child
            raise CancelledError from stop

    def stop(self) -> None:
        super().stop()
        if self._task is not None and not self._task.done:
            self._vm.tasks.request_cancel(self._task)


# Resizes beside the program: one at a time for each session. Spec: 10 §A1.17, §C9.


class Background:
    """What goes on beside a program. It ends with it."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm
        self._beside = BackgroundTasks(vm.tasks, "session_resize")
        self._busy: set[str] = set()

    def begin(self, id: str, work: Callable[[], object]) -> None:
        """Have a session resized, unless that is being done. A failure is a warning."""
        if id in self._busy:
            return
        self._busy.add(id)

        def run() -> None:
            try:
                work()
            except (SessionError, StorageError, VmError) as error:
                self._vm.world.warn("session.resize", str(error))
            finally:
                self._busy.discard(id)

        self._beside.start(run, context_of(self._vm))
