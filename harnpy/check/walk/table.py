"""What is done with each kind of node."""

from __future__ import annotations

from harnpy.check.walk import (
    access,
    assignments,
    bindings,
    blocks,
    calls,
    closures,
    declarations,
    functions,
    literals,
    matches,
    names,
    operators,
    statements,
    streams,
)
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.check.walk.visitor import Above, Visit

VISITS: Mapping[type, Visit] = {
    ast.Block: blocks.block,
    ast.If: blocks.if_,
    ast.Ternary: blocks.ternary,
    ast.While: blocks.while_,
    ast.For: blocks.for_,
    ast.Guard: blocks.guard,
    ast.Try: blocks.try_,
    ast.Retry: blocks.retry,
    ast.Select: blocks.select,
    ast.Match: matches.match,
    ast.Let: bindings.let,
    ast.Assign: assignments.assign,
    ast.Return: statements.return_,
    ast.Throw: statements.throw,
    ast.Break: statements.leave,
    ast.Continue: statements.leave,
    ast.Import: statements.import_,
    ast.Yield: streams.yield_,
    ast.Emit: streams.emit,
    ast.Parallel: streams.parallel,
    ast.Spawn: streams.spawn,
    ast.Closure: closures.closure,
    ast.FnExpr: closures.closure,
    ast.FnDecl: functions.fn_decl,
    ast.ToolDecl: functions.tool_decl,
    ast.Pipeline: functions.pipeline,
    ast.Override: functions.override,
    ast.ImplDecl: functions.impl_decl,
    ast.StructDecl: declarations.type_declaration,
    ast.EnumDecl: declarations.type_declaration,
    ast.InterfaceDecl: declarations.type_declaration,
    ast.TypeDecl: declarations.type_declaration,
    ast.SkillDecl: declarations.skill,
    ast.EvalPack: declarations.eval_pack,
    ast.Call: calls.call,
    ast.Name: names.name,
    ast.Member: access.variant,
    ast.MethodCall: access.variant,
    ast.Interp: literals.interp,
    ast.StructLit: literals.struct,
    ast.DictEntry: literals.dict_entry,
}
#: The left part of a node, and what is done once that has been visited.
ABOVE: Mapping[type, tuple[str, Above]] = {
    ast.Binary: ("left", operators.binary),
    ast.Unary: ("operand", operators.unary),
    ast.MethodCall: ("object", access.method_call),
    ast.Member: ("object", access.member),
    ast.Index: ("object", access.index),
    ast.Slice: ("object", access.slice_),
    ast.Propagate: ("value", operators.passed),
    ast.TryStar: ("value", operators.passed),
    ast.Pipe: ("left", operators.pipe),
}
