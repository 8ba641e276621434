"""CSV text to rows of cells and back, quoted as RFC 4180 has it. Spec: 04 §11.5.

Not Python's `csv`: that has one limit on cells for the whole process, and says no line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from harnpy.faults import look

Row = list[str]

#: What reading a cell costs, in items.
_CELL = 16
_LINE_END = re.compile(r"\r\n?|\n")
_QUOTED = '(?:[^"]++|"")*+'


class CsvError(ValueError):
    """A text is no CSV, or rows can't be written as such."""


def delimiter_from(text: str) -> str:
    """Return the delimiter: the first character. Raises CsvError for one that can't be it."""
    first = text[:1]
    if not first or not first.isascii() or first in '"\r\n':
        raise CsvError(
            f"delimiter must begin with an ASCII character, no quote and no line end, got '{text}'"
        )
    return first


def read_rows(text: str, delimiter: str) -> Iterator[Row]:
    """Return the rows, of any lengths; blank lines are none. Raises CsvError on the way."""
    plain = rf'[^{re.escape(delimiter)}\r\n"][^{re.escape(delimiter)}\r\n]*+'
    cell = re.compile(rf'(?:"({_QUOTED})"|({plain}|))({re.escape(delimiter)}|\r\n?|\n|\Z)')
    at, row = int(text.startswith("\ufeff")), []
    while at < len(text):
        look(_CELL)
        found = cell.match(text, at)
        if found is None:
            raise CsvError(_problem(text, at))
        quoted, bare, end = found.groups()
        at = found.end()
        row.append(bare if quoted is None else quoted.replace('""', '"'))
        if end == delimiter and at < len(text):
            continue
        if end == delimiter:
            row.append("")
        if quoted is not None or len(row) > 1 or row[0]:
            yield row
        row = []


def _problem(text: str, at: int) -> str:
    """Return why no cell begins at a place: only a quoted one can go wrong."""
    closed = re.compile(f'"{_QUOTED}"').match(text, at)
    wrong = "has text after its closing quote" if closed else "is never closed"
    line = len(_LINE_END.findall(text, 0, at)) + 1
    return f"the quoted cell that begins in line {line} {wrong}"


def by_header(rows: Iterable[Row]) -> Iterator[dict[str, str]]:
    """Return the rows after the first, each by the names in the first; missing cells are empty.

    Cells without a name are left out; of equal names the last counts.
    """
    rows = iter(rows)
    names = next(rows, [])
    for row in rows:
        yield dict(zip(names, row + [""] * (len(names) - len(row)), strict=False))


def written_rows(rows: Iterable[Row], delimiter: str) -> Iterator[str]:
    """Return the line of each row; one without cells is blank. Raises CsvError when one differs in length."""
    special = re.compile(rf'[{re.escape(delimiter)}"\r\n\ufeff]')
    width = None
    for i, row in enumerate(rows):
        width = len(row) if width is None else width
        if len(row) != width:
            raise CsvError(f"CSV error: row {i} has {len(row)} cells, but row 0 has {width}")
        cells = ['"' + cell.replace('"', '""') + '"' if special.search(cell) else cell for cell in row]
        yield (delimiter.join(cells) if row != [""] else '""') + "\n"
