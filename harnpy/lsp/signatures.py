"""What a call takes: signature help in it, and hints of its parameters' names. Spec: 12 §3.3, §3.5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lsprotocol import types as lsp

from harnpy.check.checker import ABOVE, VISITS
from harnpy.check.types.type_nodes import shown
from harnpy.check.walk import Walk
from harnpy.lsp import descriptions
from harnpy.lsp.descriptions import Description
from harnpy.lsp.document import CURSOR, Document, Supposed
from harnpy.lsp.inferring import Guess
from harnpy.lsp.literals import closing
from harnpy.lsp.names import declaration
from harnpy.lsp.workspace import Workspace
from harnpy.syntax import ast
from harnpy.syntax.mending import MISSING

if TYPE_CHECKING:
    from harnpy.check.edits import Item
    from harnpy.check.environment import Environment
    from harnpy.check.types.type_nodes import Type

#: Expressions that show their types.
_EVIDENT = (
    ast.Int, ast.Float, ast.Str, ast.Interp, ast.Bool, ast.Nil, ast.Duration, ast.StructLit, ast.Closure,
    ast.FnExpr, ast.Dict, ast.RangeTo,
)  # fmt: skip
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
    piece = document.checked.draft.piece_at(offset)
    closers = closing(piece.text, offset - piece.start)
    found = document.supposed(offset, offset, f"{CURSOR}{closers}")
    call = None if found is None else _call(found)
    if found is None or call is None:
        return None
    node, number = call
    callee = _callee(workspace, document, found, node)
    if callee is None:
        return None
    label = callee.description.declaration
    parameters = [lsp.ParameterInformation(each) for each in callee.parameters]
    active = _active(callee.parameters, number)
    documentation = lsp.MarkupContent(lsp.MarkupKind.Markdown, callee.description.sentence)
    information = lsp.SignatureInformation(label, documentation, parameters, active)
    return lsp.SignatureHelp([information], 0, active)


def _active(parameters: Sequence[str], number: int) -> int | None:
    """Return which parameter gets an argument; the last one gets all others if it takes several."""
    if parameters and number >= len(parameters) and parameters[-1].startswith("..."):
        return len(parameters) - 1
    return number if number < len(parameters) else None


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


def _callee(workspace: Workspace, document: Document, found: Supposed, node: ast.Node) -> Callee | None:
    sight = found.sight
    if isinstance(node, ast.MethodCall):
        return _method(document, found, node)
    if not isinstance(node, ast.Call):
        return None
    environment = sight.inference.environment
    binding = sight.scope.find(node.name)
    fn = (binding.fn if binding is not None else None) or environment.functions.get(node.name)
    if fn is not None:
        return _function(fn, document)
    tool = next(
        (one for one in environment.items if isinstance(one, ast.ToolDecl) and one.name == node.name), None
    )
    if tool is not None:
        return _function(tool, document)
    struct = environment.types.declared.structs.get(node.name) if binding is None else None
    if struct is not None:
        fields = [
            f"{each.name}{'?' * each.optional}: {shown(each.type)}" for each in struct.fields if each.type
        ]
        return Callee(Description(f"{struct.name}({', '.join(fields)})"), fields)
    if binding is None and document.knowledge.is_builtin(node.name):
        description = descriptions.of_builtin(node.name)
        signature = document.knowledge.signature(node.name)
        if description is not None and signature is not None:
            return Callee(description, _written(description.declaration))
    return _imported(workspace, document, node.name)


def _function(fn: ast.FnDecl | ast.ToolDecl, home: Document | None = None) -> Callee:
    parameters = [_parameter(param) for param in fn.params]
    returns = "" if fn.returns is None else f" -> {shown(fn.returns)}"
    text = "" if home is None else descriptions.comment_above(home.source, home.place(fn.start))
    return Callee(Description(f"{fn.name}({', '.join(parameters)}){returns}", text), parameters)


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


def _method(document: Document, found: Supposed, node: ast.MethodCall) -> Callee | None:
    sight = found.sight
    enum = sight.inference.enum_of(node, sight.scope)
    if enum is not None:
        variant = next((one for one in enum.variants if one.name == node.name), None)
        if variant is None:
            return None
        parameters = [_parameter(param) for param in variant.params]
        return Callee(Description(f"{enum.name}.{variant.name}({', '.join(parameters)})"), parameters)
    guess = Guess(sight.inference, sight.scope, found.nodes)
    for type in guess.members(guess.of(node.object)):
        method = guess.method(type, node.name)
        if method is not None:
            callee = _function(method, document)
            return callee._replace(parameters=callee.parameters[1:])
        kind = type.name if isinstance(type, ast.TypeName) else "dict"
        description = descriptions.of_method(kind, node.name)
        if description is not None:
            return Callee(description, _written(description.declaration))
    return None


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
                    return _function(other.node, home)
    return None


# Hints.


def inlay_hints(workspace: Workspace, document: Document, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    """Return the types of variables without one, and names of parameters where arguments don't say them."""
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
    for let, type in document.lasting(item, _types):
        end = document.span(let.target)[1]
        yield lsp.InlayHint(document.text.position(end), f": {shown(type)}", lsp.InlayHintKind.Type)


def _types(document: Document, item: Item) -> Sequence[tuple[ast.Let, Type]]:
    """Return the variables of an item whose types nothing shows."""
    walk = _Types(document.environment, item.node)
    walk.visit(item.node)
    return walk.found


class _Types(Walk):
    """The checker's walk, which notes the types of variables."""

    def __init__(self, environment: Environment, item: ast.Node) -> None:
        super().__init__(environment, item, VISITS.with_entries({ast.Let: _let}), ABOVE)
        self.found: list[tuple[ast.Let, Type]] = []


def _let(walk: _Types, node: ast.Let) -> object:
    is_plain = isinstance(node.target, ast.NamePattern) and node.target.name not in ("_", MISSING)
    if is_plain and node.type is None and not _is_evident(node.value, walk):
        type = walk.type(node.value)
        if type is not None:
            walk.found.append((node, type))
    return VISITS[ast.Let](walk, node)


def _is_evident(value: ast.Node, walk: _Types) -> bool:
    """Return whether an expression shows its type to any reader."""
    return isinstance(value, _EVIDENT) or walk.inference.variant(value, walk.scope) is not None


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
