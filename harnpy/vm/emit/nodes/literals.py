"""Literals, interpolation and the displays of lists, dicts and structs."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.operand import CONSTANT, NIL, Operand, constant, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.vm.emit.function import Emitter
    from harnpy.vm.emit.operand import Text


def integer(e: Emitter, node: ast.Int, into: Operand | None) -> Text:
    return constant(node.value)


def floating(e: Emitter, node: ast.Float, into: Operand | None) -> Text:
    text = repr(node.value)
    return Operand(text, CONSTANT) if text != "inf" else 'float("inf")'


def string(e: Emitter, node: ast.Str, into: Operand | None) -> Text:
    return Operand(ascii(node.value), CONSTANT)


def boolean(e: Emitter, node: ast.Bool, into: Operand | None) -> Text:
    return constant(node.value)


def nil(e: Emitter, node: ast.Nil, into: Operand | None) -> Text:
    return NIL


def duration(e: Emitter, node: ast.Duration, into: Operand | None) -> Text:
    return f"Duration({node.ms})"


def interpolation(e: Emitter, node: ast.Interp, into: Operand | None) -> Text:
    """An f-string; strings and ints format natively, the rest through `display` (02 §5.2)."""
    values = [part for part in node.parts if not isinstance(part, ast.Str)]
    atoms = iter(e.atoms(values))
    pieces = []
    for part in node.parts:
        if isinstance(part, ast.Str):
            pieces.append(ascii(part.value)[1:-1].replace("{", "{{").replace("}", "}}").replace('"', r"\""))
            continue
        atom = next(atoms)
        if not atom.is_slot:
            pieces.append(f"{{{e.fresh(f'display({atom})')}}}")
        elif e.kind(part) in ("int", "str"):
            pieces.append(f"{{{atom}}}")
        else:
            test = f"type({atom}) is str or type({atom}) is int"
            pieces.append("{" + f"{atom} if {test} else display({atom})" + "}")
    return 'f"' + "".join(pieces) + '"'


def list_(e: Emitter, node: ast.List, into: Operand | None) -> Text:
    return sequence(e, node.items)


def sequence(e: Emitter, items: Sequence[ast.Node]) -> str:
    """A list display; spread operands must be lists (02 §4.4)."""
    return list_text(items, e.operands(items))


def list_text(items: Sequence[ast.Node], texts: Sequence[Text]) -> str:
    stars = ["*" if isinstance(item, ast.Spread) else "" for item in items]
    return f"[{joined(f'{star}{text}' for star, text in zip(stars, texts, strict=True))}]"


def spread(e: Emitter, node: ast.Spread, into: Operand | None) -> Text:
    """What is spread in a list or in arguments."""
    return e.mark(node, f"spread_list({e.expr(node.value)})")


def dict_(e: Emitter, node: ast.Dict, into: Operand | None) -> Text:
    return mapping(e, node.entries)


def mapping(e: Emitter, entries: Sequence[ast.Node]) -> str:
    """A dict display in source order: a later duplicate wins (02 §4.5)."""

    def key(node: ast.Node) -> Text:
        text = e.expr(node)
        return text if isinstance(node, ast.Str) else f"display({text})"

    def spread(node: ast.Node) -> str:
        assert isinstance(node, ast.Spread)
        return e.mark(node, f"spread_dict({e.expr(node.value)})")

    parts: list[tuple[ast.Node, Callable[[ast.Node], Text]]] = []
    for entry in entries:
        if isinstance(entry, ast.DictEntry):
            parts += [(entry.key, key), (entry.value, e.expr)]
        else:
            parts.append((entry, spread))
    texts = iter(e.in_order(parts))
    pieces = [
        f"{next(texts)}: {next(texts)}" if isinstance(entry, ast.DictEntry) else f"**{next(texts)}"
        for entry in entries
    ]
    return f"{{{joined(pieces)}}}"


def struct(e: Emitter, node: ast.StructLit, into: Operand | None) -> Text:
    """``Name {…}``: only declared fields are stored (02 §15.1)."""
    declared = e.unit.resolution.structs.get(node.name)
    fields = mapping(e, node.entries)
    if declared is None:
        return f"Struct({node.name!r}, {fields})"
    names = tuple(field.name for field in declared.fields)
    plain = all(
        isinstance(entry, ast.DictEntry) and isinstance(entry.key, ast.Str) and entry.key.value in names
        for entry in node.entries
    )
    return f"Struct({node.name!r}, {fields})" if plain else f"make_struct({node.name!r}, {names!r}, {fields})"
