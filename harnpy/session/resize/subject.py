"""What a resize needs of a session. Spec: 10 §C8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from harnpy.session.parts.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.cuts import Cut
    from harnpy.session.events import Event, EventDraft
    from harnpy.session.resize.compaction import Compaction
    from harnpy.session.saves import Saves
    from harnpy.session.settings.levels import Settings
    from harnpy.session.views import View

T = TypeVar("T")


class Subject(Reading):
    """The part of a `Session` that a resize reads and writes."""

    __slots__ = ()

    id: str
    saves: Saves | None
    version: int
    view: View

    @property
    def settings(self) -> Settings:
        raise NotImplementedError

    @property
    def memo(self) -> Any:
        raise NotImplementedError

    def agent_facts(self) -> dict[str, Any]:
        raise NotImplementedError

    def refresh(self) -> None:
        raise NotImplementedError

    def write(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        raise NotImplementedError

    def setting(self, key: str, value: Any, **why: Any) -> EventDraft:
        raise NotImplementedError

    def compaction_cut(self, compaction: Compaction, note: dict[str, Any] | None = None) -> Cut:
        raise NotImplementedError

    def whole(self, fn: Callable[[], T]) -> T:
        """Return what ``fn`` returns; no other thread changes the session meanwhile."""
        return fn()
