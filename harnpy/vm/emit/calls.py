"""Calls: functions known at compile time, values found callable, builtins, methods, pipes, tail calls.

A known `fn` is called through its Python function with exactly its parameters; surplus arguments are
evaluated and dropped here, missing ones are Python defaults. Spec: 02 §7.4, §9, §14.4.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.declare import conversion, converts, most_arguments, needs_value
from harnpy.vm.emit import Operand, joined, reading, tuple_text, type_of
from harnpy.vm.emit.emitter import DISCARD
from harnpy.vm.emit.source_map import is_marked
from harnpy.vm.resolve.kinds import Record, called, leaves
from harnpy.vm.resolve.names import TASK_CALLS, tail_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.vm.emit import Text
    from harnpy.vm.emit.emitter import Emitter
    from harnpy.vm.resolve import Reference
    from harnpy.vm.resolve.kinds import Version

#: The kinds of the types in signatures.
_KINDS = {"string": "str", "int": "int", "bool": "bool", "list": "list"}

#: What the names of 05 §2 call, and how many arguments each takes.
_TASK_HELPERS = {
    "await": ("await_task", 1),
    "cancel": ("cancel_task", 1),
    "cancel_graceful": ("cancel_gracefully", 2),
    "is_cancelled": ("is_cancelled", 0),
}


def call(e: Emitter, node: ast.Call, into: Operand | None) -> Text:
    if node.name in TASK_CALLS:
        return task_call(e, node)
    ref = e.refs[id(node)]
    if ref.kind == "builtin":
        return builtin_call(e, node, ref.name, node.args)
    if has_spread(node.args):
        return spread_call(e, node, ref, node.args)
    return written_call(e, node, ref) or e.mark(node, named_call(e, node, ref, e.operands(node.args)))


def written_call(e: Emitter, node: ast.Call, ref: Reference) -> Operand | None:
    """A call of a `fn` that is written in its place."""
    variable = ref.variable
    fn = called(ref)
    version = e.view.version(fn, node.args) if fn else None
    if not (variable and fn and version):
        return None
    from harnpy.vm.emit.inlined import inlined, result_of

    value = result_of(e, fn, version)
    if value is None:
        return None
    args = [e.settle(text) for text in e.operands(node.args)]
    plain = e.hoist(f"({variable.python}.inlinable and {e.depth()} < 513)", reading(variable))

    def call() -> str:
        return e.mark(node, known_call(e, fn, variable.python, list(args), version))

    return inlined(e, value, version, list(zip(node.args, args, strict=True)), plain, call)


def task_call(e: Emitter, node: ast.Call) -> str:
    """``await(t)`` and its like (05 §2)."""
    helper, most = _TASK_HELPERS[node.name]
    if has_spread(node.args):
        from harnpy.vm.emit.expressions import sequence

        return e.mark(node, f"{helper}(*{sequence(e, node.args)}[:{most}])")
    return e.mark(node, f"{helper}({joined(at_most(e, most, e.operands(node.args)))})")


def at_most(e: Emitter, count: int, args: list[Text]) -> list[Text]:
    """The arguments that something takes; surplus ones are evaluated first, in their turn, and dropped."""
    if len(args) > count:
        args = [e.settle(text) for text in args]
    return args[:count]


def has_spread(args: Sequence[ast.Node]) -> bool:
    return any(isinstance(arg, ast.Spread) for arg in args)


def named_call(e: Emitter, node: ast.Node, ref: Reference, args: list[Text]) -> str:
    """A call of what a name stands for, with the given argument texts."""
    variable = ref.variable
    if ref.kind != "local" or variable is None:
        return unbound_call(e, ref, args)
    if variable.in_box:
        rest = f"{e.depth()}, {tuple_text(args)}, {fallback(e, ref)}"
        return f"call_late({variable.python}[0], {ref.name!r}, {rest})"
    if fn := variable.known_fn:
        given = node.args if isinstance(node, ast.Call) else ()
        return known_call(e, fn, variable.python, args, e.view.version(fn, given))
    if variable.struct is not None:
        return struct_call(variable.struct, at_most(e, 1, args))
    return value_call(e, ref, args)


def known_call(
    e: Emitter, fn: ast.FnDecl, target: str, args: list[Text], version: Version | None = None
) -> str:
    """A call of a known function: ``(t1 := f_2.call)(e, x_1)``, with `fast` of its version.

    A version calls itself by its Python name, unless it may return a tail call, which `fast` makes.
    """
    params = fn.params
    if params and params[-1].rest:
        plain = len(params) - 1
        if len(args) < plain:
            args = [*args, *missing(params[len(args) : plain])]
        args = [*args[:plain], f"[{joined(args[plain:])}]"]
    else:
        args = at_most(e, len(params), args)
    if version and version is e.version and not e.has_tail_calls:
        return f"{e.python}({joined([e.depth(), *args])})"
    callee = e.temp()
    slot = "fast" if version else "call"
    return f"({callee} := {target}.{slot})({joined([e.depth(), *args])})"


def missing(params: Sequence[ast.Param]) -> list[str]:
    """Return what stands for arguments that are not given."""
    return ["MISSING" if param.default else "None" for param in params]


def struct_call(struct: ast.StructDecl, args: list[Text]) -> str:
    names = tuple(field.name for field in struct.fields)
    return f"construct({struct.name!r}, {names!r}, {args[0] if args else 'None'})"


def value_call(e: Emitter, ref: Reference, args: list[Text]) -> str:
    """A call of a variable: at once when it holds a function of this arity. ``g(x)``:

        (t1 := g_1.call)(e, x_2) if g_1.__class__ is Fn and g_1.arity == 1
            else call_named(g_1, 'g', e, (x_2,), ())

    The callee gets a name because CPython 3.11 reads a slot faster than it calls a method found in one.
    """
    assert ref.variable
    target, depth = ref.variable.python, e.depth()
    callee = e.temp()
    settled = [e.settle(text) for text in args]
    plain = joined([depth, *settled])
    slow = f"call_named({target}, {ref.name!r}, {depth}, {tuple_text(settled)}, {fallback(e, ref)})"
    test = f"{type_of(target)} is Fn and {target}.arity == {len(args)}"
    return f"({callee} := {target}.call)({plain}) if {test} else {slow}"


def fallback(e: Emitter, ref: Reference) -> str:
    """Return the text of a tuple: what a call falls back on if the nearest variable holds no callable."""
    others: list[Text] = []
    outer = ref.outer
    while outer is not None:
        if outer.kind == "builtin":
            others.append(e.unit.builtin_value(outer.name))
        elif outer.variable and outer.variable.in_box:
            others.append(f"{outer.variable.python}[0]")
        elif outer.variable:
            others.append(outer.variable.python)
        outer = outer.outer
    return tuple_text(others)


def unbound_call(e: Emitter, ref: Reference, args: list[Text]) -> str:
    if ref.kind == "dynamic":
        return f"call_dynamic(m, {ref.name!r}, {e.depth()}, {tuple_text(args)})"
    if ref.kind == "global":
        return f"call({e.unit.global_value(ref.name)}, {e.depth()}, {tuple_text(args)})"
    return f"call_from_frames({ref.name!r}, {e.depth()}, {tuple_text(args)})"


def spread_call(e: Emitter, node: ast.Node, ref: Reference, args: Sequence[ast.Node]) -> str:
    from harnpy.vm.emit.expressions import sequence

    given = e.settle(sequence(e, args))
    variable = ref.variable
    if ref.kind == "local" and variable and variable.known_fn:
        return e.mark(node, f"call({variable.python}, {e.depth()}, {given})")
    if ref.kind == "local" and variable and variable.struct:
        return e.mark(node, struct_call(variable.struct, [f"({given} or [None])[0]"]))
    if ref.kind == "local" and variable and not variable.in_box:
        target = variable.python
        return e.mark(node, f"call_named({target}, {ref.name!r}, {e.depth()}, {given}, {fallback(e, ref)})")
    return e.mark(node, named_call(e, node, ref, [f"*{given}"]))


# --- builtins ---------------------------------------------------------------------------------------


def builtin_call(e: Emitter, node: ast.Node, name: str, args: Sequence[ast.Node]) -> str:
    if has_spread(args):
        from harnpy.vm.emit.expressions import sequence

        return e.mark(node, f"call_builtin({e.unit.builtin_value(name)}, {sequence(e, args)})")
    texts = e.operands(args)
    if name == "len" and len(texts) == 1:
        return length(e, node, args[0], texts[0])
    given = converted(e, name, texts, [e.kind(arg) for arg in args])
    return e.mark(node, f"{e.unit.builtin_function(name)}({joined(['vm', *given])})")


def converted(e: Emitter, name: str, texts: list[Text], kinds: list[str]) -> list[Text]:
    """The arguments as the builtin's Python function takes them (04 §0.1); known kinds stay as they are."""
    declaration = e.unit.table.declaration(name)
    most = most_arguments(declaration)
    if most is not None:
        texts = at_most(e, most, texts)
    if declaration.counted:
        return texts
    plain = [p for p in declaration.signature().parameters if not p.rest]
    unsure = [
        kind != _KINDS.get(p.type) and converts(declaration, p) for p, kind in zip(plain, kinds, strict=False)
    ]
    if any(unsure):
        # All arguments are evaluated before the first is converted.
        texts = [e.held(text) for text in texts]
    given = [
        conversion(declaration, p, str(text)) if look else text
        for p, text, look in zip(plain, texts, unsure, strict=False)
    ]
    for p in plain[len(given) :]:
        if needs_value(declaration, p):
            given.append(conversion(declaration, p, "None"))
    return [*given, *texts[len(plain) :]]


