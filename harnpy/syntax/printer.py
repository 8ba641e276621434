"""A tree as canonical text: ``parse(print_program(tree)) == tree``. Spec: 01 §5, §12.

Every method gives the text of one kind of node, at the left margin; whoever holds it indents it. Parentheses
stand only where the tree needs them. Strings never contain a line break of their own, so indenting changes no
value. Widths count from the beginning of the sequence, which makes the text of a node independent of where it
stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from harnpy.syntax import ast
from harnpy.syntax.ast import Block, Node
from harnpy.syntax.comments import Unwritten
from harnpy.syntax.lexer import RESERVED
from harnpy.syntax.print_literals import (
    braces,
    duration_text,
    escaped,
    float_text,
    indented,
    is_bare_key,
    is_identifier,
    param_text,
    quoted,
    same_code,
    spans_lines,
    type_params_text,
    type_text,
    widest,
)

LINE_WIDTH = 100

_UNARY, _POSTFIX, _PRIMARY = 12, 13, 14
_BINARY_LEVELS = {
    "||": 4, "&&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7, "in": 7, "not in": 7,
    "+": 8, "-": 8, "??": 9, "*": 10, "/": 10, "%": 10, "**": 11,
}  # fmt: skip
#: Levels of precedence (01 §5). What is not here binds tightest.
_LEVELS: dict[type[Node], int] = {
    # Never an operand without parentheses: a `?` or a block reads on into what follows.
    **dict.fromkeys(
        (
            ast.Propagate,
            ast.FnExpr,
            ast.If,
            ast.Match,
            ast.Try,
            ast.Retry,
            ast.Deadline,
            ast.Spawn,
            ast.Parallel,
        ),
        0,
    ),
    ast.Pipe: 1,
    ast.RangeTo: 2,
    ast.Ternary: 3,
    ast.Unary: _UNARY,
    ast.TryStar: _UNARY,
    **dict.fromkeys((ast.Member, ast.MethodCall, ast.Index, ast.Slice), _POSTFIX),
}
#: A line cannot break before these without a backslash.
_STICKY = ("-", "in", "not in")
_POSTFIXES = ast.Member | ast.MethodCall | ast.Index | ast.Slice
_LITERALS = ast.Str | ast.Interp | ast.Int | ast.Float | ast.Duration | ast.Bool | ast.Nil
#: A ternary's first branch may only begin with these, or `?` reads as something else (01 §8.4).
_TERNARY_BEGINS = ("true", "false", "nil", '"', "(", "{", "!", "-", "fn(")
_NUMBER_OR_WORD = re.compile(r"[0-9]+(?:\.[0-9]+)?(?![0-9.]*[a-z])|(?!r\")[^\W\d]\w*")


class _MethodCall(NamedTuple):
    """A call behind a receiver: its name with the dot, its arguments, where its parentheses are written."""

    name: str
    args: list[str]
    span: tuple[int, int]
    dotted: bool


class Printer:
    """The text of a node by its class."""

    def __init__(self, line_width: int, written: Unwritten | None = None) -> None:
        self.line_width = line_width
        self.written = written or Unwritten()
        #: Blocks of one statement keep to the line, as the statement around them was written.
        self.is_compact = False

    def expression(self, node: Node, least: int = 0) -> str:
        """The text of ``node``, in parentheses if it binds looser than level ``least``."""
        line = LINES.get(type(node))
        text: str = line(self, node) if line else getattr(self, "visit_" + type(node).__name__)(node)
        return f"({text})" if _level(node) < least else text

    def head(self, node: Node, body: Block) -> str:
        """Return what stands before the ``{`` of ``body``."""
        text = self.expression(node, 1)
        # `Name {}` would be a struct literal.
        return f"({text})" if not body.statements and _ends_in_type_name(node) else text

    def sequence(
        self, opening: str, items: Sequence[str], closing: str, span: tuple[int, int], last: str = ","
    ) -> str:
        """Items between brackets: on one line, or one a line, each with a comma; ``last`` ends the last.

        ``span`` is where the brackets are written: a comment in there may need lines.
        """
        inside = ", ".join(items)
        width = len(opening) - opening.rfind("\n") - 1 + len(inside) + len(closing)
        commented = self.written.commented(span)
        if not commented and (not items or (not spans_lines(inside) and width <= self.line_width)):
            return opening + inside + closing
        lines = indented(",\n".join(items) + last) + "\n" if items else ""
        return f"{opening.rstrip()}\n{lines}{closing.lstrip()}"

    def type(self, node: Node) -> str:
        """The text of a type; a shape is a sequence of fields."""
        return type_text(node, self.sequence)

    # --- operators --------------------------------------------------------------------------------

    def visit_Binary(self, node: ast.Binary) -> str:
        # Down the left side in a loop: a sum of twenty thousand terms is a tree that deep.
        level = _BINARY_LEVELS[node.op]
        left: Node = node
        steps: list[tuple[str, str]] = []
        apart = False
        while isinstance(left, ast.Binary) and _BINARY_LEVELS[left.op] == level:
            steps.append((left.op, self.operand(left, left.right, level + 1)))
            apart = apart or self.written.apart(left.left, left.right)
            left = left.left
            if level == _BINARY_LEVELS["**"]:
                break
        first = self.operand(node, left, level + (level == _BINARY_LEVELS["**"]))
        return self.chain(first, steps[::-1], apart)

    def operand(self, node: ast.Binary, operand: Node, least: int) -> str:
        own = isinstance(operand, ast.Binary) and (
            {node.op, operand.op} == {"&&", "||"}
            # Few know how tight `??` binds: who said it once need not be misread.
            or (operand.op == "??" != node.op and self.written.parenthesised(operand))
        )
        return self.expression(operand, _PRIMARY if own else least)

    def chain(self, first: str, steps: Sequence[tuple[str, str]], apart: bool) -> str:
        """Operands on one line, or each operator at the beginning of a line; so if they were ``apart``."""
        broken = (
            apart or widest("".join([first, *(f" {op} {right}" for op, right in steps)])) > self.line_width
        )
        text = [first]
        for op, right in steps:
            if op == ">" and right.startswith("("):
                # `a < b > (c)` would be a generic call.
                text = ["(", *text, ")"]
            gap = " " if not broken else " \\\n  " if op in _STICKY else "\n  "
            text += [gap, op, " ", indented(right)[2:] if broken else right]
        return "".join(text)

    def visit_Pipe(self, node: ast.Pipe) -> str:
        left: Node = node
        steps: list[tuple[str, str]] = []
        apart = False
        while isinstance(left, ast.Pipe):
            steps.append(("|>", self.expression(left.right, 2)))
            apart = apart or self.written.apart(left.left, left.right)
            left = left.left
        return self.chain(self.expression(left, 2), steps[::-1], apart)

    def visit_RangeTo(self, node: ast.RangeTo) -> str:
        exclusive = " exclusive" if node.exclusive else ""
        return f"{self.expression(node.first, 3)} to {self.expression(node.last, 3)}{exclusive}"

    def visit_Ternary(self, node: ast.Ternary) -> str:
        then = self.expression(node.then, 4)
        if not then.startswith(_TERNARY_BEGINS) and not _ternary_word(then):
            then = f"({then})"
        return f"{self.expression(node.cond, 4)} ? {then} : {self.expression(node.otherwise, 4)}"

    # --- postfix ----------------------------------------------------------------------------------

    def postfix(self, node: Node) -> str:
        # Down the receivers in a loop, as with operators.
        links: list[str | _MethodCall] = []
        while isinstance(node, _POSTFIXES):
            links.append(self.link(node))
            node = node.object
        text = self.expression(node, _POSTFIX)
        folded = self.too_long(text, links)
        for link in reversed(links):
            if isinstance(link, str):
                text += link
            elif link.dotted or folded:
                text += "\n" + indented(self.sequence(f"{link.name}(", link.args, ")", link.span))
            else:
                text = self.sequence(f"{text}{link.name}(", link.args, ")", link.span)
        return text

    visit_Member = visit_MethodCall = visit_Index = visit_Slice = postfix

    def link(self, node: ast.Member | ast.MethodCall | ast.Index | ast.Slice) -> str | _MethodCall:
        """Return what stands behind the receiver."""
        mark = "" if isinstance(node, ast.Slice) or not node.optional else "?"
        if isinstance(node, ast.Member):
            return f"{mark}.{node.name}"
        if isinstance(node, ast.Index):
            return f"{mark}[{self.expression(node.index)}]"
        if isinstance(node, ast.Slice):
            first = "" if node.first is None else self.expression(node.first)
            last = "" if node.last is None else self.expression(node.last)
            return f"[{first}:{last}]"
        args = [self.expression(arg) for arg in node.args]
        span = self.written.closed(node.end)
        return _MethodCall(f"{mark}.{node.name}", args, span, self.written.dotted(node.object))

    def too_long(self, receiver: str, links: Sequence[str | _MethodCall]) -> bool:
        """Return True if the calls go to lines of their own: several, on one line that is too long."""
        calls = [link for link in links if isinstance(link, _MethodCall)]
        if len(calls) < 2 or any(call.dotted or self.written.commented(call.span) for call in calls):
            return False
        flat = receiver + "".join(
            link if isinstance(link, str) else f"{link.name}({', '.join(link.args)})" for link in links
        )
        return len(flat) > self.line_width and not spans_lines(flat)

    def visit_Call(self, node: ast.Call) -> str:
        types = ", ".join(map(self.type, node.type_args))
        name = f"{node.name}<{types}>" if types else node.name
        args = [self.expression(arg) for arg in node.args]
        text = self.sequence(f"{name}(", args, ")", self.written.closed(node.end))
        # The `->` of a function type would make a closure of a dict around the call.
        return f"({text})" if "->" in types else text

    # --- literals and names -----------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> str:
        # `not` before `in` is an operator.
        return "(not)" if node.name == "not" else node.name

    def visit_Str(self, node: ast.Str) -> str:
        if node.raw:
            return f'r"{node.value}"'
        return self.written.literal(node.start, node.end) or quoted(node.value)

    def visit_Interp(self, node: ast.Interp) -> str:
        verbatim = self.written.literal(node.start, node.end)
        if verbatim is not None:
            return verbatim
        text, source = self.interpolated(node), self.written.text(node.start, node.end)
        # The code of a source that says more has comments, or an end that the parser leaves out.
        return text if source is None or same_code(text, source) else source

    def interpolated(self, node: ast.Interp) -> str:
        """On one line, however long: what a string shows does not depend on the width."""
        inner = type(self)(10**9)
        text = "".join(
            escaped(part.value) if isinstance(part, ast.Str) else f"${{{inner.expression(part)}}}"
            for part in node.parts
        )
        # Without an expression it would be a plain string, which is allowed in more places.
        return f'"{text}"' if any(type(part) is not ast.Str for part in node.parts) else f'"{text}${{""}}"'

    def visit_Dict(self, node: ast.Dict) -> str:
        entries = [self.expression(entry) for entry in node.entries]
        return self.sequence("{", entries, "}", (node.start, node.end))

    def visit_DictEntry(self, node: ast.DictEntry) -> str:
        value = self.expression(node.value)
        if node.computed or not isinstance(node.key, ast.Str):
            return f"[{self.expression(node.key)}]: {value}"
        key = node.key.value
        return f"{key}: {value}" if is_bare_key(key) else f"[{quoted(key)}]: {value}"

    def visit_StructLit(self, node: ast.StructLit) -> str:
        entries = [self.expression(entry) for entry in node.entries]
        first = node.entries[0] if node.entries else None
        if isinstance(first, ast.DictEntry) and isinstance(first.key, ast.Str):
            # A struct literal begins with a key that is a plain name or a string; anything else is a block.
            key = first.key.value
            shown = key if is_identifier(key) and key not in RESERVED else quoted(key)
            entries[0] = f"{shown}: {self.expression(first.value)}"
        return self.sequence(f"{node.name} {{", entries, "}", (node.start, node.end))

    # --- functions and blocks ---------------------------------------------------------------------

    def visit_Closure(self, node: ast.Closure) -> str:
        params = ", ".join(map(self.param, node.params))
        head = f"{{ {params} ->" if params else "{ ->"
        body = [self.statement(statement) for statement in node.body.statements]
        if self.on_one_line(head, body, node):
            return " ".join([head, *body, "}"])
        inside = indented("\n".join(body)) + "\n" if body else ""
        return f"{head}\n{inside}}}"

    def parenthesised(self, name: str, start: int, params: Sequence[ast.Param] | Sequence[str]) -> str:
        """A name and the parameters that are written behind ``start``."""
        rest = any(isinstance(param, ast.Param) and param.rest for param in params)
        items = [param if isinstance(param, str) else self.param(param) for param in params]
        # A rest parameter may not be followed by a comma.
        return self.sequence(f"{name}(", items, ")", self.written.brackets(start), "" if rest else ",")

    def param(self, node: ast.Param) -> str:
        return param_text(node, self.expression, self.type)

    def inline(self, head: str, block: Block) -> str:
        """A block behind ``head``, on the same line when it holds one simple statement."""
        body = [self.statement(statement) for statement in block.statements]
        if body and self.on_one_line(head, body, block):
            return f"{head} {{ {body[0]} }}"
        return f"{head} {self.block(block)}"

    def on_one_line(self, head: str, body: Sequence[str], node: Node) -> bool:
        """Return True if the statements of a block can stand behind its head: one at most, and no comment."""
        if len(body) > 1 or self.written.commented((node.start, node.end)):
            return False
        width = len(head) - head.rfind("\n") + 5 + sum(map(len, body))
        return not any(map(spans_lines, body)) and (width <= self.line_width or not body)

    def visit_If(self, node: ast.If) -> str:
        text = f"if {self.head(node.cond, node.then)} {self.block(node.then)}"
        rest = node.otherwise
        while isinstance(rest, ast.If):
            text += f" else if {self.head(rest.cond, rest.then)} {self.block(rest.then)}"
            rest = rest.otherwise
        return f"{text} else {self.block(rest)}" if isinstance(rest, Block) else text

    def visit_Match(self, node: ast.Match) -> str:
        value = self.head(node.value, Block(0, 0, node.arms))
        return f"match {value} {braces(map(self.arm, node.arms))}"

    def arm(self, arm: ast.Arm) -> str:
        patterns = " | ".join(self.expression(pattern, 1) for pattern in arm.patterns)
        guard = "" if arm.guard is None else f" if {self.expression(arm.guard, 1)}"
        return self.inline(f"{patterns}{guard} ->", arm.body)

    def visit_Try(self, node: ast.Try) -> str:
        text = f"try {self.block(node.body)}"
        if node.catch is not None:
            type = "" if node.catch.type is None else f": {self.type(node.catch.type)}"
            variable = "" if node.catch.name is None else f" ({node.catch.name}{type})"
            text += f" catch{variable} {self.block(node.catch.body)}"
        return text if node.finally_ is None else f"{text} finally {self.block(node.finally_)}"

    def block_operand(self, node: Node) -> str:
        text = self.expression(node)
        return text if isinstance(node, _LITERALS | ast.Name) else f"({text})"

    def visit_Parallel(self, node: ast.Parallel) -> str:
        source = self.head(node.source, node.body)
        if source.startswith(("each", "settle")):
            source = f"({source})"
        kind = "" if node.kind == "count" else f" {node.kind}"
        options = ""
        if node.max_concurrent is not None:
            options = f" with {{ max_concurrent: {self.expression(node.max_concurrent)} }}"
        body = self.block(node.body)
        if node.param is not None:
            body = f"{{ {node.param} ->{body[1:]}"
        return f"parallel{kind} {source}{options} {body}{' as stream' * node.stream}"

    # --- programs and blocks ------------------------------------------------------------------------

    def program(self, program: ast.Program) -> str:
        out: list[str] = []
        for before, item in zip([None, *program.items], program.items, strict=False):
            if before is not None and not (isinstance(before, ast.Import) and isinstance(item, ast.Import)):
                out.append("")
            out.append(self.statement(item))
        return "".join(line + "\n" for line in out)

    def statement(self, node: Node) -> str:
        # At the beginning of a statement `fn` is always a declaration.
        least = 1 if isinstance(node, ast.FnExpr) else 0
        if not self.is_compact and self.is_short(node):
            self.is_compact = True
            text = self.expression(node, least)
            self.is_compact = False
            if len(text) <= self.line_width and not spans_lines(text):
                return text
        return self.expression(node, least)

    def is_short(self, node: Node) -> bool:
        """Return True if a statement was written on one line, which its blocks may keep to."""
        text = self.written.text(node.start, node.end)
        if text is None or "{" not in text or "\n" in text or len(text) > 2 * self.line_width:
            return False
        return "/*" not in text and not self.written.commented((node.start, node.end))

    def block(self, block: Block) -> str:
        statements = [self.statement(statement) for statement in block.statements]
        if self.is_compact and len(statements) <= 1:
            return f"{{ {statements[0]} }}" if statements else "{ }"
        return braces(statements)

    def header(self, word: str, head: Node, body: Block) -> str:
        return f"{word} {self.head(head, body)} {self.block(body)}"

    # --- declarations -----------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> str:
        if node.names is None:
            return f"{_pub(node)}import {quoted(node.path)}"
        opening, closing = ("import { ", " }") if node.names else ("import {", "}")
        names = self.sequence(opening, node.names, closing, self.written.brackets(node.start, "{"))
        return f"{_pub(node)}{names} from {quoted(node.path)}"

    def visit_Pipeline(self, node: ast.Pipeline) -> str:
        head = self.opening(node, f"pipeline {node.name}")
        extends = f" extends {node.extends}" if node.extends is not None else ""
        return f"{head}{self.returns(node.returns)}{extends} {self.block(node.body)}"

    def visit_Override(self, node: ast.Override) -> str:
        return (
            f"{self.parenthesised(f'override {node.name}', node.start, node.params)} {self.block(node.body)}"
        )

    def visit_FnDecl(self, node: ast.FnDecl) -> str:
        gen = "gen " if node.gen else ""
        generics = type_params_text(node.type_params)
        head = self.opening(node, f"{gen}fn {node.name}{generics}")
        bounds = ", ".join(f"{name}: {bound}" for name, bound in node.where)
        where = f" where {bounds}" if bounds else ""
        return f"{head}{self.returns(node.returns)}{where} {self.block(node.body)}"

    def visit_ToolDecl(self, node: ast.ToolDecl) -> str:
        head = self.opening(node, f"tool {node.name}") + self.returns(node.returns)
        lines = [] if node.description is None else [f"description {self.description(node)}"]
        return f"{head} {braces([*lines, *map(self.statement, node.body.statements)])}"

    def visit_SkillDecl(self, node: ast.SkillDecl) -> str:
        fields = (f"{field.name} {self.expression(field.value)}" for field in node.fields)
        return f"{self.lead(node)}skill {node.name} {braces(fields)}"

    def visit_EvalPack(self, node: ast.EvalPack) -> str:
        parts = [*node.fields, *node.body, *([node.summarize] if node.summarize is not None else [])]
        lines = map(self.eval_item, sorted(parts, key=attrgetter("start")))
        id = "" if node.id is None else " " + quoted(node.id)
        return f"{self.lead(node)}eval_pack {node.name}{id} {braces(lines)}"

    def eval_item(self, item: Node) -> str:
        if isinstance(item, ast.SkillField):
            return f"{item.name}: {self.expression(item.value)}"
        return f"summarize {self.block(item)}" if isinstance(item, Block) else self.statement(item)

    def visit_EnumDecl(self, node: ast.EnumDecl) -> str:
        variants = (
            self.parenthesised(variant.name, variant.start, variant.params)
            if variant.params
            else variant.name
            for variant in node.variants
        )
        return f"{self.lead(node)}enum {node.name}{type_params_text(node.type_params)} {braces(variants)}"

    def visit_StructDecl(self, node: ast.StructDecl) -> str:
        fields = (
            field.name + "?" * field.optional + ("" if field.type is None else f": {self.type(field.type)}")
            for field in node.fields
        )
        return f"{self.lead(node)}struct {node.name}{type_params_text(node.type_params)} {braces(fields)}"

    def visit_InterfaceDecl(self, node: ast.InterfaceDecl) -> str:
        head = f"{self.lead(node)}interface {node.name}{type_params_text(node.type_params)}"
        return f"{head} {braces(map(self.statement, node.members))}"

    def visit_MethodSig(self, node: ast.MethodSig) -> str:
        head = f"fn {node.name}{type_params_text(node.type_params)}"
        return self.parenthesised(head, node.start, node.params) + self.returns(node.returns)

    def visit_TypeDecl(self, node: ast.TypeDecl) -> str:
        generics = type_params_text(node.type_params)
        return f"{self.lead(node)}type {node.name}{generics} = {self.type(node.type)}"

    def opening(self, node: ast.Pipeline | ast.FnDecl | ast.ToolDecl, name: str) -> str:
        """Attributes, name and parameters."""
        attrs_end = node.attrs[-1].end if node.attrs else node.start
        return self.parenthesised(self.lead(node) + name, attrs_end, node.params)

    def returns(self, type: Node | None) -> str:
        return "" if type is None else f" -> {self.type(type)}"

    def description(self, node: ast.ToolDecl) -> str:
        verbatim = self.written.literal(*self.written.first_string(node.body.start))
        return verbatim or quoted(node.description or "")

    def lead(self, node: Node) -> str:
        """Attributes, one a line, and ``pub``."""
        attrs: Sequence[ast.Attribute] = getattr(node, "attrs", ())
        return "".join(f"{self.attribute(attr)}\n" for attr in attrs) + _pub(node)

    def attribute(self, node: ast.Attribute) -> str:
        args = [
            ("" if arg.name is None else f"{arg.name}: ") + self.attribute_value(arg.value)
            for arg in node.args
        ]
        name = f"@{node.name}"
        return self.sequence(f"{name}(", args, ")", (node.start, node.end)) if args else name

    def attribute_value(self, node: Node) -> str:
        """A literal, or a name as it is: parentheses don't exist here."""
        if isinstance(node, ast.List):
            return self.sequence(
                "[", list(map(self.attribute_value, node.items)), "]", (node.start, node.end)
            )
        return node.name if isinstance(node, ast.Name) else self.expression(node)

    # --- statements -------------------------------------------------------------------------------

    def visit_Let(self, node: ast.Let) -> str:
        word = "var" if node.mutable else "let"
        type = "" if node.type is None else f": {self.type(node.type)}"
        return f"{word} {self.pattern(node.target)}{type} = {self.expression(node.value)}"

    def visit_While(self, node: ast.While) -> str:
        cond = self.head(node.cond, node.body)
        # A condition that begins with a parenthesis ends at the one that closes it.
        return f"while {f'({cond})' if cond.startswith('(') else cond} {self.block(node.body)}"

    def visit_Require(self, node: ast.Require) -> str:
        message = "" if node.message is None else f", {self.expression(node.message)}"
        return f"require {self.expression(node.cond)}{message}"

    def case(self, case: ast.SelectCase) -> str:
        if case.source is None:
            return f"default {self.block(case.body)}"
        return self.header("timeout" if case.name is None else f"{case.name} from", case.source, case.body)

    # --- patterns ---------------------------------------------------------------------------------

    def pattern(self, node: Node) -> str:
        if isinstance(node, ast.NamePattern):
            return node.name
        if isinstance(node, ast.PairPattern):
            return f"({node.first}, {node.second})"
        assert isinstance(node, ast.DictPattern | ast.ListPattern)
        items = [self.pattern_entry(entry) for entry in node.entries]
        last = ","
        if node.rest is not None:
            items.append(f"...{node.rest}")
            last = ""
        opening, closing = "{}" if isinstance(node, ast.DictPattern) else "[]"
        return self.sequence(opening, items, closing, (node.start, node.end), last)

    def pattern_entry(self, entry: ast.PatternEntry) -> str:
        key = f"{entry.key}: " if entry.key not in (None, entry.name) else ""
        default = "" if entry.default is None else f" = {self.expression(entry.default)}"
        return f"{key}{entry.name}{default}"


def _level(node: Node) -> int:
    return _BINARY_LEVELS[node.op] if isinstance(node, ast.Binary) else _LEVELS.get(type(node), _PRIMARY)


def _ternary_word(text: str) -> bool:
    found = _NUMBER_OR_WORD.match(text)
    return found is not None and (found[0] not in RESERVED)


def _ends_in_type_name(node: Node) -> bool:
    """Return True if the last token is a capitalised name."""
    last: Node | None = node
    while last is not None and not isinstance(last, ast.Name):
        children = last.children()
        last = children[-1] if children else None
    return last is not None and last.name[:1].isupper()


def print_program(program: ast.Program, *, line_width: int = LINE_WIDTH) -> str:
    """The canonical text of a program; ends with one line feed. An empty one is empty."""
    return Printer(line_width).program(program)


def _pub(node: Node) -> str:
    return "pub " if getattr(node, "pub", False) else ""


#: Nodes whose text is a line of a table; ``p`` is the printer, ``n`` the node.
LINES: dict[type[Node], Callable[[Any, Any], str]] = {
    ast.Unary: lambda p, n: n.op + p.expression(n.operand, _UNARY + 1),
    ast.TryStar: lambda p, n: f"try* {p.expression(n.value, _UNARY + 1)}",
    ast.Propagate: lambda p, n: p.expression(n.value, _POSTFIX) + "?",
    ast.Int: lambda p, n: str(n.value),
    ast.Float: lambda p, n: float_text(n.value),
    ast.Duration: lambda p, n: duration_text(n.ms),
    ast.Bool: lambda p, n: "true" if n.value else "false",
    ast.Nil: lambda p, n: "nil",
    ast.List: lambda p, n: p.sequence("[", [p.expression(item) for item in n.items], "]", (n.start, n.end)),
    ast.Spread: lambda p, n: f"...{p.expression(n.value)}",
    ast.FnExpr: lambda p, n: p.inline(p.parenthesised("fn", n.start, n.params), n.body),
    ast.Retry: lambda p, n: f"retry {p.block_operand(n.count)} {p.block(n.body)}",
    ast.Deadline: lambda p, n: f"deadline {p.block_operand(n.duration)} {p.block(n.body)}",
    ast.Spawn: lambda p, n: f"spawn {p.block(n.body)}",
    ast.AssocType: lambda p, n: f"type {n.name}" + ("" if n.type is None else f" = {p.type(n.type)}"),
    ast.ImplDecl: lambda p, n: f"{p.lead(n)}impl {n.name} {braces(map(p.statement, n.methods))}",
    ast.Assign: lambda p, n: f"{p.expression(n.target)} {n.op} {p.expression(n.value)}",
    ast.For: lambda p, n: p.header(f"for {p.pattern(n.pattern)} in", n.iterable, n.body),
    ast.Return: lambda p, n: "return" if n.value is None else f"return {p.expression(n.value)}",
    ast.Throw: lambda p, n: f"throw {p.expression(n.value)}",
    ast.Yield: lambda p, n: "yield" if n.value is None else f"yield {p.expression(n.value)}",
    ast.Emit: lambda p, n: f"emit {p.expression(n.value)}",
    ast.Break: lambda p, n: "break",
    ast.Continue: lambda p, n: "continue",
    ast.Guard: lambda p, n: f"guard {p.expression(n.cond, 1)} else {p.block(n.otherwise)}",
    ast.Defer: lambda p, n: f"defer {p.block(n.body)}",
    ast.Mutex: lambda p, n: f"mutex {p.block(n.body)}",
    ast.Select: lambda p, n: f"select {braces(map(p.case, n.cases))}",
}
