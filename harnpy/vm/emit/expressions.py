"""Literals, names, properties, operators and choices between values, as Python text.

Spec: 02 §2-4, §7.4, §14.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.names import enum_variant
from harnpy.vm.emit import CONSTANT, LEAST, MOST, NIL, SLOT, Operand, constant, joined, reading, type_of
from harnpy.vm.emit.bounds import bounds, unreduced
from harnpy.vm.resolve.kinds import PLAIN, WRAPPING, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy.vm.emit import Text
    from harnpy.vm.emit.emitter import Emitter
    from harnpy.vm.emit.source_map import Line
    from harnpy.vm.resolve import Reference, Variable

    #: A value's text, and the lines that must come before it.
    Choice = tuple[Text, list[Line]]

# Literals, interpolation and the displays of lists, dicts and structs.


def floating(e: Emitter, node: ast.Float, into: Operand | None) -> Text:
    text = repr(node.value)
    return Operand(text, CONSTANT) if text != "inf" else 'float("inf")'


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
            test = f"{type_of(atom)} is str or {type_of(atom)} is int"
            pieces.append("{" + f"{atom} if {test} else display({atom})" + "}")
    return 'f"' + "".join(pieces) + '"'


def list_(e: Emitter, node: ast.List, into: Operand | None) -> Text:
    return sequence(e, node.items)


def dict_(e: Emitter, node: ast.Dict, into: Operand | None) -> Text:
    return mapping(e, node.entries)


def sequence(e: Emitter, items: Sequence[ast.Node]) -> str:
    """A list display; spread operands must be lists (02 §4.4)."""
    return list_text(items, e.operands(items))


def list_text(items: Sequence[ast.Node], texts: Sequence[Text]) -> str:
    stars = ["*" if isinstance(item, ast.Spread) else "" for item in items]
    return f"[{joined(f'{star}{text}' for star, text in zip(stars, texts, strict=True))}]"


def spread(e: Emitter, node: ast.Spread, into: Operand | None) -> Text:
    """Return what is spread in a list or in arguments."""
    return e.mark(node, f"spread_list({e.expr(node.value)})")


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


# Reading names, properties, elements and slices. Spec: 02 §7.4, §14.


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
    """A property. ``p['x']`` reads what is surely there. Any other is tried as an entry of a dict or struct,
    which nothing guards:

        try:
         t1 = p_1['x']
        except (KeyError, TypeError):
         t1 = get_prop(p_1, 'x')

    ``p?.x``, and what other values have too, like ``xs.count``, fails too often for that:

        (p_1.get('x') if p_1.__class__ is dict else get_prop_optional(p_1, 'x'))
    """
    if variant := enum_reference(e, node):
        return f"EnumValue({variant[0]!r}, {variant[1]!r})"
    if has_field(e, node):
        return field(e, node)
    if node.optional:
        atom = e.slot(node.object)
        slow = f"get_prop_optional({atom}, {node.name!r})"
        return f"({atom}.get({node.name!r}) if {type_of(atom)} is dict else {slow})"
    names, root = path(node)
    if len(names) > 1 and root is not node.object:
        return long_path(e, node, root, names, into)
    atom = e.slot(node.object)
    slow = e.mark(node, f"get_prop({atom}, {node.name!r})")
    if node.name in COMPUTED:
        return f"({atom}.get({node.name!r}) if {type_of(atom)} is dict else {slow})"
    slot = into or e.temp()
    if slot == atom:
        slot = e.temp()
    e.line("try:")
    e.line(f" {slot} = {atom}[{node.name!r}]")
    e.line("except (KeyError, TypeError):")
    e.line(f" {slot} = {slow}")
    e.assigned(slot)
    return slot


def field(e: Emitter, node: ast.Member) -> Text:
    """A field that is surely there. A loop that leaves `p` alone reads ``p.x`` once, before it:

    t1 = p_1['x']
    for i_2 in range(0, 9): s_3 = s_3 + t1

    That goes for plain values only: a temporary that held a list would be one more holder of it.
    """
    names, root = [node.name], node.object
    while isinstance(root, ast.Member) and has_field(e, root):
        names.insert(0, root.name)
        root = root.object
    of = e.expr(root)
    text = f"{of}{''.join(f'[{name!r}]' for name in names)}"
    if isinstance(of, Operand) and of.kind == SLOT and e.kind(node) in PLAIN:
        return e.hoist(text, of)
    return text


def has_field(e: Emitter, node: ast.Member) -> bool:
    """Return True if what ``node`` reads of surely has that field."""
    shape = e.view.shape(node.object)
    return isinstance(shape, Record) and node.name in shape.fields


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

    if xs_1.__class__ is list and i_2.__class__ is int:
     try: t1 = xs_1[i_2]
     except IndexError: t1 = None
    elif xs_1.__class__ is dict and i_2.__class__ is str: t1 = xs_1.get(i_2)
    else: t1 = index(xs_1, i_2)
    """
    target, key = e.atoms([node.object, node.index])
    if target.kind == CONSTANT:
        target = e.fresh(target)
    slow = e.mark(node, f"index({target}, {key})")
    if node.optional:
        return f"(None if {target} is None else {slow})"
    of, kind = e.kind(node.object), e.kind(node.index)
    if kind == "str":
        return f"({target}.get({key}) if {type_of(target)} is dict else {slow})"
    if kind not in ("int", "any") or of not in ("list", "dict", "any"):
        return slow
    slot = into if into and into not in (target, key) else e.temp()
    word = "if"
    if of != "dict":
        tests = [f"{type_of(target)} is list"] if of == "any" or kind == "any" else []
        tests += [e.is_int(key)] if kind == "any" else []
        e.line(f"if {' and '.join(tests) or True}:")
        e.line(f" try: {slot} = {target}[{key}]")
        e.line(f" except IndexError: {slot} = None")
        word = "elif"
    if of != "list" and kind == "any":
        e.line(f"{word} {type_of(target)} is dict and {type_of(key)} is str: {slot} = {target}.get({key})")
        word = "elif"
    e.line(f"else: {slot} = {slow}" if word == "elif" else f"{slot} = {slow}")
    e.assigned(slot)
    return slot


