"""The verbs of sessions, `agent_session_*`, as functions to be called from outside. Spec: 08 §1, 09 §11.4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.builtins import catalog
from harnpy.builtins.documentation import documentation, without_citation
from harnpy.serve.functions import Function, returned
from harnpy.syntax import ast
from harnpy.syntax.parser import parse_cached
from harnpy.vm.resolve.schemas import json_schema

if TYPE_CHECKING:
    from harnpy import Vm
    from harnpy.vm.declare.builtin import Declaration, Parameter

_PREFIX = "agent_session_"
#: Which loop is running is the running program's to ask, and files of the server are no client's.
_LEFT_OUT = frozenset((f"{_PREFIX}current_id", f"{_PREFIX}seed_from_jsonl"))


def session_verbs(vm: Vm) -> dict[str, Function]:
    """The verbs by name."""
    names = sorted(name for name in catalog.names() if name.startswith(_PREFIX) and name not in _LEFT_OUT)
    return {name: _function(vm, vm.builtins.declaration(name)) for name in names}


def _function(vm: Vm, declaration: Declaration) -> Function:
    signature = declaration.signature()
    text = without_citation(documentation(declaration).prose)
    parameters = {parameter.name: _schema(parameter) for parameter in signature.parameters}
    returns = returned(_type(signature.returns), {})
    call = vm.builtins.bound(declaration.name)
    return Function(declaration.name, text, parameters, signature.rest, returns, call, absent=None)


def _schema(parameter: Parameter) -> dict[str, object]:
    schema = json_schema(_type(parameter.type), {})
    return {**schema, "required": False} if parameter.optional or parameter.has_default else schema


def _type(text: str) -> ast.Node:
    """The type that is written in a signature."""
    (declaration,) = parse_cached(f"type Written = {text}").items
    assert isinstance(declaration, ast.TypeDecl)
    return declaration.type
