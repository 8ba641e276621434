"""What a model was asked, from the log alone: the request of a step. Spec: 10 §C16.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.llm.request_messages import request_message
from harnpy.session import events as kinds
from harnpy.session.errors import InvalidArgument
from harnpy.session.turns.request_parts import TOOLS, joined_system, memo_message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.reading.dicts import Dict
    from harnpy.session.events import Event
    from harnpy.session.log import Session


def request_of(session: Session, step: int) -> Dict:
    """Return the request of the session's step number ``step``, counted from 1 over the whole log.

    ``{step, seq, provider, model, system, tools, messages, tail, prefill?, prompt_cache}``: ``messages`` are
    the stable ones, ``tail`` what only this request had and the log knows. A compaction's own calls don't
    count; provider and model are None where an agent, a function, named none. Raises `InvalidArgument` when
    there is no such step.
    """
    begun = steps_of(session)
    if not 1 <= step <= len(begun):
        has = {0: "no step", 1: "1 step"}.get(len(begun), f"{len(begun)} steps")
        raise InvalidArgument(f"session '{session.id}' has {has}: there is no step {step}", session.id)
    event = begun[step - 1]
    asked = event.data
    view = session.view.at(event.seq)

    def read_tools(after: int, before: int | None) -> Iterable[Event]:
        until = event.seq if before is None else before - 1
        return session.stream.read(after, until, types=kinds.CALL_TYPES)

    memo = view.register("memo")
    request: Dict = {
        "step": step,
        "seq": event.seq,
        "provider": asked.get("provider"),
        "model": asked.get("model"),
        "system": joined_system(view.register),
        "tools": view.register(TOOLS),
        "messages": [request_message(entry.message) for entry in view.entries(read_tools)],
        "tail": [] if memo is None else [memo_message(memo)],
    }
    kept: tuple[str, ...] = ("prefill", "prompt_cache")
    return request | {key: asked[key] for key in kept if key in asked}


def steps_of(session: Session) -> list[Event]:
    """Return the ``step_started`` of the session's steps, oldest first; not those of compactions."""
    begun = session.stream.read(types=frozenset({kinds.STEP_STARTED}))
    return [session.origin.own(event) for event in begun if not _is_aside(event.data)]


def _is_aside(asked: Any) -> bool:
    return "purpose" in asked
