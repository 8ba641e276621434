"""Lint rules about style: blank lines, commas, the order of imports, doc comments, names.

Spec: 01 §1.1, §12; 03 §15.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from posixpath import basename, splitext
from typing import Any

from harnpy.check.lint.idioms import Extent
from harnpy.check.lint.subject import Remark, Subject, remark
from harnpy.syntax import ast
from harnpy.syntax.ast import Node
from harnpy.syntax.comments import Comment
from harnpy.syntax.diagnostic import Edit
from harnpy.syntax.formatter import import_order as place
from harnpy.syntax.formatter import leading_imports
from harnpy.syntax.names import DECLARATIONS

# Which comments belong to an item, and what they say. Spec: 01 §1.1, §12.


def comments_between(subject: Subject, start: int, end: int) -> list[Comment]:
    """The comments that begin in ``source[start:end]``."""
    comments = subject.comments
    first = bisect_left(comments, start, key=_start)
    return list(comments[first : bisect_left(comments, end, lo=first, key=_start)])


def comments_above(subject: Subject, item: Node) -> list[Comment]:
    """The comments right above a top-level item, each on lines of its own, with no blank line between."""
    source, comments = subject.source, subject.comments
    found: list[Comment] = []
    below = item.start
    for i in range(bisect_left(comments, item.start, key=_start) - 1, -1, -1):
        comment = comments[i]
        gap = source[comment.end : below]
        own_line = not source[source.rfind("\n", 0, comment.start) + 1 : comment.start].strip()
        if gap.strip() or gap.count("\n") != 1 or not own_line:
            break
        found.append(comment)
        below = comment.start
    return found[::-1]


def _start(comment: Comment) -> int:
    return comment.start


# Doc comments: where they are missing, and in which form they stand. Spec: 01 §1.1, §12, 03 §15.


_DOCUMENTED = (ast.Pipeline, *DECLARATIONS)
_FORMS = {
    frozenset(["doc-line"]): "`///`",
    frozenset(["line", "doc-line"]): "adjacent `//` / `///`",
}
#: A doc comment that is longer stands on several lines.
_WIDTH = 100
#: Of a line of dashes, which divides a file, and of what is said to harnpy.
_NO_PROSE = ("----", "harnpy:")


def missing_harndoc(subject: Subject) -> Iterator[Remark]:
    for item in subject.program.items:
        if not isinstance(item, ast.FnDecl) or not item.pub:
            continue
        if all(comment.kind != "doc" for comment in comments_above(subject, item)):
            text = f"public function `{item.name}` is missing a `/** */` doc comment"
            yield Remark(*subject.name_span(item, item.name), text)


def legacy_doc_comment(subject: Subject) -> Iterator[Remark]:
    for item in subject.program.items:
        run = comments_above(subject, item) if isinstance(item, _DOCUMENTED) else []
        form = _FORMS.get(frozenset(comment.kind for comment in run))
        lines = [_line(subject.source[comment.start : comment.end]) for comment in run]
        if form is not None and not any(line.startswith(_NO_PROSE) for line in lines):
            start, end = run[0].start, run[-1].end
            closed = any(mark in line for line in lines for mark in ("/*", "*/"))
            yield Remark(
                start,
                end,
                f"{form} doc comment(s) above this item should use `/** */` form",
                edits=[] if closed else [Edit(start, end, doc_block(lines))],
            )


def _line(comment: str) -> str:
    """Return what a line comment says, with the indentation behind its first blank."""
    return comment.lstrip("/").removeprefix(" ").rstrip()


def doc_block(lines: list[str]) -> str:
    """A ``/** */`` comment of these lines."""
    short = f"/** {lines[0].strip()} */"
    if len(lines) == 1 and len(short) <= _WIDTH:
        return short
    return "\n".join(["/**", *(f" * {line}".rstrip() for line in lines), " */"])


def require_file_header(subject: Subject) -> Iterator[Remark]:
    source = subject.source
    start = source.find("\n") + 1 if source.startswith("#!") else 0
    first = next(iter(subject.comments), None)
    if first is None or first.kind != "doc" or source[start : first.start].strip():
        title = splitext(basename(subject.file))[0].replace("_", " ").replace("-", " ").strip("<> ")
        yield Remark(
            start,
            start,
            "file is missing a `/** */` header doc block",
            edits=[Edit(start, start, f"{doc_block([title.capitalize()])}\n\n")],
        )


# Blank lines, trailing commas and the order of imports, as the formatter has them. Spec: 01 §12, 03 §15.


_APART = (ast.Import, ast.Pipeline, ast.Override, *DECLARATIONS)
_WITH_PARAMS = (ast.FnDecl, ast.ToolDecl, ast.FnExpr, ast.MethodSig, ast.Variant)


def blank_line_between_items(subject: Subject) -> Iterator[Remark]:
    """Statements, imports and declarations of one line may follow each other; others stand by themselves."""
    for before, item in pairwise(subject.program.items):
        pair = (before, item)
        imports = all(isinstance(one, ast.Import) for one in pair)
        if imports or not any(_stands_apart(subject, one) for one in pair):
            continue
        start, end = _gap(subject, before, item)
        gap = subject.source[start:end]
        if gap.count("\n") < 2:
            at = start + gap.find("\n") + 1
            edits = [Edit(at, at, "\n")] if "\n" in gap else []
            text = "top-level items should be separated by a blank line"
            yield Remark(item.start, _line_end(subject.source, item), text, edits=edits)


def _stands_apart(subject: Subject, item: ast.Node) -> bool:
    return isinstance(item, ast.Import) or (isinstance(item, _APART) and "\n" in subject.text(item))


def _gap(subject: Subject, before: ast.Node, item: ast.Node) -> Extent:
    """From an item, with the comments on its last line, to what comes next: a comment or an item."""
    start = before.end
    for comment in comments_between(subject, before.end, item.start):
        if "\n" in subject.source[start : comment.start]:
            return start, comment.start
        start = comment.end
    return start, item.start


def _line_end(source: str, node: ast.Node) -> int:
    end = source.find("\n", node.start, node.end)
    return node.end if end < 0 else end


def trailing_comma(subject: Subject) -> Iterator[Remark]:
    lists = _Lists(subject)
    for items, end in lists.extents():
        last = lists.missing_after(items, end)
        if last is not None:
            edit = Edit(last[1], last[1], ",")
            yield Remark(*last, "multiline comma-separated list is missing a trailing comma", edits=[edit])


class _Lists:
    """The lists of a file by their tokens; those in interpolated strings have none, and are left alone."""

    def __init__(self, subject: Subject) -> None:
        tokens = subject.tokens
        kept = [i for i, kind in enumerate(tokens.kinds) if kind not in ("NL", "$END")]
        self.subject = subject
        self.kinds = [tokens.kinds[i] for i in kept]
        self.spans = [(tokens.starts[i], tokens.ends[i]) for i in kept]
        self.first = {start: i for i, (start, _) in enumerate(self.spans)}
        self.last = {end: i for i, (_, end) in enumerate(self.spans)}

    def extents(self) -> Iterator[tuple[Sequence[ast.Node], int]]:
        """Each list of two items or more, with the offset behind its closing bracket."""
        each = self.subject.each
        found: list[tuple[Sequence[ast.Node], int]] = []
        found += [(node.args, node.end) for node in each(ast.Call)]
        found += [(node.args, node.end) for node in each(ast.MethodCall)]
        found += [(node.items, node.end) for node in each(ast.List)]
        found += [(node.entries, node.end) for node in each(ast.Dict)]
        found += [(node.entries, node.end) for node in each(ast.StructLit)]
        # Nothing may follow a rest parameter.
        nodes = [node for kind in _WITH_PARAMS for node in each(kind)]
        params = [node.params for node in nodes if isinstance(node, _WITH_PARAMS)]
        found += [(some, self._params_end(some)) for some in params if some and not some[-1].rest]
        return ((items, end) for items, end in found if len(items) > 1)

    def _params_end(self, params: Sequence[ast.Param]) -> int:
        """The offset behind the parenthesis that closes parameters, 0 when there is no such token."""
        last = self.last.get(params[-1].end)
        if last is None:
            return 0
        at = last + 1 + (self.kinds[last + 1] == ",")
        return self.spans[at][1] if self.kinds[at] == ")" else 0

    def missing_after(self, items: Sequence[ast.Node], end: int) -> Extent | None:
        """The last token of a list whose bracket closes on a later line, where a comma should follow it."""
        close, begin = self.last.get(end), self.first.get(items[-1].start)
        if close is None or begin is None:
            return None
        begin -= 1
        while self.kinds[begin] == "(":
            begin -= 1
        last = self.spans[close - 1]
        later = "\n" in self.subject.source[last[1] : self.spans[close][0]]
        return last if later and self.kinds[close - 1] != "," and self.kinds[begin] == "," else None


def import_order(subject: Subject) -> Iterator[Remark]:
    first = subject.program.items[: leading_imports(subject.program)]
    leading = [item for item in first if isinstance(item, ast.Import)]
    misplaced = next((node for before, node in pairwise(leading) if place(node) < place(before)), None)
    if misplaced is not None:
        order = sorted(leading, key=place)
        # Loading a module of the program's own may do something, so those must keep their order.
        own = [[node for node in nodes if not node.path.startswith("std/")] for nodes in (leading, order)]
        yield remark(
            misplaced,
            "imports are not in canonical order (stdlib first, then alphabetical by path)",
            edits=_reordered(subject, leading, order),
            safe=own[0] == own[1],
        )


def _reordered(subject: Subject, imports: list[ast.Import], order: list[ast.Import]) -> list[Edit]:
    """Each import with the comments above it and behind it; what stands above the first stays there."""
    source = subject.source
    texts: dict[int, str] = {}
    at = imports[0].start
    for node in imports:
        line_end = source.find("\n", node.end)
        end = len(source) if line_end < 0 else line_end
        behind = comments_between(subject, node.end, end)
        rest = behind[0].start if behind else end
        if at > node.start or source[node.end : rest].strip() or (behind and behind[-1].end > end):
            return []
        texts[id(node)] = source[at:end].strip()
        at = end
    return [Edit(imports[0].start, at, "\n".join(texts[id(node)] for node in order))]


# How functions and types are written. Spec: 03 §15.


#: Where a word begins inside of `someHTTPName`.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


_WORDS: dict[type[Any], str] = {
    ast.FnDecl: "function",
    ast.ToolDecl: "function",
    ast.StructDecl: "struct",
    ast.EnumDecl: "enum",
    ast.InterfaceDecl: "interface",
    ast.TypeDecl: "type",
}


def naming_convention(subject: Subject) -> Iterator[Remark]:
    for node, kind, name in _named(subject):
        style, wanted = (
            ("snake_case", snake_case(name)) if kind == "function" else ("PascalCase", pascal_case(name))
        )
        if wanted != name:
            start, end = subject.name_span(node, name)
            yield Remark(start, end, f"{kind} `{name}` should use {style}", help=f"rename it to `{wanted}`")


def _named(subject: Subject) -> Iterator[tuple[ast.Node, str, str]]:
    for kind, word in _WORDS.items():
        yield from ((node, word, node.name) for node in subject.each(kind))


def snake_case(name: str) -> str:
    """``name`` in lower-case words; itself where it has no capital letter."""
    return name if name.lower() == name else _HUMP.sub("_", name).lower()


def pascal_case(name: str) -> str:
    """``name`` with a capital letter for each word, leading underscores kept."""
    bare = name.lstrip("_")
    words = "".join(word[:1].upper() + word[1:] for word in bare.split("_"))
    return name[: len(name) - len(bare)] + words
