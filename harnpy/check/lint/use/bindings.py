"""Variables, parameters and names of patterns that nobody uses, hide others or needn't vary. Spec: 03 §15."""

from __future__ import annotations

from collections.abc import Iterator

from harnpy.check.lint.rule import Remark
from harnpy.check.lint.subject import Subject
from harnpy.check.lint.uses import Binding
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Edit

_VARIABLES = frozenset({"let", "pattern", "param", "for", "catch", "match", "select"})


def unused_variable(subject: Subject) -> Iterator[Remark]:
    for binding in _unused(subject, "let"):
        start, end = subject.name_span(binding.place, binding.name)
        discarded = f"_{binding.name}"
        # One name that is declared twice in a block would be an error.
        free = discarded not in subject.uses.mentioned and discarded not in subject.own_names
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
    """Whether a name is there to be missing in the pattern's rest, or catches what no other arm matches."""
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
    varying = {id(one.node) for one in bindings if one.writes or one.sharing}
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
