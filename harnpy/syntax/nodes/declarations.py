"""Imports, attributes, declarations, parameters. Spec: 01 §7.2, §7.4, §7.8."""

from __future__ import annotations

import re

from harnpy.syntax import ast
from harnpy.syntax.ast import Block, Node, Param
from harnpy.syntax.lexer import RESERVED
from harnpy.syntax.nodes.lists import Maybe, more
from harnpy.syntax.refusal import Reject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


Nodes = list[Node]


def import_all(start: int, end: int, path: str) -> ast.Import:
    return ast.Import(start, end, None, path, False)


def import_names(start: int, end: int, names: list[str] | None, path: str) -> ast.Import:
    return ast.Import(start, end, tuple(names or ()), path, False)


def import_decl(start: int, end: int, tail: ast.Import) -> Node:
    return _replace(tail, start)


def attribute(start: int, end: int, name: str, args: list[ast.AttrArg] | None) -> ast.Attribute:
    return ast.Attribute(start, end, name, tuple(args or ()))


def attr_arg(start: int, end: int, value: Node) -> ast.AttrArg:
    return ast.AttrArg(start, end, None, value)


def named_attr_arg(start: int, end: int, name: str, value: Node) -> ast.AttrArg:
    return ast.AttrArg(start, end, name, value)


def name_attr_arg(start: int, end: int, name: str) -> ast.AttrArg:
    return ast.AttrArg(start, end, None, ast.Name(start, end, name))


def attributed(start: int, end: int, attrs: list[ast.Attribute], target: Node) -> Node:
    if "attrs" not in target.__slots__:
        raise Reject(
            "fn/tool/skill/eval_pack/pipeline/struct/enum/type/interface/impl declaration after `@attr`",
            target.start,
            "non-declaration statement",
        )
    return _replace(target, start, attrs=tuple(attrs))


def pub(start: int, end: int, target: Node) -> Node:
    return _replace(target, start, pub=True)


def _replace(node: Node, start: int, **changes: Any) -> Node:
    fields = (changes.get(name, getattr(node, name)) for name in node.__slots__)
    return type(node)(start, node.end, *fields)


def pipeline(
    start: int,
    end: int,
    name: str,
    params: list[str] | None,
    returns: Node | None,
    extends: str | None,
    body: Block,
) -> ast.Pipeline:
    return ast.Pipeline(start, end, (), False, name, tuple(params or ()), returns, extends, body)


def override(start: int, end: int, name: str, params: list[str] | None, body: Block) -> ast.Override:
    return ast.Override(start, end, name, tuple(params or ()), body)


def fn_decl(
    start: int,
    end: int,
    gen: str | None,
    name: str,
    type_params: tuple[ast.TypeParam, ...] | None,
    params: tuple[Param, ...],
    returns: Node | None,
    where: list[tuple[str, str]] | None,
    body: Block,
) -> ast.FnDecl:
    bounds = tuple(where or ())
    generic = type_params or ()
    return ast.FnDecl(start, end, (), False, gen is not None, name, generic, params, returns, bounds, body)


def method(start: int, end: int, *fields: Any) -> ast.FnDecl:
    return fn_decl(start, end, None, *fields)


def pub_method(start: int, end: int, *fields: Any) -> Node:
    return pub(start, end, fn_decl(start, end, None, *fields))


def tool_body(start: int, end: int, body: Block) -> tuple[str | None, Block]:
    return None, body


def described(start: int, end: int, description: str) -> tuple[str | None, Block]:
    return description, Block(start, end, ())


def described_body(start: int, end: int, description: str, statements: Nodes) -> tuple[str | None, Block]:
    return description, Block(start, end, tuple(statements))


def tool(
    start: int,
    end: int,
    name: str,
    params: tuple[Param, ...],
    returns: Node | None,
    body: tuple[str | None, Block],
) -> ast.ToolDecl:
    return ast.ToolDecl(start, end, (), False, name, params, returns, *body)


def skill(start: int, end: int, name: str, fields: list[ast.SkillField] | None) -> ast.SkillDecl:
    return ast.SkillDecl(start, end, (), False, name, tuple(fields or ()))


class _Summarize(Node):
    """An eval pack's ``summarize`` block, until the pack is complete."""

    body: Block


def eval_name(start: int, end: int, name: str, id: str | None) -> tuple[str, str | None]:
    return name, id


