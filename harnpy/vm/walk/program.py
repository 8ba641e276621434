"""Running a whole unit: a script, a pipeline, a module, an input of a REPL. Spec: 02 §10, 06 §4."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.resolve.tree import lineage, script_order, setup_order
from harnpy.vm.walk.activation import Activation
from harnpy.vm.walk.functions import finish_defers
from harnpy.vm.walk.jumps import Return

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from harnpy.vm.walk.walker import Walker

    Value = Any


def main_of(walker: Walker) -> Callable[[int], Value]:
    """What runs the unit, called with the depth of calls."""
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
