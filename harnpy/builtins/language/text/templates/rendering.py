"""One render: the text so far, where each piece came from, and what is being included."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.builtins.language.text.templates.nodes import Node
    from harnpy.vm.values.objects import Value
    from harnpy.world.files import Files

    Parse = Callable[[str, str], Sequence[Node]]
    Position = tuple[int, int]

_MOST_SHOWN = 80


class Rendering:
    """``root`` is the outermost template's directory, ``including`` the files entered and not left.

    ``files`` are the world's; ``parse`` makes the nodes of a text that lies in a directory, for what is
    included.
    """

    def __init__(self, files: Files, root: str, parse: Parse, records: bool) -> None:
        self.files = files
        self.root = root
        self.parse = parse
        self.including: list[str] = []
        self.spans: list[dict[str, Value]] = []
        self._pieces: list[str] = []
        self._size = 0
        self._records = records

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def write(self, text: str) -> None:
        self._pieces.append(text)
        if self._records:
            self._size += len(text.encode())

    def piece(self, kind: str, at: Position, text: str, shown: str | None = None) -> None:
        """Write a text that comes from one directive; ``shown`` is the value it stands for."""
        span = self.begin(kind, at)
        if shown is not None:
            short = shown[: _MOST_SHOWN - 1] + "…" if len(shown) > _MOST_SHOWN else shown
            span["bound_value"] = short
        self.write(text)
        self.end(span)

    def begin(self, kind: str, at: Position) -> dict[str, Value]:
        """A span that is listed before the spans inside it."""
        line, column = at
        span: dict[str, Value] = {
            "kind": kind,
            "template_line": line,
            "template_col": column,
            "output_start": self._size,
        }
        if self._records:
            self.spans.append(span)
        return span

    def end(self, span: dict[str, Value]) -> None:
        span["output_end"] = self._size
