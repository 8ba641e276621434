"""What a call takes: signature help in it, and hints of its parameters' names. Spec: 12 §3.3, §3.5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lsprotocol import types as lsp

from harnpy.check.types.type_nodes import shown
from harnpy.lsp import descriptions
from harnpy.lsp.descriptions import Description
from harnpy.lsp.document import Document, Sight, Supposed
from harnpy.lsp.names import declaration
from harnpy.lsp.workspace import Workspace
from harnpy.syntax import ast

if TYPE_CHECKING:
    from harnpy.check.edits import Item

#: What stands for the argument that is being typed. No program has it.
_CURSOR = "__harnpy_cursor__"
#: Arguments that say by themselves what they are.
_SAYING = (ast.Closure, ast.FnExpr, ast.Dict, ast.List, ast.StructLit)


class Callee(NamedTuple):
    """What is called: its declaration, and its parameters as they are written."""

    description: Description
    parameters: Sequence[str]


def signature_help(
    workspace: Workspace, document: Document, params: lsp.SignatureHelpParams
) -> lsp.SignatureHelp | None:
    """Return what the innermost call around a position takes."""
    offset = document.text.offset(params.position)
    found = document.supposed(offset, offset, _CURSOR)
    call = None if found is None else _call(found)
    if found is None or call is None:
        return None
    node, number = call
    callee = _callee(workspace, document, found.sight, node)
    if callee is None:
        return None
    label = callee.description.declaration
    parameters = [lsp.ParameterInformation(each) for each in callee.parameters]
    active = min(number, len(parameters) - 1) if parameters else None
    documentation = lsp.MarkupContent(lsp.MarkupKind.Markdown, callee.description.sentence)
    information = lsp.SignatureInformation(label, documentation, parameters, active)
    return lsp.SignatureHelp([information], 0, active)


def _call(found: Supposed) -> tuple[ast.Node, int] | None:
    """Return the innermost call whose arguments the cursor is among, and the number of its argument."""
    for outer in reversed(found.nodes):
        if isinstance(outer, ast.Call | ast.MethodCall):
            for number, argument in enumerate(outer.args):
                if argument.start <= found.offset <= argument.end:
                    return outer, number
        if isinstance(outer, ast.Closure | ast.FnExpr | ast.Block):
            return None
    return None


def _callee(workspace: Workspace, document: Document, sight: Sight, node: ast.Node) -> Callee | None:
    if isinstance(node, ast.MethodCall):
        return _method(document, sight, node)
    if not isinstance(node, ast.Call):
        return None
    environment = sight.inference.environment
    binding = sight.scope.find(node.name)
    fn = (binding.fn if binding is not None else None) or environment.functions.get(node.name)
    if fn is not None:
        return _function(fn)
    tool = next(
        (one for one in environment.items if isinstance(one, ast.ToolDecl) and one.name == node.name), None
    )
    if tool is not None:
        return _function(tool)
    if binding is None and document.knowledge.is_builtin(node.name):
        description = descriptions.of_builtin(node.name)
        signature = document.knowledge.signature(node.name)
        if description is not None and signature is not None:
            return Callee(description, _written(description.declaration))
    return _imported(workspace, document, node.name)


def _function(fn: ast.FnDecl | ast.ToolDecl) -> Callee:
    parameters = [_parameter(param) for param in fn.params]
    returns = "" if fn.returns is None else f" -> {shown(fn.returns)}"
    return Callee(Description(f"{fn.name}({', '.join(parameters)}){returns}"), parameters)


def _parameter(param: ast.Param) -> str:
    type = "" if param.type is None else f": {shown(param.type)}"
    return f"{'...' * param.rest}{param.name}{type}{' = …' * (param.default is not None)}"


def _written(declaration: str) -> list[str]:
    """Return the parameters of a builtin as its declaration has them."""
    inside = (
        declaration.partition("(")[2].rpartition(") ->")[0]
        or declaration.partition("(")[2].rpartition(")")[0]
    )
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(inside):
        depth += (letter in "([{<") - (letter in ")]}>" and inside[at - 1 : at + 1] != "->")
        if letter == "," and not depth:
            parts.append(inside[start:at].strip())
            start = at + 1
    return [part for part in (*parts, inside[start:].strip()) if part]


def _method(document: Document, sight: Sight, node: ast.MethodCall) -> Callee | None:
    environment = sight.inference.environment
    enum = sight.inference.enum_of(node, sight.scope)
    if enum is not None:
        variant = next((one for one in enum.variants if one.name == node.name), None)
        if variant is None:
            return None
        parameters = [_parameter(param) for param in variant.params]
        return Callee(Description(f"{enum.name}.{variant.name}({', '.join(parameters)})"), parameters)
    type = sight.inference.of(node.object, sight.scope)
    kind = type.name if isinstance(type, ast.TypeName) else ""
    for item in environment.items:
        if isinstance(item, ast.ImplDecl) and item.name == kind:
            for method in item.methods:
                if method.name == node.name:
                    found = _function(method)
                    return found._replace(parameters=found.parameters[1:])
    description = descriptions.of_method(kind, node.name)
    return None if description is None else Callee(description, _written(description.declaration))


def _imported(workspace: Workspace, document: Document, name: str) -> Callee | None:
    for item in document.items:
        node = item.node
        if isinstance(node, ast.Import) and (node.names is None or name in node.names):
            path = workspace.module(document, node.path)
            module = None if path is None else workspace.at_path(path)
            meaning = None if module is None else declaration(workspace, module, name)
            home = None if meaning is None or meaning.uri is None else workspace.at(meaning.uri)
            for other in home.items if home is not None else ():
                if isinstance(other.node, ast.FnDecl | ast.ToolDecl) and other.node.name == name:
                    return _function(other.node)
    return None


# Hints.


def inlay_hints(workspace: Workspace, document: Document, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    """Return the types of variables without one, and the parameters of arguments that don't say what they are."""
    start, end = document.text.span(params.range)
    return [
        hint
        for item in document.items
        if item.start <= end and item.end >= start
        for hint in _hints(workspace, document, item)
    ]


