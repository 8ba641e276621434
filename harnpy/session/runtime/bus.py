"""Runtime events: what a runtime tells of its work, by name. Spec: 10 §C7."""

from __future__ import annotations

import logging
from collections import defaultdict
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from harnpy.session.errors import InvalidArgument
from harnpy.session.parts.arguments import function, text
from harnpy.text.spell import hint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Listener = Callable[[str, dict[str, Any]], Any]

CREATED, LOADED, SAVED = "session_created", "session_loaded", "session_saved"
EXECUTED = "session_action_executed"
LOAD_FAILED, SAVE_FAILED = "session_load_failed", "session_save_failed"
DELETED, EVICTED = "session_deleted", "session_evicted"
RESIZED = "session_resized"
ACTIVATED, DEACTIVATED = "session_activated", "session_deactivated"
APPLIED, CONTEXT_APPENDED = "session_applied_to_request", "session_context_appended"
ALL: Final = "*"
NAMES: Final = (
    CREATED, LOADED, EXECUTED, SAVED, LOAD_FAILED, SAVE_FAILED, DELETED, EVICTED, RESIZED,
    ACTIVATED, DEACTIVATED, APPLIED, CONTEXT_APPENDED,
)  # fmt: skip


class EventBus:
    """Listeners by the name of the event, ``*`` for all. One that fails is logged and changes nothing."""

    def __init__(self) -> None:
        self._listeners: defaultdict[str, tuple[Listener, ...]] = defaultdict(tuple)
        self._changing = Lock()

    def on(self, name: str, fn: Listener) -> Callable[[], None]:
        """Call ``fn(name, data)`` for each event of that name. Return what ends that.

        Raises `InvalidArgument` for a name that no event has.
        """
        if text("name", name) != ALL and name not in NAMES:
            raise InvalidArgument(f"no runtime event is called `{name}`: {hint(name, (*NAMES, ALL))}")
        function("fn", fn)
        entry: list[Listener] = [fn]
        with self._changing:
            self._listeners[name] = (*self._listeners[name], fn)

        def off() -> None:
            with self._changing:
                if entry:
                    known = list(self._listeners[name])
                    known.remove(entry.pop())
                    self._listeners[name] = tuple(known)

        return off

    @contextmanager
    def failure(self, name: str, session_id: str) -> Iterator[None]:
        """Emit ``name`` for what fails inside, which goes on to the caller."""
        try:
            yield
        except Exception as error:
            told = {"session_id": session_id, "error": str(error), "error_type": type(error).__name__}
            self.emit(name, told)
            raise

    def emit(self, name: str, data: dict[str, Any]) -> None:
        """Tell the listeners of that event, in the order in which they came; those of all events last."""
        for listener in (*self._listeners.get(name, ()), *self._listeners.get(ALL, ())):
            try:
                listener(name, data)
            except Exception:
                logging.getLogger(__name__).exception("a listener of %s failed", name)
