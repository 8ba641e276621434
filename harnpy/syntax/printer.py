"""A tree as canonical text: ``parse(print_program(tree)) == tree``. Spec: 01 §12.

Every method gives the text of one kind of node, at the left margin; whoever holds it indents it. Strings
never contain a line break of their own, so indenting changes no value. Widths count from the beginning
of the sequence, which makes the text of a node independent of where it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from harnpy.syntax import ast
from harnpy.syntax.ast import Block, Node
from harnpy.syntax.print_expressions import Expressions
from harnpy.syntax.print_literals import braces, quoted
from harnpy.syntax.print_types import type_params_text

LINE_WIDTH = 100


def print_program(program: ast.Program, *, line_width: int = LINE_WIDTH) -> str:
    """The canonical text of a program; ends with one line feed. An empty one is empty."""
    return Printer(line_width).program(program)


class Printer(Expressions):
    """Statements and declarations; expressions are inherited."""

    def program(self, program: ast.Program) -> str:
        out: list[str] = []
        for before, item in zip([None, *program.items], program.items, strict=False):
            if before is not None and not (isinstance(before, ast.Import) and isinstance(item, ast.Import)):
                out.append("")
            out.append(self.statement(item))
        return "".join(line + "\n" for line in out)

    def statement(self, node: Node) -> str:
        # At the beginning of a statement `fn` is always a declaration.
        return self.expression(node, 1 if isinstance(node, ast.FnExpr) else 0)

    def block(self, block: Block) -> str:
        return braces(map(self.statement, block.statements))

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

    def visit_AssocType(self, node: ast.AssocType) -> str:
        return f"type {node.name}" + ("" if node.type is None else f" = {self.type(node.type)}")

    def visit_MethodSig(self, node: ast.MethodSig) -> str:
        head = f"fn {node.name}{type_params_text(node.type_params)}"
        return self.parenthesised(head, node.start, node.params) + self.returns(node.returns)

    def visit_ImplDecl(self, node: ast.ImplDecl) -> str:
        return f"{self.lead(node)}impl {node.name} {braces(map(self.statement, node.methods))}"

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

    def visit_Assign(self, node: ast.Assign) -> str:
        return f"{self.expression(node.target)} {node.op} {self.expression(node.value)}"

    def visit_For(self, node: ast.For) -> str:
        return self.header(f"for {self.pattern(node.pattern)} in", node.iterable, node.body)

    def visit_While(self, node: ast.While) -> str:
        cond = self.head(node.cond, node.body)
        # A condition that begins with a parenthesis ends at the one that closes it.
        return f"while {f'({cond})' if cond.startswith('(') else cond} {self.block(node.body)}"

    def visit_Return(self, node: ast.Return) -> str:
        return "return" if node.value is None else f"return {self.expression(node.value)}"

    def visit_Throw(self, node: ast.Throw) -> str:
        return f"throw {self.expression(node.value)}"

    def visit_Yield(self, node: ast.Yield) -> str:
        return "yield" if node.value is None else f"yield {self.expression(node.value)}"

    def visit_Emit(self, node: ast.Emit) -> str:
        return f"emit {self.expression(node.value)}"

    def visit_Break(self, node: ast.Break) -> str:
        return "break"

    def visit_Continue(self, node: ast.Continue) -> str:
        return "continue"

    def visit_Guard(self, node: ast.Guard) -> str:
        return f"guard {self.expression(node.cond, 1)} else {self.block(node.otherwise)}"

    def visit_Require(self, node: ast.Require) -> str:
        message = "" if node.message is None else f", {self.expression(node.message)}"
        return f"require {self.expression(node.cond)}{message}"

    def visit_Defer(self, node: ast.Defer) -> str:
        return f"defer {self.block(node.body)}"

    def visit_Mutex(self, node: ast.Mutex) -> str:
        return f"mutex {self.block(node.body)}"

    def visit_Select(self, node: ast.Select) -> str:
        return f"select {braces(map(self.case, node.cases))}"

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


def _pub(node: Node) -> str:
    return "pub " if getattr(node, "pub", False) else ""
