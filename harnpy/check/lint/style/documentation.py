"""Doc comments: where they are missing, and in which form they stand. Spec: 01 §1.1, §12, 03 §15."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import basename, splitext

from harnpy.check.lint.rule import Remark
from harnpy.check.lint.style.commentary import comments_above
from harnpy.check.lint.subject import Subject
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Edit

_DOCUMENTED = (
    ast.Pipeline,
    ast.FnDecl,
    ast.ToolDecl,
    ast.SkillDecl,
    ast.EvalPack,
    ast.EnumDecl,
    ast.StructDecl,
    ast.InterfaceDecl,
    ast.ImplDecl,
    ast.TypeDecl,
)
_FORMS = {
    frozenset(["line"]): "plain `//`",
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
    """What a line comment says, with the indentation behind its first blank."""
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
