"""Reading names, properties, elements and slices. Spec: 02 §7.4, §14."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.operand import CONSTANT, NIL, reading
from harnpy.vm.resolve.tree import enum_variant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.emit.function import Emitter
    from harnpy.vm.emit.operand import Operand, Text
    from harnpy.vm.resolve.scopes import Reference

#: Properties that lists, strings, enums and pairs have too: reading those as a dict often fails.
COMPUTED = frozenset(["count", "empty", "first", "last", "second", "variant", "fields"])


def name(e: Emitter, node: ast.Name, into: Operand | None) -> Text:
    return read(e, node, e.refs[id(node)])


def read(e: Emitter, node: ast.Node, ref: Reference) -> Text:
    """The value of a name."""
    if ref.kind == "local" and ref.variable:
        if ref.variable.in_box:
            return e.mark(node, f"read_late({ref.variable.python}[0], {ref.name!r})")
        return reading(ref.variable)
    if ref.kind == "builtin":
        return e.unit.builtin_value(ref.name)
    if ref.kind == "global":
        return e.unit.global_value(ref.name)
    if ref.kind == "schema":
        return repr(ref.schema)
    if ref.kind == "dynamic":
        return e.mark(node, f"read_dynamic(m, {ref.name!r})")
    return e.mark(node, f"undefined_variable({ref.name!r}, {ref.visible!r})")


def member(e: Emitter, node: ast.Member, into: Operand | None) -> Text:
    """A property. ``p.x`` is tried as an entry of a dict or struct, which nothing guards:

        try:
         t1 = p_1['x']
        except (KeyError, TypeError):
         t1 = get_prop(p_1, 'x')

    ``p?.x``, and what other values have too, like ``xs.count``, fails too often for that:

        (p_1.get('x') if type(p_1) is dict else get_prop_optional(p_1, 'x'))
    """
    if variant := enum_reference(e, node):
        return f"EnumValue({variant[0]!r}, {variant[1]!r})"
    if node.optional:
        atom = e.slot(node.object)
        slow = f"get_prop_optional({atom}, {node.name!r})"
        return f"({atom}.get({node.name!r}) if type({atom}) is dict else {slow})"
    names, root = path(node)
    if len(names) > 1 and root is not node.object:
        return long_path(e, node, root, names, into)
    atom = e.slot(node.object)
    slow = e.mark(node, f"get_prop({atom}, {node.name!r})")
    if node.name in COMPUTED:
        return f"({atom}.get({node.name!r}) if type({atom}) is dict else {slow})"
    slot = into or e.temp()
    if slot == atom:
        slot = e.temp()
    e.line("try:")
    e.line(f" {slot} = {atom}[{node.name!r}]")
    e.line("except (KeyError, TypeError):")
    e.line(f" {slot} = {slow}")
    e.assigned(slot)
    return slot


def path(node: ast.Member) -> tuple[tuple[str, ...], ast.Node]:
    """``a.b.c`` as (("b", "c"), a): the plain reads on the way, outermost last."""
    names: list[str] = []
    current: ast.Node = node
    while isinstance(current, ast.Member) and not current.optional and current.name not in COMPUTED:
        names.append(current.name)
        current = current.object
    return tuple(reversed(names)), current


def long_path(
    e: Emitter, node: ast.Member, root: ast.Node, names: tuple[str, ...], into: Operand | None
) -> Text:
    """A chain of reads in one attempt; if any link is unusual, read them one by one. ``cfg.a.b``:

    try:
     t1 = cfg_1['a']['b']
    except (KeyError, TypeError):
     t1 = get_path(cfg_1, ('a', 'b'))
    """
    if enum_variant(node.object, e.unit.resolution.enums):
        return e.mark(node, f"get_prop({e.atom(node.object)}, {node.name!r})")
    atom = e.slot(root)
    slot = into if into and into != atom else e.temp()
    reads = "".join(f"[{name!r}]" for name in names)
    e.line("try:")
    e.line(f" {slot} = {atom}{reads}")
    e.line("except (KeyError, TypeError):")
    e.line(f" {slot} = " + e.mark(node, f"get_path({atom}, {names!r})"))
    e.assigned(slot)
    return slot


def enum_reference(e: Emitter, node: ast.Node) -> tuple[str, str] | None:
    """``Enum.Variant``, unless a variable shadows the enum's name."""
    variant = enum_variant(node, e.unit.resolution.enums)
    if variant:
        ref = e.refs.get(id(node.object))  # type: ignore[attr-defined]
        if ref is None or ref.kind != "local":
            return variant
    return None


def index(e: Emitter, node: ast.Index, into: Operand | None) -> Text:
    """An element; out of range it is nil. ``xs[i]``:

    if type(xs_1) is list and type(i_2) is int:
     try: t1 = xs_1[i_2]
     except IndexError: t1 = None
    else: t1 = index(xs_1, i_2)
    """
    target, key = e.atoms([node.object, node.index])
    if target.kind == CONSTANT:
        target = e.fresh(target)
    slow = e.mark(node, f"index({target}, {key})")
    if node.optional:
        return f"(None if {target} is None else {slow})"
    if isinstance(node.index, ast.Str):
        return f"({target}.get({key}) if type({target}) is dict else {slow})"
    kind = e.kind(node.index)
    if kind not in ("int", "any"):
        return slow
    slot = into if into and into not in (target, key) else e.temp()
    is_int = "" if kind == "int" else f" and type({key}) is int"
    e.line(f"if type({target}) is list{is_int}:")
    e.line(f" try: {slot} = {target}[{key}]")
    e.line(f" except IndexError: {slot} = None")
    e.line(f"else: {slot} = {slow}")
    e.assigned(slot)
    return slot


def slice_(e: Emitter, node: ast.Slice, into: Operand | None) -> Text:
    nodes = [node.object, *(bound for bound in (node.first, node.last) if bound)]
    texts = iter(e.operands(nodes))
    target = next(texts)
    first = next(texts) if node.first else NIL
    last = next(texts) if node.last else NIL
    return e.mark(node, f"slice_({target}, {first}, {last})")
