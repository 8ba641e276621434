"""Lint rules about expressions and blocks that say less than they seem to, or nothing.

Spec: 02 §4.1, 03 §8.1, §15.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harnpy.check.findings import Place
from harnpy.check.lint.subject import Remark, Subject, remark
from harnpy.check.walk.operators import interpolation
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Edit

# Where operands stand, and which expressions do nothing but name a value. Spec: 01 §5.


#: Start and end in the source.
Extent = tuple[int, int]

_GAP = re.compile(r"[\s)\\]*")
_BLANKS = re.compile(r"[\s\\]*")
_LITERALS = (ast.Int, ast.Float, ast.Str, ast.Bool, ast.Nil, ast.Duration)
_CONNECTIVES = frozenset(["==", "!=", "&&", "||", "??"])
#: What stands as an operand of any operator without parentheses.
_TIGHT = (
    *_LITERALS,
    ast.Name,
    ast.Interp,
    ast.List,
    ast.Call,
    ast.MethodCall,
    ast.Member,
    ast.Index,
    ast.Slice,
)


def around(subject: Subject, left: ast.Node, mark: str, extent: Extent) -> tuple[Extent, Extent] | None:
    """Return what stands on the two sides of ``mark``, the first one behind ``left``, within ``extent``.

    With the parentheses, which are no part of the nodes. None where a comment is in the way.
    """
    start, end = extent
    gap = _GAP.match(subject.source, left.end)
    assert gap is not None, "the pattern matches the empty text"
    if not subject.source.startswith(mark, gap.end()):
        return None
    blanks = _BLANKS.match(subject.source, gap.end() + len(mark))
    assert blanks is not None, "the pattern matches the empty text"
    if subject.source.startswith(("//", "/*"), blanks.end()):
        return None
    return (start, left.end + len(gap[0].rstrip(" \t\r\n\\"))), (blanks.end(), end)


def as_operand(subject: Subject, extent: Extent, node: ast.Node) -> str:
    """The text of ``node``, which has ``extent`` with its parentheses, as an operand of any operator."""
    text = subject.source[slice(*extent)]
    return text if isinstance(node, _TIGHT) or extent[0] < node.start else f"({text})"


def may_comment(subject: Subject, *extents: Extent) -> bool:
    """Return True if a comment could be in what is taken away; a string that looks like one counts, too."""
    return any(mark in subject.source[slice(*extent)] for extent in extents for mark in ("//", "/*"))


def is_literal(node: ast.Node) -> bool:
    return isinstance(node, _LITERALS)


def only_names(node: ast.Node) -> bool:
    """Return True if the node only names a value: names, literals, their fields and elements."""
    while isinstance(node, ast.Member | ast.Index):
        if isinstance(node, ast.Index) and not only_names(node.index):
            return False
        node = node.object
    return isinstance(node, ast.Name) or is_literal(node)


def cannot_fail(node: ast.Node) -> bool:
    """Return True if evaluating the node does and raises nothing: names and literals, compared, connected."""
    if isinstance(node, ast.Binary):
        return node.op in _CONNECTIVES and cannot_fail(node.left) and cannot_fail(node.right)
    if isinstance(node, ast.Unary):
        return node.op == "!" and cannot_fail(node.operand)
    return isinstance(node, ast.Name) or is_literal(node)


# Arithmetic that certainly fails. Spec: 02 §4.1, 03 §8.1, §15.


_OPERATORS = frozenset("+-*/%")


def invalid_binary_op_literal(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Binary):
        sides = (node.left, node.right)
        if node.op in _OPERATORS and any(isinstance(side, ast.Bool | ast.Nil) for side in sides):
            fix = interpolation(node, subject.source) if node.op == "+" else None
            yield remark(
                node,
                f"operator '{node.op}' used with boolean or nil literal — this will cause a runtime error",
                # Safe: a program that has it fails before it runs.
                edits=fix.edits if fix else (),
            )


# Comparisons that say less than they seem to. Spec: 03 §15.


#: Operators whose result is a bool whatever the operands are.
_GIVES_BOOL = frozenset(["==", "!=", "<", ">", "<=", ">=", "&&", "||", "in", "not in"])


def comparison_to_bool(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Binary):
        if node.op not in ("==", "!="):
            continue
        literal, value = (
            (node.right, node.left) if isinstance(node.right, ast.Bool) else (node.left, node.right)
        )
        if isinstance(literal, ast.Bool):
            word = "true" if literal.value else "false"
            text = f"comparison to `{word}` is redundant" if node.op == "==" else f"`!= {word}` is redundant"
            # Safe for a bool alone: `1 == true` is false, and 1 counts as true.
            yield remark(node, text, edits=_without_bool(subject, node, literal), safe=_is_bool(value))


def _without_bool(subject: Subject, node: ast.Binary, literal: ast.Bool) -> list[Edit]:
    """The other operand, or what it is not."""
    sides = around(subject, node.left, node.op, (node.start, node.end))
    if sides is None:
        return []
    extent, value = (sides[0], node.left) if literal is node.right else (sides[1], node.right)
    text = subject.source[slice(*extent)]
    if literal.value != (node.op == "=="):
        text = "!" + as_operand(subject, extent, value)
    return [] if _opens_struct(subject, text, node.end) else [Edit(node.start, node.end, text)]


def _is_bool(node: ast.Node) -> bool:
    if isinstance(node, ast.Binary):
        return node.op in _GIVES_BOOL
    return isinstance(node, ast.Bool) or (isinstance(node, ast.Unary) and node.op == "!")


def _opens_struct(subject: Subject, text: str, end: int) -> bool:
    """Return True if a block behind ``text`` would read as the fields of a struct: `if Done { … }`."""
    name = text.lstrip("!")
    return name.isidentifier() and name[0].isupper() and subject.source[end:].lstrip().startswith("{")


def pointless_comparison(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Binary):
        if node.op in ("==", "!=") and node.left == node.right and only_names(node.left):
            result = Edit(node.start, node.end, "true" if node.op == "==" else "false")
            yield remark(
                node,
                f"expression is compared to itself with `{node.op}`",
                edits=[] if may_comment(subject, (node.start, node.end)) else [result],
                # A variable may hold NaN, which isn't equal to itself.
                safe=is_literal(node.left),
            )
    for branch in subject.each(ast.If):
        if isinstance(branch.cond, ast.Bool):
            yield remark(branch.cond, f"if condition is always `{'true' if branch.cond.value else 'false'}`")


def redundant_nil_ternary(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Ternary):
        test = node.cond
        if not isinstance(test, ast.Binary) or test.op not in ("==", "!="):
            continue
        nil, tested = (test.right, test.left) if isinstance(test.right, ast.Nil) else (test.left, test.right)
        value = node.then if test.op == "!=" else node.otherwise
        if isinstance(nil, ast.Nil) and value == tested and _is_path(value):
            name = subject.text(tested)
            yield remark(
                node,
                f"ternary nil check over `{name}` can be replaced with `{name} ?? <fallback>`",
                edits=_coalesced(subject, node, name, in_then=test.op == "=="),
            )


def _is_path(node: ast.Node) -> bool:
    while isinstance(node, ast.Member):
        node = node.object
    return isinstance(node, ast.Name)


def _coalesced(subject: Subject, node: ast.Ternary, name: str, *, in_then: bool) -> list[Edit]:
    """`name ?? fallback`, which looks at the fallback for nil alone, as the ternary does."""
    condition = around(subject, node.cond, "?", (node.start, node.end))
    branches = condition and around(subject, node.then, ":", condition[1])
    if condition is None or branches is None or may_comment(subject, condition[0]):
        return []
    extent, fallback = (branches[0], node.then) if in_then else (branches[1], node.otherwise)
    return [Edit(node.start, node.end, f"{name} ?? {as_operand(subject, extent, fallback)}")]


# Conversions that do nothing, or are missing. Spec: 03 §15.


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
    """Return True if the node is a chain of lazy methods over `iter(…)`, `x.iter()` or a range."""
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


# Blocks without content, and arms that can't be reached. Spec: 03 §15.


def empty_block(subject: Subject) -> Iterator[Remark]:
    """A block that has a comment isn't empty: it says why there is nothing to do."""
    for node, body, name in _bodies(subject):
        if not body.statements and not subject.source[body.start + 1 : body.end - 1].strip():
            yield remark(node, f"{name} has an empty body", edits=_removal(subject, node))


