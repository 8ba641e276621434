"""Spans: what a program did and how long it took, contained in one another. Spec: 04 §25.

A span knows the one that it began in. That is kept per task, so a task that was started in a
span is part of it, whoever runs meanwhile.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Protocol

    from harnpy.world.clock import Clock

    class Holder(Protocol):
        """The holder of a span: a task."""

        span: Span | None


class Span:
    """Something that was done. ``id`` counts from 1; ``duration_ms`` is None until it has ended."""

    __slots__ = ("_begin", "_of", "duration_ms", "id", "kind", "metadata", "name", "parent", "start_ms")

    def __init__(self, of: Spans, id: int, parent: Span | None, kind: str, name: str, clock: Clock) -> None:
        self._of = of
        self.id = id
        self.parent = parent
        self.kind = kind
        self.name = name
        self.start_ms = int(clock.now() * 1000)
        self._begin = clock.monotonic()
        self.duration_ms: int | None = None
        self.metadata: dict[str, Any] = {}

    def belongs_to(self, spans: Spans) -> bool:
        return self._of is spans

    def end(self, clock: Clock) -> None:
        self.duration_ms = max(0, int((clock.monotonic() - self._begin) * 1000))

    def as_dict(self) -> dict[str, Any]:
        """`{span_id, parent_id, kind, name, start_ms, duration_ms, metadata?}`."""
        shown: dict[str, Any] = {
            "span_id": self.id,
            "parent_id": None if self.parent is None else self.parent.id,
            "kind": self.kind,
            "name": self.name,
            "start_ms": self.start_ms,
            "duration_ms": self.duration_ms,
        }
        return {**shown, "metadata": self.metadata} if self.metadata else shown


class Spans:
    """The spans of one program since it began to record them.

    ``holder()`` is what is in a span now: the running task. ``on`` is false once no more spans are to begin.
    """

    def __init__(self, clock: Clock, holder: Callable[[], Holder]) -> None:
        self.on = True
        #: In the order in which they ended.
        self.completed: list[Span] = []
        self._clock = clock
        self._holder = holder
        self._begun = 0

    def begin(self, kind: str, name: str) -> Span:
        """A span inside the one that the running task is in; the task is in it from now on."""
        holder = self._holder()
        around = holder.span
        if around is not None and not around.belongs_to(self):
            around = None
        self._begun += 1
        span = holder.span = Span(self, self._begun, around, kind, name, self._clock)
        return span

    def leave(self, span: Span) -> None:
        """The running task is where it was before ``span``, which goes on."""
        self._holder().span = span.parent

    def enter(self, span: Span) -> None:
        """The running task is in ``span``, which goes on elsewhere."""
        self._holder().span = span

    def end(self, span: Span, **metadata: Any) -> None:
        """End the span that the running task is in."""
        self.leave(span)
        self.complete(span, **metadata)

    def complete(self, span: Span, **metadata: Any) -> None:
        """End a span that the running task has left."""
        span.metadata.update(metadata)
        span.end(self._clock)
        self.completed.append(span)


def summary(spans: Iterable[Span], text: Callable[[Any], str] = str) -> str:
    """The tree of completed spans, and the time from the first begin to the last end.

    ``text`` is how values of metadata show.
    """
    spans = sorted(spans, key=lambda span: span.id)
    if not spans:
        return "No spans recorded."
    end = max(span.start_ms + (span.duration_ms or 0) for span in spans)
    total = end - min(span.start_ms for span in spans)
    below: dict[int | None, list[Span]] = {}
    shown = {span.id for span in spans}
    for span in spans:
        parent = span.parent
        while parent is not None and parent.id not in shown:
            parent = parent.parent
        below.setdefault(None if parent is None else parent.id, []).append(span)
    count = "1 span" if len(spans) == 1 else f"{len(spans)} spans"
    return "\n".join([f"Trace: {count}, {total}ms total", "", *_lines(below, text)])


def _lines(below: dict[int | None, list[Span]], text: Callable[[Any], str]) -> Iterator[str]:
    """One line a span, each below its parent; calls may be hundreds deep."""
    waiting = [(0, span) for span in reversed(below.get(None, ()))]
    while waiting:
        depth, span = waiting.pop()
        metadata = ", ".join(f"{key}={text(value)}" for key, value in sorted(span.metadata.items()))
        suffix = f" ({metadata})" if metadata else ""
        yield f"{'  ' * (depth + 1)}{span.kind} {span.name} {span.duration_ms}ms{suffix}"
        waiting += [(depth + 1, child) for child in reversed(below.get(span.id, ()))]
