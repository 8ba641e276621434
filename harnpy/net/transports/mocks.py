"""Streams of events and WebSockets without a network, and the calls that they got. Spec: 04 §21.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from harnpy.net.http.mocks import masked, matches
from harnpy.world.net.redaction import redacted_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harnpy.net.sse.decoding import Event
    from harnpy.reading.dicts import Dict
    from harnpy.world.net.messages import Message

T = TypeVar("T")


class MockedSocket(NamedTuple):
    """``messages`` come at once; with ``echo`` what is sent comes back."""

    messages: Sequence[Message]
    echo: bool


class Patterns(Generic[T]):
    """What answers for URLs; the first pattern that was registered and matches counts."""

    def __init__(self) -> None:
        self._known: dict[str, T] = {}

    def add(self, pattern: str, answer: T) -> None:
        """Register an answer in the place of one for the same pattern."""
        self._known[pattern] = answer

    def find(self, *urls: str) -> T | None:
        """Return the answer for any of these spellings of a URL."""
        return next(
            (answer for pattern, answer in self._known.items() if any(matches(pattern, url) for url in urls)),
            None,
        )

    def clear(self) -> None:
        self._known.clear()


class Mocks:
    """The mocks of one program, and what was done with them."""

    def __init__(self) -> None:
        self.events: Patterns[Sequence[Event]] = Patterns()
        self.sockets: Patterns[MockedSocket] = Patterns()
        self.calls: list[Dict] = []

    def clear(self) -> None:
        """Forget mocks and calls."""
        self.events.clear()
        self.sockets.clear()
        self.calls.clear()

    def note(self, type_: str, url: str, **more: object) -> None:
        self.calls.append({"type": type_, "url": redacted_url(url), **more})

    def note_connect(self, type_: str, url: str, headers: Iterable[tuple[str, str]], **more: object) -> None:
        self.note(type_, url, headers=masked(headers), **more)
