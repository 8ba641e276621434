"""Children: runs of agents in sessions of their own, started and awaited by a parent.

Spec: 10 §A1.15, §C7.2, §C10.
"""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from dataclasses import replace
from datetime import datetime
from functools import partial
from heapq import heappop, heappush
from itertools import count
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING, Any, Final, Protocol

from harnpy.faults import is_cancelled
from harnpy.formats.dicts import detached
from harnpy.session import child_records
from harnpy.session.agents import AgentDef
from harnpy.session.arguments import instance
from harnpy.session.child_records import ChildRef, ChildResult, ChildSpec, child_run, of_error
from harnpy.session.drafting import metadata
from harnpy.session.errors import (
    ChildError,
    ChildNotFound,
    ChildTimeout,
    InvalidArgument,
    SessionBusy,
    SessionConflict,
    SessionError,
)
from harnpy.session.events import EventDraft
from harnpy.session.history import ANY
from harnpy.session.info import BLOCKED, CANCELED, COMPLETED, ENDS, FAILED, FORK, RUNNING, Child
from harnpy.session.send import name_of_agent
from harnpy.session.stored import StoredSession
from harnpy.storage.errors import LeaseHeld, LeaseLost, StorageError, StoreClosed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from contextvars import Context

    from harnpy.session.agents import TurnResult
    from harnpy.session.calling import Caller, ChildCaller, ParentCaller, ThreadCaller
    from harnpy.session.child_records import ChildRun
    from harnpy.session.events import Event
    from harnpy.session.info import Fact
    from harnpy.session.live import LiveSession, Turns
    from harnpy.storage.contract import Store
    from harnpy.world import World
    from harnpy.world.clock import Clock

    Use = Callable[[], object]

# How many children run at once: first come, first served. Spec: 10 §A1.15.


class ChildSemaphore:
    """``limit`` of them; None: as many as anybody wants. Who waits for one costs no thread."""

    def __init__(self, limit: int | None) -> None:
        self._free = limit
        self._waiting: deque[Use] = deque()
        self._lock = Lock()

    def acquire(self, use: Use) -> None:
        """Call ``use()`` once there is a slot for it, now or when somebody gives one."""
        with self._lock:
            if self._free == 0:
                self._waiting.append(use)
                return
            if self._free is not None:
                self._free -= 1
        use()

    def release(self) -> None:
        """Give a slot to whoever has waited longest."""
        with self._lock:
            if self._free is None:
                return
            if not self._waiting:
                self._free += 1
                return
            use = self._waiting.popleft()
        use()

    def cancel(self, use: Use) -> bool:
        """Wait no more. Return False if that has its slot, or never asked for one."""
        with self._lock:
            if use not in self._waiting:
                return False
            self._waiting.remove(use)
            return True


# A child while its runtime runs it. Spec: 10 §A1.15.


#: A child that waits for its time.
SCHEDULED = "scheduled"


class Handle:
    """The state of a child that isn't in the log. Whoever changes it holds the lock of `Children`.

    ``metadata`` is what events say of it, ``turn`` the parent's turn that asked for it, ``since`` the number
    of the event that did. ``held`` are its lease and its worktree. ``checks`` raise when whoever spawned it
    is cancelled; ``stopped`` says why it was itself. ``claim`` is what uses a slot; ``waits`` counts those of
    its calls that wait for children of its own: meanwhile another child has its slot.
    """

    def __init__(
        self,
        parent_id: str,
        spec: ChildSpec,
        who: Child,
        agent: str,
        caller: ChildCaller,
        checks: list[Callable[[], None]],
        context: Context,
    ) -> None:
        assert who.session_id is not None
        self.ref = ChildRef(who.id, who.session_id, parent_id)
        self.spec = spec
        self.who = who
        self.agent = agent
        self.caller = caller
        self.checks = checks
        self.context = context
        self.metadata: dict[str, Any] = detached(dict(spec.metadata))
        self.turn: Event | None = None
        self.since = 0
        self.held: ExitStack | None = None
        self.has_begun = False
        self.claim: Callable[[], None] | None = None
        self.stopped: str | None = None
        self.has_slot = False
        self.waits = 0
        self.result: ChildResult | None = None

    @property
    def status(self) -> str:
        if self.result is not None:
            return self.result.status
        return RUNNING if self.has_begun else SCHEDULED


