"""The formatter: a source text in canonical form, with its comments. Spec: 01 §12.

`format_source` prints each item of a file from its tree (`harnpy.syntax.printer`), puts its comments back
between the lines, and checks that nothing was lost before anything is written.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from operator import itemgetter
from textwrap import dedent
from typing import Any, NamedTuple

from harnpy.syntax import ast
from harnpy.syntax.ast import Node
from harnpy.syntax.comments import CLOSERS, OPENERS, Comment, Kind, Written, comments_between, matched
from harnpy.syntax.diagnostic import Lines, SyntaxFault
from harnpy.syntax.lexer import RESERVED, Tokens, lex, shebang_end
from harnpy.syntax.names import DECLARATIONS
from harnpy.syntax.parser import parse
from harnpy.syntax.print_literals import HELD_BREAK, canonical_name
from harnpy.syntax.printer import LINE_WIDTH, Printer

# Comments as the lines that they are printed on. Spec: 01 §12.
#
# Documentation becomes a ``/** … */`` block, a bar of dashes at the top level gets its width, all else stays
# as it was written but for blanks at the end of a line.


_BAR = re.compile(r"//\s*-{4,}")
_TITLED_BAR = re.compile(r"//\s*-{4,}\s*([^-\s](?:.*?[^-\s])?)\s*-{4,}")
_BLOCK_MARKS = re.compile(r"/\*|\*/")


class Note(NamedTuple):
    """The text of a comment, and the column (from 0) at which it was written."""

    text: str
    kind: Kind
    column: int
    after_blank: bool = False


def tidy(note: Note, indent: int) -> str:
    """The comment's text, its further lines moved as far as its first."""
    first, *rest = [line.rstrip() for line in note.text.split("\n")]
    margin = " " * note.column
    if all(line.startswith(margin) for line in rest if line):
        rest = [" " * indent + line[note.column :] if line else "" for line in rest]
    return "\n".join([first, *rest])


def own_lines(notes: Sequence[Note], indent: int, line_width: int) -> list[str]:
    """The lines of comments that stand by themselves, indented."""
    lines: list[str] = []
    for run in _runs(notes):
        lines += _documentation(run, indent, line_width) or [
            " " * indent + tidy(note, indent) for note in run
        ]
    return lines


def _runs(notes: Sequence[Note]) -> Iterator[Sequence[Note]]:
    """A run of ``///`` lines is one comment."""
    start = 0
    for at in range(1, len(notes) + 1):
        joined = at < len(notes) and notes[at].kind == notes[at - 1].kind == "doc-line"
        if not joined:
            yield notes[start:at]
            start = at


def _documentation(run: Sequence[Note], indent: int, line_width: int) -> list[str]:
    """The ``/** … */`` block of a run of documentation; nothing for any other comment."""
    if run[0].kind == "doc-line":
        lines = [note.text[3:].removeprefix(" ").rstrip() for note in run]
    elif run[0].kind == "doc":
        lines = _block_text(run[0].text)
    else:
        return []
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    if run[0].kind == "doc-line" and any(map(_BLOCK_MARKS.search, lines)):
        # In a block these would open or close another.
        return []
    margin = " " * indent
    short = f"{margin}/** {' '.join(lines)} */"
    if len(lines) <= 1 and len(short) <= line_width:
        return [short if lines else f"{margin}/** */"]
    return [f"{margin}/**", *(f"{margin} * {line}".rstrip() for line in lines), f"{margin} */"]


def _block_text(text: str) -> list[str]:
    """The lines of a ``/** … */`` without the stars that hold them together."""
    first, *rest = [line.rstrip() for line in text[3:-2].rstrip().split("\n")]
    if all(line.lstrip().startswith("*") for line in rest if line):
        rest = [line.lstrip().removeprefix("*").removeprefix(" ") for line in rest]
    else:
        rest = dedent("\n".join(rest)).split("\n")
    return [first.strip(), *rest]


