"""The type checker: everything that is wrong with a program, as far as it can be known. Spec: 03.

Each top-level item is checked by itself against the `Environment` of its file; the findings depend on nothing
else. So after an edit inside one item only that one is checked again. `VISITS` and `ABOVE` list which
function of `walk` judges which kind of node.
"""

from __future__ import annotations

import sys

from harnpy.check.agents import Agents
from harnpy.check.environment import Environment
from harnpy.check.findings import Findings
from harnpy.check.walk import Walk
from harnpy.syntax import ast
from harnpy.syntax.names import FRAMES
from harnpy.syntax.names import VISITS as BINDING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.check.findings import Finding
    from harnpy.check.knowledge import Imported, Knowledge

VISITS = ast.NodeTable(
    "harnpy.check.walk",
    {
        **BINDING,
        ast.Block: "blocks.block",
        ast.If: "blocks.if_",
        ast.Ternary: "blocks.ternary",
        ast.While: "blocks.while_",
        ast.Guard: "blocks.guard",
        ast.Try: "blocks.try_",
        ast.Retry: "blocks.retry",
        ast.Match: "blocks.match",
        ast.Let: "blocks.let",
        ast.Assign: "operators.assign",
        ast.Return: "blocks.return_",
        ast.Throw: "blocks.throw",
        ast.Break: "blocks.leave",
        ast.Continue: "blocks.leave",
        ast.Import: "blocks.import_",
        ast.Yield: "declarations.yield_",
        ast.Emit: "declarations.emit",
        ast.Parallel: "declarations.parallel",
        ast.Spawn: "declarations.spawn",
        ast.Closure: "declarations.closure",
        ast.FnExpr: "declarations.closure",
        ast.FnDecl: "declarations.fn_decl",
        ast.ToolDecl: "declarations.tool_decl",
        ast.Pipeline: "declarations.pipeline",
        ast.Override: "declarations.override",
        ast.ImplDecl: "declarations.impl_decl",
        ast.StructDecl: "declarations.type_declaration",
        ast.EnumDecl: "declarations.type_declaration",
        ast.InterfaceDecl: "declarations.type_declaration",
        ast.TypeDecl: "declarations.type_declaration",
        ast.Call: "calls.call",
        ast.Name: "undeclared_names.name",
        ast.Member: "calls.variant",
        ast.MethodCall: "calls.variant",
        ast.Interp: "calls.interp",
        ast.StructLit: "calls.struct",
        ast.DictEntry: "calls.dict_entry",
    },
)
#: What is done once the left part of a node has been visited.
ABOVE = ast.NodeTable(
    "harnpy.check.walk",
    {
        ast.Binary: "operators.binary",
        ast.MethodCall: "calls.method_call",
        ast.Member: "calls.member",
        ast.Index: "calls.index",
        ast.Slice: "calls.slice_",
        ast.Pipe: "operators.pipe",
    },
)


def check_program(
    program: ast.Program,
    source: str,
    knowledge: Knowledge,
    imported: Imported | None,
    *,
    strict: bool = False,
) -> list[Finding]:
    """Everything to say of ``program``, in the order in which the specification discovers it.

    ``imported`` is None when the program imports nothing; in a REPL it is one that isn't ``complete``.
    """
    environment = Environment(program.items, knowledge, imported, source, strict)
    found = [finding for item in program.items for finding in check_item(item, environment)]
    return ordered([*found, *check_together(environment)])


def check_item(item: ast.Node, environment: Environment) -> list[Finding]:
    """Return the findings in one of the items of ``environment``; nothing is remembered between calls."""
    if sys.getrecursionlimit() < FRAMES:
        sys.setrecursionlimit(FRAMES)
    walk = Walk(environment, item, VISITS, ABOVE)
    if isinstance(item, ast.Import):
        walk.agents.imported(item)
    walk.visit(item)
    walk.agents.item(item)
    if environment.strict:
        from harnpy.check.strict import check_strict

        check_strict(item, walk.findings, environment.functions)
    return walk.deprecations.found + walk.reported.found


def check_together(environment: Environment) -> list[Finding]:
    """Return the findings in the items as a sequence, beside those in each; takes little time."""
    findings = Findings()
    Agents(environment.knowledge, findings).items(environment.items)
    return findings.found


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Findings of several items as they are discovered: calls of deprecated functions first (03 §1)."""
    return sorted(findings, key=lambda finding: finding.code != "deprecated")