def eval_id(start: int, end: int, id: str) -> tuple[str, str | None]:
    """The binding's name made from the id (01 §7.8)."""
    name = re.sub(r"[^a-z0-9_]+", "_", id.lower()).strip("_")
    if not name or name in RESERVED or name[0].isdigit():
        name = "eval_pack_" + name
    return name, id


def eval_field(start: int, end: int, name: str, value: Node) -> ast.SkillField:
    return ast.SkillField(start, end, name, value)


def summarize(start: int, end: int, body: Block) -> _Summarize:
    return _Summarize(start, end, body)


def more_eval_items(start: int, end: int, items: Nodes, item: Node) -> Nodes:
    if isinstance(item, _Summarize) and any(isinstance(other, _Summarize) for other in items):
        raise Reject("one summarize block", item.start, "duplicate summarize block")
    return more(start, end, items, item)


def eval_pack(start: int, end: int, names: tuple[str, str | None], items: Maybe) -> ast.EvalPack:
    fields = tuple(item for item in items or () if isinstance(item, ast.SkillField))
    summaries = [item.body for item in items or () if isinstance(item, _Summarize)]
    body = tuple(item for item in items or () if not isinstance(item, ast.SkillField | _Summarize))
    return ast.EvalPack(start, end, (), False, *names, fields, body, summaries[0] if summaries else None)


def variant(start: int, end: int, name: str, params: tuple[Param, ...] | None) -> ast.Variant:
    return ast.Variant(start, end, name, params or ())


def enum(start: int, end: int, name: str, type_params: Any, variants: Maybe) -> ast.EnumDecl:
    return ast.EnumDecl(start, end, (), False, name, type_params or (), tuple(variants or ()))


def field(start: int, end: int, name: str, optional: bool | None, type: Node | None) -> ast.Field:
    return ast.Field(start, end, name, optional is not None, type)


def struct(start: int, end: int, name: str, type_params: Any, fields: Maybe) -> ast.StructDecl:
    return ast.StructDecl(start, end, (), False, name, type_params or (), tuple(fields or ()))


def method_sig(
    start: int, end: int, name: str, type_params: Any, params: tuple[Param, ...], returns: Node | None
) -> ast.MethodSig:
    return ast.MethodSig(start, end, name, type_params or (), params, returns)


def interface(start: int, end: int, name: str, type_params: Any, members: Maybe) -> ast.InterfaceDecl:
    return ast.InterfaceDecl(start, end, (), name, type_params or (), tuple(members or ()))


def impl(start: int, end: int, name: str, methods: list[ast.FnDecl] | None) -> ast.ImplDecl:
    return ast.ImplDecl(start, end, (), name, tuple(methods or ()))


def type_decl(start: int, end: int, name: str, type_params: Any, type: Node) -> ast.TypeDecl:
    return ast.TypeDecl(start, end, (), name, type_params or (), type)


def invariant(start: int, end: int, name: str) -> ast.TypeParam:
    return ast.TypeParam(start, end, name, "")


def type_in(start: int, end: int, name: str) -> ast.TypeParam:
    return ast.TypeParam(start, end, name, "in")


def type_out(start: int, end: int, name: str) -> ast.TypeParam:
    return ast.TypeParam(start, end, name, "out")


def params(start: int, end: int, items: list[Param] | None) -> tuple[Param, ...]:
    return tuple(items or ())


def more_params(start: int, end: int, items: list[Param], item: Param) -> list[Param]:
    _refuse_rest(items[-1])
    if items[-1].default is not None and item.default is None and not item.rest:
        raise Reject("Required parameter cannot follow a parameter with a default value")
    return more(start, end, items, item)


def params_comma(start: int, end: int, items: list[Param]) -> tuple[Param, ...]:
    _refuse_rest(items[-1])
    return tuple(items)


def _refuse_rest(last: Param) -> None:
    """Nothing may follow a rest parameter, not even a comma."""
    if last.rest:
        raise Reject("Rest parameter must be the last parameter", last.end)


def param(start: int, end: int, name: str, type: Node | None, default: Node | None) -> Param:
    return Param(start, end, name, type, default, False)


def rest_param(start: int, end: int, name: str, type: Node | None, default: Node | None) -> Param:
    return Param(start, end, name, type, default, True)
