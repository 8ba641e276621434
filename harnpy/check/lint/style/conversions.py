"""Conversions that do nothing, or are missing. Spec: 03 §15."""

from __future__ import annotations

from collections.abc import Iterator

from harnpy.check.lint.rule import Remark, remark
from harnpy.check.lint.style.operands import may_comment
from harnpy.check.lint.subject import Subject
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Edit

#: By builtin, the literals that it gives back as they are, and what those are called.
_CASTS: dict[str, tuple[tuple[type[ast.Node], ...], str]] = {
    "to_string": ((ast.Str, ast.Interp), "a string"),
    "to_int": ((ast.Int,), "an int"),
    "to_float": ((ast.Float,), "a float"),
    "to_list": ((ast.List,), "a list"),
    "to_dict": ((ast.Dict,), "a dict"),
}
#: Methods of an iterator that give another one.
_LAZY = frozenset(
    "iter map filter flat_map take skip take_while skip_while zip enumerate chain chunks windows".split()
)
_COLLECTIONS = ("list", "set", "dict")
#: Behind a number, these would read as a part of it or of something else.
_POSTFIXES = (".", "?", "[", "(")
_FUNCTIONS = (ast.FnDecl, ast.FnExpr, ast.ToolDecl, ast.Pipeline, ast.Closure, ast.Override, ast.Spawn)


def unnecessary_cast(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Call):
        if node.name not in _CASTS or len(node.args) != 1 or not subject.means_builtin(node):
            continue
        literals, kind = _CASTS[node.name]
        argument = node.args[0]
        value = argument.operand if isinstance(argument, ast.Unary) and argument.op == "-" else argument
        if isinstance(value, literals) or (isinstance(argument, ast.Call) and argument.name == node.name):
            text = f"`{node.name}` is a no-op here — its argument is already {kind}"
            yield remark(node, text, edits=_unwrapped(subject, node, argument))


def _unwrapped(subject: Subject, node: ast.Call, argument: ast.Node) -> list[Edit]:
    number = not isinstance(argument, ast.Call) and node.name in ("to_int", "to_float")
    if may_comment(subject, (node.start, argument.start), (argument.end, node.end)):
        return []
    if number and subject.source.startswith(_POSTFIXES, node.end):
        return []
    return [Edit(node.start, node.end, subject.text(argument))]


def eager_collection_conversion(subject: Subject) -> Iterator[Remark]:
    for type, value in _slots(subject):
        if isinstance(type, ast.TypeName) and type.name in _COLLECTIONS and _is_iterator(value):
            yield remark(
                value,
                f"expression is an iterator; expected {type.name}. Add .to_{type.name}() to materialize.",
                edits=[Edit(value.end, value.end, f".to_{type.name}()")],
                safe=False,
            )


def _slots(subject: Subject) -> Iterator[tuple[ast.Node, ast.Node]]:
    """The values that are bound or returned where a type is written, each with that type."""
    for binding in subject.each(ast.Let):
        if binding.type is not None:
            yield binding.type, binding.value
    for returned in subject.each(ast.Return):
        function = next((node for node in subject.above(returned) if isinstance(node, _FUNCTIONS)), None)
        type = getattr(function, "returns", None)
        if type is not None and returned.value is not None:
            yield type, returned.value


def _is_iterator(node: ast.Node) -> bool:
    """Whether the node is a chain of lazy methods over `iter(…)`, `x.iter()` or a range."""
    steps = 0
    while isinstance(node, ast.MethodCall) and node.name in _LAZY and not node.optional:
        if node.name == "iter" and not node.args:
            return True
        node = node.object
        steps += 1
    if isinstance(node, ast.Call):
        return node.name == "iter" or (node.name == "range" and steps > 0)
    return isinstance(node, ast.RangeTo) and steps > 0


def redundant_clone(subject: Subject) -> Iterator[Remark]:
    """Values never change, so nobody needs their own copy. A program's own function `clone` is left alone."""
    if any(function.name == "clone" for function in subject.each(ast.FnDecl)):
        return
    for node in subject.each(ast.Call):
        for argument in node.args:
            if isinstance(argument, ast.MethodCall) and argument.name == "clone" and not argument.args:
                fate = "dropped" if node.name == "drop" else "passed by value"
                yield remark(
                    argument,
                    f"cloned value is immediately {fate}",
                    edits=_without_call(subject, argument),
                    safe=False,
                )


def _without_call(subject: Subject, node: ast.MethodCall) -> list[Edit]:
    dot = subject.source.rfind("?." if node.optional else ".", node.object.end, node.end)
    return [] if may_comment(subject, (dot, node.end)) else [Edit(dot, node.end, "")]
