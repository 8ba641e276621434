"""The mailbox of a workflow: messages to it, published values, responses to requests. Spec: 08 §10."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.workflow.messages.mailbox_state import MailboxState
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.messages.mailbox_state import Wait
    from harnpy.workflow.messages.targets import Target
    from harnpy.world import World


SIGNAL, UPDATE, CONTROL = "signal", "update", "control"

_POLL = 0.025
_RECEIVED = ("seq", "kind", "name", "request_id", "payload", "enqueued_at")


class Mailbox:
    """The mailbox of a workflow in ``directory``. Payloads and values are JSON data."""

    def __init__(self, target: Target, directory: str, world: World, wait: Wait) -> None:
        self.target = target
        self._state = MailboxState(target.workflow_id, directory, world.placed_state_files, wait)
        self._world = world
        self._wait = wait

    def signal(self, name: str, payload: Any) -> Dict:
        """Add a message; return it and the mailbox's status."""
        with self._state.change() as state:
            message = self._enqueue(state, SIGNAL, name, payload)
        return {"workflow_id": self.target.workflow_id, "message": message, "status": self._status(state)}

    def receive(self) -> Dict | None:
        """Remove and return the oldest message, None from an empty mailbox."""
        if not self._state.read()["mailbox"]:  # a reader that polls must not block writers
            return None
        with self._state.change() as state:
            if not state["mailbox"]:
                return None
            oldest, *state["mailbox"] = state["mailbox"]
        return {"workflow_id": self.target.workflow_id, **{key: oldest.get(key) for key in _RECEIVED}}

    def publish_query(self, name: str, value: Any) -> Dict:
        """Publish ``value`` under ``name``; return the status."""
        with self._state.change() as state:
            published = {"value": value, "published_at": self._stamp()}
            state["queries"] = {**state["queries"], name: published}
        return self._status(state)

    def query(self, name: str) -> Any:
        """Return the value last published under a name, None without one."""
        published = self._state.read()["queries"].get(name)
        return None if published is None else published.get("value")

    def update(self, name: str, payload: Any, timeout: float) -> Any:
        """Add a request and wait for its response. Raise `MisuseError` after ``timeout`` seconds."""
        request_id, until = self._world.ids.new(), self._world.clock.monotonic() + timeout
        with self._state.change() as state:
            self._enqueue(state, UPDATE, name, payload, request_id)
        while request_id not in (responses := self._state.read()["responses"]):
            left = until - self._world.clock.monotonic()
            if left <= 0:
                id = self.target.workflow_id
                raise MisuseError(f"workflow update '{name}' timed out for '{id}'")
            self._wait(min(_POLL, left))
        return responses[request_id].get("value")

    def respond(self, request_id: str, value: Any, name: str | None) -> Dict:
        """Respond to a request; return the status."""
        response = {"request_id": request_id, "value": value, "responded_at": self._stamp()}
        if name is not None:
            response["name"] = name
        with self._state.change() as state:
            state["responses"] = {**state["responses"], request_id: response}
        return self._status(state)

    def pause(self, paused: bool) -> Dict:
        """Ask the workflow to pause or to resume; return the status."""
        with self._state.change() as state:
            state["paused"] = paused
            self._enqueue(state, CONTROL, "pause" if paused else "resume", {})
        return self._status(state)

    def continue_as_new(self) -> Dict:
        """Start another generation, without the responses so far; return the status."""
        with self._state.change() as state:
            state["generation"] += 1
            state["continue_as_new_count"] += 1
            state["last_continue_as_new_at"] = self._stamp()
            state["responses"] = {}
        return self._status(state)

    def status(self) -> Dict:
        return self._status(self._state.read())

    def _status(self, state: Dict) -> Dict:
        return {
            "workflow_id": self.target.workflow_id,
            "base_dir": self.target.base_dir,
            "generation": state["generation"],
            "paused": state["paused"],
            "pending_count": len(state["mailbox"]),
            "query_count": len(state["queries"]),
            "response_count": len(state["responses"]),
            "continue_as_new_count": state["continue_as_new_count"],
            "last_continue_as_new_at": state.get("last_continue_as_new_at"),
        }

    def _enqueue(
        self, state: Dict, kind: str, name: str, payload: Any, request_id: str | None = None
    ) -> Dict:
        message = {"seq": state["next_seq"], "kind": kind, "name": name, "payload": payload}
        if request_id is not None:
            message["request_id"] = request_id
        message["enqueued_at"] = self._stamp()
        state["mailbox"] = [*state["mailbox"], message]
        state["next_seq"] += 1
        return message

    def _stamp(self) -> str:
        return rfc3339(self._world.clock.now())
