"""What each production of the grammar builds, and how a builder refuses a text. Spec: 01 §5-§8, §9.2.

A builder gets the offsets of its production and the values of its children, in the order of the grammar.
A production whose children are just the fields of a node has none: `tables.builder` finds the class. Rules of
syntax that a grammar cannot express are checked here, at the token where the specification reports them.
"""

from __future__ import annotations

import re

from harnpy.syntax import ast
from harnpy.syntax.ast import Block, Node, Param
from harnpy.syntax.lexer import RESERVED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What stops a parser; `harnpy.syntax.explain` finds the reason. Spec: 01 §8, §9.2.


class Reject(Exception):
    """The production is well-formed, but refused: ``expected``, in the words of 01 §9.2.

    Reported at the current token, or at the token at offset ``at``, or ``skip`` tokens after that one;
    ``got`` is what to call it, when not by its own name.
    """

    def __init__(self, expected: str, at: int | None = None, got: str = "", skip: int = 0) -> None:
        super().__init__(expected)
        self.expected = expected
        self.at = at
        self.got = got
        self.skip = skip


#: The `Reject` of what can only be a new statement: "statement separator" or one of its kin.
SEPARATOR = "separator"


class Failure(Exception):
    """The parser cannot take token ``at``; or a builder rejected what stands before it.

    ``states`` is the parser's stack; ``values`` and ``begins`` hold what has been parsed, an entry for each
    state but the first, and where in the source that begins.
    """

    def __init__(
        self,
        at: int,
        states: list[int],
        values: list[Any],
        begins: list[int],
        reject: Reject | None = None,
    ) -> None:
        super().__init__(at)
        self.at = at
        self.states = states
        self.values = values
        self.begins = begins
        self.reject = reject


# Sequences, blocks and the program.


Maybe = list[Node] | None


def first(start: int, end: int, item: Any) -> list[Any]:
    return [item]


def more(start: int, end: int, items: list[Any], item: Any) -> list[Any]:
    # In place: there is no other holder yet, and a copy each time would make long lists quadratic.
    items.append(item)
    return items


def two(start: int, end: int, left: Any, right: Any) -> list[Any]:
    return [left, right]


def pair(start: int, end: int, left: Any, right: Any) -> tuple[Any, Any]:
    return left, right


def sequence(start: int, end: int, items: list[Any] | None) -> tuple[Any, ...]:
    return tuple(items or ())


def present(start: int, end: int, mark: Any = None) -> bool:
    return True


def program(start: int, end: int, items: Maybe) -> ast.Program:
    return ast.Program(start, end, tuple(items or ()))


def block(start: int, end: int, statements: Maybe) -> Block:
    return Block(start, end, tuple(statements or ()))


# Imports, attributes, declarations, parameters. Spec: 01 §7.2, §7.4, §7.8.


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


# Statements and the patterns of `let`, `var` and `for`. Spec: 01 §7.5, §7.6.


def expression_statement(start: int, end: int, value: Node) -> Node:
    """At the beginning of a statement `fn` is a declaration, which needs a name."""
    leftmost: Node | None = value
    while leftmost is not None and leftmost.start == start:
        if isinstance(leftmost, ast.FnExpr):
            raise Reject("function name", start, skip=1)
        leftmost = next(leftmost.children(), None)
    return value


def target(start: int, end: int, value: Node) -> Node:
    if isinstance(value, ast.Name) or (isinstance(value, ast.Member | ast.Index) and not value.optional):
        return value
    raise Reject(SEPARATOR)


def let(start: int, end: int, binding: tuple[Node, Node | None], value: Node) -> ast.Let:
    return ast.Let(start, end, *binding, value, False)


def var(start: int, end: int, binding: tuple[Node, Node | None], value: Node) -> ast.Let:
    return ast.Let(start, end, *binding, value, True)


def untyped(start: int, end: int, name: str) -> tuple[Node, Node | None]:
    return ast.NamePattern(start, end, name), None


def typed(start: int, end: int, name: str, type: Node) -> tuple[Node, Node | None]:
    return ast.NamePattern(start, start + len(name), name), type


def bind_pattern(start: int, end: int, pattern: Node) -> tuple[Node, Node | None]:
    return pattern, None


def name_pattern(start: int, end: int, name: str) -> ast.NamePattern:
    return ast.NamePattern(start, end, name)


_Names = tuple[tuple[ast.PatternEntry, ...], str | None]


def dict_pattern(start: int, end: int, names: _Names | None) -> ast.DictPattern:
    return ast.DictPattern(start, end, *(names or ((), None)))


