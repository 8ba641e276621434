"""What the code around an append adds to the events: metadata, and the turn that they belong to.

Both are context variables: they hold in the block, and in the tasks and threads that it starts. What an event
says itself wins; within blocks, the inner one. Spec: 10 §A1.4 step 2.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session.json_check import checked
from harnpy.session.parts.arguments import mapping, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from harnpy.session.events import EventDraft


class Ambient(NamedTuple):
    """``turn`` is the name of one, None outside of any."""

    metadata: Mapping[str, Any]
    turn: str | None


#: None outside of all blocks: appending costs one look at it.
AMBIENT: ContextVar[Ambient | None] = ContextVar("harnpy.session.ambient", default=None)
_NOTHING = Ambient({}, None)


@contextmanager
def metadata(values: Mapping[str, Any] | None = None, /, **more: Any) -> Iterator[None]:
    """Add these keys to the metadata of the events that the block appends; what an event has itself stays.

    Raises `EventRejected` for what isn't JSON.
    """
    now = current()
    given = checked({**mapping("metadata", values), **more}, "metadata")
    with _set(Ambient({**now.metadata, **given}, now.turn)):
        yield


def current_metadata() -> dict[str, Any]:
    """Return the metadata that an event would get here."""
    return dict(current().metadata)


@contextmanager
def turn(id: str) -> Iterator[str]:
    """Have the events that the block appends belong to the turn of that name, where they belong to none."""
    id = text("turn", id)
    with _set(current()._replace(turn=id)):
        yield id


def current_turn() -> str | None:
    """Return the name of the turn that an event would belong to here; None outside of any."""
    return current().turn


@contextmanager
def ensure_turn() -> Iterator[str]:
    """`turn` under the name of the one that this is in already, else under a new one."""
    known = current_turn()
    if known is None:
        from harnpy.world import World

        known = World().ids.new()
    with turn(known):
        yield known


def current() -> Ambient:
    return AMBIENT.get() or _NOTHING


def surrounded(drafts: Iterable[EventDraft], ambient: Ambient) -> list[EventDraft]:
    """Return copies of drafts with what the code around them adds."""
    return [
        draft.copy(
            metadata={**ambient.metadata, **(draft.metadata or {})},
            turn=ambient.turn if draft.turn is None else draft.turn,
        )
        for draft in drafts
    ]


@contextmanager
def _set(now: Ambient) -> Iterator[None]:
    token = AMBIENT.set(now)
    try:
        yield
    finally:
        AMBIENT.reset(token)
