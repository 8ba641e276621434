"""Imports, functions and types that nobody uses; functions that nobody declares. Spec: 03 §15."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harnpy.check.lint.rule import Remark, remark
from harnpy.check.lint.subject import Subject
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Edit
from harnpy.text.spell import STATIC_LIMIT, nearest

#: Called like functions, and recognised before anything that a program declares (05 §2).
_TASK_CALLS = frozenset({"await", "cancel", "cancel_graceful", "is_cancelled"})
_BUNDLED = "std/"
_LINE_END = re.compile(r"\r?\n")
_BLANK_LINES = re.compile(r"(?:[ \t]*\r?\n)+")


def unused_import(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Import):
        unused = [name for name in node.names or () if name not in subject.uses.mentioned]
        if node.pub or not unused:
            continue
        edit = _without(subject, node, unused)
        # A module that isn't loaded any more does nothing any more: only the bundled ones have no effects.
        safe = len(unused) < len(node.names or ()) or node.path.startswith(_BUNDLED)
        for name in unused:
            start, end = subject.name_span(node, name)
            message = f"imported name `{name}` is never used"
            yield Remark(start, end, message, edits=[edit], safe=safe)


def _without(subject: Subject, node: ast.Import, unused: list[str]) -> Edit:
    """What drops names from an import; all of its line, if no name is left."""
    left = [name for name in node.names or () if name not in unused]
    if left:
        opening = subject.source.index("{", node.start)
        return Edit(opening, subject.source.index("}", opening) + 1, f"{{ {', '.join(left)} }}")
    # No file begins with the blank lines behind its imports.
    line_end = (_BLANK_LINES if node.start == 0 else _LINE_END).match(subject.source, node.end)
    return Edit(node.start, line_end.end() if line_end else node.end, "")


def unused_function(subject: Subject) -> Iterator[Remark]:
    for binding in subject.uses.bindings:
        node = binding.node
        if not isinstance(node, ast.FnDecl | ast.ToolDecl | ast.SkillDecl) or binding.place is not node:
            continue
        name = binding.name
        named = node.attrs or name.startswith("_") or name in subject.uses.texts
        if not (named or _offered(subject, node) or binding.used_outside(node)):
            yield Remark(*subject.name_span(node, name), f"function `{name}` is declared but never used")


def _offered(subject: Subject, node: ast.FnDecl | ast.ToolDecl | ast.SkillDecl) -> bool:
    """Whether others may use a declaration: importing files, and clients of a server (06 §2, 09 §11.4)."""
    if subject.parent(node) is not subject.program:
        return False
    if node.pub or subject.is_library or node.name in subject.consumed:
        return True
    return isinstance(node, ast.ToolDecl) and any(other.pub for other in subject.each(ast.FnDecl))


def unused_type(subject: Subject) -> Iterator[Remark]:
    known = subject.uses.mentioned | subject.uses.texts
    for node in subject.each(ast.StructDecl, ast.EnumDecl, ast.InterfaceDecl):
        name = node.name
        offered = subject.is_library or name in subject.consumed or getattr(node, "pub", False)
        if not (offered or node.attrs or name.startswith("_") or name in known):
            kind = {ast.StructDecl: "struct", ast.EnumDecl: "enum"}.get(type(node), "interface")
            text = f"{kind} `{name}` is declared but never referenced"
            yield Remark(*subject.name_span(node, name), text)


def undefined_function(subject: Subject) -> Iterator[Remark]:
    """Calls of what is nowhere, where it is known what the imports bring."""
    knowledge, imported = subject.knowledge, subject.imported
    imports = any(subject.each(ast.Import))
    if knowledge is None or (imports and (imported is None or not imported.complete)):
        return
    declared = {
        node.name
        for node in subject.each(
            ast.FnDecl, ast.ToolDecl, ast.Pipeline, ast.StructDecl, ast.EnumDecl, ast.SkillDecl
        )
    }
    known = declared | _TASK_CALLS
    if imported is not None:
        known |= {*imported.functions, *imported.names, *imported.types}
    candidates: list[str] = []
    for call in subject.uses.undefined:
        name = call.name
        if (
            name in known
            or knowledge.is_builtin(name)
            or knowledge.is_global(name)
            or knowledge.absence(name)
        ):
            continue
        candidates = candidates or sorted({*known, *knowledge.names()})
        near = nearest(name, candidates, limit=STATIC_LIMIT)
        help_ = f"did you mean `{near}`?" if near else f"check the spelling or import `{name}`"
        yield remark(call, f"function `{name}` is not defined", help=help_)
