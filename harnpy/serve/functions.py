"""Functions that a Harn file offers to be called: `pub fn`s, `tool` declarations, the verbs of sessions.

Spec: 07 §4.3, 08 §1, 09 §11.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.builtins.bridge.named_arguments import in_order, input_schema
from harnpy.builtins.documentation import documentation, without_citation
from harnpy.syntax import ast
from harnpy.syntax.comments import doc_comment
from harnpy.syntax.parser import parse_cached
from harnpy.vm.resolve.types import json_schema
from harnpy.vm.run.calls import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy import Vm
    from harnpy.vm.declare import Declaration, Parameter
    from harnpy.vm.modules import Library

Schema = dict[str, Any]

_LITERALS = (ast.Str, ast.Int, ast.Float, ast.Bool, ast.Nil)


class Function(NamedTuple):
    """One function: ``parameters`` are schemas, in order, of which some say `required: false`.

    ``rest``: the last parameter takes any number of arguments, as a list. ``returns`` is the schema of its
    result, None where its type isn't written or says nothing. ``call`` is a callable Harn value, and
    ``absent`` stands for what isn't given. ``takes_dict``: it takes one dict of all arguments (07 §4.3).
    """

    name: str
    description: str
    parameters: dict[str, Schema]
    rest: bool
    returns: Schema | None
    call: Any
    absent: Any = MISSING
    takes_dict: bool = False

    def input_schema(self) -> Schema:
        """The JSON schema of the arguments by name."""
        return input_schema(self.parameters)

    def positional(self, arguments: Mapping[str, Any]) -> list[Any]:
        """The arguments in order; what isn't given has its default. Some tools take one dict of them."""
        if self.takes_dict:
            return [dict(arguments)]
        return in_order(self.parameters, self.rest, arguments, self.absent)


def functions_of(library: Library) -> dict[str, Function]:
    """Return what a loaded library offers, by name, in the order of its text."""
    program = parse_cached(library.module.source)
    aliases = library.types()
    return {function.name: function for function in _functions(program, library, aliases)}


def _functions(program: ast.Program, library: Library, aliases: dict[str, ast.Node]) -> Iterator[Function]:
    module = library.module
    for node in program.items:
        takes_dict = False
        if isinstance(node, ast.FnDecl) and node.pub and not node.gen:
            call = module.functions[node.name]
            parameters = _parameters(node.params, aliases)
            text = doc_comment(module.source, node.start)
        elif isinstance(node, ast.ToolDecl):
            (entry,) = module.tools[node.name]["tools"]
            call, parameters = entry["handler"], entry["parameters"]
            takes_dict = not call.by_name
            text = node.description or doc_comment(module.source, node.start)
        else:
            continue
        rest = bool(node.params) and node.params[-1].rest
        returns = returned(node.returns, aliases)
        yield Function(node.name, text, parameters, rest, returns, call, takes_dict=takes_dict)


def _parameters(params: Sequence[ast.Param], aliases: dict[str, ast.Node]) -> dict[str, Schema]:
    """The schemas of a function's parameters, as those that `tool_define` is given (07 §4.3)."""
    schemas = {}
    for param in params:
        schema = json_schema(param.type, aliases)
        if param.rest:
            schema = {"type": "array", "items": schema} if schema else {"type": "array"}
        if param.rest or param.default is not None:
            schema = {**schema, "required": False}
        if isinstance(param.default, _LITERALS):
            schema["default"] = getattr(param.default, "value", None)
        schemas[param.name] = schema
    return schemas


def returned(type_: ast.Node | None, aliases: dict[str, ast.Node]) -> Schema | None:
    """The schema of what a function returns: of a `Result` the `Ok`'s."""
    if isinstance(type_, ast.TypeName) and type_.name == "Result" and type_.args:
        type_ = type_.args[0]
    schema = json_schema(type_, aliases)
    return None if schema in ({}, {"type": "null"}) else schema


# The verbs of sessions, `agent_session_*`, as functions to be called from outside. Spec: 08 §1, 09 §11.4.


_PREFIX = "agent_session_"
#: The parameter of a verb that takes options.
_OPTIONS = "opts"
#: The verbs that clients may call, each with the options that they may give; all else is refused. Safe is
#: what stays within the program's sessions: it names no store, no path of this machine and nothing to call,
#: and asks no model.
CLIENT_VERBS: Mapping[str, str] = {
    "ancestry": "",
    "attach": "mode takeover metadata can_inject_prompt can_route_permission",
    "clear_scratchpad": "source reason metadata",
    "client_inject_prompt": "metadata",
    "close": "",
    "compact": "keep_last token_threshold tool_output_max_chars",
    "detach": "reason metadata",
    "exists": "",
    "fork": "",
    "fork_at": "",
    "heartbeat": "metadata",
    "history": "include_reset",
    "inject": "",
    "length": "",
    "list_roots": "",
    "live_clients": "",
    "open": "",
    "reset": "",
    "route_permission": "metadata",
    "scratchpad": "",
    "set_scratchpad": "source reason metadata",
    "snapshot": "",
    "takeover": "metadata can_inject_prompt can_route_permission",
    "trim": "",
    "workspace_anchor": "",
    "workspace_policy": "",
}


def session_verbs(vm: Vm) -> dict[str, Function]:
    """Return the verbs that clients may call, by name."""
    names = (f"{_PREFIX}{verb}" for verb in CLIENT_VERBS)
    return {name: _function(vm, vm.builtins.declaration(name)) for name in names}


def _function(vm: Vm, declaration: Declaration) -> Function:
    signature = declaration.signature()
    text = without_citation(documentation(declaration).prose)
    options = CLIENT_VERBS[declaration.name.removeprefix(_PREFIX)].split()
    parameters = {parameter.name: _schema(parameter, options) for parameter in signature.parameters}
    returns = returned(_type(signature.returns), {})
    call = vm.builtins.bound(declaration.name)
    return Function(declaration.name, text, parameters, signature.rest, returns, call, absent=None)


def _schema(parameter: Parameter, options: Sequence[str]) -> dict[str, object]:
    schema = json_schema(_type(parameter.type), {})
    if parameter.name == _OPTIONS:
        known: Schema = {option: {} for option in options}
        schema = {"type": "object", "properties": known, "additionalProperties": False}
    return {**schema, "required": False} if parameter.optional or parameter.has_default else schema


def _type(text: str) -> ast.Node:
    """The type that is written in a signature."""
    (declaration,) = parse_cached(f"type Written = {text}").items
    assert isinstance(declaration, ast.TypeDecl)
    return declaration.type
