"""Hooks and events of a runtime: what it calls and reports at each stage of a save. Spec: 10 §A3.4, §C7."""

from __future__ import annotations

import logging
from collections import defaultdict
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harnpy.formats.suggestions import hint
from harnpy.session.arguments import function, instance, optional_text, text
from harnpy.session.errors import InvalidArgument, InvalidTransition
from harnpy.session.registers import ACTIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.session.transaction import Txn

    Listener = Callable[[str, dict[str, Any]], Any]
    #: Called with a stage and the session; what it returns is ignored, an awaitable is waited for.
    Hook = Callable[[str, Txn], Any]

# Runtime events: what a runtime tells of its work, by name. Spec: 10 §C7.


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
        #: Whether anybody has ever listened.
        self.has_listeners = False

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
            self.has_listeners = True

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
            self.failed(name, session_id, error)
            raise

    def failed(self, name: str, session_id: str, error: Exception) -> None:
        """Emit ``name`` for what has failed."""
        told = {"session_id": session_id, "error": str(error), "error_type": type(error).__name__}
        self.emit(name, told)

    def emit(self, name: str, data: dict[str, Any]) -> None:
        """Tell the listeners of that event, in the order in which they came; those of all events last."""
        for listener in (*self._listeners.get(name, ()), *self._listeners.get(ALL, ())):
            try:
                listener(name, data)
            except Exception:
                logging.getLogger(__name__).exception("a listener of %s failed", name)


# Hooks: what a runtime calls at each stage of a save. Spec: 10 §A3.4, §C7.


AFTER_LOAD, AFTER_ACTION, BEFORE_SAVE, AFTER_SAVE = "after_load", "after_action", "before_save", "after_save"
BEFORE_CREATE, AFTER_CREATE = "before_create", "after_create"
STAGES: Final = (BEFORE_CREATE, AFTER_LOAD, AFTER_ACTION, BEFORE_SAVE, AFTER_SAVE, AFTER_CREATE)


class _Entry(NamedTuple):
    hook: Hook
    priority: int
    name: str


class HookStack:
    """Hooks in the order in which they are called. Immutable."""

    __slots__ = ("_entries",)

    def __init__(self, *hooks: Hook) -> None:
        self._entries: tuple[_Entry, ...] = ()
        for hook in hooks:
            self._entries = self.with_(hook)._entries

    def with_(self, hook: Hook, priority: int = 0, name: str | None = None) -> HookStack:
        """Return a stack with one hook more: before those of a lower priority, behind those of the same.

        ``name`` is for people; without one it is the hook's own. Raises TypeError for what can't be called.
        """
        if not callable(hook):
            raise TypeError(f"a hook must be callable with (stage, session), got {type(hook).__name__}")
        instance("priority", priority, int, "an int")
        named = optional_text("name", name) or str(getattr(hook, "__name__", type(hook).__name__))
        stack = HookStack()
        entries = [*self._entries, _Entry(hook, priority, named)]
        stack._entries = tuple(sorted(entries, key=lambda entry: -entry.priority))
        return stack

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self._entries)

    def __iter__(self) -> Iterator[Hook]:
        return (entry.hook for entry in self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def stack_of(hooks: HookStack | Hook | None) -> HookStack:
    """Return the hooks that a runtime was given, as a stack."""
    if isinstance(hooks, HookStack):
        return hooks
    return HookStack() if hooks is None else HookStack(hooks)


def require_active(stage: str, session: Txn) -> None:
    """A hook that refuses `send` on a session that isn't active. Raises `InvalidTransition`."""
    if stage == AFTER_LOAD and session.action == "send" and session.status != ACTIVE:
        raise InvalidTransition.inactive(session.id, session.status)
