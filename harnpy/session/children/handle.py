"""A child while its runtime runs it. Spec: 10 §A1.15."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.reading.dicts import detached
from harnpy.session.children.facts import RUNNING, Child
from harnpy.session.children.values import ChildRef, ChildResult, ChildSpec

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack
    from contextvars import Context

    from harnpy.session.events import Event
    from harnpy.session.runtime.calling import ChildCaller

#: A child that waits for its time.
SCHEDULED = "scheduled"


class Handle:
    """What is known of a child beside the log. Whoever changes it holds the lock of `Children`.

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
