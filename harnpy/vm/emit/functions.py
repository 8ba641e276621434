"""Functions, closures, task bodies, `impl` and `defer`.

A function literal becomes a *maker* at the top of the generated text: called with the captured values,
it answers the Python function. So capture is by value (02 §7.3) and makers are compiled once.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.function import DISCARD, RETURN, Emitter
from harnpy.vm.emit.writer import Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.resolve.scopes import FunctionScope, Variable


def declaration(e: Emitter, node: ast.FnDecl) -> None:
    variable = e.unit.resolution.variables[id(node), node.name]
    if (id(node), node.name) in e.unit.resolution.redeclared:
        e.line(f"redeclared({node.name!r})")
        return
    if id(node) in e.unit.resolution.contested:
        e.line(f"if {node.name!r} in bound: redeclared({node.name!r})")
    body, trampoline = make(e, node, node.name, node.body, node.params)
    if variable.shell:
        e.line(f"fill({variable.python}, {body}, {trampoline})")
    else:
        e.assign_new(variable, fn_text(node.name, node.params, body, trampoline))


def closure(e: Emitter, node: ast.Closure | ast.FnExpr, into: str | None) -> str:
    body, trampoline = make(e, node, "<closure>", node.body, node.params)
    return fn_text(None, node.params, body, trampoline)


def fn_text(name: str | None, params: tuple[ast.Param, ...], body: str, trampoline: bool) -> str:
    names = tuple(param.name for param in params)
    if trampoline:
        return f"bouncing({name!r}, {names!r}, {body}, {is_rest(params)})"
    rest = ", True" if is_rest(params) else ""
    return f"Fn({name!r}, {names!r}, {body}{rest})"


def is_rest(params: tuple[ast.Param, ...]) -> bool:
    return bool(params) and params[-1].rest


def make(
    e: Emitter, node: ast.Node, shown: str, body: ast.Block, params: tuple[ast.Param, ...]
) -> tuple[str, bool]:
    """Text that makes the Python function of ``node``, and whether it may answer a tail call."""
    function = e.unit.resolution.functions[id(node)]
    inner = e.unit.function(function, shown, body, params)
    captured = [
        outer.python if not own.late or outer.captured_from else outer.box
        for outer, own in function.captures.items()
    ]
    return f"{inner.maker}({', '.join(captured)})", inner.may_tail


def spawn(e: Emitter, node: ast.Spawn, into: str | None) -> str:
    body, _ = make(e, node, "<task>", node.body, ())
    return e.mark(node, f"spawn({body})")


def parallel(e: Emitter, node: ast.Parallel, into: str | None) -> str:
    limit = node.max_concurrent
    texts = e.operands([node.source, limit] if limit else [node.source])
    function = e.unit.resolution.functions[id(node)]
    body, _ = make(e, node, "<task>", node.body, ())
    cap = texts[1] if limit else "None"
    kind = "stream" if node.stream else node.kind
    takes = bool(function.params)
    return e.mark(node, f"parallel({kind!r}, {texts[0]}, {body}, {takes}, {cap})")


def impl(e: Emitter, node: ast.ImplDecl) -> None:
    """Methods are found by the struct's name when they are called (02 §15.3)."""
    for fn in node.methods:
        body, trampoline = make(e, fn, f"{node.name}.{fn.name}", fn.body, fn.params)
        text = fn_text(fn.name, fn.params, body, trampoline)
        e.line(f"implement({node.name!r}, {fn.name!r}, {text})")


def defer(e: Emitter, node: ast.Defer) -> None:
    """A nested Python function: it sees the current values of the variables around it (02 §19.6)."""
    name = e.temp().replace("t", "deferred")
    outer_lines, outer_own, outer_outer = e.lines, e.own, e.outer
    e.lines, e.own, e.outer = [], set(), set()
    loops, e.loops = e.loops, []
    generator, e.generator = e.generator, False
    e.indent += 1
    e.block(node.body, DISCARD)
    e.line("return None")
    e.indent -= 1
    inner, assigned = e.lines, e.outer
    e.lines, e.own, e.outer = outer_lines, outer_own, outer_outer
    e.loops, e.generator = loops, generator
    e.line(f"def {name}():")
    if assigned:
        e.line(f" nonlocal {', '.join(sorted(assigned))}")
    e.lines.extend(inner)
    e.line(f"defers.append({name})")
    for slot in assigned:
        e.assigned(slot)


class FunctionText:
    """A finished maker: its lines, its name, and whether its function may answer `TAIL`."""

    __slots__ = ("lines", "maker", "may_tail")

    def __init__(self, maker: str, lines: list[Line], may_tail: bool) -> None:
        self.maker = maker
        self.lines = lines
        self.may_tail = may_tail


