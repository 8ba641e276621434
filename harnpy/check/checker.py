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
from harnpy.check.walk import Walk, blocks, calls, declarations, operators, undeclared_names
from harnpy.check.walk import blocks as bindings
from harnpy.check.walk import blocks as matches
from harnpy.check.walk import blocks as statements
from harnpy.check.walk import calls as access
from harnpy.check.walk import calls as literals
from harnpy.check.walk import declarations as closures
from harnpy.check.walk import declarations as functions
from harnpy.check.walk import declarations as streams
from harnpy.check.walk import operators as assignments
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harnpy.check.findings import Finding
    from harnpy.check.knowledge import Imported, Knowledge
    from harnpy.check.walk import Above, Visit

VISITS: Mapping[type, Visit] = {
    ast.Block: blocks.block,
    ast.If: blocks.if_,
    ast.Ternary: blocks.ternary,
    ast.While: blocks.while_,
    ast.For: blocks.for_,
    ast.Guard: blocks.guard,
    ast.Try: blocks.try_,
    ast.Retry: blocks.retry,
    ast.Select: blocks.select,
    ast.Match: matches.match,
    ast.Let: bindings.let,
    ast.Assign: assignments.assign,
    ast.Return: statements.return_,
    ast.Throw: statements.throw,
    ast.Break: statements.leave,
    ast.Continue: statements.leave,
    ast.Import: statements.import_,
    ast.Yield: streams.yield_,
    ast.Emit: streams.emit,
    ast.Parallel: streams.parallel,
    ast.Spawn: streams.spawn,
    ast.Closure: closures.closure,
    ast.FnExpr: closures.closure,
    ast.FnDecl: functions.fn_decl,
    ast.ToolDecl: functions.tool_decl,
    ast.Pipeline: functions.pipeline,
    ast.Override: functions.override,
    ast.ImplDecl: functions.impl_decl,
    ast.StructDecl: declarations.type_declaration,
    ast.EnumDecl: declarations.type_declaration,
    ast.InterfaceDecl: declarations.type_declaration,
    ast.TypeDecl: declarations.type_declaration,
    ast.SkillDecl: declarations.skill,
    ast.EvalPack: declarations.eval_pack,
    ast.Call: calls.call,
    ast.Name: undeclared_names.name,
    ast.Member: access.variant,
    ast.MethodCall: access.variant,
    ast.Interp: literals.interp,
    ast.StructLit: literals.struct,
    ast.DictEntry: literals.dict_entry,
}
#: The left part of a node, and what is done once that has been visited.
ABOVE: Mapping[type, tuple[str, Above]] = {
    ast.Binary: ("left", operators.binary),
    ast.Unary: ("operand", operators.unary),
    ast.MethodCall: ("object", access.method_call),
    ast.Member: ("object", access.member),
    ast.Index: ("object", access.index),
    ast.Slice: ("object", access.slice_),
    ast.Propagate: ("value", operators.passed),
    ast.TryStar: ("value", operators.passed),
    ast.Pipe: ("left", operators.pipe),
}


#: A few frames for each of the levels that the parser accepts. CPython 3.11 keeps them on the heap.
_FRAMES = 60_000


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
    """What there is to say of one of the items of ``environment``; nothing is remembered between calls."""
    if sys.getrecursionlimit() < _FRAMES:
        sys.setrecursionlimit(_FRAMES)
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
    """What there is to say of the items as a sequence, beside what is said of each; takes little time."""
    findings = Findings()
    Agents(environment.knowledge, findings).items(environment.items)
    return findings.found


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Findings of several items as they are discovered: calls of deprecated functions first (03 §1)."""
    return sorted(findings, key=lambda finding: finding.code != "deprecated")