def _hints(workspace: Workspace, document: Document, item: Item) -> Iterator[lsp.InlayHint]:
    for node in ast.walk(item.node):
        if isinstance(node, ast.Call) and node.args:
            yield from _parameter_hints(document, node)
        elif isinstance(node, ast.Let) and node.type is None and isinstance(node.target, ast.NamePattern):
            yield from _type_hint(document, item, node)


def _parameter_hints(document: Document, node: ast.Call) -> Iterator[lsp.InlayHint]:
    fn = document.environment.functions.get(node.name)
    if fn is not None:
        names = [param.name for param in fn.params if not param.rest]
    elif document.knowledge.is_builtin(node.name):
        signature = document.knowledge.signature(node.name)
        names = [each.name for each in signature.parameters if not each.rest] if signature else []
    else:
        return
    if len(node.args) < 2:
        return
    for name, argument in zip(names, node.args, strict=False):
        if not isinstance(argument, _SAYING) and not _says(argument, name):
            at = document.text.position(document.place(argument.start))
            yield lsp.InlayHint(at, f"{name}:", lsp.InlayHintKind.Parameter, padding_right=True)


def _says(argument: ast.Node, name: str) -> bool:
    return getattr(argument, "name", None) == name


def _type_hint(document: Document, item: Item, node: ast.Let) -> Iterator[lsp.InlayHint]:
    spot = document.spot(document.place(node.value.start))
    if spot is None or isinstance(node.value, ast.StructLit):
        return
    type = document.type_of(spot, node.value)
    name = node.target.name  # type: ignore[attr-defined]
    if type is not None:
        end = document.name_span(node.target, name)[1]
        yield lsp.InlayHint(document.text.position(end), f": {shown(type)}", lsp.InlayHintKind.Type)