def length(e: Emitter, node: ast.Node, arg: ast.Node, text: Text) -> str:
    """`len` of what is a string or list: Python's own."""
    if e.kind(arg) in ("str", "list"):
        return f"len({text})"
    atom = e.settle(text)
    slow = e.mark(node, f"{e.unit.builtin_function('len')}(vm, {atom})")
    return f"(len({atom}) if {type_of(atom)} is list or {type_of(atom)} is str else {slow})"


# --- methods ----------------------------------------------------------------------------------------


def method_call(e: Emitter, node: ast.MethodCall, into: Operand | None) -> Text:
    from harnpy.vm.emit.callbacks import chain_call, list_call
    from harnpy.vm.emit.expressions import enum_reference, list_text, sequence

    if variant := enum_reference(e, node):
        fields = sequence(e, node.args)
        return f"EnumValue({variant[0]!r}, {variant[1]!r}, tuple({fields}))"
    if qualified := namespaced(e, node):
        return builtin_call(e, node, qualified, node.args)
    if has_spread(node.args):
        target, *args = e.operands([node.object, *node.args])
        given = list_text(node.args, args)
        return e.mark(node, f"call_method({e.depth()}, {target}, {node.name!r}, {given})")
    if written := chain_call(e, node, plain_method_call) or list_call(e, node, into, plain_method_call):
        return written
    target, *args = e.operands([node.object, *node.args])
    if not (isinstance(target, Operand) and target.is_slot):
        target, *args = [e.fresh(target), *map(e.settle, args)]
    if node.optional:
        args = [e.settle(text) for text in args]
    if node.name == "contains" and len(args) == 1 and not node.optional:
        args = [e.settle(args[0])]
        slow = plain_method_call(e, node, target, args)
        return in_list(e, node.object, target, node.args[0], args[0], slow)
    if written := known_method_call(e, node, target, args):
        return written
    if e.kind(node.object) == "any" and node.name in e.unit.impl_methods and not node.optional:
        return impl_call(e, node, target, args)
    text = plain_method_call(e, node, target, args)
    return f"(None if {target} is None else {text})" if node.optional else text


