"""`match`: arms in order, the first that fits runs. Spec: reference 02 §12."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.tree import enum_variant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.emit.emitter import Destination, Emitter


def match(e: Emitter, node: ast.Match, dest: Destination) -> None:
    value = e.temp()
    e.line(f"{value} = {e.expr(node.value)}")
    done = e.temp()
    e.line(f"{done} = False")
    for i, arm in enumerate(node.arms):
        e.offset = arm.start
        if i:
            e.suite(f"if not {done}", lambda arm=arm: one_arm(e, arm, value, done, dest))  # type: ignore[misc]
        else:
            one_arm(e, arm, value, done, dest)
    e.offset = node.start
    e.line(f"if not {done}: raise Thrown('No match arm matched the value')")


def one_arm(e: Emitter, arm: ast.Arm, value: str, done: str, dest: Destination) -> None:
    """Test, bind, guard, run; ``done`` is set as soon as the arm is chosen."""

    def chosen() -> None:
        e.open_scope(arm)
        if len(arm.patterns) == 1:
            bind_pattern(e, arm.patterns[0], value)

        def body() -> None:
            e.line(f"{done} = True")
            e.block(arm.body, dest)

        if arm.guard is not None:
            e.suite(f"if {e.cond(arm.guard)}", body)
        else:
            body()

    e.suite(f"if {test(e, arm, value)}", chosen)


def test(e: Emitter, arm: ast.Arm, value: str) -> str:
    """Text for "the pattern fits"."""
    if len(arm.patterns) == 1:
        return fits(e, arm.patterns[0], value)
    tests = []
    for pattern in arm.patterns:
        wild = isinstance(pattern, ast.Name) and pattern.name == "_"
        tests.append("True" if wild else equals(e, value, pattern))
    return " or ".join(tests)


def fits(e: Emitter, pattern: ast.Node, value: str) -> str:
    if isinstance(pattern, ast.Name):
        return "True"
    if isinstance(pattern, ast.Dict):
        tests = [f"type({value}) is dict"]
        for entry in pattern.entries:
            if isinstance(entry, ast.DictEntry) and not isinstance(entry.value, ast.Name):
                tests.append(equals(e, f"{value}.get({key_text(entry)!a})", entry.value))
        return " and ".join(tests)
    if isinstance(pattern, ast.List):
        tests = [f"type({value}) is list and len({value}) >= {len(pattern.items)}"]
        for i, item in enumerate(pattern.items):
            if not isinstance(item, ast.Name):
                tests.append(equals(e, f"{value}[{i}]", item))
        return " and ".join(tests)
    if variant := enum_variant(pattern, e.unit.resolution.enums):
        enum, name = variant
        tests = [f"type({value}) is EnumValue and {value}.variant == {name!r} and {value}.enum == {enum!r}"]
        if isinstance(pattern, ast.MethodCall):
            for i, item in enumerate(pattern.args):
                if not isinstance(item, ast.Name):
                    tests.append(equals(e, f"field({value}, {i})", item))
        return " and ".join(tests)
    return equals(e, value, pattern)


def equals(e: Emitter, value: str, pattern: ast.Node) -> str:
    """``value == pattern`` of the language."""
    if isinstance(pattern, ast.Str):
        return f"{value} == {e.expr(pattern)}"
    if isinstance(pattern, ast.Nil):
        return f"{value} is None"
    return f"eq({value}, {e.expr(pattern)})"


def key_text(entry: ast.DictEntry) -> str:
    assert isinstance(entry.key, ast.Str)
    return entry.key.value


def bind_pattern(e: Emitter, pattern: ast.Node, value: str) -> None:
    """Give the pattern's names their values; what is absent is nil."""
    if isinstance(pattern, ast.Name):
        give(e, pattern, value)
    elif isinstance(pattern, ast.Dict):
        for entry in pattern.entries:
            if isinstance(entry, ast.DictEntry) and isinstance(entry.value, ast.Name):
                give(e, entry.value, f"{value}.get({key_text(entry)!a})")
    elif isinstance(pattern, ast.List):
        for i, item in enumerate(pattern.items):
            if isinstance(item, ast.Name):
                give(e, item, f"{value}[{i}]")
    elif enum_variant(pattern, e.unit.resolution.enums) and isinstance(pattern, ast.MethodCall):
        for i, item in enumerate(pattern.args):
            if isinstance(item, ast.Name):
                give(e, item, f"field({value}, {i})")


def give(e: Emitter, name: ast.Name, text: str) -> None:
    if name.name != "_":
        e.assign_new(e.unit.resolution.bindings[id(name), name.name], text)
