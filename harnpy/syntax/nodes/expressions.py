"""Expressions and literals. Spec: 01 §5, §7.7."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast import Block, Node, Param
from harnpy.syntax.nodes.lists import Maybe
from harnpy.syntax.refusal import SEPARATOR, Reject

Nodes = list[Node]


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
