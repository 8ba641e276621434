"""The event streams of a program, and the tasks that wait for their clients. Spec: 04 §21.5."""

from __future__ import annotations

import re
from functools import partial

from harnpy.net.server.event_streams import EventStream
from harnpy.net.server.faults import ServerFault
from harnpy.text.display import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.net.server.events import Comment, Event
    from harnpy.vm.run.tasks.task import Task
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

_PREFIX = "sse_response_"
_ID = re.compile(_PREFIX + "([1-9][0-9]{0,17})")


class EventStreams:
    """Those of one program, by id; one that a client has read to its end is forgotten."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm
        self._made = 0
        self._by_id: dict[str, EventStream] = {}

    def open(self, options: dict[str, Any]) -> EventStream:
        self._made += 1
        stream = EventStream(f"{_PREFIX}{self._made}", options)
        self._by_id[stream.id] = stream
        return stream

    def find(self, handle: Value) -> EventStream:
        """Return the stream of a response, or of its id. Raises ServerFault."""
        id = handle.get("id") if type(handle) is dict else handle
        if type(id) is not str or not self._was_made(id):
            raise ServerFault(f"there is no stream {display(id)}; `sse_server_response` makes one")
        return self._by_id.get(id) or _ended(id)

    def get(self, id: Value) -> EventStream | None:
        """Return the stream of an id; None for one that there isn't, or that has been forgotten."""
        return self._by_id.get(id) if type(id) is str else None

    def send(self, stream: EventStream, item: Event | Comment) -> bool:
        """Send an event once there is room for it. Return False when the stream has ended."""
        while stream.is_open() and stream.is_full():
            self._wait("for a client to read", stream)
        if not stream.is_open():
            return False
        stream.put(item)
        return True

    def flush(self, stream: EventStream) -> bool:
        """Wait until a client that reads the stream has got everything. Return False when it has ended."""
        while stream.attached and stream.is_open() and not stream.is_empty():
            self._wait("for a client to read", stream)
        return stream.is_open()

    def follow(self, stream: EventStream) -> None:
        """Wait until a stream that a client reads has ended, and forget it."""
        try:
            while stream.is_open():
                self._wait("for the end of", stream)
        finally:
            self._by_id.pop(stream.id, None)

    def _was_made(self, id: str) -> bool:
        found = _ID.fullmatch(id)
        return found is not None and int(found[1]) <= self._made

    def _wait(self, why: str, stream: EventStream) -> None:
        task = self._vm.tasks.current
        resume = partial(self._resume, task)
        stream.waiting.append(resume)
        try:
            self._vm.tasks.suspend((why, [stream]))
        finally:
            # One that was interrupted waits no more, and a stream that nobody reads may never change.
            if resume in stream.waiting:
                stream.waiting.remove(resume)

    def _resume(self, task: Task) -> None:
        self._vm.tasks.resume(task)
        if self._vm.tasks.bridge is not None:
            self._vm.tasks.bridge.wake()


def streams_of(vm: Vm) -> EventStreams:
    return vm.state(EventStreams, lambda: EventStreams(vm))


def _ended(id: str) -> EventStream:
    stream = EventStream(id, {})
    stream.close()
    return stream
