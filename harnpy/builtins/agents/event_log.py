"""The ``event_log`` namespace: topics that programs write and follow; whose bearer token it is.

Spec: 04 §27, 08 §15.1, §16.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from harnpy.builtins.bridge.live_event_log import log_of, require_log, wait_for_news
from harnpy.eventlog.contract import LogEvent
from harnpy.formats.json import as_data
from harnpy.vm.declare import ABSENT
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import TypeFault
from harnpy.vm.values import Stream, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="connectors", counted=True)

_CURSORS = ("from_cursor", "cursor", "from")
#: How many events are read at once.
_PAGE = 128


@builtin("event_log.emit(topic: string, kind: string, payload?: any, headers?: dict) -> int")
def emit(
    vm: Vm, topic: Value = ABSENT, kind: Value = ABSENT, payload: Value = None, headers: Value = None
) -> int:
    """Append an event to a topic and return its id, counted from 1 in each topic.

    Example: event_log.emit("orders", "created", {id: 1}) > 0  // true
    """
    name, event_kind = _string("emit", "topic", topic), _string("emit", "kind", kind)
    event = LogEvent(event_kind, as_data(payload), _headers(headers))
    return require_log(vm).append(name, event)


@builtin("event_log.latest(topic: string) -> int | nil")
def latest(vm: Vm, topic: Value = ABSENT) -> int | None:
    """Return the highest id in a topic; nil before its first event.

    Example:
        event_log.emit("sales", "created", {id: 2})
        event_log.latest("sales")  // 1
    """
    name = _string("latest", "topic", topic)
    return log_of(vm).latest(name)


@builtin("event_log.subscribe(topic: any, from_cursor?: int) -> stream")
def subscribe(vm: Vm, topic: Value = ABSENT, from_cursor: Value = None) -> Stream:
    """Return a stream of the topic's events after `from_cursor`: existing ones, then new ones.

    Also with one argument: `{topic, from_cursor}`.

    Example:
        event_log.emit("log", "created", {id: 1})
        event_log.subscribe("log").next().value.payload  // {id: 1}
    """
    if type(topic) is dict:
        from_cursor = next((topic[key] for key in _CURSORS if topic.get(key) is not None), None)
        topic = topic.get("topic", ABSENT)
    name = _string("subscribe", "topic", topic)
    if from_cursor is not None and (type(from_cursor) is not int or from_cursor < 0):
        got = type_name(from_cursor)
        raise TypeFault(f"event_log.subscribe: from_cursor must be a non-negative int or nil, got {got}")
    log_of(vm).latest(name)  # refuses what is no topic
    stream = vm.calls.generator(Stream, _following(vm, name, from_cursor or 0))
    assert isinstance(stream, Stream)
    return stream


# Whose bearer token it is. Spec: 08 §16.


class _Bearers:
    """The bearer sessions on a Vm's event log."""

    def __init__(self, vm: Vm) -> None:
        from harnpy.eventlog.bearer import BearerSessions

        self.sessions = BearerSessions(log_of(vm), clock=lambda: datetime.fromtimestamp(vm.clock.now(), UTC))


@builtin("bearer_check(credentials: any) -> dict | nil")
def bearer_check(vm: Vm, credentials: Value = ABSENT) -> dict[str, Value] | None:
    """Return whose token it is, as `{principal, expires_at, attributes, …}`; nil for an unknown token.

    `credentials`: the token, or a request's headers, which name it as `Authorization: Bearer …`. The result
    has `created_at` and `last_seen_at`, too. `harnpy tokens create` gives out tokens. Spec: 04 §27, 08 §16.

    Example: bearer_check({authorization: "Bearer hs_of-somebody-else"})  // nil
    """
    from harnpy.eventlog.http import bearer_token

    if type(credentials) is dict:
        texts = {name: value for name, value in credentials.items() if type(value) is str}
        token = bearer_token(texts)
    elif type(credentials) is str:
        token = credentials
    else:
        got = "nothing" if credentials is ABSENT else type_name(credentials)
        raise TypeFault(f"bearer_check: credentials must be a string or a dict of headers, got {got}")
    if token is None:
        return None
    require_log(vm)
    sessions = vm.service(_Bearers, _Bearers).sessions
    session = sessions.get(token)
    if session is None:
        return None
    sessions.note([token])
    return {name: value for name, value in session.to_dict().items() if name != "id"}


def _following(vm: Vm, topic: str, cursor: int) -> Iterator[dict[str, Value]]:
    log = log_of(vm)
    while True:
        for id, event in log.read_range(topic, cursor, _PAGE):
            cursor = id
            yield {"id": id, "cursor": id, "topic": topic, **event._asdict()}
        if not log.read_range(topic, cursor, 1):
            wait_for_news(vm, log, topic)


def _string(function: str, what: str, value: Value) -> str:
    if value is ABSENT or value is None:
        raise TypeFault(f"event_log.{function}: missing {what}")
    if type(value) is not str:
        raise TypeFault(f"event_log.{function}: {what} must be a string, got {type_name(value)}")
    return value


def _headers(given: Value) -> dict[str, str]:
    if given is None:
        return {}
    if type(given) is not dict:
        raise TypeFault(f"event_log.emit: headers must be a dict, got {type_name(given)}")
    for key, value in given.items():
        if type(value) is not str:
            got = type_name(value)
            raise TypeFault(f"event_log.emit: header '{key}' must be a string, got {got}")
    return given
