"""The event log of a Vm, and how its tasks wait for what is appended there. Spec: 08 §15.1, 10 §C22."""

from __future__ import annotations

from weakref import finalize

from harnpy.eventlog.topics import StoreEventLog, event_log_settings, installed_event_log, opened
from harnpy.project import IN_FILES
from harnpy.storage.memory import MemoryStore
from harnpy.world.effects import NETWORK, STATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.vm import Vm

#: Seconds between two looks at what others have appended, for those who want it soon.
SOON = 0.1


class _OwnLog(StoreEventLog):
    """One in memory that nobody but the program has."""


def log_of(vm: Vm) -> StoreEventLog:
    """The Vm's event log: the installed one, else the project's, else one in memory."""
    return vm.service(StoreEventLog, log_of_project)


def require_log(vm: Vm) -> StoreEventLog:
    """The Vm's event log, once the rules let the program keep something where it is."""
    log = log_of(vm)
    url = log.store.url
    scheme, _, place = url.partition(":")
    if scheme in IN_FILES:
        vm.world.require(STATE, place)
    elif scheme != "memory":
        vm.world.require(NETWORK, url)
    return log


def wait_for_news(vm: Vm, log: StoreEventLog, topic: str, until: float | None = None) -> None:
    """Suspend the current task until the topic has more, or the time ``until`` has come; may return early."""
    tasks, task = vm.tasks, vm.tasks.current

    def wake(moved: str) -> None:
        if moved == topic:
            tasks.resume(task)

    log.listeners.append(wake)
    try:
        rest(vm, log, until)
    finally:
        log.listeners.remove(wake)


def rest(
    vm: Vm,
    log: StoreEventLog,
    until: float | None = None,
    *,
    poll: float = SOON,
    outside: tuple[str, str] | None = None,
) -> None:
    """Suspend the current task until somebody resumes it, or the time ``until`` has come; may return early.

    On a log that others have, too, it does after ``poll`` seconds. On one that is the program's alone nobody
    else can append: ``outside`` is what for the wait is, and what to do about it, for the error when no other
    task can go on either.
    """
    tasks = vm.tasks
    if not isinstance(log, _OwnLog):
        look = tasks.now() + poll
        until = look if until is None else min(until, look)
    if until is None and outside is not None:
        tasks.wait_outside(*outside)
        return
    if until is None:
        tasks.suspend()
    else:
        tasks.suspend_until(until)


def log_of_project(vm: Vm) -> StoreEventLog:
    """Open the installed log, the project's, or one in memory."""
    installed = installed_event_log()
    if installed is not None:
        return installed
    settings = event_log_settings(vm.world.unguarded)
    if settings is None:
        return _OwnLog(MemoryStore(), now=lambda: vm.world.clock.now())
    store = opened(settings.url)
    log = StoreEventLog(store, settings.queue_depth, now=lambda: vm.world.clock.now())
    finalize(log, store.close)
    return log