# Children whose process is gone. Spec: 10 §C7.2.


INTERRUPTED = "interrupted"


def end_interrupted(session: StoredSession, runs: Callable[[str], bool]) -> None:
    """Have the log say that the children failed which nobody runs any more.

    ``runs(id)``: whether this process does; of another one's the lease tells.
    """
    for id, seq in session.open_children.items():
        asked = session.event(seq)
        if runs(id) or not _is_free(session.store, asked.data["lease"]):
            continue
        type, data = Child(id, asked.data.get("child_session_id")).failed(INTERRUPTED)
        turn = None if asked.turn is None else session.view.open_turns.get(asked.turn.seq)
        session.write(EventDraft(type, data, turn=turn))


def _is_free(store: Store, lease: str) -> bool:
    try:
        store.lease(lease).release()
    except LeaseHeld:
        return False
    return True


# What becomes of one child: it is asked for, it runs, it ends. Spec: 10 §A1.15, §C7.2.


#: What the lease of a child is on, before its id.
LEASE: Final = "child"
#: Why a child is cancelled, unless somebody knows better.
CANCELLED: Final = "cancelled"


class ParentRuntime(Protocol):
    """The part of a runtime that its children need."""

    def get(self, id: str) -> LiveSession: ...

    def create(self, agent: AgentDef | str, *, id: str, seed: Any, caller: Caller | None) -> LiveSession: ...

    def send(
        self, id: str, prompt: None, *, agent: Any, timeout: float | None, caller: Caller | None
    ) -> TurnResult: ...


class Runner:
    """Writes what becomes of children to the logs of their parents."""

    def __init__(self, runtime: ParentRuntime, world: World, turns: Turns) -> None:
        self._runtime = runtime
        self._world = world
        self._turns = turns

    def request(self, handle: Handle, caller: ParentCaller, undone: ExitStack) -> None:
        """Create the child's session, and have its parent's log know of it.

        ``undone`` ends with the child, or when it can't be asked for. Raises `SessionNotFound` where there is
        no parent, `SessionExists`, `SessionBusy`, `ChildError`, and what a hook raises.
        """
        ref, spec = handle.ref, handle.spec
        parent = self._runtime.get(ref.parent_id)
        handle.turn = self._turn(parent)
        taken = undone.enter_context(self._turns.lease(ref.child_id, 0, handle.caller, LEASE))
        if spec.worktree is not None:
            opened = spec.worktree.opened(ref.child_id, self._world, caller.apart())
            handle.metadata |= undone.enter_context(opened)
        with _marked(handle):
            seed = spec.seed()
            if spec.mode == FORK:
                fork = parent.fork(ref.session_id, reason=LEASE)
                if seed:
                    fork.append_prompt(seed)
            else:
                agent = spec.agent if isinstance(spec.agent, AgentDef) else handle.agent
                self._runtime.create(agent, id=ref.session_id, seed=seed, caller=caller)
        asked = handle.who.requested(
            handle.agent,
            spec.mode,
            spec.task,
            context=spec.context or None,
            lease=None if taken is None else taken.key,
            metadata={**handle.metadata, "detached": True} if spec.detached else handle.metadata,
        )
        handle.since = _write(parent, handle, asked)

    def _turn(self, parent: LiveSession) -> Event | None:
        """Return the turn of the parent that this is inside. Raises `SessionBusy` in an atomic action."""
        if not self._turns.is_mine(parent.id):
            return None
        for turn in reversed([*parent.view.open_turns.values()]):
            return turn
        raise SessionBusy(
            f"session '{parent.id}' is busy: an atomic action can't have children, a turn can", parent.id
        )

    def run(self, handle: Handle) -> ChildResult:
        """Run the child's agent. Return what became of it, also when that failed."""
        who, session_id, spec = handle.who, handle.ref.session_id, handle.spec
        try:
            handle.caller.check()
            self._tell(handle, who.started(handle.agent, handle.metadata))
            with _marked(handle):
                turn = self._runtime.send(
                    session_id, None, agent=spec.agent, timeout=spec.timeout, caller=handle.caller
                )
        except BaseException as error:
            return child_records.of_error(who, session_id, error, handle.stopped or CANCELLED)
        return child_records.of_turn(who, session_id, turn)

    def end(self, handle: Handle, result: ChildResult) -> ChildResult:
        """Write how a child ended, and return it with its artifacts: a failure if that can't be written."""
        try:
            session = self._runtime.get(handle.ref.session_id)
            result = replace(result, artifacts=child_records.artifacts_of(session))
            self._tell(handle, *child_records.facts_of(handle.who, result, handle.metadata))
        except (SessionError, StorageError) as error:
            import logging

            logging.getLogger(__name__).exception("the end of child %s isn't in a log", handle.ref.child_id)
            return replace(result, status=FAILED, error=str(error), cause=error)
        return result

    def was_canceled(self, handle: Handle) -> bool:
        """Return whether its parent's log says that a child has ended."""
        return _has_ended(self._runtime.get(handle.ref.parent_id), handle)

    def _tell(self, handle: Handle, *facts: Fact) -> None:
        """Write about a child to its parent's log, unless that says already that it has ended."""
        parent = self._runtime.get(handle.ref.parent_id)
        with parent.lock:
            if not _has_ended(parent, handle):
                _write(parent, handle, *facts)


