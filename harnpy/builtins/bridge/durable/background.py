"""Resizes beside the program: one at a time for each session. Spec: 10 §A1.17, §C9."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.builtins.bridge.background_tasks import BackgroundTasks
from harnpy.builtins.bridge.contexts import context_of
from harnpy.session.errors import SessionError
from harnpy.storage.errors import StorageError
from harnpy.vm.errors import VmError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.vm import Vm


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
