"""Statements without blocks of their own, imports, structs, skills and eval packs."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.function import DISCARD, RETURN, parameters_text
from harnpy.vm.emit.nodes.logic import condition
from harnpy.vm.emit.nodes.tail_calls import tail_call
from harnpy.vm.emit.operand import NIL
from harnpy.vm.resolve.tree import pack_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.emit.function import Emitter
    from harnpy.vm.emit.operand import Text


def return_(e: Emitter, node: ast.Return) -> None:
    if node.value is None:
        e.give(NIL)
    elif not tail_call(e, node.value):
        e.into(node.value, RETURN)


def throw(e: Emitter, node: ast.Throw) -> None:
    text = e.expr(node.value)
    e.at = node
    e.line(f"raise Thrown({text})")


def yield_(e: Emitter, node: ast.Yield | ast.Emit) -> None:
    """Hand an item to the consumer; outside a generator it does nothing (02 §18)."""
    text = e.expr(node.value) if node.value else NIL
    if e.generator and e.deadlines:
        # The consumer is another task (05 §1.1): its clock is another one.
        paused = e.temp()
        text = e.settle(text)
        e.line(f"{paused} = pause_deadlines({e.deadlines[0]})")
        e.line(f"yield {text}")
        e.line(f"resume_deadlines({paused})")
    elif e.generator:
        e.line(f"yield {text}")
    else:
        e.compute(text)


def guard(e: Emitter, node: ast.Guard) -> None:
    with e.suite(f"if not {condition(e, node.cond)}"):
        e.block(node.otherwise, DISCARD)


def require(e: Emitter, node: ast.Require) -> None:
    with e.suite(f"if not {condition(e, node.cond)}"):
        text = e.expr(node.message) if node.message else "'require condition failed'"
        e.line(f"raise Thrown({text})")


def struct(e: Emitter, node: ast.StructDecl) -> None:
    """The name is a constructor function too (02 §15.1)."""
    if e.refuses(node, node.name):
        return
    variable = e.declared_by(node, node.name)
    names = tuple(field.name for field in node.fields)
    e.assign_new(variable, f"constructor({node.name!r}, {names!r})")


def skill(e: Emitter, node: ast.SkillDecl) -> None:
    """The name is a registry of one skill, made by `skill_define` (07 §13.1)."""
    if e.refuses(node, node.name):
        return
    values = e.operands([field.value for field in node.fields])
    fields = [f"{field.name!r}: {value}" for field, value in zip(node.fields, values, strict=True)]
    define, empty = e.unit.builtin_function("skill_define"), e.unit.builtin_function("skill_registry")
    text = f"{define}(vm, {empty}(vm), {node.name!r}, {{{', '.join(fields)}}})"
    e.assign_new(e.declared_by(node, node.name), e.mark(node, text))


def import_(e: Emitter, node: ast.Import) -> None:
    """What an import binds are variables like any others; it is run before them all (06 §1)."""
    variables = e.unit.resolution.imported[id(node)]
    wanted = ", ".join(f"{variable.name!r}: ({parameters_text(variable)})" for variable in variables)
    brought = e.temp()
    bring = "bring" if node in e.unit.program.items else "bring_again"
    e.line(f"{brought} = {bring}({node.path!r}, {node.names!r}, {{{wanted}}})")
    for i, variable in enumerate(variables):
        e.assign_new(variable, f"{brought}[{i}]")


def eval_pack(e: Emitter, node: ast.EvalPack) -> None:
    """The name is the manifest of the fields; then the statements run, unless it is only bound (08 §8.7)."""
    if e.refuses(node, node.name):
        return
    given: dict[str, Text] = {"id": repr(node.id or node.name)}
    values = e.atoms([field.value for field in node.fields])
    given |= {field.name: value for field, value in zip(node.fields, values, strict=True)}
    entries = ", ".join(f"{name!r}: {value}" for name, value in given.items())
    normalise = e.unit.builtin_function("eval_pack_manifest")
    manifest = e.declared_by(node, node.name)
    e.assign_new(manifest, e.mark(node, f"{normalise}(vm, {{{entries}}})"))
    if id(node) in e.unit.resolution.bound_only:
        return
    for owner, name in pack_names(node):
        value = given[name] if owner is not node else f"{manifest.python}[{name!r}]"
        e.assign_new(e.declared_by(owner, name), value)
    e.open_scope(node)
    e.statements(node.body, DISCARD)
    if node.summarize is not None:
        e.block(node.summarize, DISCARD)


def nothing(e: Emitter, node: ast.Node) -> None:
    """Declarations that only the checker, or the whole file, looks at."""


def block(e: Emitter, node: ast.Block) -> None:
    e.block(node, DISCARD)
