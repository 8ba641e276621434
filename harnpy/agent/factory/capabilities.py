"""Capabilities: tools, instructions and options under one name, for definitions. Spec: 10 §C7.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from harnpy.agent.factory.build import known_names
from harnpy.agent.factory.ready_made import READY_MADE
from harnpy.session.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.agent.factory.build import Capability


class Capabilities:
    """Capabilities by name. `use_bash`, `use_files` and `use_tasks` are there from the beginning."""

    def __init__(self) -> None:
        self._known: dict[str, Capability] = dict(READY_MADE)

    def register(self, name: str, capability: Capability) -> Self:
        """Let definitions use ``capability`` by that name; it takes the place of one that has it already."""
        if not isinstance(name, str):
            raise InvalidArgument(f"a capability's name is a text, got {type(name).__name__}")
        if not callable(capability):
            raise InvalidArgument(f"capability '{name}' is a function, got {type(capability).__name__}")
        self._known[name] = capability
        return self

    def names(self) -> list[str]:
        return sorted(self._known)

    def of(self, names: Iterable[str]) -> list[Capability]:
        """Return the capabilities of those names. Raises `AgentError` for an unknown one."""
        return [self._known[name] for name in known_names("capability", names, self._known)]
