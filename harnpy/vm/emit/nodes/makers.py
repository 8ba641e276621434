"""A function literal as a *maker* at the top of the generated text.

Called with the captured values, a maker returns the Python function. So capture is by value (02 §7.3), and
makers are compiled once.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.function import DISCARD, RETURN
from harnpy.vm.emit.nodes.annotations import parameter_check
from harnpy.vm.emit.operand import reading, tuple_text
from harnpy.vm.emit.protocol import POLL
from harnpy.vm.emit.writer import Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.vm.emit.function import Emitter
    from harnpy.vm.resolve.scopes import FunctionScope, Variable


class Maker:
    """A maker by its name, and whether its function may return `TAIL`."""

    __slots__ = ("may_tail", "name")

    def __init__(self, name: str, may_tail: bool) -> None:
        self.name = name
        self.may_tail = may_tail


def is_rest(params: Sequence[ast.Param]) -> bool:
    """Whether the last parameter takes the rest of the arguments."""
    return bool(params) and params[-1].rest


def write_maker(e: Emitter, shown: str, body: ast.Block, params: Sequence[ast.Param]) -> Maker:
    """Write the maker of the function that ``e`` was made for; backtraces call it ``shown``.

    ``{ x -> x + k }``:

    def make1(k_3):
     def f1(d, x_2=None):
      if d > 512: overflow()
      …
     return f1
    """
    function = e.function
    number = e.unit.number_function(shown)
    if id(function.node) in e.unit.walked:
        return walked_maker(e, number, shown)
    stream = isinstance(function.node, ast.FnDecl) and function.node.gen
    e.generator = False
    with e.apart(0) as prologue:
        entry_checks(e, params)
    e.generator = function.yields or stream
    declared = isinstance(function.node, ast.FnDecl)
    dest = DISCARD if declared or e.generator else RETURN
    with e.apart(0) as main, e.deferring():
        e.open_scope(function.node)
        e.statements(body.statements, dest)
    node = function.node
    maker, name = f"make{number}", f"f{number}"
    captures = list(function.captures.values())
    heads = [head(variable) for variable in captures]
    private = [f"{b.python} = {head(b)}" for b in captures if b.reassigned]
    lines = [Line(0, f"def {maker}({', '.join(heads)}):", node)]
    if e.generator:
        lines += generator_lines(e, name, prologue, [*private], main, node, params, stream)
    else:
        lines.append(Line(1, f"def {name}({signature(function, params)}):", node))
        lines.append(Line(2, "if d > 512: overflow()", node))
        if e.uses_depth:
            lines.append(Line(2, POLL, node))
            lines.append(Line(2, "e = d + 1", node))
        inner = [*(Line(2, text, node) for text in private), *prologue, *main]
        if e.self_tail:
            lines.append(Line(2, "while True:", node))
            lines.append(Line(3, POLL, node))
            inner = [Line(line.indent + 1, line.text, line.node) for line in inner]
            inner.append(Line(3, "return None", node))
        lines += inner or [Line(2, "return None", node)]
    lines.append(Line(1, f"return {name}", node))
    e.unit.makers.append((node, lines))
    return Maker(maker, e.may_tail)


def walked_maker(e: Emitter, number: int, shown: str) -> Maker:
    """The maker of a function that Python cannot express: what it makes walks the tree."""
    heads = [variable.python for variable in e.function.captures.values()]
    index = list(e.unit.resolution.functions).index(id(e.function.node))
    node = e.function.node
    lines = [
        Line(0, f"def make{number}({', '.join(heads)}):", node),
        Line(1, f"return walked({index}, {shown!r}, {tuple_text(heads)})", node),
    ]
    e.unit.makers.append((e.function.node, lines))
    return Maker(f"make{number}", True)


def head(variable: Variable) -> str:
    """A captured value's name in the maker; a copy of its own when the function assigns to it."""
    return variable.python + "_given" if variable.reassigned else variable.python


def signature(function: FunctionScope, params: Sequence[ast.Param]) -> str:
    names = [variable.python for variable in function.params]
    defaults = [param.default is not None for param in params] or [False] * len(names)
    rest = is_rest(params)
    heads = [f"{n}={'MISSING' if d or rest else 'None'}" for n, d in zip(names, defaults, strict=True)]
    return ", ".join(["d", *heads])


def entry_checks(e: Emitter, params: Sequence[ast.Param]) -> None:
    """Each parameter in its turn: the default if nothing was passed, then the annotation (02 §9.2, §20)."""
    for param, variable in zip(params, e.function.params, strict=False):
        e.at = param
        if param.default is not None:
            with e.suite(f"if {variable.python} is MISSING"):
                e.into(param.default, reading(variable))
        elif is_rest(params):
            e.line(f"if {variable.python} is MISSING: {variable.python} = {'[]' if param.rest else 'None'}")
        if param.type is not None and not param.rest:
            _check_annotation(e, param.name, param.type, variable.python)


def _check_annotation(e: Emitter, name: str, type_: ast.Node, slot: str) -> None:
    check = parameter_check(type_, e.unit.resolution)
    if check is None:
        return
    text = f"check_parameter({name!r}, {slot}, {check.spec!r})"
    quick = check.quick(slot)
    e.line(f"if {quick}: {text}" if quick else text)


def generator_lines(
    e: Emitter,
    name: str,
    prologue: list[Line],
    private: list[str],
    main: list[Line],
    node: ast.Node,
    params: Sequence[ast.Param],
    stream: bool,
) -> list[Line]:
    """Arguments are bound and checked at the call; the body runs as items are asked for (02 §18)."""
    own = [
        *e.function.params,
        *(variable for variable in e.function.captures.values() if variable.reassigned),
    ]
    names = ", ".join(["e", *(variable.python for variable in own)])
    kind = "Stream" if stream else "Generator"
    depth = [Line(2, "if d > 512: overflow()", node), Line(2, "e = d + 1", node)]
    return [
        Line(1, f"def {name}_items({names}):", node),
        Line(2, "if 0: yield", node),
        *main,
        Line(1, f"def {name}({signature(e.function, params)}):", node),
        *depth,
        *(Line(2, text, node) for text in private),
        *prologue,
        Line(2, f"return generator({kind}, {name}_items({names}))", node),
    ]
