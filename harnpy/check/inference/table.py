"""How the type of each kind of expression is inferred. Spec: 03 §5."""

from __future__ import annotations

from harnpy.check.inference import access, blocks, calls, literals, operators
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.check.inference.engine import Step, Whole

#: The part of a node that its type begins with, and how its type follows from the part's.
STEPS: Mapping[type, tuple[str, Step]] = {
    ast.Binary: ("left", operators.binary),
    ast.Unary: ("operand", operators.unary),
    ast.MethodCall: ("object", access.method_call),
    ast.Member: ("object", access.member),
    ast.Index: ("object", access.index),
    ast.Slice: ("object", access.slice_),
    ast.Propagate: ("value", access.propagate),
    ast.TryStar: ("value", operators.passed),
}
WHOLE: Mapping[type, Whole] = {
    ast.Int: literals.int_,
    ast.Float: literals.float_,
    ast.Bool: literals.bool_,
    ast.Nil: literals.nil,
    ast.Str: literals.str_,
    ast.Interp: literals.interp,
    ast.List: literals.list_,
    ast.Dict: literals.dict_,
    ast.RangeTo: literals.range_,
    ast.Closure: literals.closure,
    ast.FnExpr: literals.closure,
    ast.StructLit: literals.struct,
    ast.Name: calls.name,
    ast.Call: calls.call,
    ast.Ternary: blocks.ternary,
    ast.If: blocks.if_,
    ast.Try: blocks.try_,
    ast.Parallel: blocks.parallel,
    ast.Throw: blocks.never,
    ast.Return: blocks.never,
    ast.Break: blocks.never,
    ast.Continue: blocks.never,
}
