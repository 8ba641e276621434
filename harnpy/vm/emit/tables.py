"""Which function writes which node. A new construct adds a row; nothing else grows."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.nodes import (
    access,
    assign,
    calls,
    closures,
    control,
    literals,
    logic,
    loops,
    operators,
    statements,
    tools,
)
from harnpy.vm.emit.nodes import match as matching
from harnpy.vm.emit.nodes import select as selecting
from harnpy.vm.emit.unit import Writers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.emit.unit import Writer

_EXPRESSIONS: dict[type[ast.Node], Writer] = {
    ast.Int: literals.integer,
    ast.Float: literals.floating,
    ast.Str: literals.string,
    ast.Bool: literals.boolean,
    ast.Nil: literals.nil,
    ast.Duration: literals.duration,
    ast.Interp: literals.interpolation,
    ast.List: literals.list_,
    ast.Dict: literals.dict_,
    ast.StructLit: literals.struct,
    ast.Spread: literals.spread,
    ast.Name: access.name,
    ast.Member: access.member,
    ast.Index: access.index,
    ast.Slice: access.slice_,
    ast.Unary: operators.unary,
    ast.Binary: operators.binary,
    ast.Ternary: logic.ternary,
    ast.RangeTo: operators.range_to,
    ast.Pipe: calls.pipe,
    ast.Call: calls.call,
    ast.MethodCall: calls.method_call,
    ast.Propagate: control.propagate,
    ast.TryStar: control.try_star,
    ast.Closure: closures.closure,
    ast.FnExpr: closures.closure,
    ast.Spawn: closures.spawn,
    ast.Parallel: closures.parallel,
}

_FORMS: dict[type[ast.Node], Writer] = {
    ast.If: control.if_,
    ast.Match: matching.match,
    ast.Try: control.try_,
    ast.Retry: control.retry,
    ast.Deadline: control.deadline,
    ast.Select: selecting.select,
}

_STATEMENTS: dict[type[ast.Node], Writer] = {
    ast.Let: assign.let,
    ast.Assign: assign.assign,
    ast.For: loops.for_,
    ast.While: loops.while_,
    ast.Break: loops.break_,
    ast.Continue: loops.continue_,
    ast.Return: statements.return_,
    ast.Throw: statements.throw,
    ast.Yield: statements.yield_,
    ast.Emit: statements.yield_,
    ast.Guard: statements.guard,
    ast.Require: statements.require,
    ast.Defer: closures.defer,
    ast.FnDecl: closures.declaration,
    ast.ImplDecl: closures.impl,
    ast.StructDecl: statements.struct,
    ast.EnumDecl: statements.nothing,
    ast.InterfaceDecl: statements.nothing,
    ast.TypeDecl: statements.nothing,
    ast.Pipeline: statements.nothing,
    ast.Override: statements.nothing,
    ast.Block: statements.block,
    ast.Import: statements.import_,
    ast.ToolDecl: tools.declaration,
    ast.SkillDecl: statements.skill,
    ast.EvalPack: statements.eval_pack,
    ast.Mutex: control.mutex,
}

WRITERS = Writers(_EXPRESSIONS, _FORMS, _STATEMENTS)
