"""Declarations other than `fn`: structs, impls, tools, skills, eval packs, imports. Spec: 02 §15, 06 §2."""

from __future__ import annotations

from copy import deepcopy

from harnpy.syntax import ast
from harnpy.vm.resolve.schemas import json_schema
from harnpy.vm.resolve.tree import pack_names, signature
from harnpy.vm.run.calls import constructor
from harnpy.vm.walk.functions import function_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.walk.activation import Activation

    Value = Any


def nothing(a: Activation, node: ast.Node) -> None:
    """Declarations that only the checker, or the whole file, looks at."""


def _call_builtin(a: Activation, name: str, *args: Value) -> Value:
    return a.walker.vm.calls.call_builtin(a.walker.vm.builtins.bound(name), args)


def struct(a: Activation, node: ast.StructDecl) -> None:
    """The name is a constructor function too (02 §15.1)."""
    a.refuse_redeclared(node, node.name)
    names = tuple(field.name for field in node.fields)
    a.declare(a.declared_by(node, node.name), constructor(node.name, names))


def impl(a: Activation, node: ast.ImplDecl) -> None:
    """Methods are found by the struct's name when they are called (02 §15.3)."""
    methods = a.walker.impls.setdefault(node.name, {})
    for fn in node.methods:
        methods[fn.name] = function_of(a, fn, f"{node.name}.{fn.name}", fn.name)


def tool(a: Activation, node: ast.ToolDecl) -> None:
    """The name is a registry of one tool, made by `tool_define` (07 §4.3)."""
    a.refuse_redeclared(node, node.name)
    config: dict[str, Any] = {"parameters": _tool_parameters(a, node)}
    if node.returns is not None:
        config["returns"] = json_schema(node.returns, a.walker.resolution.aliases)
    config["handler"] = function_of(a, node, node.name, node.name)
    a.at = node.start
    registry = _call_builtin(a, "tool_registry")
    tools = _call_builtin(a, "tool_define", registry, node.name, node.description or "", config)
    a.declare(a.declared_by(node, node.name), tools)


def _tool_parameters(a: Activation, node: ast.ToolDecl) -> dict[str, Any]:
    """Each parameter with its schema, and its default as it is by now."""
    resolution = a.walker.resolution
    schemas = {}
    for param, default in zip(node.params, resolution.tool_defaults[id(node)], strict=True):
        schema = deepcopy(json_schema(param.type, resolution.aliases))
        if param.rest:
            schema = {"type": "array", "items": schema} if schema else {"type": "array"}
        if param.default is not None or param.rest:
            schema["required"] = False
        if default is not None:
            schema["default"] = a.value(default)
        schemas[param.name] = schema
    return schemas


def skill(a: Activation, node: ast.SkillDecl) -> None:
    """The name is a registry of one skill, made by `skill_define` (07 §13.1)."""
    a.refuse_redeclared(node, node.name)
    fields = {field.name: a.value(field.value) for field in node.fields}
    a.at = node.start
    skills = _call_builtin(a, "skill_define", _call_builtin(a, "skill_registry"), node.name, fields)
    a.declare(a.declared_by(node, node.name), skills)


def eval_pack(a: Activation, node: ast.EvalPack) -> None:
    """The name is the manifest of the fields; then the statements run, unless it is only bound (08 §8.7)."""
    a.refuse_redeclared(node, node.name)
    given = {"id": node.id or node.name}
    given |= {field.name: a.value(field.value) for field in node.fields}
    a.at = node.start
    manifest = _call_builtin(a, "eval_pack_manifest", given)
    a.declare(a.declared_by(node, node.name), manifest)
    if id(node) in a.walker.resolution.bound_only:
        return
    for owner, name in pack_names(node):
        value = manifest[name] if owner is node else given[name]
        a.declare(a.declared_by(owner, name), value)
    a.open_scope(node)
    a.statements(node.body)
    if node.summarize is not None:
        a.block(node.summarize)


def import_(a: Activation, node: ast.Import) -> None:
    """What an import binds are variables like any others; it is run before them all (06 §1)."""
    linker = a.walker.linker
    assert linker
    variables = a.walker.resolution.imported[id(node)]
    wanted = {}
    for variable in variables:
        assert variable.fn
        wanted[variable.name] = signature(variable.fn.params)
    bring = linker.bring if node in a.walker.tree.program.items else linker.bring_again
    brought = bring(node.path, node.names, wanted)
    for variable, value in zip(variables, brought, strict=True):
        a.declare(variable, value)
