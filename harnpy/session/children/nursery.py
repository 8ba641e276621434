"""The children that a runtime runs, each by itself. Spec: 10 §A1.15, §C7.2, §C10.

What became of a child is in its parent's log. Beside that there is a `Handle` as long as nobody has waited
for it, and on a store that others share a lease, by which they see that it still runs.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from threading import Condition
from typing import TYPE_CHECKING, Any

from harnpy.session.agents.running import name_of_agent
from harnpy.session.children.facts import CANCELED, Child
from harnpy.session.children.handle import Handle
from harnpy.session.children.running import CANCELLED, Runner
from harnpy.session.children.slots import Slots
from harnpy.session.children.values import ChildResult, ChildSpec
from harnpy.session.errors import ChildNotFound, ChildTimeout, InvalidArgument, SessionError
from harnpy.session.parts.arguments import instance
from harnpy.storage.errors import StorageError, StoreClosed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.session.children.running import Home
    from harnpy.session.children.values import ChildRef
    from harnpy.session.runtime.calling import Caller, ParentCaller
    from harnpy.session.runtime.holding import Leases
    from harnpy.session.runtime.lanes import Lanes
    from harnpy.world import World

#: Seconds that children have to end when their runtime is closed.
PATIENCE = 30.0


class Children:
    """``limit`` is how many of them run at once; None: as many as there are."""

    def __init__(
        self, home: Home, world: World, lanes: Lanes, leases: Leases | None, limit: int | None
    ) -> None:
        if limit is not None and (type(limit) is not int or limit < 1):
            raise InvalidArgument(f"`child_limit` must be an int >= 1, not {limit!r}")
        self._runner = Runner(home, world, lanes, leases)
        self._world = world
        self._lanes = lanes
        self._slots = Slots(limit)
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
        self._slots.take(handle.claim)
        if handle.stopped is not None:
            self._leave_line(handle)  # it was stopped before it waited for a slot

    # Running.

    def _go(self, handle: Handle, has_slot: bool) -> None:
        handle.has_slot = has_slot
        work = partial(handle.context.copy().run, self._run, handle)
        handle.caller.begin(work, f"child {handle.ref.child_id}")

    def _leave_line(self, handle: Handle) -> None:
        """Have a child that was stopped end without a slot, if it waits for one."""
        if handle.claim is not None and self._slots.leave(handle.claim):
            self._go(handle, has_slot=False)

    def _run(self, handle: Handle) -> None:
        self._inside.set(handle)
        result = self._runner.run(handle)
        self._give_slot(handle)
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

    def _give_slot(self, handle: Handle) -> None:
        with self._changed:
            had_one, handle.has_slot = handle.has_slot, False
        if had_one:
            self._slots.give()

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

    def _take_slot(self, handle: Handle) -> None:
        """Wait for a slot to go on in. Raises `asyncio.CancelledError` when that isn't wanted any more."""

        def use() -> None:
            with self._changed:
                handle.has_slot = True
                self._changed.notify_all()

        self._slots.take(use)
        with self._changed:
            while not handle.has_slot and handle.stopped is None:
                self._changed.wait()
            if handle.stopped is None:
                return
            is_given = not self._slots.leave(use)
            while is_given and not handle.has_slot:
                self._changed.wait()
        raise asyncio.CancelledError

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
                    if self._runner.was_called_off(handle):
                        self.stop(handle)

    def stop(self, handle: Handle, reason: str = CANCELLED) -> None:
        """Cancel a child that runs or waits, and with it those that it spawned."""
        with self._changed:
            if self.cancel_entered(handle) or handle.result is not None or handle.stopped is not None:
                return
            handle.stopped = reason
        handle.caller.stop()
        self._leave_line(handle)
        self._lanes.wake()
        self.wake()

    def cancel_entered(self, handle: Handle) -> bool:
        """Cancel a child that hasn't begun. Return False if it has, or was cancelled."""
        with self._changed:
            if handle.has_begun or handle.result is not None:
                return False
            ref = handle.ref
            self.settle(handle, ChildResult(ref.child_id, ref.session_id, CANCELED, reason=CANCELLED))
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


def _is_cancelled(check: Any) -> bool:
    try:
        check()
    except asyncio.CancelledError:
        return True
    return False