def _marked(handle: Handle) -> AbstractContextManager[None]:
    """Have the child's events carry what was said of it."""
    return metadata({**handle.metadata, "agent_id": handle.agent})


def _write(parent: LiveSession, handle: Handle, *facts: Fact) -> int:
    """Write to the parent's log, in the turn that asked for the child if that is open. Return where.

    An action's lease, which the parent may have just now, isn't needed for that: it may end meanwhile.
    """
    try:
        return _append(parent, handle, facts)
    except LeaseLost:
        unleased = StoredSession.load(parent.id, parent.store, parent.origin.world)
        if unleased is None:
            raise
        seq = _append(unleased, handle, facts)
        parent.refresh()
        return seq


def _append(parent: StoredSession, handle: Handle, facts: Iterable[Fact]) -> int:
    turn = handle.turn if handle.turn is not None and handle.turn.seq in parent.view.open_turns else None
    drafts = [EventDraft(type, data, turn=turn) for type, data in facts]
    return parent.append(*drafts, expected_version=ANY)[-1].seq


def _has_ended(parent: LiveSession, handle: Handle) -> bool:
    """Return whether the parent's log says so."""
    ends = parent.stream.read(handle.since, types=ENDS)
    return any(end.data.get("child_id") == handle.ref.child_id for end in ends)


# Children that begin at a time of their own. Spec: 10 §A1.15.
#
# They are known to this runtime alone until they begin: a process that ends takes them along.


#: The clock may be put forward: so often somebody looks. Seconds.
_LOOK = 60.0


class ScheduledChild:
    """A child that begins at ``due_at``, in seconds since 1970. `SessionRuntime.wait` waits for it."""

    def __init__(self, children: Children, handle: Handle, due_at: float) -> None:
        self._children = children
        self._handle = handle
        self.due_at = due_at

    @property
    def child_id(self) -> str:
        return self._handle.ref.child_id

    @property
    def session_id(self) -> str:
        return self._handle.ref.session_id

    @property
    def status(self) -> str:
        """``scheduled``, ``running``, or what became of it."""
        return self._handle.status

    def cancel(self) -> None:
        """Have it never begin. Raises `ChildError` when it has begun (it is cancelled then) or ended."""
        if self._children.cancel_scheduled(self._handle):
            return
        if self._handle.result is not None:
            raise ChildError("scheduled task already completed", self.session_id)
        self._children.stop(self._handle)
        raise ChildError("scheduled task already started", self.session_id)


