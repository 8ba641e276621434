"""Running a whole unit: a script, a pipeline, a module, an input of a REPL. Spec: 02 §10, 06 §4.

`EVALUATORS` lists which function evaluates which node. A new construct adds a row there and one in
`emit.program`.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.names import lineage, script_order, setup_order
from harnpy.vm.walk import expressions, functions, patterns, statements
from harnpy.vm.walk.activation import Activation, Return, Walker
from harnpy.vm.walk.functions import body_with, finish_defers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from harnpy.vm.front_end import Resolved
    from harnpy.vm.modules import Linker
    from harnpy.vm.unit import Unit
    from harnpy.vm.values import Fn, Value
    from harnpy.vm.vm import Vm
    from harnpy.vm.walk.activation import Evaluator
    from harnpy.vm.walk.functions import Body

EVALUATORS: dict[type[ast.Node], Evaluator] = {
    ast.Int: expressions.literal,
    ast.Float: expressions.literal,
    ast.Str: expressions.literal,
    ast.Bool: expressions.literal,
    ast.Nil: expressions.nil,
    ast.Duration: expressions.duration,
    ast.Interp: expressions.interpolation,
    ast.List: expressions.list_,
    ast.Dict: expressions.dict_,
    ast.StructLit: expressions.struct,
    ast.Name: expressions.name,
    ast.Member: expressions.member,
    ast.Index: expressions.index,
    ast.Slice: expressions.slice_,
    ast.Unary: expressions.unary,
    ast.Binary: expressions.binary,
    ast.Ternary: expressions.ternary,
    ast.RangeTo: expressions.range_to,
    ast.Pipe: functions.pipe,
    ast.Call: functions.call,
    ast.MethodCall: functions.method_call,
    ast.Let: patterns.let,
    ast.Assign: patterns.assign,
    ast.Block: statements.block,
    ast.If: statements.if_,
    ast.Match: statements.match,
    ast.Guard: statements.guard,
    ast.Require: statements.require,
    ast.For: statements.for_,
    ast.While: statements.while_,
    ast.Break: statements.break_,
    ast.Continue: statements.continue_,
    ast.Throw: statements.throw,
    ast.Try: statements.try_,
    ast.TryStar: statements.try_star,
    ast.Propagate: statements.propagate,
    ast.Retry: statements.retry,
    ast.Deadline: statements.deadline,
    ast.Defer: statements.defer,
    ast.FnDecl: functions.declaration,
    ast.Closure: functions.closure,
    ast.FnExpr: functions.closure,
    ast.Return: functions.return_,
    ast.Yield: functions.yield_,
    ast.Emit: functions.yield_,
    ast.Spawn: statements.spawn,
    ast.Parallel: statements.parallel,
    ast.Select: statements.select,
    ast.Mutex: statements.mutex,
    ast.StructDecl: statements.struct,
    ast.ImplDecl: statements.impl,
    ast.ToolDecl: statements.tool,
    ast.SkillDecl: statements.skill,
    ast.EvalPack: statements.eval_pack,
    ast.Import: statements.import_,
    ast.EnumDecl: statements.nothing,
    ast.InterfaceDecl: statements.nothing,
    ast.TypeDecl: statements.nothing,
    ast.Pipeline: statements.nothing,
    ast.Override: statements.nothing,
}


def main_of(walker: Walker) -> Callable[[int], Value]:
    """Return what runs the unit, called with the depth of functions."""
    tree = walker.tree
    body = {"program": _program, "module": _module, "input": _input}[tree.role]
    shown = "module" if tree.role == "module" else "pipeline"

    def main(depth: int) -> Value:
        function = walker.resolution.functions[id(tree.program)]
        return _run(Activation(walker, function, shown, depth), body)

    return main


def _run(a: Activation, body: Callable[[Activation], Value]) -> Value:
    a.open_scope(a.walker.tree.program)
    try:
        return body(a)
    except Return as jump:
        return jump.value
    finally:
        finish_defers(a)


def _program(a: Activation) -> Value:
    """The entry, or the statements in order, of which only an executed `return` gives a value (02 §10.5)."""
    tree = a.walker.tree
    if tree.entry is None:
        a.statements(script_order(tree.program))
        return None
    a.statements(setup_order(tree.program))
    value = None
    for pipeline in lineage(tree.program, tree.entry):
        a.open_scope(pipeline)
        value = a.statements(pipeline.body.statements)
    return value


def _input(a: Activation) -> Value:
    """The value of the last expression."""
    return a.statements(script_order(a.walker.tree.program))


def _module(a: Activation) -> None:
    """Imports, variables, functions; then what its importers may have of them (06 §4)."""
    program, linker = a.walker.tree.program, a.walker.linker
    assert linker
    a.statements(setup_order(program))
    functions = [node for node in program.items if isinstance(node, ast.FnDecl)]
    tools = [node for node in program.items if isinstance(node, ast.ToolDecl)]
    linker.publish(_by_name(a, functions), _by_name(a, tools))
    for node in program.items:
        if isinstance(node, ast.Import) and node.pub:
            a.at = node.start
            linker.pass_on(node.path, node.names)


def _by_name(a: Activation, nodes: Sequence[ast.FnDecl | ast.ToolDecl]) -> dict[str, Value]:
    return {node.name: a.read(a.declared_by(node, node.name)) for node in nodes}


# The functions of a compiled unit that Python cannot express: they are walked.


def walking_helpers(
    tree: Resolved,
    vm: Vm,
    unit: Unit,
    impls: dict[str, dict[str, Fn]],
    linker: Linker | None,
    table: dict[str, Value],
) -> dict[str, Any]:
    """Return what generated code calls for the functions of its unit that Python cannot express."""
    walker = Walker(vm, unit, tree, EVALUATORS, impls, linker, table)
    functions = list(tree.resolution.functions.values())

    def walked(index: int, shown: str, captured: tuple[Value, ...]) -> Body:
        function = functions[index]
        params = getattr(function.node, "params", ())
        own = dict(zip(function.captures.values(), captured, strict=True))
        return body_with(walker, function, shown, params, own)

    return {"walked": walked, "walked_main": main_of(walker)}