def list_pattern(start: int, end: int, names: _Names | None) -> ast.ListPattern:
    return ast.ListPattern(start, end, *(names or ((), None)))


def pattern_names(start: int, end: int, names: list[ast.PatternEntry]) -> _Names:
    return tuple(names), None


def pattern_names_rest(start: int, end: int, names: list[ast.PatternEntry], rest: str) -> _Names:
    return tuple(names), rest


def pattern_rest(start: int, end: int, rest: str) -> _Names:
    return (), rest


def dict_name(start: int, end: int, key: str, alias: str | None, default: Node | None) -> ast.PatternEntry:
    return ast.PatternEntry(start, end, key, alias or key, default)


def list_name(start: int, end: int, name: str, default: Node | None) -> ast.PatternEntry:
    return ast.PatternEntry(start, end, None, name, default)


def select(start: int, end: int, cases: list[ast.SelectCase] | None) -> ast.Select:
    """A later ``timeout`` or ``default`` replaces an earlier one (01 §7.6)."""
    if not cases:
        raise Reject("at least one select case")
    last = {case.kind: case for case in cases if case.kind != "receive"}
    if len(last) == 2:
        raise Reject("select cannot have both timeout and default")
    kept = (case for case in cases if case.kind == "receive" or case is last[case.kind])
    return ast.Select(start, end, tuple(kept))


def receive(start: int, end: int, name: str, source: Node, body: Block) -> ast.SelectCase:
    return ast.SelectCase(start, end, "receive", name, source, body)


def timeout(start: int, end: int, source: Node, body: Block) -> ast.SelectCase:
    return ast.SelectCase(start, end, "timeout", None, source, body)


def default(start: int, end: int, body: Block) -> ast.SelectCase:
    return ast.SelectCase(start, end, "default", None, None, body)


# Expressions and literals. Spec: 01 §5, §7.7.


def closed_range(start: int, end: int, first: Node, last: Node) -> ast.RangeTo:
    return ast.RangeTo(start, end, first, last, False)


def open_range(start: int, end: int, first: Node, last: Node) -> ast.RangeTo:
    return ast.RangeTo(start, end, first, last, True)


def binary(start: int, end: int, left: Node, op: str, right: Node) -> ast.Binary:
    return ast.Binary(start, end, op, left, right)


def not_(start: int, end: int, operand: Node) -> ast.Unary:
    return ast.Unary(start, end, "!", operand)


def negative(start: int, end: int, operand: Node) -> ast.Unary:
    return ast.Unary(start, end, "-", operand)


def member(start: int, end: int, object: Node, name: str) -> ast.Member:
    return ast.Member(start, end, object, name, False)


def optional_member(start: int, end: int, object: Node, name: str) -> ast.Member:
    return ast.Member(start, end, object, name, True)


def method_call(start: int, end: int, object: Node, name: str, args: tuple[Node, ...]) -> ast.MethodCall:
    return ast.MethodCall(start, end, object, name, args, False)


def optional_call(start: int, end: int, object: Node, name: str, args: tuple[Node, ...]) -> ast.MethodCall:
    return ast.MethodCall(start, end, object, name, args, True)


def index(start: int, end: int, object: Node, index: Node) -> ast.Index:
    return ast.Index(start, end, object, index, False)


def optional_index(start: int, end: int, object: Node, index: Node) -> ast.Index:
    return ast.Index(start, end, object, index, True)


def call(start: int, end: int, name: str, args: tuple[Node, ...]) -> ast.Call:
    return ast.Call(start, end, name, (), args)


def generic_call(
    start: int, end: int, name: str, type_args: tuple[Node, ...], args: tuple[Node, ...]
) -> ast.Call:
    return ast.Call(start, end, name, type_args, args)


def callee(start: int, end: int, value: Node) -> str:
    if not isinstance(value, ast.Name):
        raise Reject(SEPARATOR)
    return value.name


def struct_literal(start: int, end: int, name: str, entries: Maybe) -> ast.StructLit:
    return ast.StructLit(start, end, name, tuple(entries or ()))


def list_(start: int, end: int, items: Maybe) -> ast.List:
    return ast.List(start, end, tuple(items or ()))


def dict_(start: int, end: int, entries: Maybe) -> ast.Dict:
    return ast.Dict(start, end, tuple(entries or ()))


def entry(start: int, end: int, key: str, value: Node) -> ast.DictEntry:
    return ast.DictEntry(start, end, ast.Str(start, start + len(key), key, False), value, False)


