"""The children that a runtime runs, each by itself. Spec: 10 §A1.15, §C7.2, §C10.

What became of a child is in its parent's log. Beside that there is a `Handle` as long as nobody has waited
for it, and on a store that others share a lease, by which they see that it still runs.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import replace
from functools import partial
from threading import Condition
from typing import TYPE_CHECKING, Any, Protocol

from harnpy.session.agents.definition import AgentDef
from harnpy.session.agents.running import name_of_agent
from harnpy.session.children import outcomes
from harnpy.session.children.facts import CANCELED, ENDS, FAILED, FORK, Child
from harnpy.session.children.handle import Handle
from harnpy.session.children.values import ChildResult
from harnpy.session.drafting.ambient import metadata
from harnpy.session.errors import ChildNotFound, ChildTimeout, InvalidArgument, SessionBusy, SessionError
from harnpy.session.events import EventDraft
from harnpy.session.log import ANY
from harnpy.storage.errors import StorageError, StoreClosed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from harnpy.session.agents.values import TurnResult
    from harnpy.session.children.facts import Fact
    from harnpy.session.children.values import ChildRef, ChildSpec
    from harnpy.session.events import Event
    from harnpy.session.runtime.calling import Caller, ParentCaller
    from harnpy.session.runtime.holding import Leases
    from harnpy.session.runtime.lanes import Lanes
    from harnpy.session.runtime.live import LiveSession
    from harnpy.world import World

#: What the lease of a child is on, before its id.
LEASE = "child"
#: Seconds that children have to end when their runtime is closed.
PATIENCE = 30.0
_CANCELLED = "cancelled"


class Home(Protocol):
    """What children need of their runtime."""

    def get(self, id: str) -> LiveSession: ...

    def create(self, agent: AgentDef | str, *, id: str, seed: Any, caller: Caller | None) -> LiveSession: ...

    def send(self, id: str, prompt: None, *, agent: Any, caller: Caller | None) -> TurnResult: ...


class Children:
    """``limit`` is how many of them run at once; None: as many as there are."""

    def __init__(
        self, home: Home, world: World, lanes: Lanes, leases: Leases | None, limit: int | None
    ) -> None:
        if limit is not None and (type(limit) is not int or limit < 1):
            raise InvalidArgument(f"`child_limit` must be an int >= 1, not {limit!r}")
        self._home = home
        self._world = world
        self._lanes = lanes
        self._leases = leases
        self._free = limit
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

    def start(self, handle: Handle, caller: Caller) -> None:
        """Have a child run that is known, and let it be unknown if it can't."""
        try:
            self.begin(handle, caller)
        except BaseException:
            with self._changed:
                del self._known[handle.ref.child_id]
            raise

    def enter(self, parent_id: str, spec: ChildSpec, caller: ParentCaller) -> Handle:
        """Make a child known. Raises `InvalidArgument` for what can't be one."""
        spec.check()
        id = spec.child_id or self._world.ids.new()
        checks = [] if spec.detached else self._lanes.checks()
        who, agent = Child(id, spec.session_id or id), name_of_agent(spec.agent)
        handle = Handle(parent_id, spec, who, agent, caller.apart(), checks, copy_context())
        with self._changed:
            if self._closed:
                raise StoreClosed("the runtime")
            if id in self._known:
                raise InvalidArgument(f'spawn child: there is a child "{id}" already', parent_id)
            self._known[id] = handle
        return handle

    def begin(self, handle: Handle, caller: Caller) -> None:
        """Create the child's session, have its parent's log know of it, and let it run."""
        with self._changed:
            if handle.result is not None:
                return  # it was cancelled before its time
            handle.has_begun = True
        with ExitStack() as undone:
            self._request(handle, caller, undone)
            handle.lease = undone.pop_all()
        work = partial(handle.context.copy().run, self._run, handle)
        handle.caller.begin(work, f"child {handle.ref.child_id}")

    def _request(self, handle: Handle, caller: Caller, undone: ExitStack) -> None:
        ref, spec = handle.ref, handle.spec
        parent = self._home.get(ref.parent_id)
        handle.turn = self._turn(parent)
        lease = None
        if self._leases is not None:
            lease = undone.enter_context(self._leases.lease(ref.child_id, 0, handle.caller, LEASE)).key
        with _marked(handle):
            seed = spec.seed()
            if spec.mode == FORK:
                fork = parent.fork(ref.session_id, reason=LEASE)
                if seed:
                    fork.append_prompt(seed)
            else:
                agent = spec.agent if isinstance(spec.agent, AgentDef) else handle.agent
                self._home.create(agent, id=ref.session_id, seed=seed, caller=caller)
        asked = handle.who.requested(
            handle.agent,
            spec.mode,
            spec.task,
            context=spec.context or None,
            lease=lease,
            metadata={**spec.metadata, "detached": True} if spec.detached else dict(spec.metadata),
        )
        handle.since = _write(parent, handle, asked)

    def _turn(self, parent: LiveSession) -> Event | None:
        """Return the turn of the parent that this is inside. Raises `SessionBusy` in an atomic action."""
        if not self._lanes.is_mine(parent.id):
            return None
        for turn in reversed(parent.view.open_turns.values()):
            return turn
        raise SessionBusy(
            f"session '{parent.id}' is busy: an atomic action can't have children, a turn can", parent.id
        )

    # Running.

    def _run(self, handle: Handle) -> None:
        self._inside.set(handle)
        who, session_id = handle.who, handle.ref.session_id
        try:
            with self._slot(handle):
                self._tell(handle, who.started(handle.agent, dict(handle.spec.metadata)))
                with _marked(handle):
                    turn = self._home.send(session_id, None, agent=handle.spec.agent, caller=handle.caller)
            result = outcomes.of_turn(who, session_id, turn)
        except BaseException as error:
            result = outcomes.of_error(who, session_id, error, handle.stopped or _CANCELLED)
        self._end(handle, result)

    def _end(self, handle: Handle, result: ChildResult) -> None:
        try:
            session = self._home.get(handle.ref.session_id)
            result = replace(result, artifacts=outcomes.artifacts_of(session))
            self._tell(handle, *outcomes.facts_of(handle.who, result, dict(handle.spec.metadata)))
        except (SessionError, StorageError) as error:
            logging.getLogger(__name__).exception("the end of child %s isn't in a log", handle.ref.child_id)
            result = replace(result, status=FAILED, error=str(error), cause=error)
        finally:
            if handle.lease is not None:
                with suppress(StorageError):
                    handle.lease.close()
            self.settle(handle, result)

    def settle(self, handle: Handle, result: ChildResult) -> None:
        """Tell whoever waits what became of a child."""
        with self._changed:
            handle.result = result
            self._changed.notify_all()

    def _tell(self, handle: Handle, *facts: Fact) -> None:
        """Write about a child to its parent's log, unless that says already that it has ended."""
        parent = self._home.get(handle.ref.parent_id)
        with parent.lock:
            if not _has_ended(parent, handle):
                _write(parent, handle, *facts)

    @contextmanager
    def _slot(self, handle: Handle) -> Iterator[None]:
        self._take_slot(handle)
        try:
            yield
        finally:
            self._give_slot(handle)

    def _take_slot(self, handle: Handle) -> None:
        with self._changed:
            while True:
                if handle.stopped is not None:
                    raise asyncio.CancelledError
                if self._free is None or self._free > 0:
                    break
                self._changed.wait()
            handle.has_slot = True
            if self._free is not None:
                self._free -= 1

    def _give_slot(self, handle: Handle) -> None:
        with self._changed:
            if handle.has_slot and self._free is not None:
                self._free += 1
                self._changed.notify_all()
            handle.has_slot = False

    # Waiting.

    def wait(self, child_id: str, timeout: float | None, caller: Caller) -> ChildResult:
        """Return what became of a child, and forget it.

        Raises `ChildNotFound` for one that isn't known here, `ChildTimeout` when it hasn't ended in time.
        """
        with self._changed:
            handle = self._known.get(child_id)
        if handle is None:
            raise ChildNotFound(f'wait child "{child_id}": not found')
        checks = [caller.check, *self._lanes.checks()]
        monotonic = self._world.clock.monotonic
        gives_up = None if timeout is None else monotonic() + timeout
        with self._lent_slot(), self._changed:
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
    def _lent_slot(self) -> Iterator[None]:
        """Let another child run while this one waits."""
        mine = self._inside.get()
        if mine is None:
            yield
            return
        with self._changed:
            mine.waits += 1
            is_first = mine.waits == 1
        if is_first:
            self._give_slot(mine)
        try:
            yield
        finally:
            with self._changed:
                mine.waits -= 1
                is_last = mine.waits == 0
            if is_last:
                self._take_slot(mine)

    # Ending early.

    def wake(self) -> None:
        """Stop the children of whoever was cancelled. Have all who wait look whether they still should."""
        for handle in self._open():
            if any(map(_is_cancelled, handle.checks)):
                self.stop(handle)
        with self._changed:
            self._changed.notify_all()

    @contextmanager
    def of(self, parent_id: str) -> Iterator[None]:
        """Stop those children of a session that its log calls off, when an action on it fails."""
        try:
            yield
        except BaseException:
            self._stop_called_off(parent_id)
            raise

    def _stop_called_off(self, parent_id: str) -> None:
        for handle in self._open():
            if handle.ref.parent_id == parent_id and handle.turn is not None:
                with suppress(SessionError, StorageError):
                    if _has_ended(self._home.get(parent_id), handle):
                        self.stop(handle)

    def stop(self, handle: Handle, reason: str = _CANCELLED) -> None:
        """Cancel a child that runs or waits, and with it those that it spawned."""
        with self._changed:
            if handle.result is not None or handle.stopped is not None:
                return
            handle.stopped = reason
        handle.caller.stop()
        self._lanes.wake()
        self.wake()

    def cancel_entered(self, handle: Handle) -> bool:
        """Cancel a child that hasn't begun. Return False if it has, or was cancelled."""
        with self._changed:
            if handle.has_begun or handle.result is not None:
                return False
            ref = handle.ref
            self.settle(handle, ChildResult(ref.child_id, ref.session_id, CANCELED, reason=_CANCELLED))
        return True

    def runs(self, child_id: str) -> bool:
        """Whether the child hasn't ended yet, as far as is known here."""
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


def _marked(handle: Handle) -> AbstractContextManager[None]:
    """Have the child's events carry what was said of it."""
    return metadata({**handle.spec.metadata, "agent_id": handle.agent})


def _write(parent: LiveSession, handle: Handle, *facts: Fact) -> int:
    """Write to the parent's log, in the turn that asked for the child if that is open. Return where."""
    turn = handle.turn if handle.turn is not None and handle.turn.seq in parent.view.open_turns else None
    drafts = [EventDraft(type, data, turn=turn) for type, data in facts]
    return parent.append(*drafts, expected_version=ANY)[-1].seq


def _has_ended(parent: LiveSession, handle: Handle) -> bool:
    """Whether the parent's log says so."""
    ends = parent.stream.read(handle.since, types=ENDS)
    return any(end.data.get("child_id") == handle.ref.child_id for end in ends)


def _is_cancelled(check: Any) -> bool:
    try:
        check()
    except asyncio.CancelledError:
        return True
    return False