class Scheduler:
    """One thread that begins children when they are due; it begins with the first one that isn't yet."""

    def __init__(self, children: Children, clock: Clock) -> None:
        self._children = children
        self._clock = clock
        self._changed = Condition()
        self._waiting: list[tuple[float, int, Handle, ParentCaller]] = []
        self._numbers = count()
        self._thread: Thread | None = None
        self._closed = False

    def schedule(self, parent_id: str, spec: ChildSpec, caller: ParentCaller) -> ScheduledChild:
        """Have a child begin when ``spec.due_at`` says; at once if that is past. Raises `ChildError`."""
        due_at = _seconds(spec)
        with self._changed:
            if self._closed:
                raise ChildError("scheduler closed")
        handle = self._children.enter(parent_id, spec, caller)
        if due_at <= self._clock.now():
            self._children.start(handle, caller)
        else:
            self._wait_for(due_at, handle, caller)
        return ScheduledChild(self._children, handle, due_at)

    def wake(self) -> None:
        """Have the thread look at the clock."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Begin no more children. Those that wait are cancelled."""
        with self._changed:
            self._closed = True
            waiting, self._waiting = self._waiting, []
            self._changed.notify_all()
        for _, _, handle, _ in waiting:
            self._children.cancel_scheduled(handle)
        if self._thread is not None:
            self._thread.join()

    def _wait_for(self, due_at: float, handle: Handle, caller: ParentCaller) -> None:
        with self._changed:
            heappush(self._waiting, (due_at, next(self._numbers), handle, caller))
            if self._thread is None:
                self._thread = Thread(target=self._run, name="scheduled children", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _run(self) -> None:
        while (due := self._next()) is not None:
            handle, caller = due
            if handle.result is not None:
                continue  # it was cancelled
            try:
                handle.context.run(self._children.begin, handle, caller)
            except BaseException as error:  # also a cancellation: the others still have to begin
                ended = of_error(handle.who, handle.ref.session_id, error, CANCELLED)
                self._children.settle(handle, ended)

    def _next(self) -> tuple[Handle, ParentCaller] | None:
        """Wait for the next child that is due; None when there will be no more."""
        with self._changed:
            while not self._closed:
                left = self._waiting[0][0] - self._clock.now() if self._waiting else None
                if left is not None and left <= 0:
                    return heappop(self._waiting)[2:]
                self._changed.wait(None if left is None else min(left, _LOOK))
        return None


def _seconds(spec: ChildSpec) -> float:
    due_at = instance("spec", spec, ChildSpec).due_at
    if isinstance(due_at, datetime):
        return due_at.timestamp()
    if isinstance(due_at, bool) or not isinstance(due_at, int | float):
        given = type(due_at).__name__
        raise InvalidArgument(
            f"schedule child: `due_at` must be seconds since 1970 or a datetime, got {given}"
        )
    return float(due_at)


# The children that a runtime runs, each by itself. Spec: 10 §A1.15, §C7.2, §C10.
#
# What became of a child is in its parent's log. Beside that there is a `Handle` as long as nobody has waited
# for it, and on a store that others share a lease, by which they see that it still runs.


#: Seconds that children have to end when their runtime is closed.
PATIENCE = 30.0


class Children:
    """``limit`` is how many of them run at once; None: as many as there are."""

    def __init__(self, runtime: ParentRuntime, world: World, turns: Turns, limit: int | None) -> None:
        if limit is not None and (type(limit) is not int or limit < 1):
            raise InvalidArgument(f"`child_limit` must be an int >= 1, not {limit!r}")
        self._runner = Runner(runtime, world, turns)
        self._world = world
        self._turns = turns
        self._slots = ChildSemaphore(limit)
        self._known: dict[str, Handle] = {}
        self._changed = Condition()
        self._inside: ContextVar[Handle | None] = ContextVar("child", default=None)
        self._closed = False

    # Asking for children.

    def spawn(self, parent_id: str, spec: ChildSpec, caller: ParentCaller) -> ChildRef:
        """Have a child run, from now on or when there is room for it."""
        handle = self.enter(parent_id, spec, caller)
        self.start(handle, caller)
        return handle.ref

    def start(self, handle: Handle, caller: ParentCaller) -> None:
        """Have a child run that is known, and let it be unknown if it can't."""
        try:
            self.begin(handle, caller)
        except BaseException:
            with self._changed:
                del self._known[handle.ref.child_id]
            raise

    def enter(self, parent_id: str, spec: ChildSpec, caller: ParentCaller) -> Handle:
        """Make a child known. Raises `InvalidArgument` for what can't be one."""
        instance("spec", spec, ChildSpec).check()
        id = spec.child_id or self._world.ids.new()
        checks = [] if spec.detached else self._turns.checks()
        who, agent = Child(id, spec.session_id or id), name_of_agent(spec.agent)
        handle = Handle(parent_id, spec, who, agent, caller.apart(), checks, copy_context())
        with self._changed:
            if self._closed:
                raise StoreClosed("the runtime")
            if id in self._known:
                raise InvalidArgument(f'spawn child: there is a child "{id}" already', parent_id)
            self._known[id] = handle
        return handle

    def begin(self, handle: Handle, caller: ParentCaller) -> None:
        """Create the child's session, have its parent's log know of it, and let it run."""
        with self._changed:
            if handle.result is not None:
                return  # it was cancelled before its time
            handle.has_begun = True
        with ExitStack() as undone:
            self._runner.request(handle, caller, undone)
            handle.held = undone.pop_all()
        handle.claim = partial(self._go, handle, True)
        self._slots.acquire(handle.claim)
        if handle.stopped is not None:
            self._cancel_wait(handle)  # it was stopped before it waited for a slot

    # Running.

    def _go(self, handle: Handle, has_slot: bool) -> None:
        handle.has_slot = has_slot
        work = partial(handle.context.copy().run, self._run, handle)
        handle.caller.begin(work, f"child {handle.ref.child_id}")

    def _cancel_wait(self, handle: Handle) -> None:
        """Have a child that was stopped end without a slot, if it waits for one."""
        if handle.claim is not None and self._slots.cancel(handle.claim):
            self._go(handle, has_slot=False)

    def _run(self, handle: Handle) -> None:
        self._inside.set(handle)
        result = self._runner.run(handle)
        self._release_slot(handle)
        try:
            with suppress(StorageError), handle.held or nullcontext():  # a lease ends by itself
                result = self._runner.end(handle, result)
        finally:
            self.settle(handle, result)

    def settle(self, handle: Handle, result: ChildResult) -> None:
        """Tell whoever waits what became of a child."""
        with self._changed:
            handle.result = result
            self._changed.notify_all()

    def _release_slot(self, handle: Handle) -> None:
        with self._changed:
            had_one, handle.has_slot = handle.has_slot, False
        if had_one:
            self._slots.release()

    # Waiting.

    def wait(self, child_id: str, timeout: float | None, caller: Caller) -> ChildResult:
        """Return what became of a child, and forget it.

        Raises `ChildNotFound` for one that isn't known here, `ChildTimeout` when it hasn't ended in time.
        """
        with self._changed:
            handle = self._known.get(child_id)
        if handle is None:
            raise ChildNotFound(f'wait child "{child_id}": not found')
        checks = [caller.check, *self._turns.checks()]
        monotonic = self._world.clock.monotonic
        gives_up = None if timeout is None else monotonic() + timeout
        with self._slot_released(), self._changed:
            while handle.result is None:
                for check in checks:
                    check()
                left = None if gives_up is None else gives_up - monotonic()
                if left is not None and left <= 0:
                    raise ChildTimeout(f'wait child "{child_id}": timed out after {timeout:g}s')
                self._changed.wait(left)
            self._known.pop(child_id, None)
        return handle.result

    @contextmanager
    def _slot_released(self) -> Iterator[None]:
        """Let another child run while this one waits."""
        mine = self._inside.get()
        if mine is None:
            yield
            return
        with self._changed:
            mine.waits += 1
            is_first = mine.waits == 1
        if is_first:
            self._release_slot(mine)
        try:
            yield
        finally:
            with self._changed:
                mine.waits -= 1
                is_last = mine.waits == 0
            if is_last:
                self._acquire_slot(mine)

    def _acquire_slot(self, handle: Handle) -> None:
        """Wait for a slot to go on in. Raises `asyncio.CancelledError` when that isn't wanted any more."""

        def use() -> None:
            with self._changed:
                handle.has_slot = True
                self._changed.notify_all()

        self._slots.acquire(use)
        with self._changed:
            while not handle.has_slot and handle.stopped is None:
                self._changed.wait()
            if handle.stopped is None:
                return
            is_given = not self._slots.cancel(use)
            while is_given and not handle.has_slot:
                self._changed.wait()
        import asyncio

        raise asyncio.CancelledError

    # Ending early.

    def wake(self) -> None:
        """Stop the children of whoever was cancelled. Have all who wait look whether they still should."""
        for handle in self._open():
            if any(map(_is_cancelled, handle.checks)):
                self.stop(handle)
        with self._changed:
            self._changed.notify_all()

    def stop_canceled(self, parent_id: str) -> None:
        """Stop those children of a session that its log calls off: an action on it has failed."""
        for handle in self._open():
            if handle.ref.parent_id == parent_id and handle.turn is not None:
                with suppress(SessionError, StorageError):
                    if self._runner.was_canceled(handle):
                        self.stop(handle)

    def stop(self, handle: Handle, reason: str = CANCELLED) -> None:
        """Cancel a child that runs or waits, and with it those that it spawned."""
        with self._changed:
            if self.cancel_scheduled(handle) or handle.result is not None or handle.stopped is not None:
                return
            handle.stopped = reason
        handle.caller.stop()
        self._cancel_wait(handle)
        self._turns.wake()
        self.wake()

    def cancel_scheduled(self, handle: Handle) -> bool:
        """Cancel a child that hasn't begun. Return False if it has, or was cancelled."""
        with self._changed:
            if handle.has_begun or handle.result is not None:
                return False
            ref = handle.ref
            self.settle(handle, ChildResult(ref.child_id, ref.session_id, CANCELED, reason=CANCELLED))
        return True

    def runs(self, child_id: str) -> bool:
        """Return whether the child hasn't ended yet, as far as is known here."""
        return any(handle.ref.child_id == child_id for handle in self._open())

    def end(self, child_id: str) -> None:
        """Cancel a child, wait until it has ended, and forget it."""
        with self._changed:
            handle = self._known.pop(child_id, None)
        if handle is not None:
            self.stop(handle)
            with self._changed:
                while handle.result is None:
                    self._changed.wait()

    def close(self) -> None:
        """Stop all children, detached ones too, and wait until they have ended, for `PATIENCE` at most."""
        with self._changed:
            self._closed = True
        for handle in self._open():
            self.stop(handle, "the runtime was closed")
        self.wake()
        monotonic = self._world.clock.monotonic
        gives_up = monotonic() + PATIENCE
        mine = self._inside.get()
        with self._changed:
            while any(handle.has_begun and handle is not mine for handle in self._not_ended()):
                left = gives_up - monotonic()
                if left <= 0:
                    return
                self._changed.wait(left)

    def _open(self) -> list[Handle]:
        """Return the children that nobody has stopped yet."""
        with self._changed:
            return [handle for handle in self._not_ended() if handle.stopped is None]

    def _not_ended(self) -> list[Handle]:
        return [handle for handle in self._known.values() if handle.result is None]


def _is_cancelled(check: Any) -> bool:
    try:
        check()
    except BaseException as error:
        if is_cancelled(error):
            return True
        raise
    return False


# The part of a `SessionRuntime` that is about children. Spec: 10 §A1.15, §C7, §C10.


#: Of what its parent can take in the outcome.
_TAKEN_IN: Final = (BLOCKED, COMPLETED, FAILED, CANCELED)


class ChildrenMixin:
    """Children run in threads; the log of their parent says what becomes of them (`child_runs`)."""

    _caller: ThreadCaller
    _children: Children
    _scheduler: Scheduler

    def get(self, id: str) -> LiveSession:
        raise NotImplementedError

    def spawn(self, id: str, spec: ChildSpec, *, caller: ParentCaller | None = None) -> ChildRef:
        """Have a child of session ``id`` run in a session of its own.

        It is in the log, and its session is there, when this returns. It is cancelled with the turn that
        asked for it, unless it is detached. Raises `InvalidArgument`, `SessionNotFound`, `SessionExists`, and
        `SessionBusy` inside an atomic action of the parent.
        """
        return self._children.spawn(id, spec, self._caller.one() if caller is None else caller)

    def wait(
        self, child_id: str, timeout: float | None = None, *, caller: Caller | None = None
    ) -> ChildResult:
        """Return what became of a child, and forget it; its log and its parent's stay.

        ``timeout`` is in seconds. Raises `ChildNotFound` for one that this runtime doesn't run, or that was
        waited for; `ChildTimeout`; `SessionBusy` in an async function of the sync runtime, which would keep
        the child from running.
        """
        if caller is None:
            self._caller.check_outside()
        return self._children.wait(child_id, timeout, self._caller.one() if caller is None else caller)

    def run_child(self, id: str, spec: ChildSpec, *, caller: ParentCaller | None = None) -> ChildResult:
        """`spawn` a child and `wait` for it. Whoever is cancelled meanwhile ends with the child, unless it is
        detached."""
        if caller is None:
            self._caller.check_outside()
        ref = self.spawn(id, spec, caller=caller)
        try:
            return self.wait(ref.child_id, caller=caller)
        except BaseException:
            if not spec.detached:
                self._children.end(ref.child_id)
            raise

    def schedule_child(
        self, id: str, spec: ChildSpec, *, caller: ParentCaller | None = None
    ) -> ScheduledChild:
        """Have a child begin when ``spec.due_at`` says, at once if that is past.

        Raises what `spawn` does, and `ChildError` once the runtime is closed.
        """
        return self._scheduler.schedule(id, spec, self._caller.one() if caller is None else caller)

    def progress_child(
        self,
        id: str,
        child_id: str,
        message: str | None = None,
        *,
        status: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> ChildRun:
        """Have the log of session ``id`` say how far a child is. Its status stays.

        Raises `ChildNotFound`.
        """
        return self._report(
            id,
            "progress",
            child_id,
            lambda run: Child(child_id, run.session_id or None).progressed(message, status, metadata),
        )

    def merge_child(
        self,
        id: str,
        child_id: str,
        *,
        artifact_ids: list[str] | None = None,
        note: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> ChildRun:
        """Have the log of session ``id`` say that a child's outcome was taken in: ``artifact_ids`` of it, all
        by default.

        Raises `ChildNotFound`, and `ChildError` for one that hasn't ended or was taken in.
        """

        def merged(run: ChildRun) -> Fact:
            if run.status not in _TAKEN_IN:
                raise ChildError(f'merge child "{child_id}": it is {run.status}', id)
            made = (
                [artifact.id for artifact in run.artifacts if artifact.id]
                if artifact_ids is None
                else artifact_ids
            )
            return Child(child_id, run.session_id or None).merged(made, note, metadata)

        return self._report(id, "merge", child_id, merged)

    def _report(self, id: str, verb: str, child_id: str, fact: Callable[[ChildRun], Fact]) -> ChildRun:
        """Write ``fact(run)`` right behind what it is about. Return the run behind it."""
        while True:
            session = self.get(id)
            seen = session.version
            run = child_run(session, child_id)
            if run is None:
                raise ChildNotFound(f'{verb} child "{child_id}": not found', id)
            type, data = fact(run)
            try:
                (event,) = session.append(EventDraft(type, data), expected_version=seen)
            except SessionConflict:
                continue
            run.take(event)
            return run