def _bodies(subject: Subject) -> Iterator[tuple[ast.Node, ast.Block, str]]:
    yield from ((node, node.then, "if block") for node in subject.each(ast.If))
    yield from ((node, node.body, "for loop") for node in subject.each(ast.For))
    yield from ((node, node.body, "while loop") for node in subject.each(ast.While))
    yield from ((node, node.body, "try block") for node in subject.each(ast.Try))


def _removal(subject: Subject, node: ast.Node) -> list[Edit]:
    """Take the statement away with its lines, where neither its head nor its value matters."""
    if isinstance(node, ast.If):
        idle = node.otherwise is None and cannot_fail(node.cond)
    else:
        idle = isinstance(node, ast.For) and _is_constant(node.iterable)
    first = subject.source.rfind("\n", 0, node.start) + 1
    last = subject.source.find("\n", node.end) + 1 or len(subject.source)
    alone = not (subject.source[first : node.start] + subject.source[node.end : last]).strip()
    if idle and alone and _has_no_use(subject, node) and not may_comment(subject, (node.start, node.end)):
        return [Edit(first, last, "")]
    return []


def _is_constant(node: ast.Node) -> bool:
    """Return True if going through the items has no effect: they are written down, no iterator's."""
    if isinstance(node, ast.RangeTo):
        return isinstance(node.first, ast.Int) and isinstance(node.last, ast.Int)
    return isinstance(node, ast.List) and all(map(is_literal, node.items))


def _has_no_use(subject: Subject, node: ast.Node) -> bool:
    """Return True if nobody can ask for the statement's value: only the last one of a block has one."""
    parent = subject.parent(node)
    if isinstance(parent, ast.Block):
        return any(statement is node for statement in parent.statements[:-1])
    return isinstance(parent, ast.Program)


def duplicate_match_arm(subject: Subject) -> Iterator[Remark]:
    for match in subject.each(ast.Match):
        seen: dict[tuple[tuple[ast.Node, ...], ast.Node | None], ast.Arm] = {}
        for arm in match.arms:
            first = seen.setdefault((arm.patterns, arm.guard), arm)
            if first is not arm:
                place = Place("the first arm with this pattern", *_pattern_extent(first))
                yield Remark(*_pattern_extent(arm), "duplicate match arm pattern", places=[place])


def _pattern_extent(arm: ast.Arm) -> Extent:
    return arm.start, (arm.guard or arm.patterns[-1]).end
