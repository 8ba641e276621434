"""One render of a template: the text so far, where each piece came from, and what is being included."""

from __future__ import annotations

from harnpy.text.templates.errors import TemplateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from harnpy.text.templates.operations import Operations
    from harnpy.world.files import Files

    Position = tuple[int, int]
    Scope = dict[str, Any]

_MOST_SHOWN = 80


class Node:
    """A part of a template, and where it stands.

    Scopes are never changed: a body that binds names gets a scope of its own.
    """

    __slots__ = ("at",)

    def __init__(self, at: Position) -> None:
        self.at = at

    def render(self, run: Rendering, scope: Scope) -> None:
        raise NotImplementedError

    def fail(self, message: str) -> TemplateError:
        return TemplateError(message, self.at)


class Rendering:
    """``root`` is the outermost template's directory, ``including`` the files entered and not left.

    ``parse`` makes the nodes of an included text that lies in a directory. With ``records`` the spans say
    which directive gave which bytes.
    """

    def __init__(
        self,
        files: Files,
        root: str,
        operations: Operations,
        parse: Callable[[str, str], Sequence[Node]],
        records: bool,
    ) -> None:
        self.files = files
        self.root = root
        self.operations = operations
        self.parse = parse
        self.including: list[str] = []
        self.spans: list[dict[str, Any]] = []
        self.written = 0
        self._pieces: list[str] = []
        self._size = 0
        self._records = records

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def write(self, text: str) -> None:
        self._pieces.append(text)
        self.written += len(text)
        if self._records:
            self._size += len(text.encode())

    def piece(self, kind: str, at: Position, text: str, shown: str | None = None) -> None:
        """Write the text of one directive; ``shown`` is the value it stands for."""
        span = self.begin(kind, at)
        if shown is not None:
            short = shown[: _MOST_SHOWN - 1] + "…" if len(shown) > _MOST_SHOWN else shown
            span["bound_value"] = short
        self.write(text)
        self.end(span)

    def begin(self, kind: str, at: Position) -> dict[str, Any]:
        """Begin a span; it is listed before the spans inside it."""
        line, column = at
        span: dict[str, Any] = {
            "kind": kind,
            "template_line": line,
            "template_col": column,
            "output_start": self._size,
        }
        if self._records:
            self.spans.append(span)
        return span

    def end(self, span: dict[str, Any]) -> None:
        span["output_end"] = self._size
