"""`tool` declarations: the name is a registry of one tool, made by `tool_define`. Spec: 07 §4.3."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.nodes.closures import fn_text, make
from harnpy.vm.resolve.schemas import json_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.emit.function import Emitter


def declaration(e: Emitter, node: ast.ToolDecl) -> None:
    resolution = e.unit.resolution
    if e.refuses(node, node.name):
        return
    parameters = _parameters(e, node)
    fields = [f"'parameters': {{{', '.join(parameters)}}}"]
    if node.returns is not None:
        fields.append(f"'returns': {json_schema(node.returns, resolution.aliases)!r}")
    body, trampoline = make(e, node, node.name, node.body, node.params)
    fields.append(f"'handler': {fn_text(node.name, node.params, body, trampoline)}")
    define, empty = e.unit.builtin_function("tool_define"), e.unit.builtin_function("tool_registry")
    config = f"{{{', '.join(fields)}}}"
    text = f"{define}(vm, {empty}(vm), {node.name!r}, {node.description or ''!r}, {config})"
    e.assign_new(e.declared_by(node, node.name), e.mark(node, text))


def _parameters(e: Emitter, node: ast.ToolDecl) -> list[str]:
    """Entries of a dict display: each parameter with its schema, and its default as it is by now."""
    defaults = e.unit.resolution.tool_defaults[id(node)]
    values = iter(e.operands([default for default in defaults if default is not None]))
    entries = []
    for param, default in zip(node.params, defaults, strict=True):
        schema = json_schema(param.type, e.unit.resolution.aliases)
        if param.rest:
            schema = {"type": "array", "items": schema} if schema else {"type": "array"}
        if param.default is not None or param.rest:
            schema["required"] = False
        spread = f"{schema!r}" if default is None else f"{{**{schema!r}, 'default': {next(values)}}}"
        entries.append(f"{param.name!r}: {spread}")
    return entries
