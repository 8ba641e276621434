"""The hooks of one program, which all its sessions share. Spec: 10 §C7, §C9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable


class Hook(NamedTuple):
    """``fn(stage, id)`` is called at one stage."""

    name: str
    stage: str
    fn: Callable[[str, str], Any]
    priority: int


class Hooks:
    """Hooks in the order in which they are called: a higher priority first, else the older one."""

    def __init__(self) -> None:
        self._hooks: list[Hook] = []
        self._added = 0

    def add(self, stage: str, fn: Callable[[str, str], Any], priority: int, name: str | None) -> str:
        """Add a hook, and return its name. Raises `InvalidArgument` for a name that is taken."""
        self._added += 1
        name = name or f"hook-{self._added}"
        if any(hook.name == name for hook in self._hooks):
            raise InvalidArgument(f"there is a hook '{name}' already: unhook it first")
        self._hooks.append(Hook(name, stage, fn, priority))
        self._hooks.sort(key=lambda hook: -hook.priority)
        return name

    def remove(self, name: str) -> bool:
        """Take a hook out. Return False if there is none of that name."""
        kept = [hook for hook in self._hooks if hook.name != name]
        found = len(kept) < len(self._hooks)
        self._hooks = kept
        return found

    def at(self, stage: str) -> list[Callable[[str, str], Any]]:
        """Return the functions to call at a stage."""
        return [hook.fn for hook in self._hooks if hook.stage == stage]