def paragraphs(notes: Sequence[Note], line_width: int, separator_width: int) -> list[list[str]]:
    """The lines of comments at the top level, parted where blank lines belong: as written, and at bars."""
    found: list[list[str]] = []
    plain: list[Note] = []

    def flush() -> None:
        if plain:
            found.append(own_lines(plain, 0, line_width))
            plain.clear()

    at = 0
    while at < len(notes):
        title, size = _heading(notes[at : at + 3])
        if size:
            flush()
            bar = "// " + "-" * max(separator_width - 3, 4)
            found.append([bar, f"// {title}", bar] if title else [bar])
        else:
            if notes[at].after_blank:
                flush()
            plain.append(notes[at])
        at += size or 1
    flush()
    return found


def is_heading(paragraph: Sequence[str]) -> bool:
    """Return True if a paragraph is a bar, which has a blank line behind it whatever follows."""
    return bool(_BAR.fullmatch(paragraph[-1]))


def _heading(notes: Sequence[Note]) -> tuple[str, int]:
    """The title of a heading that the comments begin with, and of how many it is made; 0: there is none."""
    texts = [note.text.rstrip() if note.kind == "line" else "" for note in notes]
    titled = _TITLED_BAR.fullmatch(texts[0])
    if titled:
        return titled[1], 1
    if not _BAR.fullmatch(texts[0]):
        return "", 0
    together = len(notes) == 3 and not notes[1].after_blank and not notes[2].after_blank
    if together and texts[1] and not _BAR.fullmatch(texts[1]) and _BAR.fullmatch(texts[2]):
        title = texts[1].removeprefix("//").strip()
        if title and not _TITLED_BAR.fullmatch(texts[1]):
            return title, 3
    return "", 1


# Which token of the printed text is which token of the source. Spec: 01 §12.
#
# The two differ in little: separators, parentheses, quotes around keys, how a type is spelled. Where they do,
# a short look ahead finds where they go on alike.


#: Tokens that a text has or has not without being another.
SEPARATORS = frozenset(["NL", ",", ";", "$END"])
_PASSED = SEPARATORS.union(CLOSERS)
#: How many tokens in common to look for, and how far ahead, in tokens of both texts together.
_REACHES = ((3, 4), (2, 7), (1, 16))


def aligned(source: Written, numbers: Sequence[int], printed: Tokens) -> dict[int, int]:
    """For tokens ``numbers`` of the source, the number of the same one in the printed text, if any."""
    pairs = _alike(source.tokens, numbers, printed)
    # Brackets close where they open.
    closing = matched(printed)
    for opening in [number for number in pairs if number in source.closing]:
        mate = closing.get(pairs[opening])
        if mate is not None:
            pairs[source.closing[opening]] = mate
    return pairs


def _alike(source: Tokens, numbers: Sequence[int], printed: Tokens) -> dict[int, int]:
    """The same without closing brackets."""
    mine = [number for number in numbers if source.kinds[number] not in _PASSED]
    theirs = [number for number, kind in enumerate(printed.kinds) if kind not in _PASSED]
    left = [_word(source, number) for number in mine]
    right = [_word(printed, number) for number in theirs]
    pairs: dict[int, int] = {}
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] != right[j]:
            skip = _next_common(left, i, right, j)
            if skip is None:
                i, j = i + 1, j + 1
                continue
            i, j = i + skip[0], j + skip[1]
        pairs[mine[i]] = theirs[j]
        i, j = i + 1, j + 1
    return pairs


def _word(tokens: Tokens, number: int) -> str:
    value = tokens.values[number]
    return value if isinstance(value, str) else tokens.kinds[number]


def _next_common(left: Sequence[str], i: int, right: Sequence[str], j: int) -> tuple[int, int] | None:
    """Return how many tokens to skip on either side: few for the sake of several in common, more for one."""
    for alike, reach in _REACHES:
        for skipped in range(1, reach):
            for first in range(skipped + 1):
                mine, other = i + first, j + skipped - first
                if left[mine : mine + alike] == right[other : other + alike] != []:
                    return first, skipped - first
    return None


# The comments within an item, put back between the lines of its printed text. Spec: 01 §12.
#
# A comment keeps its neighbours: behind a token at the end of a line, on lines of its own before a token, or
# between two tokens. Where the printed text has no such place, it goes to the nearest one that has: the end
# of the line, or a line before it.