def needed(e: Emitter, node: ast.Node) -> Text:
    """The value of an operand that cannot be nil. Whoever computes with ``costs[name]`` expects an entry:

    t1 = costs_1.__class__ is dict
    for name_2 in names_3:
     if t1:
      try: t2 = costs_1[name_2]
      except KeyError: t2 = None
     else: t2 = index(costs_1, name_2)

    A missing one takes longer than with `get`.
    """
    if not isinstance(node, ast.Index) or node.optional or e.kind(node.index) != "str":
        return e.expr(node)
    target, key = e.atoms([node.object, node.index])
    of, slot = e.held(target), e.temp()
    test = "" if e.kind(node.object) == "dict" else e.hoist(f"({type_of(of)} is dict)", of)
    with e.suite(f"if {test}") if test else e.here():
        e.line(f"try: {slot} = {of}[{key}]")
        e.line(f"except KeyError: {slot} = None")
    if test:
        e.line(f"else: {slot} = " + e.mark(node, f"index({of}, {key})"))
    return slot


def operands_needed(e: Emitter, nodes: Sequence[ast.Node]) -> list[Text]:
    """Texts for ``nodes``, to be used in this order in one sum or the like: none of them can be nil."""
    return e.in_order([(node, lambda node: needed(e, node)) for node in nodes])


def atoms_needed(e: Emitter, nodes: Sequence[ast.Node]) -> list[Operand]:
    texts = operands_needed(e, nodes)
    return [e.read(node, e.settle(text)) for node, text in zip(nodes, texts, strict=True)]


