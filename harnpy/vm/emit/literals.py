"""Literals, interpolation and the displays of lists, dicts and structs."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.operand import NIL, Constant, Slot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.vm.emit.function import Emitter


def integer(e: Emitter, node: ast.Int, into: str | None) -> str:
    return Constant(node.value)


def floating(e: Emitter, node: ast.Float, into: str | None) -> str:
    text = repr(node.value)
    return Constant(text) if text != "inf" else 'float("inf")'


def string(e: Emitter, node: ast.Str, into: str | None) -> str:
    return Constant(ascii(node.value))


def boolean(e: Emitter, node: ast.Bool, into: str | None) -> str:
    return Constant(node.value)


def nil(e: Emitter, node: ast.Nil, into: str | None) -> str:
    return NIL


def duration(e: Emitter, node: ast.Duration, into: str | None) -> str:
    return f"Duration({node.ms})"


def interpolation(e: Emitter, node: ast.Interp, into: str | None) -> str:
    """An f-string; strings and ints format natively, the rest through `display` (02 §5.2)."""
    values = [part for part in node.parts if not isinstance(part, ast.Str)]
    atoms = iter(e.atoms(values))
    pieces = []
    for part in node.parts:
        if isinstance(part, ast.Str):
            pieces.append(ascii(part.value)[1:-1].replace("{", "{{").replace("}", "}}").replace('"', r"\""))
            continue
        atom = next(atoms)
        if not isinstance(atom, Slot):
            pieces.append("{" + e.fresh(f"display({atom})") + "}")
        elif e.kind(part) in ("int", "str"):
            pieces.append("{" + atom + "}")
        else:
            test = f"type({atom}) is str or type({atom}) is int"
            pieces.append("{" + f"{atom} if {test} else display({atom})" + "}")
    return 'f"' + "".join(pieces) + '"'


def list_(e: Emitter, node: ast.List, into: str | None) -> str:
    return sequence(e, node.items)


def sequence(e: Emitter, items: Sequence[ast.Node]) -> str:
    """A list display; spread operands must be lists (02 §4.4)."""
    return list_text(items, e.operands(items))


def list_text(items: Sequence[ast.Node], texts: Sequence[str]) -> str:
    stars = ["*" if isinstance(item, ast.Spread) else "" for item in items]
    return f"[{', '.join(star + text for star, text in zip(stars, texts, strict=True))}]"


def spread(e: Emitter, node: ast.Spread, into: str | None) -> str:
    """What is spread in a list or in arguments."""
    return e.mark(node, f"spread_list({e.expr(node.value)})")


def dict_(e: Emitter, node: ast.Dict, into: str | None) -> str:
    return mapping(e, node.entries)


def mapping(e: Emitter, entries: Sequence[ast.Node]) -> str:
    """A dict display in source order: a later duplicate wins (02 §4.5)."""

    def key(node: ast.Node) -> str:
        text = e.expr(node)
        return text if isinstance(node, ast.Str) else f"display({text})"

    def spread(node: ast.Node) -> str:
        assert isinstance(node, ast.Spread)
        return e.mark(node, f"spread_dict({e.expr(node.value)})")

    parts: list[tuple[ast.Node, Callable[[ast.Node], str]]] = []
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
    return "{" + ", ".join(pieces) + "}"


def struct(e: Emitter, node: ast.StructLit, into: str | None) -> str:
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