def plain_method_call(e: Emitter, node: ast.MethodCall, target: Operand, args: list[Text]) -> Text:
    """A call of a method of any value."""
    table = e.unit.method_table(node.name, len(args))
    text = f"{table}[type({target})]({joined(['vm', target, *args])})"
    if e.kind(node.object) == "any":
        # A method of the program's own counts as a call (02 §9.4).
        own = f"{table}.own({joined(['vm', e.depth(), target, *args])})"
        if any(is_marked(str(arg)) for arg in args):
            # The first branch ends on the line of an argument.
            text = e.mark(node, text)
        text = f"({own} if {type_of(target)} is Struct else {text})"
    return e.mark(node, text)


def in_list(e: Emitter, container: ast.Node, target: Text, item: ast.Node, x: Text, slow: Text) -> Text:
    """Whether a list has an item, by Python's `in` where that is Harn's: for strings, most ints, and any int
    among ints.

    (x_2 in xs_1 if xs_1.__class__ is list and 1 < x_2 < 1073741824 and not signal.pending else …)
    """
    if e.kind(item) not in ("int", "str"):
        return slow
    tests = [] if e.kind(container) == "list" else [f"{type_of(target)} is list"]
    if e.kind(item) == "int" and e.view.items(container) != "int":
        # To Python 1 is True, and 0 is False.
        tests.append(f"1 < {x} < 1073741824")
    tests.append("not signal.pending")
    return f"({x} in {target} if {' and '.join(tests)} else {slow})"


