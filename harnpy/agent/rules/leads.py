"""What the paths of a call led to when it was allowed: they must do so when they are used. Spec: 07 §8.6."""

from __future__ import annotations

import os.path
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from harnpy.agent.rules.roots import is_in

if TYPE_CHECKING:
    from harnpy.agent.rules.paths import Resolver


class Lead(NamedTuple):
    """A path as a call has it, made absolute and normal, and what it led to."""

    named: str
    real: str

    def left_by(self, named: str, real: str) -> str | None:
        """Return why a use of the path, or of what is in it, is refused: it leads elsewhere, to ``real``.

        ``named`` is absolute and normal.
        """
        if not is_in(named, self.named) or is_in(real, self.real):
            return None
        return f"sandbox violation: '{named}' led to '{self.real}' when the call was allowed, now to '{real}'"


class Noting:
    """``place`` during one call, of which it is noted what rules asked. What it answers once, it keeps to."""

    def __init__(self, place: Resolver) -> None:
        self._place = place
        self._noted: dict[str, str | None] = {}
        self.path, self.is_dir = place.path, place.is_dir
        self.real_base = cache(place.real_base)

    def real_path(self, path: str) -> str | None:
        if path not in self._noted:
            self._noted[path] = self._place.real_path(path)
        return self._noted[path]

    def leads(self) -> tuple[Lead, ...]:
        """Return what rules were told, for each form in which it may be used."""
        found: dict[Lead, None] = {}
        for path, real in self._noted.items():
            if real is not None:
                for named in (self.path(path), os.path.join(self.real_base() or "/", path)):
                    found[Lead(os.path.normpath(named), real)] = None
        return tuple(found)