def slice_(e: Emitter, node: ast.Slice, into: Operand | None) -> Text:
    nodes = [node.object, *(bound for bound in (node.first, node.last) if bound)]
    texts = iter(e.operands(nodes))
    target = next(texts)
    first = next(texts) if node.first else NIL
    last = next(texts) if node.last else NIL
    return e.mark(node, f"slice_({target}, {first}, {last})")


# `+ - *` on ints: a tree of them in one Python expression. Spec: 02 §2.
#
# Modulo 2^64 they are a ring, so a tree of them is computed in Python ints and wrapped once. A test on 2^30
# comes first because CPython compares small ints faster. When a guard fails, the tree is done again operator
# by operator, which raises the right error at the right place.


#: The functions that do an operator for any values, or raise its error.
SLOW = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod", "**": "power",
    "==": "eq", "!=": "ne", "<": "lt", ">": "gt", "<=": "le", ">=": "ge", "in": "in_",
}  # fmt: skip
_NUMBERS = ("int", "num")

#: A tree of more leaves than this is computed in parts: Python nests parentheses 200 deep at most.
_MOST_LEAVES = 12


def wrapping(e: Emitter, node: ast.Binary, into: Operand | None) -> Text:
    """A tree of `+ - *`. ``a + b * 2`` of values that may be anything:

    if a_1.__class__ is int and b_2.__class__ is int:
     t1 = a_1 + (b_2 * 2)
     if t1 > 1073741823 or t1 < -1073741823: t1 = wrap(t1)
    else: t1 = add(a_1, mul(b_2, 2))
    """
    leaves: list[ast.Node] = []
    ops: set[str] = set()
    collect(e, node, leaves, ops)
    kinds = [e.kind(leaf) for leaf in leaves]
    # Beside a float, an int product is wrapped before it becomes one.
    whole = "num" not in kinds
    if not whole:
        leaves, ops = [node.left, node.right], {node.op}
        kinds = [e.kind(leaf) for leaf in leaves]
    atoms = operands_needed(e, leaves)
    if not all(kind in _NUMBERS for kind in kinds):
        atoms = [e.settle(text) for text in atoms]
    wanted, test = ring_of(ops, kinds)
    unknown = [a for a, k in zip(atoms, kinds, strict=True) if k not in wanted]
    hopeless = any(k not in (*wanted, "any") for k in kinds)
    slow = slow_tree(e, node, map(e.reduced, atoms), whole)
    if hopeless:
        return slow
    fast = fast_tree(e, node, iter(atoms), whole)
    slot = into or e.temp()
    wrap = test == "int"
    if not unknown:
        if wrap and not into and not beyond(e, node, slot):
            return f"({fast})"
        e.line(f"{slot} = {fast}")
        if wrap:
            wrap_line(e, node, slot, "")
    else:
        ask = e.is_int if wrap else lambda a: f"{type_of(a)} is {test}"
        e.line(f"if {' and '.join(ask(a) for a in dict.fromkeys(unknown))}:")
        e.line(f" {slot} = {fast}")
        if wrap:
            wrap_line(e, node, slot, " ")
        with e.suite("else"):
            e.line(f"{slot} = {slow}")
            e.changed(slot)
    e.assigned(slot)
    return slot


def ring_of(ops: set[str], kinds: list[str]) -> tuple[tuple[str, ...], str]:
    """The kinds that the fast way is for, and the Python type that unknown leaves are tested for.

    ``s + x``, of which `s` is a string, is fast when `x` is one too: ``("str",), "str"``.
    """
    for kind in ("str", "list"):
        if kind in kinds and ops == {"+"}:
            return (kind,), kind
    return _NUMBERS, "int"


def wrap_line(e: Emitter, node: ast.Binary, slot: Operand, pad: str) -> None:
    """Reduce to 64 bits what may be beyond them."""
    if slot.text in e.unreduced:
        return
    if test := beyond(e, node, slot):
        e.line(f"{pad}if {test}: {slot} = wrap({slot})")


