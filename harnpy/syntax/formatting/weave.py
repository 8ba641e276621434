"""The comments within an item, put back between the lines of its printed text. Spec: 01 §12.

A comment keeps its neighbours: behind a token at the end of a line, on lines of its own before a token, or
between two tokens. Where the printed text has no such place, it goes to the nearest one that has: the end of
the line, or a line before it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from harnpy.syntax.comments import Comment
from harnpy.syntax.formatting.align import SEPARATORS, aligned
from harnpy.syntax.formatting.comment_lines import Note, own_lines
from harnpy.syntax.lexer import lex
from harnpy.syntax.written import CLOSERS, OPENERS, Written

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
        """Whether a line can stand before this one: no literal spans the two, and no ``\\`` joins them."""
        return line == 0 or self.may_end(line - 1)

    def may_end(self, line: int) -> bool:
        """Whether a comment can stand at the end of a line."""
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
