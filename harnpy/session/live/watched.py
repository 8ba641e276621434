"""What a session does for those who want to be told of its events. Spec: 10 §A1.12, §C3, §C10."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.errors import InvalidArgument
from harnpy.session.parts.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.session.events import Event
    from harnpy.session.live.audience import Audience
    from harnpy.session.live.tails import Tail
    from harnpy.session.live.watch import Watch

#: How many events a watch buffers, unless it is told otherwise.
BUFFER = 64


class Watched(Reading):
    """The part of a `Session` that others listen to."""

    __slots__ = ()

    id: str
    version: int
    #: Who listens; None: nobody ever did.
    audience: Audience | None

    @property
    def has_watchers(self) -> bool:
        """Whether somebody watches or observes."""
        return bool(self.audience)

    def watch(
        self,
        *,
        buffer: int = BUFFER,
        after: int | None = None,
        types: Iterable[str] | None = None,
        lossy: bool = True,
    ) -> Watch:
        """Return a `Watch` of the events of these ``types`` (None: all) to come, whoever appends them.

        ``after``: first those of the log behind that number. A watch that isn't read fast enough has up to
        ``buffer`` events waiting; then it drops what comes if it is ``lossy``, and keeps those waiting who
        append to this object if it isn't. Raises `InvalidArgument`.
        """
        from harnpy.session.live.starting import started

        audience = self._listened()
        return started(lambda: self.version, self.tail(), audience, buffer, after, types, lossy=lossy)

    def observe(self, fn: Callable[[Event], Any]) -> Callable[[], None]:
        """Have ``fn`` called with each event that this object appends, in order, before the append returns.

        Return what ends that. When ``fn`` raises, the append raises `ObserverError`, and the events are
        stored; when it writes to the session, that raises `SessionBusy`. Raises `InvalidArgument` for an
        ``async`` function, which nobody would wait for.
        """
        from inspect import iscoroutinefunction

        if iscoroutinefunction(fn):
            raise InvalidArgument("observe: an observer must be a plain function, not an async one", self.id)
        return self._listened().observe(fn)

    def tail(self) -> Tail:
        """Return the end of the log, for a watch."""
        from harnpy.session.live.tails import OwnTail

        return OwnTail(self.read)

    def _listened(self) -> Audience:
        """Return those who listen, to be joined."""
        raise NotImplementedError
