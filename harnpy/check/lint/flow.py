"""Lint rules about the flow of control: unreachable statements, returns, complexity, pipelines.

Spec: 03 §15.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import pairwise

from harnpy.check.lint.subject import Remark, Subject, remark
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Edit

# Statements that aren't reached, and ways of returning that say too much. Spec: 03 §15.


_JUMPS = (ast.Return, ast.Throw, ast.Break, ast.Continue)
#: Declarations hold in all of their block, wherever they stand.
_DECLARATIONS = (ast.FnDecl, ast.StructDecl, ast.EnumDecl, ast.InterfaceDecl, ast.ImplDecl, ast.TypeDecl)
_LOOPS = (ast.For, ast.While)
#: Bodies that a `break` can't leave.
_DETACHED = (
    ast.FnDecl,
    ast.FnExpr,
    ast.Closure,
    ast.ToolDecl,
    ast.Pipeline,
    ast.Override,
    ast.Spawn,
    ast.Parallel,
    ast.Defer,
    ast.EvalPack,
)


def dead_code_after_return(subject: Subject) -> Iterator[Remark]:
    for block in subject.each(ast.Program, ast.Block):
        dead = _dead(block.items if isinstance(block, ast.Program) else block.statements)
        # A `yield` that isn't reached makes a generator all the same.
        if dead is not None and not any(isinstance(node, ast.Yield) for node in ast.walk(dead)):
            yield remark(dead, "unreachable code after a terminating statement")


def _dead(statements: Sequence[ast.Node]) -> ast.Node | None:
    """The first statement that isn't reached."""
    after = False
    for statement in statements:
        if after and not isinstance(statement, _DECLARATIONS):
            return statement
        after = after or _ends(statement)
    return None


def _ends(statement: ast.Node | None) -> bool:
    """Return True if what follows a statement is never reached."""
    if isinstance(statement, ast.Block):
        return any(_ends(one) for one in statement.statements)
    if isinstance(statement, ast.If):
        return _ends(statement.then) and _ends(statement.otherwise)
    return isinstance(statement, _JUMPS)


def break_outside_loop(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Break, ast.Continue):
        if not _in_loop(subject, node):
            word = "break" if isinstance(node, ast.Break) else "continue"
            yield remark(node, f"`{word}` used outside of a loop")


def _in_loop(subject: Subject, node: ast.Node) -> bool:
    inner = node
    for above in subject.above(node):
        if isinstance(above, _LOOPS) and inner is above.body:
            return True
        if isinstance(above, _DETACHED):
            return False
        inner = above
    return False


def let_then_return(subject: Subject) -> Iterator[Remark]:
    reads = {id(one.node): len(one.reads) + len(one.writes) for one in subject.uses.bindings}
    for block in subject.each(ast.Block):
        for let, back in pairwise(block.statements):
            match let, back:
                case (
                    ast.Let(target=ast.NamePattern(name=name), type=None, mutable=False),
                    ast.Return(value=ast.Name(name=returned)),
                ) if name == returned and reads.get(id(let)) == 1:
                    edit = Edit(let.start, back.end, f"return {subject.text(let.value)}")
                    yield remark(
                        let,
                        f"binding `{name}` is immediately returned",
                        help="return the value itself",
                        edits=[edit],
                        # A call that is returned is a tail call: who looks at its callers sees one less.
                        safe=not any(
                            isinstance(one, ast.Call | ast.MethodCall) for one in ast.walk(let.value)
                        ),
                    )


def unnecessary_else_return(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.If):
        then, otherwise = node.then, node.otherwise
        if not isinstance(otherwise, ast.Block) or not isinstance(subject.parent(node), ast.Block):
            continue
        if _returns(then) and _returns(otherwise):
            yield remark(
                node,
                "both if and else branches return — else is unnecessary",
                help="put what is in the else behind the if",
                edits=_without_else(subject, node, then, otherwise),
            )


def _returns(block: ast.Block) -> bool:
    return bool(block.statements) and isinstance(block.statements[-1], ast.Return)


