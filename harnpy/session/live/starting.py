"""Beginning a watch. Spec: 10 §C10."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.errors import InvalidArgument
from harnpy.session.live.feed import Feed
from harnpy.session.live.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.session.live.audience import Audience
    from harnpy.session.live.tails import Tail


def started(
    version: Callable[[], int],
    tail: Tail,
    audience: Audience,
    buffer: int,
    after: int | None,
    types: Iterable[str] | None,
    *,
    lossy: bool,
) -> Watch:
    """Return a new watch of a session; ``version`` returns its last event's number.

    Raises `InvalidArgument`.
    """
    if not _is_count(buffer) or buffer < 1:
        raise InvalidArgument(f"watch: buffer must be an int >= 1, got {buffer!r}")
    if after is not None and not (_is_count(after) and after >= 0):
        raise InvalidArgument(f"watch: after must be the number of an event, got {after!r}")
    if types is not None and (isinstance(types, str) or not hasattr(types, "__iter__")):
        raise InvalidArgument(f"watch: types must be a list of event types, got {types!r}")
    feed = Feed(buffer, None if types is None else frozenset(types), lossy=lossy, pushed=tail.is_told)
    audience.join(feed)
    # Joined first: what is appended from here on is told, or is behind ``seen``.
    feed.has_read(version() if after is None else after)
    if after is not None:
        feed.fall_behind(version())
    return Watch(feed, tail, audience)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
