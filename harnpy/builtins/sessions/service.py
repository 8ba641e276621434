"""The durable sessions of one program: a runtime for each store, hooks, resize policies, settings.

Spec: 10 §C7-C9.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import finalize

from harnpy.builtins.agents.agent_functions import session_summarizer
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.builtins.sessions.program_loops import ProgramLoops
from harnpy.builtins.sessions.session_tasks import WAIT, Background, ChildTasks, TaskCaller
from harnpy.builtins.sessions.session_values import Listening
from harnpy.session.errors import InvalidArgument
from harnpy.session.hooks import EventBus
from harnpy.session.registers import Level
from harnpy.session.resize_policy import ResizePolicy
from harnpy.session.runtime import SessionRuntime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.session.log import Session
    from harnpy.session.transaction import Txn
    from harnpy.vm.vm import Vm

# The hooks of one program, which all its sessions share. Spec: 10 §C7, §C9.


class Hook(NamedTuple):
    """``fn(stage, id)`` is called at one stage."""

    name: str
    stage: str
    fn: Callable[[str, str], Any]
    priority: int


class Hooks:
    """Hooks in the order in which they are called: a higher priority first, else the older one."""

    def __init__(self) -> None:
        self._hooks: list[Hook] = []
        self._added = 0

    def add(self, stage: str, fn: Callable[[str, str], Any], priority: int, name: str | None) -> str:
        """Add a hook, and return its name. Raises `InvalidArgument` for a name that is taken."""
        self._added += 1
        name = name or f"hook-{self._added}"
        if any(hook.name == name for hook in self._hooks):
            raise InvalidArgument(f"there is a hook '{name}' already: unhook it first")
        self._hooks.append(Hook(name, stage, fn, priority))
        self._hooks.sort(key=lambda hook: -hook.priority)
        return name

    def remove(self, name: str) -> bool:
        """Take a hook out. Return False if there is none of that name."""
        kept = [hook for hook in self._hooks if hook.name != name]
        found = len(kept) < len(self._hooks)
        self._hooks = kept
        return found

    def at(self, stage: str) -> list[Callable[[str, str], Any]]:
        """Return the functions to call at a stage."""
        return [hook.fn for hook in self._hooks if hook.stage == stage]


# The resize policies of one program: of all its sessions, and of single ones. Spec: 10 §C8, §C9.


class Policies:
    """A session gets a policy of its own with the first handler of its own. What is said later to all
    sessions is said to it, too."""

    def __init__(self, vm: Vm) -> None:
        self.usual = ResizePolicy(summarize=session_summarizer(vm))
        #: The sessions with their own, which stay in memory: a policy belongs to the object.
        self._own: dict[str, tuple[Session, ResizePolicy]] = {}

    def all(self) -> list[ResizePolicy]:
        return [self.usual, *(policy for _, policy in self._own.values())]

    def own(self, session: Session) -> ResizePolicy:
        """Return the policy of one session, which counts from now on."""
        known = self._own.get(session.id)
        if known is None or known[0] is not session:
            policy = (session.policy if known is None else known[1]).copy()
            assert session.resizing is not None, "a runtime's sessions have one"
            session.resize_by(session.resizing._replace(policy=policy))
            known = self._own[session.id] = session, policy
        return known[1]


class Durable:
    """The durable sessions of a program. Ends with it."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm
        self._stores = sessions_of(vm).stores
        self._runtimes: dict[str, SessionRuntime] = {}
        self._close = finalize(self, _close, self._runtimes)
        self._numbers = count(1)
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
                wait_timeout=WAIT,
                waiter=sessions_of(self._vm).waiter,
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