def beyond(e: Emitter, node: ast.Binary, slot: Operand) -> str:
    """The test whether ``slot``, which holds ``node`` of ints, is beyond 64 bits; "" where it can't be."""
    low, high = unreduced(e, node)
    tests = [f"{slot} > 1073741823" if high > MOST else "", f"{slot} < -1073741823" if low < LEAST else ""]
    return " or ".join(filter(None, tests))


def collect(e: Emitter, node: ast.Node, leaves: list[ast.Node], ops: set[str]) -> None:
    """The leaves of a wrapping tree, in order, and its operators.

    A subtree whose errors must come first stays one leaf.
    """
    assert isinstance(node, ast.Binary)
    ops.add(node.op)
    for side in (node.left, node.right):
        if is_ring(side) and fuses(e, node, side):
            collect(e, side, leaves, ops)
        else:
            leaves.append(side)


def is_ring(node: ast.Node) -> bool:
    return isinstance(node, ast.Binary) and node.op in WRAPPING


def fuses(e: Emitter, parent: ast.Binary, side: ast.Node) -> bool:
    """Return True if ``side`` may be computed together with its parent.

    Not when the tree grows too large, and a left side not when evaluating the right one could have
    effects, or an error, that an error of the left must prevent.
    """
    if leaf_count(side) >= _MOST_LEAVES:
        return False
    return side is parent.right or all_simple(e, parent.right) or reads_again(e, side, parent.right)


def reads_again(e: Emitter, side: ast.Node, right: ast.Node) -> bool:
    """Return True if ``right`` reads a property of a variable of which ``side`` has read one.

    What has one property refuses no other; that of the names in `COMPUTED` isn't said.
    """
    variable, waiting = property_of(e, right), [side]
    while variable and waiting:
        node = waiting.pop()
        if is_ring(node):
            waiting += [node.left, node.right]  # type: ignore[attr-defined]
        elif property_of(e, node) is variable:
            return True
    return False


def property_of(e: Emitter, node: ast.Node) -> Variable | None:
    """The variable of which ``node`` reads a property."""
    if not isinstance(node, ast.Member) or node.optional or node.name in COMPUTED:
        return None
    ref = e.refs.get(id(node.object)) if isinstance(node.object, ast.Name) else None
    variable = ref.variable if ref and ref.kind == "local" else None
    return None if variable is None or variable.in_table or variable.in_box else variable


def leaf_count(node: ast.Node) -> int:
    count, stack = 0, [node]
    while stack and count < _MOST_LEAVES:
        top = stack.pop()
        if isinstance(top, ast.Binary) and top.op in WRAPPING:
            stack.extend((top.left, top.right))
        else:
            count += 1
    return count


def all_simple(e: Emitter, node: ast.Node) -> bool:
    """Return True if ``node`` only reads constants, and variables and fields that are surely there."""
    while isinstance(node, ast.Member) and has_field(e, node):
        node = node.object
    if isinstance(node, ast.Binary) and node.op in WRAPPING:
        return all_simple(e, node.left) and all_simple(e, node.right)
    if isinstance(node, ast.Name):
        ref = e.refs[id(node)]
        return ref.kind == "local" and ref.variable is not None and not ref.variable.in_box
    return isinstance(node, ast.Int | ast.Float | ast.Str)


def fast_tree(e: Emitter, node: ast.Binary, atoms: Iterator[Text], whole: bool) -> str:
    """The tree in Python operators; unless ``whole``, its top alone."""

    def side(child: ast.Node) -> Text:
        if whole and isinstance(child, ast.Binary) and child.op in WRAPPING and fuses(e, node, child):
            return f"({fast_tree(e, child, atoms, whole)})"
        return next(atoms)

    left = side(node.left)
    return f"{left} {node.op} {side(node.right)}"


