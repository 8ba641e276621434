"""Tables and other views for a terminal; plain text when stdout is not one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from harnpy.cli.console import one_line

_PIPE_WIDTH = 160
#: For output that other programs parse: no line is broken.
UNBROKEN = 100_000


def show(view: RenderableType, pipe_width: int = _PIPE_WIDTH) -> None:
    """Print a view; plain and wide when stdout is not a terminal."""
    if isinstance(view, Table) and pipe_width == UNBROKEN and not sys.stdout.isatty():
        # rich would take a minute for ten thousand rows.
        sys.stdout.writelines(line + "\n" for line in _plain_lines(view))
        return
    width = None if sys.stdout.isatty() else pipe_width
    console = Console(file=sys.stdout, width=width, highlight=False, markup=False)
    with console.capture() as shown:
        console.print(view)
    sys.stdout.writelines(line.rstrip() + "\n" for line in shown.get().splitlines())


def _plain_lines(view: Table) -> Iterator[str]:
    """The lines of a `table`, as rich prints them where there is room for all of it."""
    columns = []
    for column in view.columns:
        texts = [str(text) for text in (column.header, *column.cells)]
        width = max(map(cell_len, texts))
        spaces = [" " * (width - cell_len(text)) for text in texts]
        pairs = zip(texts, spaces, strict=True)
        right = column.justify == "right"
        columns.append([space + text if right else text + space for text, space in pairs])
    for row in zip(*columns, strict=True):
        yield "  ".join(row).rstrip()


def table(columns: Sequence[str], rows: Iterable[Sequence[Text]], numbers: Sequence[str] = ()) -> Table:
    """Return a table without lines; the columns in ``numbers`` are right-aligned."""
    view = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        view.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    for row in rows:
        view.add_row(*row)
    return view


def cell(text: str, width: int | None = None, style: str = "") -> Text:
    """A text on one line, at most ``width`` characters of it."""
    text = one_line(text)
    return Text(text if width is None or len(text) <= width else text[: width - 1] + "…", style)
