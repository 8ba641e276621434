"""Interpolated strings, dicts and structs. Spec: 03 §1.1, §8.1, §8.2."""

from __future__ import annotations

from harnpy.check.findings import declared_here
from harnpy.check.types.names import NIL, shown
from harnpy.check.walk.foreign_types import hint
from harnpy.syntax import ast
from harnpy.text.spell import STATIC_LIMIT, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.walk.visitor import Walk


def interp(walk: Walk, node: ast.Interp) -> None:
    """Of what stands in `${…}` nothing but the names is judged."""
    walk.names_only(lambda: walk.children(node))


def dict_entry(walk: Walk, node: ast.DictEntry) -> None:
    if node.computed:
        walk.visit(node.key)
    walk.visit(node.value)


def struct(walk: Walk, node: ast.StructLit) -> None:
    walk.children(node)
    declared = walk.types.declared.structs.get(node.name)
    if declared is None:
        _unknown_struct(walk, node)
        return
    given = {
        entry.key.value: entry
        for entry in node.entries
        if isinstance(entry, ast.DictEntry) and isinstance(entry.key, ast.Str) and not entry.computed
    }
    places = [declared_here(declared)] if node.name not in walk.types.declared.foreign else []
    known = {field.name for field in declared.fields}
    for name, entry in given.items():
        if name not in known:
            text = f"Unknown field '{name}' in struct '{node.name}'"
            near = nearest(name, sorted(known), limit=STATIC_LIMIT)
            help = f"did you mean `{near}`?" if near else None
            walk.findings.warn("unknown-struct-field", entry, text, help=help, places=places)
    if len(given) == len(node.entries):
        for field in declared.fields:
            if field.name not in given and not field.optional:
                text = f"Missing field '{field.name}' in struct '{node.name}' construction"
                walk.findings.warn("missing-struct-field", node, text, places=places)
    _fields(walk, node, declared, given)


def _fields(
    walk: Walk, node: ast.StructLit, declared: ast.StructDecl, given: dict[str, ast.DictEntry]
) -> None:
    params = walk.function.type_params | {param.name for param in declared.type_params}
    for field in declared.fields:
        entry = given.get(field.name)
        actual = walk.type(entry.value) if entry is not None and field.type is not None else None
        if entry is None or field.type is None or actual is None:
            continue
        expected = walk.types.union([field.type, NIL]) if field.optional else field.type
        if not walk.types.accepts(expected, entry.value, actual, params):
            text = f"Field '{field.name}' in struct '{node.name}' expects {shown(field.type)}"
            text = f"{text}, got {shown(actual)}"
            walk.findings.error("struct-field-type", entry.value, text, help=hint(walk, field.type))


def _unknown_struct(walk: Walk, node: ast.StructLit) -> None:
    environment = walk.environment
    if not environment.complete or node.name in environment.structs_anywhere:
        return
    near = nearest(node.name, sorted(walk.types.declared.structs), limit=STATIC_LIMIT)
    text = f"unknown struct type `{node.name}`"
    if near is None:
        help = f"declare `struct {node.name} {{ ... }}` before constructing it"
    else:
        text = f"{text} — did you mean `{near}`?"
        help = f"declare `struct {near} {{ ... }}` or fix the type name"
    walk.findings.error("unknown-struct", node, text, help=help)