def write_function(
    e: Emitter, number: int, body: ast.Block, params: tuple[ast.Param, ...], stream: bool
) -> FunctionText:
    """Write the maker of the function that ``e`` was made for."""
    function = e.function
    declared = isinstance(function.node, ast.FnDecl)
    dest = DISCARD if declared or e.generator else RETURN

    def inside() -> None:
        e.open_scope(function.node)
        e.statements(body.statements, dest)

    prologue = captured_first(e, lambda: entry_checks(e, params))
    main = captured_first(e, lambda: with_defers(e, inside) if function.defers else inside())
    start = function.node.start
    maker, name = f"make{number}", f"f{number}"
    captures = list(function.captures.values())
    heads = [head(variable) for variable in captures]
    private = [f"{b.python} = {head(b)}" for b in captures if b.reassigned]
    lines = [Line(0, f"def {maker}({', '.join(heads)}):", start)]
    if e.generator:
        lines += generator_lines(e, name, prologue, [*private], main, start, params, stream)
    else:
        lines.append(Line(1, f"def {name}({signature(function, params)}):", start))
        lines.append(Line(2, "if d > 512: overflow()", start))
        if e.uses_depth:
            lines.append(Line(2, "if signal.pending: poll()", start))
            lines.append(Line(2, "e = d + 1", start))
        inner = [*(Line(2, text, start) for text in private), *prologue, *main]
        if e.self_tail:
            lines.append(Line(2, "while True:", start))
            lines.append(Line(3, "if signal.pending: poll()", start))
            inner = [Line(line.indent + 1, line.text, line.offset) for line in inner]
            inner.append(Line(3, "return None", start))
        lines += inner or [Line(2, "return None", start)]
    lines.append(Line(1, f"return {name}", start))
    return FunctionText(maker, lines, e.may_tail)


def captured_first(e: Emitter, write: Callable[[], None]) -> list[Line]:
    e.lines = []
    write()
    lines, e.lines = e.lines, []
    return lines


def head(variable: Variable) -> str:
    """A captured value's name in the maker; a copy of its own when the function assigns to it."""
    return variable.python + "_given" if variable.reassigned else variable.python


def signature(function: FunctionScope, params: tuple[ast.Param, ...]) -> str:
    names = [variable.python for variable in function.params]
    defaults = [param.default is not None for param in params] or [False] * len(names)
    rest = is_rest(params)
    heads = [f"{n}={'MISSING' if d or rest else 'None'}" for n, d in zip(names, defaults, strict=True)]
    return ", ".join(["d", *heads])


def entry_checks(e: Emitter, params: tuple[ast.Param, ...]) -> None:
    """Defaults for what was not passed, then the annotations (02 §9.2, §20)."""
    for param, variable in zip(params, e.function.params, strict=False):
        e.offset = param.start
        if param.default is not None:
            default = param.default
            e.suite(
                f"if {variable.python} is MISSING",
                lambda d=default, b=variable: e.into(d, b.python),  # type: ignore[misc]
            )
        elif is_rest(params):
            e.line(f"if {variable.python} is MISSING: {variable.python} = {'[]' if param.rest else 'None'}")
    for param, variable in zip(params, e.function.params, strict=False):
        e.offset = param.start
        if param.type is not None and not param.rest:
            e.unit.check_parameter(e, param, variable.python)


def with_defers(e: Emitter, inside: Callable[[], None]) -> None:
    e.line("defers = []")
    e.suite("try", inside)
    e.line("finally:")
    e.line(" if alive(): run_defers(defers)")


def generator_lines(
    e: Emitter,
    name: str,
    prologue: list[Line],
    private: list[str],
    main: list[Line],
    start: int,
    params: tuple[ast.Param, ...],
    stream: bool,
) -> list[Line]:
    """Arguments are bound and checked at the call; the body runs as items are asked for (02 §18)."""
    names = ", ".join(["e", *(variable.python for variable in e.function.params)])
    kind = "Stream" if stream else "Generator"
    depth = [Line(2, "if d > 512: overflow()", start), Line(2, "e = d + 1", start)]
    return [
        Line(1, f"def {name}_items({names}):", start),
        *(Line(2, text, start) for text in private),
        Line(2, "if 0: yield", start),
        *main,
        Line(1, f"def {name}({signature(e.function, params)}):", start),
        *depth,
        *prologue,
        Line(2, f"return generator({kind}, {name}_items({names}))", start),
    ]
