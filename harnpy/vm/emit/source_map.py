"""Lines of generated Python, and where in the Harn source each of them is.

An expression that can fail is put on a line of its own: `mark` leaves a marker before it that becomes a line
break inside parentheses. `Locations` turns the number of a generated line into a place in the source, so a
Python traceback tells which expression failed, and a program that doesn't fail pays nothing. `listing` shows
both texts to people.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import CodeType

    from harnpy.syntax import ast

    #: The offsets of a node in the source: its start and its end.
    SourceRange = tuple[int, int]
    #: What a generated function is called: by Python's tools, and in Harn's own backtraces.
    Names = tuple[str, str]

_OPEN, _BETWEEN, _CLOSE = "\x01", "\x03", "\x02"


class Line:
    """One statement: its indentation level, its text with markers, the node that it stands for.

    Without text it is a line left free, and not rendered.
    """

    __slots__ = ("indent", "node", "text")

    def __init__(self, indent: int, text: str, node: ast.Node) -> None:
        self.indent = indent
        self.text = text
        self.node = node


def mark(text: str, node: ast.Node) -> str:
    """``text``, an expression, set on a line that stands for ``node``."""
    return f"({_OPEN}{node.start}{_BETWEEN}{node.end}{_CLOSE}{text})"


def is_marked(text: str) -> bool:
    """Return True if ``text`` has a part on a line of its own."""
    return _OPEN in text


def plain(line: Line) -> str:
    """The text of a line without markers."""
    head, *marked = line.text.split(_OPEN)
    return head + "".join(piece.partition(_CLOSE)[2] for piece in marked)


def render(lines: Iterable[Line]) -> tuple[str, list[SourceRange]]:
    """The program text, and what each of its lines stands for."""
    text: list[str] = []
    ranges: list[SourceRange] = []
    for line in lines:
        if not line.text:
            continue
        head, *marked = line.text.split(_OPEN)
        text.append(" " * line.indent + head)
        ranges.append((line.node.start, line.node.end))
        for piece in marked:
            place, _, rest = piece.partition(_CLOSE)
            start, _, end = place.partition(_BETWEEN)
            text.append(rest)
            ranges.append((int(start), int(end)))
    return "\n".join(text) + "\n", ranges


# Code that was compiled from generated text, made to say where it is in the Harn source.
#
# A code object has a table with the position of each instruction. It is written anew here: what stands on
# line N of the generated text is where that line's range of the source is, line, columns and end. Names
# become those of the Harn functions, the file that of the program. So whoever asks Python is told Harn:
# tracebacks, pdb, profilers, tracers, faulthandler.
#
# A line of the text stands for one range, so the table needs no more than a line's number. Moving the
# nodes of a parsed tree before it is compiled would come to the same, and takes twice as long as compiling.


#: Two kinds of entries in the table: a full position, and none. Format: CPython's Objects/locations.md.
_FULL, _NONE = 14, 15
#: How many code units an entry can speak of.
_MOST_UNITS = 8


class Locations:
    """The places of one unit's generated lines.

    ``names``: what the functions of the text are called; any other is a closure.
    """

    def __init__(
        self, source: str, file: str, ranges: Sequence[SourceRange], names: Mapping[str, Names]
    ) -> None:
        self._source = source
        self._file = file
        self._names = names
        self._ascii = source.isascii()
        positions = self._positions({offset for piece in ranges for offset in piece})
        # Several lines stand for one range, most steps from line to line are one of a few.
        places = {piece: _place(*piece, positions) for piece in set(ranges)}
        #: For each generated line its line in the source, and the rest of its place as it is written.
        self._places = [places[piece] for piece in ranges]
        self._steps: dict[int, bytes] = {}

    def locate(self, code: CodeType) -> CodeType:
        """``code``, and the functions in it, with the positions and names of the Harn source."""
        first, _ = self._places[code.co_firstlineno - 1]
        name, shown = self._names.get(code.co_name, ("<closure>", "<closure>"))
        constants = [self.locate(each) if type(each) is type(code) else each for each in code.co_consts]
        return code.replace(
            co_filename=self._file,
            co_name=name,
            co_qualname=shown,
            co_firstlineno=first,
            co_linetable=self._table(code, first),
            co_consts=tuple(constants),
        )

    def _table(self, code: CodeType, line: int) -> bytes:
        """The positions of the instructions of ``code``, which begins on ``line``."""
        table = bytearray()
        for start, end, generated in code.co_lines():
            kind, place = _NONE, b""
            if generated:
                before, (line, rest) = line, self._places[generated - 1]
                kind, place = _FULL, self._step(line - before) + rest
            units = (end - start) // 2
            while units > _MOST_UNITS:
                units -= _MOST_UNITS
                table.append(0x80 | kind << 3 | _MOST_UNITS - 1)
                table += place
                if generated:
                    place = b"\0" + rest
            table.append(0x80 | kind << 3 | units - 1)
            table += place
        return bytes(table)

    def _step(self, lines: int) -> bytes:
        """The way from one line to another, as it is written."""
        if lines not in self._steps:
            self._steps[lines] = _signed(lines)
        return self._steps[lines]

    def _positions(self, offsets: Iterable[int]) -> dict[int, tuple[int, int]]:
        """The line of each offset, from 1, and its column in bytes of UTF-8, from 0."""
        source = self._source
        found = {}
        line, start, after = 1, 0, source.find("\n") + 1
        for offset in sorted(offsets):
            at = min(offset, len(source))
            while 0 < after <= at:
                line, start, after = line + 1, after, source.find("\n", after) + 1
            column = at - start if self._ascii else len(source[start:at].encode("utf-8", "surrogatepass"))
            found[offset] = line, column
        return found


def _place(start: int, end: int, positions: Mapping[int, tuple[int, int]]) -> tuple[int, bytes]:
    line, column = positions[start]
    last, behind = positions[end] if end > start else (line, -1)
    return line, _unsigned(last - line) + _unsigned(column + 1) + _unsigned(behind + 1)


def _unsigned(number: int) -> bytes:
    """Six bits a byte, the lowest first; all but the last byte have bit 6 set."""
    out = bytearray()
    while number > 63:
        out.append(0x40 | number & 63)
        number >>= 6
    out.append(number)
    return bytes(out)


def _signed(number: int) -> bytes:
    return _unsigned(number << 1 if number >= 0 else -number << 1 | 1)


# Generated Python for people: with the lines of the program that it stands for.
#
# It is still Python. Each of the program's lines is a comment before what it becomes:
#
#     #  3 | println(total)
#         b_println_(vm, total_1)
#
# Places inside a line, which `writer` keeps apart, are put together again.


_INDENTATION = "    "


def listing(lines: Iterable[Line], source: str) -> str:
    """The text of ``lines``, indented as usual, with the lines of ``source``."""
    from harnpy.syntax.diagnostic import Lines

    program = Lines(source)
    width = len(str(program.line(len(source))))
    out: list[str] = []
    shown = 0
    for line in lines:
        if not line.text:
            continue
        at = program.line(line.node.start)
        if at != shown:
            out.append(f"# {at:>{width}} | {program.text(at) or ''}".rstrip())
            shown = at
        text = plain(line)
        statement = text.lstrip(" ")
        # A line may hold a suite of one statement, indented by a space.
        out.append(_INDENTATION * (line.indent + len(text) - len(statement)) + statement)
    return "\n".join(out) + "\n"