def impl_call(e: Emitter, node: ast.MethodCall, target: Operand, args: list[Text]) -> Operand:
    """A call of what may be a method of an `impl` of this file. ``p.norm()``:

    if p_1.__class__ is Struct:
     try: t1 = impls[p_1.type]['norm']
     except KeyError: t1 = None
     t3 = (t2 := t1.call)(e, p_1) if t1 is not None and t1.arity == 1 else m_norm_0_.own(vm, e, p_1)
    else: t3 = m_norm_0_[type(p_1)](vm, p_1)
    """
    args = [e.settle(text) for text in args]
    method, call, slot = e.temp(), e.temp(), e.temp()
    table = e.unit.method_table(node.name, len(args))
    other = f"{table}[type({target})]({joined(['vm', target, *args])})"
    own = f"{table}.own({joined(['vm', e.depth(), target, *args])})"
    fits = f"{method} is not None and {method}.arity == {len(args) + 1}"
    straight = f"({call} := {method}.call)({joined([e.depth(), target, *args])})"
    e.line(f"if {type_of(target)} is Struct:")
    e.line(f" try: {method} = impls[{target}.type][{node.name!r}]")
    e.line(f" except KeyError: {method} = None")
    e.line(f" {slot} = " + e.mark(node, f"{straight} if {fits} else {own}"))
    e.line(f"else: {slot} = " + e.mark(node, other))
    return slot


def known_method_call(e: Emitter, node: ast.MethodCall, target: Operand, args: list[Text]) -> Operand | None:
    """A call of the method that the file declares for a known struct, with arguments of known kinds:

    try: t1 = impls['Point']['norm']
    except KeyError: t1 = None
    t3 = (t2 := t1.fast)(e, p_1) if t1 is not None else m_norm_0_.own(vm, e, p_1)
    """
    fn, of = e.view.method(node), e.view.shape(node.object)
    nodes = [node.object, *node.args]
    version = e.view.version(fn, nodes) if fn else None
    if not (fn and version and isinstance(of, Record)):
        return None
    given: list[Text] = [target, *(e.settle(text) for text in args)]
    passed = joined([e.depth(), *given])
    method = f"impls[{of.struct!r}][{node.name!r}]"
    own = f"{e.unit.method_table(node.name, len(args))}.own(vm, {passed})"

    def call() -> str:
        found, straight = e.temp(), e.temp()
        e.line(f"try: {found} = {method}")
        e.line(f"except KeyError: {found} = None")
        text = f"({straight} := {found}.fast)({passed}) if {found} is not None else {own}"
        return e.mark(node, text)

    from harnpy.vm.emit.inlined import inlined, result_of

    if value := result_of(e, fn, version):
        there = f"{node.name!r} in impls.get({of.struct!r}, ())"
        plain = e.hoist(f"({there} and {method}.inlinable and {e.depth()} < 513)")
        return inlined(e, value, version, list(zip(nodes, given, strict=True)), plain, call)
    return e.fresh(call())


def namespaced(e: Emitter, node: ast.MethodCall) -> str | None:
    """``stream.map(…)`` and its like, when no variable shadows the namespace."""
    if isinstance(node.object, ast.Name):
        ref = e.refs[id(node.object)]
        qualified = f"{node.object.name}.{node.name}"
        if ref.kind == "global" and e.unit.table.is_builtin(qualified):
            return qualified
    return None


# --- pipes ------------------------------------------------------------------------------------------


def pipe(e: Emitter, node: ast.Pipe, into: Operand | None) -> Text:
    hole = e.unit.resolution.variables.get((id(node), "_"))
    if hole is not None:
        e.line(f"{hole.python} = {e.expr(node.left)}")
        e.declare_slot(hole.python)
        return e.expr(node.right)
    if isinstance(node.right, ast.Name):
        ref = e.refs[id(node.right)]
        if ref.kind == "builtin":
            return builtin_call(e, node, ref.name, [node.left])
        from harnpy.vm.emit.expressions import read

        value = e.atom(node.left)
        return e.mark(node, f"pipe({value}, {read(e, node.right, ref)}, {e.depth()})")
    left, right = e.operands([node.left, node.right])
    return e.mark(node, f"pipe({left}, {right}, {e.depth()})")


