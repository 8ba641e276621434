"""What the verbs of one program share: a runtime for each store, hooks, listeners, settings. Spec: 10 §C9."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import finalize

from harnpy.builtins.bridge.durable.background import Background
from harnpy.builtins.bridge.durable.child_tasks import ChildTasks
from harnpy.builtins.bridge.durable.hooks import Hooks
from harnpy.builtins.bridge.durable.lanes import TaskCaller, TaskLanes
from harnpy.builtins.bridge.durable.listening import Listening
from harnpy.builtins.bridge.durable.policies import Policies
from harnpy.builtins.bridge.durable.program_loops import ProgramLoops
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.session.runtime.bus import EventBus
from harnpy.session.runtime.runtime import SessionRuntime
from harnpy.session.settings.levels import Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.session.runtime.txn import Txn
    from harnpy.vm.vm import Vm


class Durable:
    """The durable sessions of a program. Ends with it."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm
        self._stores = sessions_of(vm).stores
        self._runtimes: dict[str, SessionRuntime] = {}
        self._close = finalize(self, _close, self._runtimes)
        self._numbers = count(1)
        self.lanes = TaskLanes(vm.tasks)
        #: The default store; None: the project's.
        self.url: str | None = None
        #: What hooks and actions see, by the id that they were given.
        self.handles: dict[str, Txn] = {}
        self.hooks = Hooks()
        self.events = EventBus()
        self.settings = Level()
        self._versions: dict[str, int] = {}
        self.policies = Policies(vm)
        self.listening = Listening(vm)
        self.children = ChildTasks(vm)
        self.background = Background(vm)

    def runtime(self, url: str | None = None) -> SessionRuntime:
        """Return the runtime of a store, the default one without a ``url``. Raises `StorageError`, and what
        the rules in force refuse."""
        store: Any = self._stores.of(url or self.url or True)
        runtime = self._runtimes.get(store.url)
        if runtime is None:
            runtime = self._runtimes[store.url] = SessionRuntime(
                store,
                hooks=self._run_hooks,
                events=self.events,
                resize=self.policies.usual,
                agents=ProgramLoops(self._vm),
                settings=self.settings,
                wait_timeout=0,  # tasks wait for their turn in `lanes`
                clock=self._vm.world.clock,
                ids=self._vm.world.ids,
            )
        return runtime

    def caller(self) -> TaskCaller:
        """Return what calls the functions of one action."""
        return TaskCaller(self._vm)

    def default_url(self) -> str:
        return self.url or self._stores.settings.url

    def new_id(self) -> str:
        """Return an id for a new session."""
        return self._vm.world.ids.new()

    def set_setting(self, key: str, value: Any) -> int:
        """Set a setting of all sessions that haven't set their own, and return how often it was set.

        Raises `InvalidArgument` for a value that it can't have.
        """
        for level in (self.settings, *(runtime.settings for runtime in self._runtimes.values())):
            level[key] = value
        self._versions[key] = self._versions.get(key, 0) + 1
        return self._versions[key]

    @contextmanager
    def handle(self, txn: Txn) -> Iterator[str]:
        """Give an id under which the verbs find what an action or a hook sees."""
        known = next((id for id, one in self.handles.items() if one is txn), None)
        id = known or f"{txn.id}@{next(self._numbers)}"
        self.handles[id] = txn
        try:
            yield id
        finally:
            if known is None:
                del self.handles[id]

    def _run_hooks(self, stage: str, txn: Txn) -> None:
        for hook in self.hooks.at(stage):
            with self.handle(txn) as id:
                hook(stage, id)


def durable_of(vm: Vm) -> Durable:
    return vm.state(Durable, lambda: Durable(vm))


def _close(runtimes: dict[str, SessionRuntime]) -> None:
    for runtime in runtimes.values():
        runtime.close()
    runtimes.clear()