def _without_else(subject: Subject, node: ast.If, then: ast.Block, otherwise: ast.Block) -> Sequence[Edit]:
    """Return edits that move the statements of an else behind the if; none if the meaning could change."""
    body = subject.source[otherwise.start + 1 : otherwise.end - 1]
    declares = any(isinstance(one, (ast.Let, *_DECLARATIONS)) for one in otherwise.statements)
    if declares or '"""' in body:
        return ()
    line = subject.source.rfind("\n", 0, node.start) + 1
    before = subject.source[line : node.start]
    if before.strip():
        return ()
    text = textwrap.indent(textwrap.dedent(body.strip("\n")).strip(), before)
    return [Edit(then.end, otherwise.end, f"\n{text}")]


# Functions with too many ways through them. Spec: 03 §15.


#: Each adds a way; closures belong to the function that they stand in, functions with a name don't.
_BRANCHES = (
    ast.If,
    ast.Guard,
    ast.For,
    ast.While,
    ast.Retry,
    ast.Match,
    ast.Try,
    ast.Ternary,
    ast.SelectCase,
)
_FUNCTIONS = (ast.FnDecl, ast.ToolDecl)


def cyclomatic_complexity(subject: Subject) -> Iterator[Remark]:
    limit = subject.settings.complexity
    for node in subject.each(ast.FnDecl, ast.ToolDecl):
        score = 1 + _branches(node.body)
        if score > limit and not _allowed(node):
            text = f"function `{node.name}` has cyclomatic complexity {score} (> {limit})"
            help_ = "split it, or mark it `@complexity(allow)`"
            yield Remark(*subject.name_span(node, node.name), text, help=help_)


def _branches(body: ast.Node) -> int:
    return sum(
        isinstance(node, _BRANCHES) or (isinstance(node, ast.Binary) and node.op in ("&&", "||"))
        for node in ast.walk(body, _FUNCTIONS)
    )


def _allowed(node: ast.FnDecl | ast.ToolDecl) -> bool:
    return any(
        attr.name == "complexity" and any(_is_allow(arg.value) for arg in attr.args) for attr in node.attrs
    )


def _is_allow(value: ast.Node) -> bool:
    return isinstance(value, ast.Name) and value.name == "allow"


# What belongs into tests and what doesn't, and what a pipeline promises. Spec: 03 §15.


_ASSERTIONS = frozenset({"assert", "assert_eq", "assert_ne"})
#: Pipelines that the runtime calls, and that return to nobody.
_ENTRIES = frozenset({"default", "main", "auto", "test"})


def pipeline_return_type(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Pipeline):
        if node.pub and node.returns is None and node.name not in _ENTRIES and not _is_test(node):
            text = "has no declared return type; explicit return types will be required in a future release"
            yield Remark(
                *subject.name_span(node, node.name),
                f"public pipeline `{node.name}` {text}",
                help="add one: `-> any`, or better what it returns",
            )


def assert_outside_test(subject: Subject) -> Iterator[Remark]:
    """Functions of a library, and of a file with tests, may be there to help tests."""
    helps = subject.is_library or any(_is_test(node) for node in subject.each(ast.Pipeline))
    for call in subject.each(ast.Call):
        if call.name not in _ASSERTIONS or not subject.means_builtin(call):
            continue
        pipeline = next((node for node in subject.above(call) if isinstance(node, ast.Pipeline)), None)
        if helps if pipeline is None else _is_test(pipeline):
            continue
        text = f"`{call.name}` is intended for test pipelines, not production control flow"
        yield remark(call, text, help="use `require`")


def require_in_test(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Require):
        if any(_is_test(above) for above in subject.above(node)):
            yield remark(node, "`require` in a test pipeline should usually be an assertion")


def _is_test(node: ast.Node) -> bool:
    """Return True if a node is a pipeline that `harnpy test` runs (09 §3.1)."""
    if not isinstance(node, ast.Pipeline):
        return False
    marked = any(attr.name == "test" for attr in node.attrs)
    return marked or node.name == "test" or node.name.startswith("test_")