def computed_entry(start: int, end: int, key: Node, value: Node) -> ast.DictEntry:
    # `["k"]: v` and `k: v` are one entry, and the printer needs the freedom to choose.
    written = isinstance(key, ast.Str) and not key.raw
    return ast.DictEntry(start, end, key, value, not written)


def closure(start: int, end: int, params: tuple[Param, ...], body: Block) -> ast.Closure:
    return ast.Closure(start, end, params, body)


def arm(start: int, end: int, patterns: Nodes, guard: Node | None, body: Block) -> ast.Arm:
    return ast.Arm(start, end, tuple(patterns), guard, body)


def match(start: int, end: int, value: Node, arms: list[ast.Arm] | None) -> ast.Match:
    return ast.Match(start, end, value, tuple(arms or ()))


def catch(start: int, end: int, body: Block) -> ast.Catch:
    return ast.Catch(start, end, None, None, body)


def catch_name(start: int, end: int, name: str, body: Block) -> ast.Catch:
    return ast.Catch(start, end, name, None, body)


def catch_typed(start: int, end: int, name: str, type: Node | None, body: Block) -> ast.Catch:
    return ast.Catch(start, end, name, type, body)


def option_name(start: int, end: int, name: str) -> str:
    if name != "max_concurrent":
        raise Reject(
            "known option (only `max_concurrent` is supported in "
            f"`parallel ... with {{ ... }}`; got `{name}`)",
            start,
            name,
        )
    return name


def option(start: int, end: int, name: str, value: Node) -> Node:
    return value


def with_(start: int, end: int, options: Maybe) -> Node | None:
    return options[-1] if options else None


def parallel_body(start: int, end: int, param: str, body: Block) -> tuple[str | None, Block]:
    return param, body


def parallel_bare(start: int, end: int, statements: Maybe) -> tuple[str | None, Block]:
    return None, Block(start, end, tuple(statements or ()))


def as_stream(start: int, end: int, word: str) -> int:
    return start


def parallel(
    start: int,
    end: int,
    mode: str | None,
    source: Node,
    max_concurrent: Node | None,
    body: tuple[str | None, Block],
    stream: int | None,
) -> ast.Parallel:
    if stream is not None and mode != "each":
        raise Reject("`as stream` is only valid after `parallel each ... { ... }`", stream, "as stream")
    return ast.Parallel(start, end, mode or "count", source, max_concurrent, *body, stream is not None)


def name(start: int, end: int, name: str) -> ast.Name:
    return ast.Name(start, end, name)


def string(start: int, end: int, value: str) -> ast.Str:
    return ast.Str(start, end, value, False)


def raw_string(start: int, end: int, value: str) -> ast.Str:
    return ast.Str(start, end, value, True)


def int_(start: int, end: int, value: int) -> ast.Int:
    return ast.Int(start, end, value)


def float_(start: int, end: int, value: float) -> ast.Float:
    return ast.Float(start, end, value)


def true(start: int, end: int) -> ast.Bool:
    return ast.Bool(start, end, True)


def false(start: int, end: int) -> ast.Bool:
    return ast.Bool(start, end, False)


# Types. Spec: 01 §7.9.


def union(start: int, end: int, members: Nodes) -> ast.TypeUnion:
    return ast.TypeUnion(start, end, tuple(members))


def type_name(start: int, end: int, name: str) -> ast.TypeName:
    return ast.TypeName(start, end, name, ())


def type_generic(start: int, end: int, name: str, args: tuple[Node, ...]) -> ast.TypeName:
    return ast.TypeName(start, end, name, args)


def type_nil(start: int, end: int) -> ast.TypeName:
    return ast.TypeName(start, end, "nil", ())


def type_bool(start: int, end: int) -> ast.TypeName:
    return ast.TypeName(start, end, "bool", ())


def type_negative(start: int, end: int, value: int) -> ast.TypeLiteral:
    return ast.TypeLiteral(start, end, -value)


def type_list(start: int, end: int, item: Node) -> ast.TypeName:
    return ast.TypeName(start, end, "list", (item,))


def type_shape(start: int, end: int, fields: list[ast.ShapeField] | None) -> ast.TypeShape:
    return ast.TypeShape(start, end, tuple(fields or ()))


def shape_field(start: int, end: int, name: str, optional: bool | None, type: Node) -> ast.ShapeField:
    return ast.ShapeField(start, end, name, optional is not None, type)


def type_fn(start: int, end: int, params: Maybe, returns: Node) -> ast.TypeFn:
    return ast.TypeFn(start, end, tuple(params or ()), returns)
