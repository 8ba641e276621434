"""A session as it stood at one moment. Spec: 08 §1.3."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harnpy.reading.dicts import detached
from harnpy.session.verbs.anchors import DEFAULT_POLICY
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from harnpy.session.views import View


class Snapshot(Mapping[str, Any]):
    """A mapping with the keys of 08 §1.3: a transcript's, and those of the session.

    Taking one costs the same at any length, because it shares the session's messages. What is read from
    it is a copy, made on first reading, which the reader may change; ``dict(snapshot)`` is all of it.
    """

    def __init__(self, id: str, view: View, child_ids: Iterable[str]) -> None:
        self._id = id
        self._view = view.branch()
        self._child_ids = list(child_ids)
        self._read: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if key not in self._read:
            shared = self._session if key in self._session else self._transcript
            self._read[key] = detached(shared[key])
        return self._read[key]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._transcript, **self._session})

    def __len__(self) -> int:
        return len({**self._transcript, **self._session})

    def __repr__(self) -> str:
        return f"Snapshot({dict(self)!r})"

    @cached_property
    def _session(self) -> dict[str, Any]:
        return session_fields(self._view, self._child_ids)

    @cached_property
    def _transcript(self) -> dict[str, Any]:
        return self._view.transcript(self._id)


def shared_snapshot(id: str, view: View, child_ids: Iterable[str]) -> dict[str, Any]:
    """Return the same as a dict that shares the session's values, for readers that change nothing."""
    return {**view.transcript(id), **session_fields(view, child_ids)}


def session_fields(view: View, child_ids: Iterable[str]) -> dict[str, Any]:
    """Return the keys that a transcript doesn't have."""
    scratchpad = view.registers.get("scratchpad")
    return {
        "length": len(view.window),
        "created_at": rfc3339(view.created),
        "system_prompt": view.register("system_prompt"),
        "tool_format": view.register("settings.tool_format"),
        "scratchpad": None if scratchpad is None else scratchpad.value,
        "scratchpad_version": 0 if scratchpad is None else scratchpad.version,
        "parent_id": view.parent_id,
        "child_ids": list(child_ids),
        "branched_at_event_index": view.branched_at,
        "live_clients": list(view.clients.values()),
        "live_controller_id": view.controller_id(),
        "workspace_anchor": view.register("settings.workspace_anchor"),
        "workspace_policy": view.register("settings.workspace_policy", DEFAULT_POLICY),
    }