# Calls in tail position: the function leaves before what it calls begins. Spec: 02 §9.4.
#
# A function that calls itself goes back to its top. Any other call is left to the caller: the function
# returns `TAIL`, and the nearest trampoline makes the call.


def tail_call(e: Emitter, node: ast.Node) -> bool:
    """Write ``return f(…)`` as a tail call, if it is one. Spec: 02 §9.4.

    ``return f(n - 1)``, by what `f` is: the function itself; another `fn`, which calls functions in turn; a
    variable with any value.

        n_2 = t1            TAIL.args = (t1,)           return tail_named(f_3, 'f', e, (t1,), ())
        continue            TAIL.body = f_3.body
                            return TAIL
    """
    if e.protections or e.generator or e.function.defers or e.own is not None or not called_by_calls(e):
        return False
    ref = tail_target(e.unit.resolution, node)
    if ref is None or ref.variable is None:
        return False
    variable = ref.variable
    args = [node.left] if isinstance(node, ast.Pipe) else list(node.args)  # type: ignore[attr-defined]
    fn = variable.known_fn
    version = e.view.version(fn, args) if fn else None
    if e.is_self(ref) and not e.loops and e.version in (None, version):
        again(e, args)
        return True
    if fn and not e.unit.calls_out(fn):
        return False
    e.may_tail = True
    texts = e.operands(args)
    if fn and version and e.version and not e.loops:
        from harnpy.vm.emit.inlined import may_write_out

        if may_write_out(e, fn, version):
            write_out(e, fn, version, variable.python, texts)
            return True
    if fn:
        known_tail(e, fn, variable.python, texts, version)
    else:
        target, given = variable.python, f"{e.depth()}, {tuple_text(texts)}"
        if isinstance(node, ast.Call):
            text = f"tail_named({target}, {ref.name!r}, {given}, {fallback(e, ref)})"
        else:
            text = f"tail_pipe({target}, {given})"
        e.line("return " + e.mark(node, text))
    return True


def write_out(e: Emitter, fn: ast.FnDecl, version: Version, target: str, args: list[Text]) -> None:
    """Write the function in place of its tail call. `even` and `odd` that call each other become one loop:

    n_2 = n_1 - 1
    if signal.pending: <the call>
    if n_2 == 0:
     return False
    n_1 = n_2 - 1
    continue
    """
    slots = [reading(variable) for variable in version.scope.params]
    for slot in slots:
        e.declare_slot(slot.text)
    e.line(f"{joined(slots)} = {joined(args)}")
    with e.suite("if signal.pending"):
        known_tail(e, fn, target, list(slots), version)
    outside, e.view = e.view, version.view
    e.known.enter()
    e.statements(fn.body.statements, DISCARD)
    e.known.leave()
    e.view = outside
    if not leaves(fn.body):
        e.line("return None")


def called_by_calls(e: Emitter) -> bool:
    """Return True if the callers of the function being written make the tail call that it returns."""
    return e.function.parent is not None and not isinstance(e.function.node, ast.Spawn | ast.Parallel)


def known_tail(e: Emitter, fn: ast.FnDecl, target: str, args: list[Text], version: Version | None) -> None:
    """Leave the call to make with the caller: what to run, with what."""
    if len(args) == len(fn.params) and not (fn.params and fn.params[-1].rest):
        e.line(f"TAIL.args = {tuple_text(args)}")
        e.line(f"TAIL.body = {target}.{'fast_body' if version else 'body'}")
        e.line("return TAIL")
    else:
        e.line(f"return tail({target}, {tuple_text(args)})")


def again(e: Emitter, args: list[ast.Node]) -> None:
    """Call the function itself in tail position: new parameters, and back to its top."""
    e.self_tail = True
    fn = e.function.node
    params = fn.params  # type: ignore[attr-defined]
    texts = e.operands(args)
    if params and params[-1].rest:
        plain = len(params) - 1
        rest = [f"[{joined(texts[plain:])}]"]
        texts = texts[:plain]
    else:
        plain, rest = len(params), []
        texts = at_most(e, plain, texts)
    given = [*texts, *missing(params[len(texts) : plain]), *rest]
    if given:
        names = ", ".join(variable.python for variable in e.function.params)
        e.line(f"{names} = {joined(given)}")
    e.line("continue")