def slow_tree(e: Emitter, node: ast.Binary, atoms: Iterator[Text], whole: bool) -> str:
    """The tree operator by operator, each with its place in the source; unless ``whole``, its top alone."""

    def side(child: ast.Node) -> Text:
        if whole and isinstance(child, ast.Binary) and child.op in WRAPPING and fuses(e, node, child):
            return slow_tree(e, child, atoms, whole)
        return next(atoms)

    left = side(node.left)
    return e.mark(node, f"{SLOW[node.op]}({left}, {side(node.right)})")


# Choices between values: `&&`, `||`, `!`, `??` and `?:`, and conditions. Spec: 02 §4.


def condition(e: Emitter, node: ast.Node) -> Text:
    """Text whose Python truth is the Harn truth of ``node``."""
    if isinstance(node, ast.Binary) and node.op in ("&&", "||"):
        return e.short(logic(e, node))
    if isinstance(node, ast.Unary) and node.op == "!":
        return e.short(f"(not {condition(e, node.operand)})")
    return e.expr(node)


def deciding(e: Emitter, node: ast.Node) -> Text:
    """The condition of a statement, which is done with it before its blocks begin."""
    e.leftovers.begin()
    text = condition(e, node)
    e.leftovers.end()
    return text


def logic_value(e: Emitter, node: ast.Binary) -> Text:
    """`&&` and `||` give a bool (02 §4.2)."""
    text = logic(e, node)
    return text if decides(e, node) else f"(True if {text} else False)"


def decides(e: Emitter, node: ast.Node) -> bool:
    """Return True if `condition` gives a bool for ``node``, and not just something truthy or falsy."""
    if isinstance(node, ast.Binary) and node.op in ("&&", "||"):
        return decides(e, node.left) and decides(e, node.right)
    return e.kind(node) == "bool"


def logic(e: Emitter, node: ast.Binary) -> Text:
    """``a && b`` as a condition: ``(a_1 and b_2)``, or, when the right side needs lines before it:

    t1 = a_1
    if t1:
     <lines>
     t1 = b_2
    """
    word = "and" if node.op == "&&" else "or"
    left = condition(e, node.left)
    with e.apart() as lines:
        right = condition(e, node.right)
    if not lines:
        return f"({left} {word} {right})"
    slot = e.temp()
    e.line(f"{slot} = {left}")
    e.line(f"if {'' if word == 'and' else 'not '}{slot}:")
    e.lines.extend(lines)
    e.line(f" {slot} = {right}")
    return slot


def coalesce(e: Emitter, node: ast.Binary, into: Operand | None) -> Text:
    """``a ?? b``: ``(a_1 if a_1 is not None else b_2)``, or a `branch`."""
    left = e.slot(node.left)
    with e.apart() as lines:
        right = e.expr(node.right)
    if not lines:
        return f"({left} if {left} is not None else {right})"
    return branch(e, f"{left} is None", (right, lines), (left, []))


def ternary(e: Emitter, node: ast.Ternary, into: Operand | None) -> Text:
    cond = condition(e, node.cond)
    with e.apart() as then_lines:
        then = e.expr(node.then)
    with e.apart() as other_lines:
        otherwise = e.expr(node.otherwise)
    if not then_lines and not other_lines:
        return f"({then} if {cond} else {otherwise})"
    return branch(e, cond, (then, then_lines), (otherwise, other_lines))


def branch(e: Emitter, cond: Text, then: Choice, otherwise: Choice) -> Operand:
    """A choice between two values that each need lines of their own. ``c ? a : b``:

    if c_1:
     <lines>
     t1 = a_2
    else:
     <lines>
     t1 = b_3
    """
    slot = e.temp()
    e.line(f"if {cond}:")
    e.lines.extend(then[1])
    e.line(f" {slot} = {then[0]}")
    e.line("else:")
    e.lines.extend(otherwise[1])
    e.line(f" {slot} = {otherwise[0]}")
    return slot


# Operators, each by its node. Spec: 02 §2–4.


