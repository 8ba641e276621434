"""Hypothesis strategies for Harn programs: trees that some source text parses to.

A tree that no text has is left out: an unbalanced brace in a string inside an interpolation, a union
whose function type is not last, a `for` over the name `not`. Positions are 0 throughout; they take no
part in equality.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from hypothesis import strategies as st

from harnpy.syntax import ast
from harnpy.syntax.ast import Block, Node
from harnpy.syntax.layout import MEMBER_WORDS
from harnpy.syntax.lexer import CONTEXTUAL

Strategy = st.SearchStrategy[Any]

NAMES = st.sampled_from(["x", "xs", "item", "a_1", "é_1", "Ω", "_", "r", "Foo", "self", *sorted(CONTEXTUAL)])
TYPE_NAMES = st.sampled_from(["Foo", "Point", "Ünit"])
MEMBERS = NAMES | st.sampled_from(sorted(MEMBER_WORDS))
TEXTS = st.text(
    st.one_of(st.sampled_from(list("\"\\${}\n\tnr '")), st.characters(exclude_categories=["Cs"])), max_size=12
)


def node(cls: type[Node], *fields: Any) -> Strategy:
    """A node of that class; each field is a strategy or a constant."""
    parts = [field if isinstance(field, st.SearchStrategy) else st.just(field) for field in fields]
    return st.tuples(*parts).map(lambda values: cls(0, 0, *values))


def maybe(strategy: Strategy) -> Strategy:
    return st.none() | strategy


def several(strategy: Strategy, least: int = 0, most: int = 3) -> Strategy:
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


# --- types ----------------------------------------------------------------------------------------


def _types() -> Strategy:
    leaves = st.one_of(
        node(ast.TypeName, st.sampled_from(["int", "string", "nil", "bool", "any", "Foo"]), ()),
        node(ast.TypeLiteral, TEXTS | st.integers(-(2**63) + 1, 2**63 - 1)),
    )
    return st.recursive(leaves, _type_of, max_leaves=5)


def _type_of(inner: Strategy) -> Strategy:
    field = node(ast.ShapeField, MEMBERS, st.booleans(), inner)
    function = node(ast.TypeFn, several(inner), inner)
    member = inner.filter(lambda type: not isinstance(type, ast.TypeUnion | ast.TypeFn))
    return st.one_of(
        node(ast.TypeName, st.sampled_from(["list", "dict", "iter"]), several(inner, 1)),
        node(ast.TypeShape, several(field)),
        function,
        node(ast.TypeUnion, st.tuples(member, member | function)),
    )


TYPES = st.deferred(_types)
TYPE_PARAMS = several(node(ast.TypeParam, NAMES, st.sampled_from(["", "in", "out"])), most=2)

# --- expressions ----------------------------------------------------------------------------------

_STRINGS = st.one_of(
    node(ast.Str, TEXTS, False),
    node(ast.Str, TEXTS.map(lambda text: text.replace('"', "").replace("\n", "")), True),
)
_LITERALS = st.one_of(
    node(ast.Int, st.integers(0, 2**63 - 1)),
    node(ast.Float, st.floats(min_value=0, allow_nan=False).filter(lambda value: str(value) != "-0.0")),
    node(ast.Duration, st.integers(0, 2**63 - 1)),
    node(ast.Bool, st.booleans()),
    node(ast.Nil),
    _STRINGS,
)
_BINARY_OPS = [*"+ - * / % ** == != < > <= >= && || ??".split(), "in", "not in"]


def _param(default: Strategy, **known: Any) -> Strategy:
    return node(ast.Param, NAMES, maybe(TYPES), default, known.get("rest", False))


def params(expression: Strategy) -> Strategy:
    """Required parameters, then those with defaults, then perhaps the rest."""
    groups = st.tuples(
        st.lists(_param(st.none()), max_size=2),
        st.lists(_param(expression), max_size=1),
        st.lists(_param(st.none(), rest=True), max_size=1),
    )
    return groups.map(lambda found: tuple(chain(*found)))


def _balanced(value: Node) -> bool:
    """Whether the node can stand in ``${…}``, which ends where its braces balance."""
    from harnpy.syntax.printer import Printer

    text, depth = Printer(10**9).expression(value), 0
    for char in text:
        depth += (char == "{") - (char == "}")
        if depth < 0:
            return False
    return depth == 0


def _interpolated(inner: Strategy) -> Strategy:
    hole = inner.filter(lambda value: not isinstance(value, ast.Str) and _balanced(value))
    text = node(ast.Str, TEXTS.filter(bool), False)
    holes = st.lists(hole, max_size=2)
    return st.tuples(maybe(text), holes, maybe(text)).map(_alternate)


def _alternate(found: tuple[Node | None, list[Node], Node | None]) -> Node:
    """Texts at the ends only: neighbouring texts would be one."""
    before, holes, after = found
    if not holes:
        after = None
    return ast.Interp(0, 0, tuple(part for part in (before, *holes, after) if part is not None))


def _expressions() -> Strategy:
    leaves = _LITERALS | node(ast.Name, NAMES)
    return st.recursive(leaves, _expression_of, max_leaves=8)


def _expression_of(inner: Strategy) -> Strategy:
    spread = node(ast.Spread, inner)
    items = several(inner | spread)
    written = node(ast.DictEntry, node(ast.Str, MEMBERS | TEXTS, False), inner, False)
    computed = node(
        ast.DictEntry, inner.filter(lambda key: not isinstance(key, ast.Str) or key.raw), inner, True
    )
    entries = several(written | computed | spread)
    struct_entries = st.tuples(written, entries).map(lambda found: (found[0], *found[1])) | st.just(())
    block = blocks(inner)
    postfix = st.one_of(
        node(ast.Member, inner, MEMBERS, st.booleans()),
        node(ast.MethodCall, inner, MEMBERS, items, st.booleans()),
        node(ast.Index, inner, inner, st.booleans()),
        node(ast.Slice, inner, maybe(inner), maybe(inner)),
        node(ast.Propagate, inner),
        node(ast.Call, NAMES, several(TYPES, most=2) | st.just(()), items),
        node(ast.StructLit, TYPE_NAMES, struct_entries),
    )
    operators = st.one_of(
        node(ast.Binary, st.sampled_from(_BINARY_OPS), inner, inner),
        node(ast.Unary, st.sampled_from("!-"), inner),
        node(ast.TryStar, inner),
        node(ast.Ternary, inner, inner, inner),
        node(ast.RangeTo, inner, inner, st.booleans()),
        node(ast.Pipe, inner, inner),
    )
    containers = st.one_of(
        node(ast.List, items),
        node(ast.Dict, entries),
        node(ast.Closure, params(inner), block),
        node(ast.FnExpr, params(inner), block),
        _interpolated(inner),
    )
    return st.one_of(operators, postfix, containers, _blocky(inner, block))


def _blocky(inner: Strategy, block: Strategy) -> Strategy:
    if_ = node(ast.If, inner, block, maybe(block))
    arm = node(ast.Arm, several(inner, 1, 2), maybe(inner), block)
    catch = st.one_of(node(ast.Catch, None, None, block), node(ast.Catch, NAMES, maybe(TYPES), block))
    each = node(ast.Parallel, "each", inner, maybe(inner), maybe(NAMES), block, st.booleans())
    kinds = st.sampled_from(["count", "settle"])
    return st.one_of(
        if_,
        node(ast.If, inner, block, if_),
        node(ast.Match, inner, several(arm)),
        node(ast.Try, block, maybe(catch), maybe(block)),
        node(ast.Retry, inner, block),
        node(ast.Deadline, inner, block),
        node(ast.Spawn, block),
        each,
        node(ast.Parallel, kinds, inner, maybe(inner), maybe(NAMES), block, False),
    )


def blocks(expression: Strategy) -> Strategy:
    """Short blocks of simple statements."""
    simple = st.one_of(
        expression,
        node(ast.Return, maybe(expression)),
        node(ast.Throw, expression),
        node(ast.Let, node(ast.NamePattern, NAMES), maybe(TYPES), expression, st.booleans()),
    )
    return node(Block, several(simple, most=2))


EXPRESSIONS = st.deferred(_expressions)

# --- statements and declarations ------------------------------------------------------------------


def _entries(key: Strategy) -> Strategy:
    return several(node(ast.PatternEntry, key, NAMES, maybe(EXPRESSIONS)))


_DESTRUCTURING = st.one_of(
    node(ast.DictPattern, _entries(NAMES), maybe(NAMES)),
    node(ast.ListPattern, _entries(st.none()), maybe(NAMES)),
)
_TARGETS = st.one_of(
    node(ast.Name, NAMES),
    node(ast.Member, EXPRESSIONS, MEMBERS, False),
    node(ast.Index, EXPRESSIONS, EXPRESSIONS, False),
)
_LOOP_NAMES = NAMES.filter(lambda name: name != "not")
_FOR_PATTERNS = st.one_of(
    node(ast.NamePattern, _LOOP_NAMES), _DESTRUCTURING, node(ast.PairPattern, NAMES, NAMES)
)


def _statements() -> Strategy:
    return st.recursive(_simple_statements(), _compound, max_leaves=6)


def _simple_statements() -> Strategy:
    typed = node(ast.Let, node(ast.NamePattern, NAMES), maybe(TYPES), EXPRESSIONS, st.booleans())
    return st.one_of(
        EXPRESSIONS,
        typed,
        node(ast.Let, _DESTRUCTURING, None, EXPRESSIONS, st.booleans()),
        node(ast.Assign, _TARGETS, st.sampled_from("= += -= *= /= %=".split()), EXPRESSIONS),
        node(ast.Return, maybe(EXPRESSIONS)),
        node(ast.Yield, maybe(EXPRESSIONS)),
        node(ast.Throw, EXPRESSIONS),
        node(ast.Emit, EXPRESSIONS),
        node(ast.Break),
        node(ast.Continue),
        node(ast.Require, EXPRESSIONS, maybe(EXPRESSIONS)),
    )


def _compound(inner: Strategy) -> Strategy:
    block = node(Block, several(inner))
    case_name = NAMES.filter(lambda name: name not in ("timeout", "default"))
    receive = node(ast.SelectCase, "receive", case_name, EXPRESSIONS, block)
    timeout = node(ast.SelectCase, "timeout", None, EXPRESSIONS, block)
    default = node(ast.SelectCase, "default", None, None, block)
    cases = st.tuples(several(receive, 1, 2), several(timeout | default, most=1)).map(lambda c: c[0] + c[1])
    return st.one_of(
        node(ast.For, _FOR_PATTERNS, EXPRESSIONS, block),
        node(ast.While, EXPRESSIONS, block),
        node(ast.Guard, EXPRESSIONS, block),
        node(ast.Defer, block),
        node(ast.Mutex, block),
        node(ast.Select, cases),
        _declarations(block),
    )


_ATTR_VALUES = st.recursive(
    st.one_of(
        _LITERALS.filter(lambda value: not isinstance(value, ast.Duration)),
        node(ast.Name, NAMES),
        node(ast.Unary, "-", node(ast.Int, st.integers(0, 9))),
    ),
    lambda inner: node(ast.List, several(inner)),
    max_leaves=3,
)
_ATTRS = several(
    node(ast.Attribute, NAMES, several(node(ast.AttrArg, maybe(NAMES), _ATTR_VALUES), most=2)), most=2
)


def _declarations(block: Strategy) -> Strategy:
    pub, parameters, returns = st.booleans(), params(EXPRESSIONS), maybe(TYPES)
    where = several(st.tuples(NAMES, NAMES), most=2)
    function = (NAMES, TYPE_PARAMS, parameters, returns, where, block)
    # `gen` before `fn` at the start of a line is the keyword: no field with a function is called that.
    skill_field = node(ast.SkillField, NAMES.filter(lambda name: name != "gen"), EXPRESSIONS)
    signature = node(ast.MethodSig, NAMES, TYPE_PARAMS, parameters, returns)
    member = signature | node(ast.AssocType, NAMES, maybe(TYPES))
    return st.one_of(
        node(ast.FnDecl, _ATTRS, pub, st.booleans(), *function),
        node(ast.ToolDecl, _ATTRS, pub, NAMES, parameters, returns, maybe(TEXTS), block),
        node(ast.SkillDecl, _ATTRS, pub, NAMES, several(skill_field)),
        node(
            ast.EvalPack,
            _ATTRS,
            pub,
            NAMES,
            maybe(TEXTS),
            several(skill_field),
            block.map(lambda body: body.statements),
            maybe(block),
        ),
        node(ast.EnumDecl, _ATTRS, pub, NAMES, TYPE_PARAMS, several(node(ast.Variant, NAMES, parameters))),
        node(
            ast.StructDecl,
            _ATTRS,
            pub,
            NAMES,
            TYPE_PARAMS,
            several(node(ast.Field, NAMES, st.booleans(), maybe(TYPES))),
        ),
        node(ast.InterfaceDecl, _ATTRS, NAMES, TYPE_PARAMS, several(member)),
        node(ast.ImplDecl, _ATTRS, NAMES, several(node(ast.FnDecl, (), pub, False, *function), most=2)),
        node(ast.TypeDecl, _ATTRS, NAMES, TYPE_PARAMS, TYPES),
        node(ast.Override, NAMES, several(NAMES), block),
    )


STATEMENTS = st.deferred(_statements)


def _programs() -> Strategy:
    block = node(Block, several(STATEMENTS, most=2))
    imports = node(ast.Import, maybe(several(NAMES)), TEXTS, st.booleans())
    pipeline = node(
        ast.Pipeline, _ATTRS, st.booleans(), NAMES, several(NAMES), maybe(TYPES), maybe(NAMES), block
    )
    return node(ast.Program, several(STATEMENTS | imports | pipeline, most=4))


PROGRAMS = st.deferred(_programs)
