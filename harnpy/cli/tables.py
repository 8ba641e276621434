"""Tables and other views for a terminal; plain text when stdout is not one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from harnpy.cli.console import columns, fold, one_line
from harnpy.formats.visible import cut

_PIPE_WIDTH = 160
#: For output that other programs parse: no line is broken.
UNBROKEN = 100_000


def show(view: RenderableType, pipe_width: int = _PIPE_WIDTH) -> None:
    """Print a view; plain and wide when stdout is not a terminal."""
    if isinstance(view, Table) and pipe_width == UNBROKEN and not sys.stdout.isatty():
        # rich would take a minute for ten thousand rows.
        sys.stdout.writelines(line + "\n" for line in _plain_lines(view))
        return
    width = columns()
    if isinstance(view, Table) and width is not None and not _fits(view, width):
        sys.stdout.writelines(line + "\n" for line in _records(view, width))
        return
    console = Console(file=sys.stdout, width=width or pipe_width, highlight=False, markup=False)
    with console.capture() as shown:
        console.print(view)
    sys.stdout.writelines(line.rstrip() + "\n" for line in shown.get().splitlines())


def _texts(view: Table) -> list[list[str]]:
    """The texts of a table, column by column, each with its heading first."""
    return [[str(text) for text in (column.header, *column.cells)] for column in view.columns]


def _fits(view: Table, width: int) -> bool:
    """Return True if a table fits with all its headings and words whole; give its columns their widths."""
    texts = _texts(view)
    words = ([heading, *(word for text in rest for word in text.split())] for heading, *rest in texts)
    least = [max(map(cell_len, found)) for found in words]
    widths = [max(map(cell_len, found)) for found in texts]
    left = width - 2 * (len(widths) - 1)
    if sum(least) > left:
        return False
    while sum(widths) > left:
        slack = [wide - narrow for wide, narrow in zip(widths, least, strict=True)]
        widths[slack.index(max(slack))] -= 1
    for column, wide in zip(view.columns, widths, strict=True):
        column.width = wide
    return True


def _records(view: Table, width: int) -> Iterator[str]:
    """The lines of a table that is too wide for the terminal: a block for each row, a line for each cell.

    The first column that is no number heads the block. One without a name belongs to the column before it.
    """
    names, *rows = zip(*_texts(view), strict=True)
    heads = [at for at, column in enumerate(view.columns) if column.justify != "right"] or [0]
    label = max(map(cell_len, names))
    for row in rows:
        yield from fold(row[heads[0]], width)
        for at, name in enumerate(names):
            text = row[at].strip()
            while at + 1 < len(names) and not names[at + 1].strip():
                at += 1
                text = f"{text}  {row[at].strip()}".rstrip()
            if name.strip() and name != names[heads[0]] and text not in ("", "-"):
                yield from fold(f"  {name:{label}}  {text}", width, start=label + 4)


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
    """A text on one line, at most ``width`` columns of it."""
    text = one_line(text)
    return Text(text if width is None else cut(text, width), style)