#: Operators that begin a line in a printed text: what is said behind them is said of the line before.
_LEADING = frozenset("|> || && == != < > <= >= ?? + - * / % ** in".split())
#: Words behind the brace that closes a block: what is said behind the brace is said of the block.
_JOINING = ("else", "catch", "finally")
_TIGHT_BEFORE = frozenset([",", ")", "]", ".", "?.", ":", ";"])


class Woven(NamedTuple):
    """The text of an item with its comments, and those that have to stand before it.

    ``moved`` says that a comment has another neighbour now: what was broken for its sake need not be.
    """

    before: list[Note]
    text: str
    moved: bool


def woven(
    text: str, written: Written, numbers: Sequence[int], comments: Sequence[Comment], line_width: int
) -> Woven:
    """The comments put into the printed text of an item.

    ``numbers`` are the item's tokens in the source, ``comments`` lie between or behind them.
    """
    weaver = _Weaver(text, written, numbers)
    for comment in comments:
        weaver.place(comment)
    return weaver.result(line_width)


def note_of(written: Written, comment: Comment, after_blank: bool = False) -> Note:
    text = written.source[comment.start : comment.end]
    column = comment.start - written.source.rfind("\n", 0, comment.start) - 1
    return Note(text, comment.kind, column, after_blank)


