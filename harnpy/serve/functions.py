"""Functions that a Harn file offers to be called: `pub fn`s, `tool` declarations, the verbs of sessions.

Spec: 07 §4.3, 08 §1, 09 §11.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.builtins import catalog
from harnpy.builtins.documentation import documentation, without_citation
from harnpy.syntax import ast
from harnpy.syntax.parser import parse_cached
from harnpy.vm.resolve.types import json_schema
from harnpy.vm.run.calls import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harnpy import Vm
    from harnpy.vm.declare import Declaration
    from harnpy.vm.modules import Library
    from harnpy.vm.signatures import Parameter

Schema = dict[str, Any]

_LITERALS = (ast.Str, ast.Int, ast.Float, ast.Bool, ast.Nil)


class Function(NamedTuple):
    """One function: ``parameters`` are schemas, in order, of which some say `required: false`.

    ``rest``: the last parameter takes any number of arguments, as a list. ``returns`` is the schema of its
    result, None where its type isn't written or says nothing. ``call`` is a callable Harn value, and
    ``absent`` stands for what isn't given.
    """

    name: str
    description: str
    parameters: dict[str, Schema]
    rest: bool
    returns: Schema | None
    call: Any
    absent: Any = MISSING

    def input_schema(self) -> Schema:
        """The JSON schema of the arguments by name."""
        properties = {name: _without_flag(schema) for name, schema in self.parameters.items()}
        required = [name for name, schema in self.parameters.items() if schema.get("required") is not False]
        schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        return {**schema, "required": required} if required else schema

    def positional(self, arguments: Mapping[str, Any]) -> list[Any]:
        """The arguments in order; what isn't given has its default."""
        args = [arguments.get(name, self.absent) for name in self.parameters]
        if not self.rest:
            return args
        last = args.pop()
        return args if last is self.absent else [*args, *last]


def functions_of(library: Library) -> dict[str, Function]:
    """Return what a loaded library offers, by name, in the order of its text."""
    program = parse_cached(library.module.source)
    aliases = library.types()
    return {function.name: function for function in _functions(program, library, aliases)}


def _functions(program: ast.Program, library: Library, aliases: dict[str, ast.Node]) -> Iterator[Function]:
    module = library.module
    for node in program.items:
        if isinstance(node, ast.FnDecl) and node.pub and not node.gen:
            call = module.functions[node.name]
            parameters = _parameters(node.params, aliases)
            text = doc_comment(module.source, node.start)
        elif isinstance(node, ast.ToolDecl):
            (entry,) = module.tools[node.name]["tools"]
            call, parameters = entry["handler"], entry["parameters"]
            text = node.description or doc_comment(module.source, node.start)
        else:
            continue
        rest = bool(node.params) and node.params[-1].rest
        yield Function(node.name, text, parameters, rest, returned(node.returns, aliases), call)


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


def _without_flag(schema: Schema) -> Schema:
    """A parameter's schema without `required: false`, which is the enclosing schema's to say."""
    if isinstance(schema.get("required"), bool):
        return {key: value for key, value in schema.items() if key != "required"}
    return schema


def doc_comment(source: str, start: int) -> str:
    """Return the text of the `/** … */` or the `///` lines right above ``start``, without their marks."""
    above = source[:start].rstrip()
    if above.endswith("*/"):
        begin = above.rfind("/*")
        block = above[begin + 3 : -2] if above.startswith("/**", begin) else ""
        return "\n".join(line.strip().removeprefix("*").strip() for line in block.splitlines()).strip()
    lines: list[str] = []
    for line in reversed(above.splitlines()):
        if not line.lstrip().startswith("///"):
            break
        lines.append(line.strip().removeprefix("///").strip())
    return "\n".join(reversed(lines))


# The verbs of sessions, `agent_session_*`, as functions to be called from outside. Spec: 08 §1, 09 §11.4.


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
