"""What each production of the grammar builds, and how a builder refuses a text. Spec: 01 §5-§8, §9.2.

A builder gets the offsets of its production and the values of its children, in the order of the grammar.
Those that only arrange what they get are a table, at the end. A production whose children are just the fields
of a node has none: `tables.builder` finds the class. Rules of syntax that a grammar cannot express are
checked here, at the token where the specification reports them.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast import Block, Node, Param
from harnpy.syntax.lexer import RESERVED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
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


def more(start: int, end: int, items: list[Any], item: Any) -> list[Any]:
    # In place: there is no other holder yet, and a copy each time would make long lists quadratic.
    items.append(item)
    return items


# Imports, attributes, declarations, parameters. Spec: 01 §7.2, §7.4, §7.8.


Nodes = list[Node]


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


def tool(
    start: int,
    end: int,
    name: str,
    params: tuple[Param, ...],
    returns: Node | None,
    body: tuple[str | None, Block],
) -> ast.ToolDecl:
    return ast.ToolDecl(start, end, (), False, name, params, returns, *body)


class _Summarize(Node):
    """An eval pack's ``summarize`` block, until the pack is complete."""

    body: Block


def eval_id(start: int, end: int, id: str) -> tuple[str, str | None]:
    """The binding's name made from the id (01 §7.8)."""
    import re

    name = re.sub(r"[^a-z0-9_]+", "_", id.lower()).strip("_")
    if not name or name in RESERVED or name[0].isdigit():
        name = "eval_pack_" + name
    return name, id


def more_eval_items(start: int, end: int, items: Nodes, item: Node) -> Nodes:
    if isinstance(item, _Summarize) and any(isinstance(other, _Summarize) for other in items):
        raise Reject("one summarize block", item.start, "duplicate summarize block")
    return more(start, end, items, item)


def eval_pack(start: int, end: int, names: tuple[str, str | None], items: Maybe) -> ast.EvalPack:
    fields = tuple(item for item in items or () if isinstance(item, ast.SkillField))
    summaries = [item.body for item in items or () if isinstance(item, _Summarize)]
    body = tuple(item for item in items or () if not isinstance(item, ast.SkillField | _Summarize))
    return ast.EvalPack(start, end, (), False, *names, fields, body, summaries[0] if summaries else None)


def enum(start: int, end: int, name: str, type_params: Any, variants: Maybe) -> ast.EnumDecl:
    return ast.EnumDecl(start, end, (), False, name, type_params or (), tuple(variants or ()))


def struct(start: int, end: int, name: str, type_params: Any, fields: Maybe) -> ast.StructDecl:
    return ast.StructDecl(start, end, (), False, name, type_params or (), tuple(fields or ()))


def method_sig(
    start: int, end: int, name: str, type_params: Any, params: tuple[Param, ...], returns: Node | None
) -> ast.MethodSig:
    return ast.MethodSig(start, end, name, type_params or (), params, returns)


def interface(start: int, end: int, name: str, type_params: Any, members: Maybe) -> ast.InterfaceDecl:
    return ast.InterfaceDecl(start, end, (), name, type_params or (), tuple(members or ()))


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


# Statements and the patterns of `let`, `var` and `for`. Spec: 01 §7.5, §7.6.


def expression_statement(start: int, end: int, value: Node) -> Node:
    """At the beginning of a statement `fn` is a declaration, which needs a name."""
    leftmost: Node | None = value
    while leftmost is not None and leftmost.start == start:
        if isinstance(leftmost, ast.FnExpr):
            raise Reject("function name", start, skip=1)
        leftmost = next(iter(leftmost.children()), None)
    return value


def target(start: int, end: int, value: Node) -> Node:
    if isinstance(value, ast.Name) or (isinstance(value, ast.Member | ast.Index) and not value.optional):
        return value
    raise Reject(SEPARATOR)


def select(start: int, end: int, cases: list[ast.SelectCase] | None) -> ast.Select:
    """A later ``timeout`` or ``default`` replaces an earlier one (01 §7.6)."""
    if not cases:
        raise Reject("at least one select case")
    last = {case.kind: case for case in cases if case.kind != "receive"}
    if len(last) == 2:
        raise Reject("select cannot have both timeout and default")
    kept = (case for case in cases if case.kind == "receive" or case is last[case.kind])
    return ast.Select(start, end, tuple(kept))


# Expressions and literals. Spec: 01 §5, §7.7.


