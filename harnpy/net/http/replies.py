"""Responses, whoever gave them. Spec: 04 §21.1."""

from __future__ import annotations

import codecs
import re
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Mapping
    from typing import Any, TypeVar

    from harnpy.net.http.mocks import MockedResponse

    T = TypeVar("T")

#: The encodings of texts on the web; Python has others that are none.
_CHARSETS = re.compile(
    r"utf-8|utf-16(-[bl]e)?|utf-32(-[bl]e)?|ascii|iso8859-\d+|cp125\d|koi8-[ru]|shift_jis|euc_\w+|gb\w*|big5|mac-\w+"
)


class Response(Protocol):
    """A response whose body has yet to be read. ``headers``: by names in lower case."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def charset(self) -> str | None: ...

    def pieces(self, most: int | None) -> AsyncGenerator[bytes, None]:
        """Yield the body, which may have ``most`` bytes."""

    async def aclose(self) -> None: ...


class Mocked:
    """A mock's response."""

    charset = None

    def __init__(self, response: MockedResponse) -> None:
        self.status, self.headers, self._body = response

    async def pieces(self, most: int | None) -> AsyncGenerator[bytes, None]:
        if self._body:
            yield self._body

    async def aclose(self) -> None:
        """There is nothing to close."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A response with its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    charset: str | None

    @staticmethod
    async def read(response: Response, most: int | None) -> Reply:
        async with aclosing(response.pieces(most)) as pieces:
            body = b"".join([piece async for piece in pieces])
        return Reply(response.status, response.headers, body, response.charset)

    @property
    def ok(self) -> bool:
        return is_ok(self.status)

    def text(self) -> str:
        """The body as text; what is no text in its encoding is U+FFFD, and a byte order mark is left out."""
        return self.body.decode(_encoding(self.charset), "replace").removeprefix("\ufeff")


def is_ok(status: int) -> bool:
    return 200 <= status <= 299


def _encoding(charset: str | None) -> str:
    try:
        name = codecs.lookup(charset or "utf-8").name
    except (LookupError, ValueError):
        return "utf-8"
    return name if _CHARSETS.fullmatch(name) else "utf-8"


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("it waits")
