"""The verbs of a session's life: read, write, cut back, close. Spec: 08 §1.2–1.6.

Values are copied on their way in and out, so that a Python caller can't change a session by accident. A
caller whose values never change, such as a Harn program, shares them instead: `inject_shared` takes
a message as it is, `snapshot_value` and `history_value` return the session's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from harnpy.reading.dicts import detached
from harnpy.reading.kinds import boolean, count
from harnpy.session import events as kinds
from harnpy.session.errors import EventRejected, InvalidArgument, SessionNotFound
from harnpy.session.snapshot import Snapshot, shared_snapshot
from harnpy.session.verbs.arguments import check, not_blank, read_options

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.session.residents import Residents, Subscriber

_INJECT = "agent_session_inject"


def exists(residents: Residents, id: str) -> bool:
    return id in residents.by_id


def length(residents: Residents, id: str) -> int:
    """Return the number of messages in a session."""
    resident = residents.by_id.get(id)
    if resident is None:
        raise SessionNotFound(id, "agent_session_length")
    session = resident.session
    session.refresh()
    return session.length


def messages(residents: Residents, id: str) -> list[Dict]:
    messages: list[Dict] = detached(residents.find(id).session.messages())
    return messages


def history(residents: Residents, id: str, opts: Dict | None = None) -> list[Dict]:
    """Return the messages behind the window, including those trimmed away or summarised.

    They begin with the last reset, or with the session if ``include_reset``. An extension of harnpy.
    """
    messages: list[Dict] = detached(history_value(residents, id, opts))
    return messages


def history_value(residents: Residents, id: str, opts: Dict | None = None) -> list[Dict]:
    """`history` without copies, for readers that change nothing."""
    session = residents.find(id).session
    options = read_options(opts, {"include_reset": boolean})
    return session.every_message() if options.get("include_reset") else session.history()


def snapshot(residents: Residents, id: str) -> Snapshot | None:
    """Return the session as it stands, None when there is none."""
    resident = residents.current(id)
    if resident is None:
        return None
    return Snapshot(id, resident.session.view, resident.child_ids)


def snapshot_value(residents: Residents, id: str) -> Dict | None:
    """`snapshot` as a dict that shares the session's values."""
    resident = residents.current(id)
    if resident is None:
        return None
    return shared_snapshot(id, resident.session.view, resident.child_ids)


def reset(residents: Residents, id: str) -> None:
    """Empty the transcript; id, subscribers, lineage, clients and registers stay."""
    residents.use(id).session.reset()


def trim(residents: Residents, id: str, keep_last: int) -> int:
    """Keep the newest messages. Return how many there are."""
    check("keep_last", keep_last, count)
    return residents.use(id).session.trim(keep_last)


def inject_shared(residents: Residents, id: str, message: Dict) -> None:
    """Append a message that nobody changes any more, without copying it."""
    resident = residents.by_id.get(id)
    if resident is None:
        raise SessionNotFound(id, _INJECT)
    if type(message) is not dict or type(message.get("role")) is not str:
        _refuse_message(message)
    residents.by_id.move_to_end(id)  # `touch`, without a call: this is the hot path
    resident.session.record(kinds.MESSAGE_ADDED, message)
    for follower in resident.followers:
        follower.arrive(message)


def append_event(residents: Residents, id: str, event: Dict) -> None:
    """Append a lifecycle event to the transcript: a dict with a string ``kind``."""
    if not isinstance(event, dict):
        raise InvalidArgument("event must be a dict")
    resident = residents.find(id)
    if not isinstance(event.get("kind"), str):
        raise InvalidArgument("event must have a string `kind`")
    residents.touch(id)
    try:
        resident.session.record(kinds.TRANSCRIPT_EVENT, detached(event))
    except EventRejected as rejected:
        rejected.argument = "event"
        raise


def close(residents: Residents, id: str, status: str | Dict | None = None) -> None:
    """Remove a session after notifying its subscribers. ``status``: the reason, or a dict with it."""
    if status is not None and not isinstance(status, str | dict):
        raise InvalidArgument("`status` must be a string, dict, or nil")
    given = {"reason": status} if isinstance(status, str) else detached(status)
    reason = None if given is None else given.get("reason")
    if reason is not None and not isinstance(reason, str):
        raise InvalidArgument("`status.reason` must be a string")
    residents.release(residents.find(id), reason, given)


def discard(residents: Residents, id: str) -> None:
    """Remove a session, if there is one, without notifying anyone."""
    resident = residents.by_id.get(id)
    if resident is not None:
        residents.forget(resident)


def subscribe(residents: Residents, id: str, callback: Subscriber) -> None:
    """Call ``callback`` with each agent event of the session, which is opened if necessary."""
    not_blank("session_id", id)
    residents.open_resident(id).subscribers.append(callback)


def subscriber_count(residents: Residents, id: str) -> int:
    resident = residents.by_id.get(id)
    return len(resident.subscribers) if resident else 0


def _refuse_message(message: Any) -> NoReturn:
    if message is None:
        raise InvalidArgument("`message` required", verb=_INJECT)
    if type(message) is not dict:
        raise InvalidArgument("message must be a dict", verb=_INJECT)
    raise InvalidArgument(
        "message must have a string `role` (user|assistant|tool_result|system)", verb=_INJECT
    )