def callee(start: int, end: int, value: Node) -> str:
    if not isinstance(value, ast.Name):
        raise Reject(SEPARATOR)
    return value.name


def computed_entry(start: int, end: int, key: Node, value: Node) -> ast.DictEntry:
    # `["k"]: v` and `k: v` are one entry, and the printer needs the freedom to choose.
    written = isinstance(key, ast.Str) and not key.raw
    return ast.DictEntry(start, end, key, value, not written)


def option_name(start: int, end: int, name: str) -> str:
    if name != "max_concurrent":
        raise Reject(
            "known option (only `max_concurrent` is supported in "
            f"`parallel ... with {{ ... }}`; got `{name}`)",
            start,
            name,
        )
    return name


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


#: Builders that refuse nothing; ``s`` and ``e`` are where the production starts and ends.
ARRANGED: dict[str, Callable[..., Any]] = {
    # Sequences, blocks and the program.
    "first": lambda s, e, item: [item],
    "two": lambda s, e, left, right: [left, right],
    "pair": lambda s, e, left, right: (left, right),
    "sequence": lambda s, e, items: tuple(items or ()),
    "present": lambda s, e, mark=None: True,
    "program": lambda s, e, items: ast.Program(s, e, tuple(items or ())),
    "block": lambda s, e, statements: Block(s, e, tuple(statements or ())),
    # Imports, attributes, declarations, parameters. Spec: 01 §7.2, §7.4, §7.8.
    "import_all": lambda s, e, path: ast.Import(s, e, None, path, False),
    "import_names": lambda s, e, names, path: ast.Import(s, e, tuple(names or ()), path, False),
    "import_decl": lambda s, e, tail: _replace(tail, s),
    "attribute": lambda s, e, name, args: ast.Attribute(s, e, name, tuple(args or ())),
    "attr_arg": lambda s, e, value: ast.AttrArg(s, e, None, value),
    "named_attr_arg": ast.AttrArg,
    "name_attr_arg": lambda s, e, name: ast.AttrArg(s, e, None, ast.Name(s, e, name)),
    "override": lambda s, e, name, params, body: ast.Override(s, e, name, tuple(params or ()), body),
    "method": lambda s, e, *fields: fn_decl(s, e, None, *fields),
    "pub_method": lambda s, e, *fields: pub(s, e, fn_decl(s, e, None, *fields)),
    "tool_body": lambda s, e, body: (None, body),
    "described": lambda s, e, description: (description, Block(s, e, ())),
    "described_body": lambda s, e, description, statements: (description, Block(s, e, tuple(statements))),
    "skill": lambda s, e, name, fields: ast.SkillDecl(s, e, (), False, name, tuple(fields or ())),
    "eval_name": lambda s, e, name, id: (name, id),
    "eval_field": ast.SkillField,
    "summarize": _Summarize,
    "variant": lambda s, e, name, params: ast.Variant(s, e, name, params or ()),
    "field": lambda s, e, name, optional, type: ast.Field(s, e, name, optional is not None, type),
    "impl": lambda s, e, name, methods: ast.ImplDecl(s, e, (), name, tuple(methods or ())),
    "type_decl": lambda s, e, name, type_params, type: ast.TypeDecl(s, e, (), name, type_params or (), type),
    "invariant": lambda s, e, name: ast.TypeParam(s, e, name, ""),
    "type_in": lambda s, e, name: ast.TypeParam(s, e, name, "in"),
    "type_out": lambda s, e, name: ast.TypeParam(s, e, name, "out"),
    "params": lambda s, e, items: tuple(items or ()),
    "param": lambda s, e, name, type, default: Param(s, e, name, type, default, False),
    "rest_param": lambda s, e, name, type, default: Param(s, e, name, type, default, True),
    # Statements and the patterns of `let`, `var` and `for`. Spec: 01 §7.5, §7.6.
    "let": lambda s, e, binding, value: ast.Let(s, e, *binding, value, False),
    "var": lambda s, e, binding, value: ast.Let(s, e, *binding, value, True),
    "untyped": lambda s, e, name: (ast.NamePattern(s, e, name), None),
    "typed": lambda s, e, name, type: (ast.NamePattern(s, s + len(name), name), type),
    "bind_pattern": lambda s, e, pattern: (pattern, None),
    "name_pattern": ast.NamePattern,
    "dict_pattern": lambda s, e, names: ast.DictPattern(s, e, *(names or ((), None))),
    "list_pattern": lambda s, e, names: ast.ListPattern(s, e, *(names or ((), None))),
    "pattern_names": lambda s, e, names: (tuple(names), None),
    "pattern_names_rest": lambda s, e, names, rest: (tuple(names), rest),
    "pattern_rest": lambda s, e, rest: ((), rest),
    "dict_name": lambda s, e, key, alias, default: ast.PatternEntry(s, e, key, alias or key, default),
    "list_name": lambda s, e, name, default: ast.PatternEntry(s, e, None, name, default),
    "receive": lambda s, e, name, source, body: ast.SelectCase(s, e, "receive", name, source, body),
    "timeout": lambda s, e, source, body: ast.SelectCase(s, e, "timeout", None, source, body),
    "default": lambda s, e, body: ast.SelectCase(s, e, "default", None, None, body),
    # Expressions and literals. Spec: 01 §5, §7.7.
    "closed_range": lambda s, e, first, last: ast.RangeTo(s, e, first, last, False),
    "open_range": lambda s, e, first, last: ast.RangeTo(s, e, first, last, True),
    "binary": lambda s, e, left, op, right: ast.Binary(s, e, op, left, right),
    "not_": lambda s, e, operand: ast.Unary(s, e, "!", operand),
    "negative": lambda s, e, operand: ast.Unary(s, e, "-", operand),
    "member": lambda s, e, object, name: ast.Member(s, e, object, name, False),
    "optional_member": lambda s, e, object, name: ast.Member(s, e, object, name, True),
    "method_call": lambda s, e, object, name, args: ast.MethodCall(s, e, object, name, args, False),
    "optional_call": lambda s, e, object, name, args: ast.MethodCall(s, e, object, name, args, True),
    "index": lambda s, e, object, index: ast.Index(s, e, object, index, False),
    "optional_index": lambda s, e, object, index: ast.Index(s, e, object, index, True),
    "call": lambda s, e, name, args: ast.Call(s, e, name, (), args),
    "generic_call": ast.Call,
    "struct_literal": lambda s, e, name, entries: ast.StructLit(s, e, name, tuple(entries or ())),
    "list_": lambda s, e, items: ast.List(s, e, tuple(items or ())),
    "dict_": lambda s, e, entries: ast.Dict(s, e, tuple(entries or ())),
    "entry": lambda s, e, key, value: ast.DictEntry(s, e, ast.Str(s, s + len(key), key, False), value, False),
    "closure": ast.Closure,
    "arm": lambda s, e, patterns, guard, body: ast.Arm(s, e, tuple(patterns), guard, body),
    "match": lambda s, e, value, arms: ast.Match(s, e, value, tuple(arms or ())),
    "catch": lambda s, e, body: ast.Catch(s, e, None, None, body),
    "catch_name": lambda s, e, name, body: ast.Catch(s, e, name, None, body),
    "catch_typed": ast.Catch,
    "option": lambda s, e, name, value: value,
    "with_": lambda s, e, options: options[-1] if options else None,
    "parallel_body": lambda s, e, param, body: (param, body),
    "parallel_bare": lambda s, e, statements: (None, Block(s, e, tuple(statements or ()))),
    "as_stream": lambda s, e, word: s,
    "name": ast.Name,
    "string": lambda s, e, value: ast.Str(s, e, value, False),
    "raw_string": lambda s, e, value: ast.Str(s, e, value, True),
    "int_": ast.Int,
    "float_": ast.Float,
    "true": lambda s, e: ast.Bool(s, e, True),
    "false": lambda s, e: ast.Bool(s, e, False),
    # Types. Spec: 01 §7.9.
    "union": lambda s, e, members: ast.TypeUnion(s, e, tuple(members)),
    "type_name": lambda s, e, name: ast.TypeName(s, e, name, ()),
    "type_generic": ast.TypeName,
    "type_nil": lambda s, e: ast.TypeName(s, e, "nil", ()),
    "type_bool": lambda s, e: ast.TypeName(s, e, "bool", ()),
    "type_negative": lambda s, e, value: ast.TypeLiteral(s, e, -value),
    "type_list": lambda s, e, item: ast.TypeName(s, e, "list", (item,)),
    "type_shape": lambda s, e, fields: ast.TypeShape(s, e, tuple(fields or ())),
    "shape_field": lambda s, e, name, optional, type: ast.ShapeField(s, e, name, optional is not None, type),
    "type_fn": lambda s, e, params, returns: ast.TypeFn(s, e, tuple(params or ()), returns),
}
