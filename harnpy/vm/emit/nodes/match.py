"""`match`: arms in order, the first that fits runs. Spec: 02 §12.

A pattern is walked once, left to right: each part is compared, or bound for the parts after it, only while
all before it fitted. So an expression in a pattern sees the names to its left, and runs only when needed.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.nodes.logic import condition
from harnpy.vm.emit.operand import constant
from harnpy.vm.resolve.tree import enum_variant, is_computed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.vm.emit.function import Destination, Emitter
    from harnpy.vm.emit.operand import Operand, Text

#: The text of a test that every value passes.
ALWAYS = constant(True)


def match(e: Emitter, node: ast.Match, dest: Destination) -> None:
    """``x = match v { {k: n} if n > 1 -> { n }  _ -> { 0 } }``:

    t1 = v_1
    t2 = False
    if type(t1) is dict:
     n_3 = t1.get('k')
     if n_3 > 1:
      t2 = True
      x_2 = n_3
    if not t2:
     t2 = True
     x_2 = 0
    if not t2: raise Thrown('No match arm matched the value')
    t1 = None
    """
    value, done = e.temp(), e.temp()
    e.line(f"{value} = {e.expr(node.value)}")
    e.line(f"{done} = False")
    for i, arm in enumerate(node.arms):
        e.at = arm
        if i:
            with e.suite(f"if not {done}"):
                one_arm(e, arm, value, done, dest)
        else:
            one_arm(e, arm, value, done, dest)
    e.at = node
    e.line(f"if not {done}: raise Thrown('No match arm matched the value')")
    # Let go of the value, so that the program's variable is its only holder again.
    e.line(f"{value} = None")


def one_arm(e: Emitter, arm: ast.Arm, value: Operand, done: Operand, dest: Destination) -> None:
    """Test and bind, guard, run; ``done`` is set as soon as the arm is chosen."""

    def run() -> None:
        e.line(f"{done} = True")
        e.block(arm.body, dest)

    def chosen() -> None:
        if arm.guard is not None:
            with e.suite(f"if {condition(e, arm.guard)}"):
                run()
        else:
            run()

    e.open_scope(arm)
    fits = alternatives(e, arm.patterns, value) if len(arm.patterns) > 1 else one_pattern(e, arm, value)
    if fits is ALWAYS:
        chosen()
    else:
        with e.suite(f"if {fits}"):
            chosen()


def alternatives(e: Emitter, patterns: tuple[ast.Node, ...], value: Operand) -> Operand:
    """``p1 | p2``: compared one after the other until one is equal."""
    fits = e.temp()
    for i, pattern in enumerate(patterns):
        if isinstance(pattern, ast.Name) and pattern.name == "_":
            e.line(f"{fits} = True")
            break
        with e.apart() as lines:
            text = equals(e, value, pattern)
        e.line(f"if not {fits}:" if i else "if True:")
        e.lines.extend(lines)
        e.line(f" {fits} = {text}")
    return fits


def one_pattern(e: Emitter, arm: ast.Arm, value: Operand) -> Text:
    """Text for "the pattern fits"; binds its names on the way."""
    pattern = arm.patterns[0]
    if isinstance(pattern, ast.Name):
        give(e, pattern, value)
        return ALWAYS
    kind, parts = shape(e, pattern, value)
    if kind is None:
        return equals(e, value, pattern)
    todo = [(part, text) for part, text in parts if not (isinstance(part, ast.Name) and part.name == "_")]
    if not todo:
        return kind
    fits = e.temp()
    e.line(f"{fits} = {kind}")
    for part, text in todo:
        if isinstance(part, ast.Name):
            with e.suite(f"if {fits}"):
                give(e, part, text)
        else:
            with e.apart() as lines:
                compared = equals(e, text, part)
            e.line(f"if {fits}:")
            e.lines.extend(lines)
            e.line(f" {fits} = {compared}")
    return fits


def shape(e: Emitter, pattern: ast.Node, value: Operand) -> tuple[str | None, Iterator[tuple[ast.Node, str]]]:
    """The test for the kind of value that a container pattern matches, and its parts with what each faces.

    The test is None for a pattern that is not a container.
    """
    if is_computed(pattern):
        return None, iter(())
    if isinstance(pattern, ast.Dict):
        entries = [entry for entry in pattern.entries if isinstance(entry, ast.DictEntry)]
        parts = ((entry.value, f"{value}.get({key_text(entry)!a})") for entry in entries)
        return f"type({value}) is dict", parts
    if isinstance(pattern, ast.List):
        size = f"len({value}) >= {len(pattern.items)}"
        return f"type({value}) is list and {size}", (
            (p, f"{value}[{i}]") for i, p in enumerate(pattern.items)
        )
    if variant := enum_variant(pattern, e.unit.resolution.enums):
        enum, name = variant
        kind = f"type({value}) is EnumValue and {value}.variant == {name!r} and {value}.enum == {enum!r}"
        args = pattern.args if isinstance(pattern, ast.MethodCall) else ()
        return kind, ((arg, f"field({value}, {i})") for i, arg in enumerate(args))
    return None, iter(())


def equals(e: Emitter, value: Text, pattern: ast.Node) -> str:
    """``value == pattern`` of the language."""
    if isinstance(pattern, ast.Str):
        return f"{value} == {e.expr(pattern)}"
    if isinstance(pattern, ast.Nil):
        return f"{value} is None"
    return f"eq({value}, {e.expr(pattern)})"


def key_text(entry: ast.DictEntry) -> str:
    assert isinstance(entry.key, ast.Str)
    return entry.key.value


def give(e: Emitter, name: ast.Name, text: Text) -> None:
    """Bind a name of a pattern; what is absent is nil."""
    if name.name != "_":
        e.assign_new(e.declared_by(name, name.name), text)
