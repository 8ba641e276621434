"""Hooks: what a runtime calls at each stage of a save. Spec: 10 §A3.4, §C7."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harnpy.session.errors import InvalidTransition
from harnpy.session.parts.arguments import instance, optional_text
from harnpy.session.statuses import ACTIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.session.runtime.txn import Txn

    #: Called with a stage and the session; what it returns is ignored, an awaitable is waited for.
    Hook = Callable[[str, Txn], Any]

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
