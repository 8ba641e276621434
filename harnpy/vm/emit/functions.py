"""Nodes that make functions: `fn`, closures, tools, bodies of tasks, `impl`, `defer`. Spec: 02 §7.3, §9, §20.

A function literal becomes a *maker* at the top of the generated text. Called with the captured values, a
maker returns the Python function. So capture is by value, and makers are compiled once.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit import POLL, joined, reading, tuple_text
from harnpy.vm.emit.emitter import DISCARD, RETURN, Emitter
from harnpy.vm.emit.source_map import Line
from harnpy.vm.resolve.types import annotation_spec, json_schema, takes_whole_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.vm.emit import Operand, Text
    from harnpy.vm.resolve import FunctionScope, Resolution, Variable
    from harnpy.vm.resolve.kinds import Version
    from harnpy.vm.resolve.types import Spec

# Checks of annotated parameters: the common ones in line, before the full check. Spec: 02 §20.


_QUICK = {
    "int": "{0}.__class__ is not int and {0}.__class__ is not float",
    "float": "{0}.__class__ is not int and {0}.__class__ is not float",
    "string": "{0}.__class__ is not str",
    "bool": "{0}.__class__ is not bool",
    "list": "{0}.__class__ is not list",
    "closure": "{0}.__class__ is not Fn",
}


class Check:
    """The check of one parameter."""

    __slots__ = ("spec",)

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def quick(self, slot: str) -> str | None:
        """Python text that is true when the full check is needed; None: always."""
        return (
            _QUICK[self.spec[1]].format(slot) if self.spec[0] == "scalar" and self.spec[1] in _QUICK else None
        )


def parameter_check(type_: ast.Node, resolution: Resolution) -> Check | None:
    """The check of an annotation, or None when it is not enforced."""
    spec = annotation_spec(type_, resolution)
    return Check(spec) if spec else None


class Maker:
    """A maker by its name, and whether its function may return `TAIL`."""

    __slots__ = ("may_tail", "name")

    def __init__(self, name: str, may_tail: bool) -> None:
        self.name = name
        self.may_tail = may_tail


def is_rest(params: Sequence[ast.Param]) -> bool:
    """Return True if the last parameter takes the rest of the arguments."""
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
    e.python = f"f{number}"
    stream = isinstance(function.node, ast.FnDecl) and function.node.gen
    e.generator = False
    with e.apart(0) as prologue:
        entry_checks(e, params)
    e.generator = function.yields or stream
    declared = isinstance(function.node, ast.FnDecl)
    dest = DISCARD if declared or e.generator else RETURN
    with e.apart(0) as main, e.deferring():
        e.open_scope(function.node)
        e.statements(body.statements, dest, whole=True)
    node = function.node
    maker, name = f"make{number}", e.python
    captures = list(function.captures.values())
    heads = [head(variable) for variable in captures]
    private = [f"{b.python} = {head(b)}" for b in captures if b.reassigned]
    lines = [Line(0, f"def {maker}({', '.join(heads)}):", node)]
    if e.generator:
        lines += generator_lines(e, name, prologue, [*private], main, node, params, stream)
    else:
        lines.append(Line(1, f"def {name}({signature(function, params)}):", node))
        lines.append(Line(2, "if d > 512: overflow()", node))
        if not e.self_tail:
            lines.append(Line(2, POLL, node))
        if e.uses_depth:
            deeper = Line(2, "e = d + 1", node)
            early = e.self_tail or function.defers or e.first_call is None
            lines.append(deeper) if early else main.insert(e.first_call or 0, deeper)
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
    for i, (param, variable) in enumerate(zip(params, e.function.params, strict=False)):
        e.at = param
        if e.version:
            # Its callers pass all arguments.
            if param.type is not None and not e.version.passes(param, i):
                _check_annotation(e, param.name, param.type, variable.python)
            continue
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


def declaration(e: Emitter, node: ast.FnDecl) -> None:
    variable = e.declared_by(node, node.name)
    if e.refuses(node, node.name):
        return
    if id(node) in e.unit.resolution.contested:
        e.line(f"if {node.name!r} in bound: redeclared({node.name!r})")
    body, trampoline = make(e, node, node.name, node.body, node.params)
    if variable.shell:
        e.line(f"fill({variable.python}, {body}, {trampoline})")
    else:
        e.assign_new(variable, fn_text(node.name, node.params, body, trampoline))
    hasten(e, node, node.name, reading(variable))


def hasten(e: Emitter, node: ast.FnDecl, shown: str, slot: Operand) -> None:
    """Write the version of the function in ``slot``, if it has one."""
    if version := e.unit.kinds.versions.get(id(node)):
        body, trampoline = make(e, node, shown, node.body, node.params, version)
        e.line(f"hasten({slot}, {body}, {trampoline})")


def closure(e: Emitter, node: ast.Closure | ast.FnExpr, into: Operand | None) -> Text:
    """``{ x -> x + k }``: ``Fn(None, ('x',), make1(k_1))``, of a maker at the top of the text."""
    body, trampoline = make(e, node, "<closure>", node.body, node.params)
    return fn_text(None, node.params, body, trampoline)


def fn_text(name: str | None, params: Sequence[ast.Param], body: str, trampoline: bool) -> str:
    names = tuple(param.name for param in params)
    if trampoline:
        return f"bouncing({name!r}, {names!r}, {body}, {is_rest(params)})"
    rest = ", True" if is_rest(params) else ""
    return f"{'Fn' if name is None else 'named'}({name!r}, {names!r}, {body}{rest})"


def make(
    e: Emitter,
    node: ast.Node,
    shown: str,
    body: ast.Block,
    params: Sequence[ast.Param],
    version: Version | None = None,
) -> tuple[str, bool]:
    """Text that makes the Python function of ``node``, and whether it may return a tail call."""
    function = e.unit.resolution.functions[id(node)]
    maker = write_maker(Emitter(e.unit, function, version), shown, body, params)
    captured = [
        outer.python if not own.late or outer.captured_from else outer.box
        for outer, own in function.captures.items()
    ]
    return f"{maker.name}({', '.join(captured)})", maker.may_tail


def spawn(e: Emitter, node: ast.Spawn, into: Operand | None) -> Text:
    body, _ = make(e, node, "<task>", node.body, ())
    return e.mark(node, f"spawn({body})")


def parallel(e: Emitter, node: ast.Parallel, into: Operand | None) -> Text:
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
        shown = f"{node.name}.{fn.name}"
        body, trampoline = make(e, fn, shown, fn.body, fn.params)
        text: Text = fn_text(fn.name, fn.params, body, trampoline)
        if id(fn) in e.unit.kinds.versions:
            text = e.fresh(text)
            hasten(e, fn, shown, text)
        e.line(f"implement({node.name!r}, {fn.name!r}, {text})")


def defer(e: Emitter, node: ast.Defer) -> None:
    """A nested Python function: it sees the current values of the variables around it (02 §19.6).

    ``defer { n = n + 1 }``, in a function whose body is in a `try` that runs ``defers`` at its end:

        def deferred1():
         nonlocal n_1
         n_1 = n_1 + 1
         return None
        defers.append(deferred1)
    """
    name = f"deferred{e.number_temp()}"
    with e.nested_function() as (lines, outer):
        e.block(node.body, DISCARD)
        e.line("return None")
    e.line(f"def {name}():")
    if outer:
        e.line(f" nonlocal {joined(sorted(outer, key=str))}")
    e.lines.extend(lines)
    e.line(f"defers.append({name})")
    for slot in outer:
        e.assigned(slot)


# `tool` declarations: the name is a registry of one tool, made by `tool_define`. Spec: 07 §4.3.


def tool(e: Emitter, node: ast.ToolDecl) -> None:
    resolution = e.unit.resolution
    if e.refuses(node, node.name):
        return
    parameters = _tool_parameters(e, node)
    fields = [f"'parameters': {{{', '.join(parameters)}}}"]
    if node.returns is not None:
        fields.append(f"'returns': {json_schema(node.returns, resolution.aliases)!r}")
    body, trampoline = make(e, node, node.name, node.body, node.params)
    handler = fn_text(node.name, node.params, body, trampoline)
    fields.append(f"'handler': tool_handler({handler}, {not takes_whole_dict(node)})")
    define, empty = e.unit.builtin_function("tool_define"), e.unit.builtin_function("tool_registry")
    config = f"{{{', '.join(fields)}}}"
    text = f"{define}(vm, {empty}(vm), {node.name!r}, {node.description or ''!r}, {config})"
    e.assign_new(e.declared_by(node, node.name), e.mark(node, text))


def _tool_parameters(e: Emitter, node: ast.ToolDecl) -> list[str]:
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
