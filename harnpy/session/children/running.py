"""What becomes of one child: it is asked for, it runs, it ends. Spec: 10 §A1.15, §C7.2."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from harnpy.session.agents.definition import AgentDef
from harnpy.session.children import outcomes
from harnpy.session.children.facts import ENDS, FAILED, FORK
from harnpy.session.drafting.ambient import metadata
from harnpy.session.errors import SessionBusy, SessionError
from harnpy.session.events import EventDraft
from harnpy.session.kept.stored import StoredSession
from harnpy.session.log import ANY
from harnpy.storage.errors import LeaseLost, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager, ExitStack

    from harnpy.session.agents.values import TurnResult
    from harnpy.session.children.facts import Fact
    from harnpy.session.children.handle import Handle
    from harnpy.session.children.values import ChildResult
    from harnpy.session.events import Event
    from harnpy.session.runtime.calling import Caller, ParentCaller
    from harnpy.session.runtime.holding import Leases
    from harnpy.session.runtime.lanes import Lanes
    from harnpy.session.runtime.live import LiveSession
    from harnpy.world import World

#: What the lease of a child is on, before its id.
LEASE: Final = "child"
#: Why a child is cancelled, unless somebody knows better.
CANCELLED: Final = "cancelled"


class Home(Protocol):
    """What children need of their runtime."""

    def get(self, id: str) -> LiveSession: ...

    def create(self, agent: AgentDef | str, *, id: str, seed: Any, caller: Caller | None) -> LiveSession: ...

    def send(
        self, id: str, prompt: None, *, agent: Any, timeout: float | None, caller: Caller | None
    ) -> TurnResult: ...


class Runner:
    """Writes what becomes of children to the logs of their parents."""

    def __init__(self, home: Home, world: World, lanes: Lanes, leases: Leases | None) -> None:
        self._home = home
        self._world = world
        self._lanes = lanes
        self._leases = leases

    def request(self, handle: Handle, caller: ParentCaller, undone: ExitStack) -> None:
        """Create the child's session, and have its parent's log know of it.

        ``undone`` ends with the child, or when it can't be asked for. Raises `SessionNotFound` where there is
        no parent, `SessionExists`, `SessionBusy`, `ChildError`, and what a hook raises.
        """
        ref, spec = handle.ref, handle.spec
        parent = self._home.get(ref.parent_id)
        handle.turn = self._turn(parent)
        lease = None
        if self._leases is not None:
            lease = undone.enter_context(self._leases.lease(ref.child_id, 0, handle.caller, LEASE)).key
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
                self._home.create(agent, id=ref.session_id, seed=seed, caller=caller)
        asked = handle.who.requested(
            handle.agent,
            spec.mode,
            spec.task,
            context=spec.context or None,
            lease=lease,
            metadata={**handle.metadata, "detached": True} if spec.detached else handle.metadata,
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

    def run(self, handle: Handle) -> ChildResult:
        """Run the child's agent. Return what became of it, also when that failed."""
        who, session_id, spec = handle.who, handle.ref.session_id, handle.spec
        try:
            handle.caller.check()
            self._tell(handle, who.started(handle.agent, handle.metadata))
            with _marked(handle):
                turn = self._home.send(
                    session_id, None, agent=spec.agent, timeout=spec.timeout, caller=handle.caller
                )
        except BaseException as error:
            return outcomes.of_error(who, session_id, error, handle.stopped or CANCELLED)
        return outcomes.of_turn(who, session_id, turn)

    def end(self, handle: Handle, result: ChildResult) -> ChildResult:
        """Write how a child ended, and return it with its artifacts: a failure if that can't be written."""
        try:
            session = self._home.get(handle.ref.session_id)
            result = replace(result, artifacts=outcomes.artifacts_of(session))
            self._tell(handle, *outcomes.facts_of(handle.who, result, handle.metadata))
        except (SessionError, StorageError) as error:
            logging.getLogger(__name__).exception("the end of child %s isn't in a log", handle.ref.child_id)
            return replace(result, status=FAILED, error=str(error), cause=error)
        return result

    def was_called_off(self, handle: Handle) -> bool:
        """Whether its parent's log says that a child has ended."""
        return _has_ended(self._home.get(handle.ref.parent_id), handle)

    def _tell(self, handle: Handle, *facts: Fact) -> None:
        """Write about a child to its parent's log, unless that says already that it has ended."""
        parent = self._home.get(handle.ref.parent_id)
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
    """Whether the parent's log says so."""
    ends = parent.stream.read(handle.since, types=ENDS)
    return any(end.data.get("child_id") == handle.ref.child_id for end in ends)