def binary(e: Emitter, node: ast.Binary, into: Operand | None) -> Text:
    op = node.op
    if op in WRAPPING:
        return wrapping(e, node, into)
    if op in ("&&", "||"):
        return logic_value(e, node)
    if op == "??":
        return coalesce(e, node, into)
    if op == "not in":
        left, right = e.operands([node.left, node.right])
        return f"(not in_({left}, {right}))"
    if op in ("==", "!="):
        return equality(e, node)
    if op in ("<", ">", "<=", ">="):
        return comparison(e, node)
    if op in ("/", "%"):
        return division(e, node)
    left, right = e.operands([node.left, node.right])
    return e.mark(node, f"{SLOW[op]}({left}, {right})")


def division(e: Emitter, node: ast.Binary) -> str:
    """``a / b`` and ``a % b``, which Python does alike where neither is negative:

    (a_1 // b_2 if a_1.__class__ is int and a_1 >= 0 and b_2.__class__ is int and b_2 > 0 else div(a_1, b_2))
    """
    left, right = e.atoms([node.left, node.right])
    slow = e.mark(node, f"{SLOW[node.op]}({left}, {right})")
    guards = []
    for atom, operand, least in ((left, node.left, ">= 0"), (right, node.right, "> 0")):
        kind = e.kind(operand)
        if kind not in ("int", "any") or (isinstance(operand, ast.Int) and operand.value == 0):
            return slow
        if kind == "any":
            guards.append(e.is_int(atom))
        if kind == "any" or bounds(e, operand)[0] < (least == "> 0"):
            guards.append(f"{atom} {least}")
    operator = "//" if node.op == "/" else "%"
    fast = f"{left} {operator} {right}"
    return f"({fast} if {' and '.join(guards)} else {slow})" if guards else f"({fast})"


def comparison(e: Emitter, node: ast.Binary) -> str:
    kinds = [e.kind(node.left), e.kind(node.right)]
    if kinds == ["int", "int"] or kinds == ["str", "str"]:
        left, right = e.operands([node.left, node.right])
        return f"({left} {node.op} {right})"
    left, right = e.atoms([node.left, node.right])
    guards = [e.is_int(a) for a, k in zip((left, right), kinds, strict=True) if k != "int"]
    slow = f"{SLOW[node.op]}({left}, {right})"
    return f"({left} {node.op} {right} if {' and '.join(guards)} else {slow})"


def equality(e: Emitter, node: ast.Binary) -> str:
    op = node.op
    for known, other in ((node.right, node.left), (node.left, node.right)):
        if isinstance(known, ast.Nil):
            return f"({e.slot(other)} {'is' if op == '==' else 'is not'} None)"
        if isinstance(known, ast.Str):
            left, right = e.operands([node.left, node.right])
            return f"({left} {op} {right})"
    kinds = [e.kind(node.left), e.kind(node.right)]
    if kinds == ["int", "int"] or kinds == ["str", "str"]:
        left, right = e.operands([node.left, node.right])
        return f"({left} {op} {right})"
    left, right = e.atoms([node.left, node.right])
    slow = f"{SLOW[op]}({left}, {right})"
    if "int" in kinds:
        unsure = left if kinds[1] == "int" else right
        return f"({left} {op} {right} if {e.is_int(unsure)} else {slow})"
    return f"({left} {op} {right} if {e.is_int(left)} and {e.is_int(right)} else {slow})"


def unary(e: Emitter, node: ast.Unary, into: Operand | None) -> Text:
    if node.op == "!":
        return f"(not {condition(e, node.operand)})"
    if isinstance(node.operand, ast.Int):
        return constant(-node.operand.value)
    return e.mark(node, f"neg({e.expr(node.operand)})")


def range_to(e: Emitter, node: ast.RangeTo, into: Operand | None) -> Text:
    first, last = e.operands([node.first, node.last])
    return f"range_to({first}, {last}, {node.exclusive})"