class _Weaver:
    def __init__(self, text: str, written: Written, numbers: Sequence[int]) -> None:
        self.text = text
        self.written = written
        self.numbers = [number for number in numbers if written.tokens.kinds[number] not in SEPARATORS]
        self.printed = lex(text, 0, len(text))
        self.pairs = aligned(written, self.numbers, self.printed)
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines[:-1]:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.before: defaultdict[int, list[tuple[int, Note]]] = defaultdict(list)
        self.behind: defaultdict[int, list[Note]] = defaultdict(list)
        self.moved = False
        self.within: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)

    # Where a comment goes

    def place(self, comment: Comment) -> None:
        note = note_of(self.written, comment)
        if not self.written.ends_line(comment):
            self.place_within(note, comment)
        elif self.written.begins_line(comment):
            self.place_before(note, comment)
        else:
            self.place_behind(note, comment)

    def place_behind(self, note: Note, comment: Comment) -> None:
        """At the end of the line of the token before it."""
        token = self.before_comment(comment)
        if token is None:
            self.moved = True
            self.before[0].append((0, note))
            return
        if self.begins_line(token) and (
            self.printed.kinds[token] in _LEADING or self.printed.kinds[token + 1] in _JOINING
        ):
            token = self.previous(token)
        line = self.line_of(self.printed.ends[token] - 1)
        while not self.may_end(line):
            line += 1
        last = bisect_left(self.printed.starts, self.starts[line] + len(self.lines[line])) - 1
        last -= self.printed.kinds[last] == ","
        self.moved = self.moved or last != token
        self.behind[line].append(note)

    def place_before(self, note: Note, comment: Comment) -> None:
        """On lines before that of the token behind it."""
        token = self.behind_comment(comment)
        if token is None:
            self.moved = True
            self.place_behind(note, comment)
            return
        self.moved = self.moved or not self.begins_line(token)
        line = self.line_of(self.printed.starts[token])
        if (
            self.printed.kinds[token] in _JOINING
            and not self.begins_line(token)
            and line + 1 < len(self.lines)
        ):
            # `} else {`: the comment speaks of what follows.
            line += 1
            while not self.may_begin(line):
                line += 1
        self.add_before(line, note)

    def add_before(self, line: int, note: Note) -> None:
        while not self.may_begin(line):
            self.moved = True
            line -= 1
        text = self.lines[line]
        indent = len(text) - len(text.lstrip())
        self.before[line].append((indent + 2 * text.lstrip().startswith(CLOSERS), note))

    def place_within(self, note: Note, comment: Comment) -> None:
        """Before the token behind it, on the same line; before a comma, behind the token before it."""
        following = self.written.at(comment.end)
        behind = self.pairs.get(following)
        before = self.before_comment(comment)
        text = _stripped(note)
        if behind is not None and self.printed.kinds[behind] in CLOSERS and self.begins_line(behind):
            empty = (
                before is not None
                and before == self.previous(behind)
                and self.printed.kinds[before] in OPENERS
            )
            (self.place_before if empty else self.place_behind)(note, comment)
        elif behind is not None:
            at = self.printed.starts[behind]
            tight = at > 0 and self.text[at - 1] not in " \n([{"
            kind = self.printed.kinds[behind]
            loose = kind not in _TIGHT_BEFORE and not (tight and kind == "}")
            self.within[self.line_of(at)].append((at, f"{' ' * tight}{text}{' ' * loose}"))
        elif before is not None:
            self.moved = self.moved or self.written.tokens.kinds[following] != ","
            at = self.printed.ends[before]
            self.within[self.line_of(at - 1)].append((at, f" {text}"))
        else:
            self.moved = True
            self.within[0].append((0, f"{text} "))

    # Tokens of the printed text

    def index_behind(self, comment: Comment) -> int:
        return bisect_left(self.numbers, self.written.at(comment.end))

    def before_comment(self, comment: Comment) -> int | None:
        """The last token before it that is in both texts."""
        return self.first_common(range(self.index_behind(comment) - 1, -1, -1))

    def behind_comment(self, comment: Comment) -> int | None:
        return self.first_common(range(self.index_behind(comment), len(self.numbers)))

    def first_common(self, indexes: Iterable[int]) -> int | None:
        for index in indexes:
            if self.numbers[index] in self.pairs:
                return self.pairs[self.numbers[index]]
            self.moved = True
        return None

    def previous(self, token: int) -> int:
        token -= 1
        while token > 0 and self.printed.kinds[token] in SEPARATORS:
            token -= 1
        return max(token, 0)

    def begins_line(self, token: int) -> bool:
        start = self.printed.starts[token]
        return not self.text[self.starts[self.line_of(start)] : start].strip()

    # Lines of the printed text

    def line_of(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def may_begin(self, line: int) -> bool:
        """Return True if a line can stand before this one: no literal spans both, no ``\\`` joins them."""
        return line == 0 or self.may_end(line - 1)

    def may_end(self, line: int) -> bool:
        """Return True if a comment can stand at the end of a line."""
        if line + 1 == len(self.lines):
            return True
        end = self.starts[line] + len(self.lines[line])
        token = bisect_right(self.printed.starts, end) - 1
        spans = self.printed.kinds[token] != "NL" and self.printed.ends[token] > end
        return not spans and not self.lines[line].endswith("\\")

    # The text

    def result(self, line_width: int) -> Woven:
        for line in list(self.behind):
            self.keep_last(line)
        hoisted = [note for _, note in self.before.pop(0, [])]
        found: list[str] = []
        for line in range(len(self.lines)):
            found += self.own_lines(self.before.get(line, []), line_width)
            found.append(" ".join([self.with_inner(line), *map(_stripped, self.behind.get(line, []))]))
        return Woven(hoisted, "\n".join(found), self.moved)

    def keep_last(self, line: int) -> None:
        """Nothing can stand behind what ends a line or has several: such comments go before the line."""
        notes = self.behind[line]
        early = max((number for number, note in enumerate(notes[:-1], 1) if _breaks_line(note)), default=0)
        for note in notes[:early]:
            self.add_before(line, note)
        self.moved = self.moved or early > 0
        self.behind[line] = notes[early:]

    def own_lines(self, notes: Sequence[tuple[int, Note]], line_width: int) -> list[str]:
        # All that stand before one line have one indentation.
        return own_lines([note for _, note in notes], notes[0][0], line_width) if notes else []

    def with_inner(self, line: int) -> str:
        """A line with the comments between its tokens."""
        at = self.starts[line]
        end = at + len(self.lines[line])
        pieces = []
        for offset, comment in sorted(self.within.get(line, []), key=itemgetter(0)):
            pieces += [self.text[at:offset], comment]
            at = offset
        return "".join([*pieces, self.text[at:end]])


def _breaks_line(note: Note) -> bool:
    return note.kind in ("line", "doc-line") or "\n" in note.text


def _stripped(note: Note) -> str:
    """The text of a comment that shares its first line with code."""
    return "\n".join(line.rstrip() for line in note.text.split("\n"))


# The safety net of the formatter: its output is the same program, with the same comments. Spec: 01 §12.


_SAYING = RESERVED | {"IDENT", "STRING", "RAW_STRING", "INT", "FLOAT", "DURATION"}
#: Types with two names, and the word of an empty list of options.
_RENAMED = frozenset(["generator", "stream", "true", "false", "with"])
#: Marks of comments and dashes of bars, which formatting may change.
_MARKS = re.compile(r"[-*/\s]+")


class NotKept(Exception):
    """Formatting would change the program or lose a comment: a mistake of the formatter."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(
            f"internal error: formatting would change {what} at line {line}; the text stays as it is"
        )
        self.line = line


def check_kept(written: Written, program: ast.Program, text: str) -> None:
    """Raises `NotKept` unless ``text`` is ``program`` again, with all words and comments of its source."""
    source, comments = written.source, written.all_comments
    lines = Lines(source)
    try:
        printed = parse(text)
    except SyntaxFault as fault:
        raise NotKept(1, "the syntax") from fault
    differs = _difference(program, _in_order(program), _in_order(printed))
    if differs is not None:
        raise NotKept(lines.line(differs.start), "the program")
    tokens = lex(text, 0, len(text))
    dropped = _said(written.tokens) - _said(tokens) - _unsaid(written.tokens)
    if dropped:
        at = next(at for at, value in enumerate(written.tokens.values) if value in dropped)
        raise NotKept(lines.line(written.tokens.starts[at]), "what is said")
    before, after = _words(source, comments), _words(text, comments_between(tokens, shebang_end(text)))
    if before != after:
        changed = (before - after) + (after - before)
        places = (comment.start for comment in comments if changed.keys() & _words(source, [comment]).keys())
        raise NotKept(lines.line(next(places, 0)), "a comment")


def leading_imports(program: ast.Program) -> int:
    """Return how many items at the beginning are imports."""
    return len(list(takewhile(lambda item: isinstance(item, ast.Import), program.items)))


def import_order(node: ast.Node | None) -> tuple[bool, str, bool]:
    """The modules that come with harnpy first, then by path; all of a module before names of it."""
    assert isinstance(node, ast.Import)
    return not node.path.startswith("std/"), node.path, node.names is not None


def _in_order(program: ast.Program) -> tuple[Node, ...]:
    """The items, the leading imports as they are printed."""
    count = leading_imports(program)
    return (*sorted(program.items[:count], key=import_order), *program.items[count:])


def _difference(program: Node, left: Any, right: Any) -> Node | None:
    """The innermost node of ``left`` that is not the same in ``right``. Without recursion: trees are deep."""
    pairs: list[tuple[Any, Any, Node]] = [(left, right, program)]
    while pairs:
        mine, other, around = pairs.pop()
        if isinstance(mine, Node):
            if type(mine) is not type(other):
                return mine
            pairs += ((*parts, mine) for parts in zip(_fields(mine), _fields(other), strict=True))
        elif isinstance(mine, tuple) and isinstance(other, tuple) and len(mine) == len(other):
            pairs += ((*parts, around) for parts in zip(mine, other, strict=True))
        elif mine != other:
            return around
    return None


def _fields(node: Node) -> Iterator[Any]:
    if isinstance(node, ast.TypeName):
        yield canonical_name(node.name)
        yield node.args
    elif isinstance(node, ast.Import):
        yield from (node.path, node.pub, None if node.names is None else tuple(sorted(node.names)))
    else:
        yield from (getattr(node, name) for name in node.__slots__)


def _said(tokens: Tokens) -> Counter[object]:
    """The names, words and literals of a text; the tree alone would not miss a case that another replaces."""
    return Counter(
        value
        for kind, value in zip(tokens.kinds, tokens.values, strict=True)
        if kind in _SAYING or kind[0] == "~"
    )


def _unsaid(tokens: Tokens) -> Counter[object]:
    """Return what need not be said again: the second name of ``{a: a}`` in patterns, other names of types."""
    names = zip(tokens.values, tokens.values[1:], tokens.values[2:], strict=False)
    again = Counter(name for name, colon, other in names if colon == ":" and name == other)
    said = _said(tokens)
    return again + Counter({word: said[word] for word in _RENAMED})


def _words(source: str, comments: Iterable[Comment]) -> Counter[str]:
    return Counter(
        word for comment in comments for word in _MARKS.split(source[comment.start : comment.end]) if word
    )


# A whole file in canonical form: its items, what stands between them, its imports. Spec: 01 §12.


#: The width of a bar of dashes.
SEPARATOR_WIDTH = 80


class Widths(NamedTuple):
    """The settings of the formatter, in columns."""

    line_width: int = LINE_WIDTH
    separator_width: int = SEPARATOR_WIDTH

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Widths:
        """Return what `[fmt]` of a manifest says. Raises ValueError for what is no width."""
        found = {key: table[key] for key in cls._fields if key in table}
        for key, value in found.items():
            if type(value) is not int or value < 1:
                raise ValueError(f"[fmt] of harn.toml: `{key}` must be an integer above 0, not {value!r}")
        return cls(**found)


#: A comment that finds another place may let its old one be joined: so often, at most, is there more to do.
_PASSES = 4
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_LONE_FEED = re.compile(r"(?<!\r)\n")


def format_source(
    source: str,
    *,
    line_width: int = LINE_WIDTH,
    separator_width: int = SEPARATOR_WIDTH,
    file: str = "<script>",
) -> str:
    """The canonical text of a program; its comments are kept, and so is a CRLF that ends all of its lines.

    Raises `SyntaxFault` for what is no program, and `NotKept` rather than lose anything.
    """
    text = source
    for _ in range(_PASSES):
        program = parse(text, file=file)
        document = _Document(text, program, line_width, separator_width)
        text = document.text()
        check_kept(document.written, program, text)
        if not document.moved:
            break
    if "\r\n" in source and not _LONE_FEED.search(source):
        text = _LONE_FEED.sub("\r\n", text)
    return text


class _Item:
    """A printed item with the comments that stand before it; ``parted`` from the last by a blank line."""

    def __init__(self, node: Node | None, notes: list[Note], text: str, parted: bool) -> None:
        self.node = node
        self.notes = notes
        self.text = text
        self.parted = parted

    def part_from_notes(self, parted: bool) -> None:
        """Put a blank line, if any, before the comments rather than behind them."""
        if self.notes:
            self.notes = [self.notes[0]._replace(after_blank=parted), *self.notes[1:]]
        self.parted = parted and not self.notes


def _is_statement(item: _Item) -> bool:
    """Return True for a statement, or a declaration of one line, without a heading above it."""
    if isinstance(item.node, ast.Import) or any("----" in note.text for note in item.notes):
        return False
    return not isinstance(item.node, (ast.Pipeline, ast.Override, *DECLARATIONS)) or "\n" not in item.text


class _Document:
    def __init__(self, source: str, program: ast.Program, line_width: int, separator_width: int) -> None:
        self.source = source
        self.program = program
        self.line_width = line_width
        self.separator_width = separator_width
        self.written = Written(source)
        #: Whether a comment has another place now.
        self.moved = False
        self.comment_starts = [comment.start for comment in self.written.comments]
        self.printer = Printer(line_width, self.written)

    def text(self) -> str:
        shebang = shebang_end(self.source)
        items = self.items(shebang)
        imports = items[: leading_imports(self.program)]
        items[: len(imports)] = _sorted_imports(imports)
        lines = [self.source[:shebang].rstrip()] if shebang else []
        for number, item in enumerate(items):
            blocks = self.blocks(item)
            if number >= len(imports) or number == 0 or len(blocks) > 1:
                self.part(lines, item, items[number - 1] if number else None)
            lines += "\n\n".join(blocks).split("\n") if blocks else []
        return "".join(line + "\n" for line in lines)

    def part(self, lines: list[str], item: _Item, last: _Item | None) -> None:
        """A blank line before an item but the first; between statements only where there was one."""
        written = item.notes[0].after_blank if item.notes else item.parted
        stands_apart = last is not None and not (_is_statement(item) and _is_statement(last))
        if lines and (written or stands_apart):
            lines.append("")

    def blocks(self, item: _Item) -> list[str]:
        """The texts that blank lines part: comments, and the item with those that belong to it."""
        notes = ["\n".join(lines) for lines in paragraphs(item.notes, self.line_width, self.separator_width)]
        if notes and not item.parted and item.text and not is_heading(notes[-1].split("\n")):
            return [*notes[:-1], f"{notes[-1]}\n{item.text}"]
        return [*notes, item.text] if item.text else notes

    # Items

    def items(self, start: int) -> list[_Item]:
        """The items in the order of the source, and one without text for the comments behind the last."""
        found = []
        comments = self.written.comments
        at = 0
        for node, following in zip(self.program.items, [*self.program.items[1:], None], strict=False):
            inside = bisect_left(self.comment_starts, node.start, at)
            end = inside
            while end < len(comments) and self.belongs(comments[end], node, following):
                end += 1
            hoisted, text = self.printed(node, comments[inside:end])
            notes, parted = self.notes(start, comments[at:inside], node.start)
            item = _Item(node, hoisted, text, parted)
            item.part_from_notes(parted)
            item.notes = notes + item.notes
            found.append(item)
            at, start = end, max([node.end, *(comment.end for comment in comments[inside:end])])
        notes, parted = self.notes(start, comments[at:], len(self.source))
        return [*found, _Item(None, notes, "", parted)] if notes else found

    def belongs(self, comment: Comment, node: Node, following: Node | None) -> bool:
        """Return True if a comment stands within an item, or behind it at the end of its last line."""
        if comment.start < node.end:
            return True
        if following is not None and comment.start > following.start:
            return False
        same_line = self.source.find("\n", node.end, comment.start) < 0
        return same_line and self.written.ends_line(comment)

    def notes(self, start: int, comments: Sequence[Comment], end: int) -> tuple[list[Note], bool]:
        """The comments between two items, and whether a blank line stands before the second."""
        notes = []
        for comment in comments:
            notes.append(note_of(self.written, comment, self.blank(start, comment.start)))
            start = comment.end
        return notes, self.blank(start, end)

    def blank(self, start: int, end: int) -> bool:
        return _BLANK_LINE.search(self.source, start, end) is not None

    def printed(self, node: Node, comments: Sequence[Comment]) -> tuple[list[Note], str]:
        if isinstance(node, ast.Import):
            node = self.with_sorted_names(node)
        text = self.printer.statement(node).replace(HELD_BREAK, "\n")
        if not comments:
            return [], text
        numbers = range(self.written.at(node.start), self.written.at(node.end))
        result = woven(text, self.written, numbers, comments, self.line_width)
        self.moved = self.moved or result.moved
        return result.before, result.text

    # Imports

    def with_sorted_names(self, node: ast.Import) -> ast.Import:
        """Comments speak of the names around them, so names with comments stay where they are."""
        start, end = self.written.brackets(node.start, "{")
        comments = self.written.comments
        after = bisect_left(self.comment_starts, start)
        if node.names is None or (after < len(comments) and comments[after].start < end):
            return node
        return ast.Import(node.start, node.end, tuple(sorted(node.names)), node.path, node.pub)


def _sorted_imports(imports: Sequence[_Item]) -> list[_Item]:
    """In order, without blank lines between them; what stands before the first begins the file."""
    if not imports:
        return []
    header, parted = imports[0].notes, imports[0].parted
    imports[0].notes = []
    ordered = sorted(imports, key=lambda item: import_order(item.node))
    for item in ordered:
        item.notes = [note._replace(after_blank=False) for note in item.notes]
        item.parted = False
    ordered[0].part_from_notes(parted)
    ordered[0].notes = [*header, *ordered[0].notes]
    return ordered
