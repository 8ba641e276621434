"""A whole file in canonical form: its items, what stands between them, its imports. Spec: 01 §12."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from harnpy.syntax import ast
from harnpy.syntax.ast import Node
from harnpy.syntax.comments import Comment
from harnpy.syntax.formatting.comment_lines import Note, is_heading, paragraphs
from harnpy.syntax.formatting.kept import check_kept, import_order, leading_imports
from harnpy.syntax.formatting.weave import note_of, woven
from harnpy.syntax.lexer import shebang_end
from harnpy.syntax.parser import parse
from harnpy.syntax.print_literals import HELD_BREAK
from harnpy.syntax.printer import LINE_WIDTH, Printer
from harnpy.syntax.written import Written

#: The width of a bar of dashes.
SEPARATOR_WIDTH = 80

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
                self.part(lines, item, number)
            lines += "\n\n".join(blocks).split("\n") if blocks else []
        return "".join(line + "\n" for line in lines)

    def part(self, lines: list[str], item: _Item, number: int) -> None:
        """A blank line before an item, but for the first of a file."""
        if lines and (number > 0 or (item.notes[0].after_blank if item.notes else item.parted)):
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
        """Whether a comment stands within an item, or behind it at the end of its last line."""
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
