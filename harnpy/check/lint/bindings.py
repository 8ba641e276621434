"""Lint rules about names: those that nobody uses, that hide others, needn't vary, or that nobody declares.

Spec: 03 §15.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harnpy.check.findings import respelled
from harnpy.check.lint.discarded import meant_to_change
from harnpy.check.lint.subject import Remark, Subject, remark
from harnpy.check.lint.uses import Binding
from harnpy.formats.suggestions import STATIC_LIMIT, nearest
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Edit

# Variables, parameters and names of patterns that nobody uses, hide others or needn't vary. Spec: 03 §15.


_VARIABLES = frozenset({"let", "pattern", "param", "for", "catch", "match", "select"})


def unused_variable(subject: Subject) -> Iterator[Remark]:
    for binding in _unused(subject, "let"):
        start, end = subject.name_span(binding.place, binding.name)
        discarded = f"_{binding.name}"
        # One name that is declared twice in a block would be an error.
        free = discarded not in subject.mentioned and discarded not in subject.own_names
        yield Remark(
            start,
            end,
            f"variable `{binding.name}` is declared but never used",
            help=f"prefix it with an underscore: `{discarded}`",
            edits=[Edit(start, end, discarded)] if free and not binding.sharing else (),
        )


def unused_pattern_binding(subject: Subject) -> Iterator[Remark]:
    for binding in _unused(subject, "pattern", "for", "match"):
        if not isinstance(binding.place, ast.NamePattern) and not _left_out(binding):
            start, end = subject.name_span(binding.place, binding.name)
            yield Remark(start, end, f"pattern binding `{binding.name}` is never used")


def _left_out(binding: Binding) -> bool:
    """Return True if a name keeps a field out of the pattern's rest, or catches what no other arm matches."""
    node = binding.node
    pattern = (
        node.target if isinstance(node, ast.Let) else node.pattern if isinstance(node, ast.For) else None
    )
    if isinstance(pattern, ast.DictPattern):
        return pattern.rest is not None and binding.place is not pattern
    return isinstance(node, ast.Arm) and node.patterns == (binding.place,)


def unused_parameter(subject: Subject) -> Iterator[Remark]:
    for binding in _unused(subject, "param"):
        function = binding.owner
        if isinstance(binding.place, ast.Param) and isinstance(function, _FUNCTIONS):
            if isinstance(subject.parent(function), ast.ImplDecl) or not function.body.statements:
                # An interface may want it, or whoever calls.
                continue
            start, end = subject.name_span(binding.place, binding.name)
            yield Remark(
                start,
                end,
                f"parameter `{binding.name}` is declared but never used",
                help=f"prefix it with an underscore: `_{binding.name}`",
            )


_FUNCTIONS = (ast.FnDecl, ast.FnExpr, ast.Closure)


def mutable_never_reassigned(subject: Subject) -> Iterator[Remark]:
    bindings = [one for one in subject.uses.bindings if one.mutable and one.kind in ("let", "pattern")]
    meant = meant_to_change(subject)
    varying = {id(one.node) for one in bindings if one.writes or one.sharing or id(one) in meant}
    for binding in bindings:
        if id(binding.node) not in varying:
            at = binding.node.start
            start, end = subject.name_span(binding.place, binding.name)
            yield Remark(
                start,
                end,
                f"variable `{binding.name}` is declared as `var` but never reassigned",
                help="use `let`",
                edits=[Edit(at, at + len("var"), "let")],
            )


def shadow_variable(subject: Subject) -> Iterator[Remark]:
    for binding in subject.uses.bindings:
        before = binding.redeclares
        if before is not None and not (binding.mutable or before.mutable):
            text = f"cannot redeclare immutable variable `{binding.name}` in the same scope"
        elif binding.kind in _VARIABLES and binding.shadows and binding.shadows.kind in _VARIABLES:
            text = f"variable `{binding.name}` shadows a variable in an outer scope"
        else:
            continue
        start, end = subject.name_span(binding.place, binding.name)
        yield Remark(start, end, text)


def _unused(subject: Subject, *kinds: str) -> Iterator[Binding]:
    for binding in subject.uses.bindings:
        if binding.kind in kinds and not binding.used and not binding.name.startswith("_"):
            yield binding


# Imports, functions and types that nobody uses; functions that nobody declares. Spec: 03 §15.


#: Called like functions, and recognised before anything that a program declares (05 §2).
_TASK_CALLS = frozenset({"await", "cancel", "cancel_graceful", "is_cancelled"})
_BUNDLED = "std/"
_LINE_END = re.compile(r"\r?\n")
_BLANK_LINES = re.compile(r"(?:[ \t]*\r?\n)+")


def unused_import(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Import):
        unused = [name for name in node.names or () if name not in subject.mentioned]
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
    """Return what drops names from an import; all of its line, if no name is left."""
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
        named = node.attrs or name.startswith("_") or name in subject.texts
        if not (named or _offered(subject, node) or binding.used_outside(node)):
            yield Remark(*subject.name_span(node, name), f"function `{name}` is declared but never used")


def _offered(subject: Subject, node: ast.FnDecl | ast.ToolDecl | ast.SkillDecl) -> bool:
    """Return True if importing files or clients of a server may use a declaration (06 §2, 09 §11.4)."""
    if subject.parent(node) is not subject.program:
        return False
    if node.pub or subject.is_library or node.name in subject.consumed:
        return True
    return isinstance(node, ast.ToolDecl) and any(other.pub for other in subject.each(ast.FnDecl))


def unused_type(subject: Subject) -> Iterator[Remark]:
    known = subject.mentioned | subject.texts
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
        fix = respelled(call.start, name, near)
        edits = fix.edits if fix is not None else ()
        yield remark(call, f"function `{name}` is not defined", help=help_, edits=edits, safe=False)
