"""Calls, methods and properties, and the literals that hold expressions.

Spec: 03 §7.2, §8.1, §8.2, §9; 04 §3.
"""

from __future__ import annotations

from harnpy.check import inference
from harnpy.check.findings import declared_here, renamed_key, respelled
from harnpy.check.inference import certain, known
from harnpy.check.types.declared import substituted
from harnpy.check.types.type_nodes import NIL, is_named, shown, union
from harnpy.check.walk import undeclared_names
from harnpy.check.walk.undeclared_names import foreign_type_hint
from harnpy.syntax import ast, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harnpy.check.types.type_nodes import Type
    from harnpy.check.walk import Walk
    from harnpy.syntax.diagnostic import Fix


def _nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant."""
    from harnpy.formats.suggestions import STATIC_LIMIT, nearest

    return nearest(name, sorted(known), limit=STATIC_LIMIT)


# Interpolated strings, dicts and structs. Spec: 03 §1.1, §8.1, §8.2.


def interp(walk: Walk, node: ast.Interp) -> None:
    """Of what stands in `${…}` nothing but the names is judged."""
    walk.names_only(lambda: walk.children(node))


def dict_entry(walk: Walk, node: ast.DictEntry) -> None:
    if node.computed:
        walk.visit(node.key)
    walk.visit(node.value)


def struct(walk: Walk, node: ast.StructLit) -> None:
    walk.children(node)
    declared = walk.types.declared.structs.get(node.name)
    if declared is None:
        _unknown_struct(walk, node)
        return
    given = {
        entry.key.value: entry
        for entry in node.entries
        if isinstance(entry, ast.DictEntry) and isinstance(entry.key, ast.Str) and not entry.computed
    }
    places = [declared_here(declared)] if node.name not in walk.types.declared.foreign else []
    known = {field.name for field in declared.fields}
    for name, entry in given.items():
        if name not in known:
            text = f"Unknown field '{name}' in struct '{node.name}'"
            near = _nearest(name, known)
            help = f"did you mean `{near}`?" if near else None
            fix = renamed_key(entry, near) if near else None
            walk.findings.warn("unknown-struct-field", entry, text, help=help, places=places, fix=fix)
    if len(given) == len(node.entries):
        for field in declared.fields:
            if field.name not in given and not field.optional:
                text = f"Missing field '{field.name}' in struct '{node.name}' construction"
                walk.findings.warn("missing-struct-field", node, text, places=places)
    _fields(walk, node, declared, given)


def _fields(
    walk: Walk, node: ast.StructLit, declared: ast.StructDecl, given: dict[str, ast.DictEntry]
) -> None:
    params = walk.function.type_params | {param.name for param in declared.type_params}
    for field in declared.fields:
        entry = given.get(field.name)
        actual = walk.type(entry.value) if entry is not None and field.type is not None else None
        if entry is None or field.type is None or actual is None:
            continue
        expected = union([field.type, NIL]) if field.optional else field.type
        if not walk.types.accepts(expected, entry.value, actual, params):
            text = f"Field '{field.name}' in struct '{node.name}' expects {shown(field.type)}"
            text = f"{text}, got {shown(actual)}"
            walk.findings.error(
                "struct-field-type", entry.value, text, help=foreign_type_hint(walk, field.type)
            )


def _unknown_struct(walk: Walk, node: ast.StructLit) -> None:
    environment = walk.environment
    if not environment.complete or node.name in environment.structs_anywhere:
        return
    near = _nearest(node.name, walk.types.declared.structs)
    text = f"unknown struct type `{node.name}`"
    if near is None:
        help = f"declare `struct {node.name} {{ ... }}` before constructing it"
    else:
        text = f"{text} — did you mean `{near}`?"
        help = f"declare `struct {near} {{ ... }}` or fix the type name"
    fix = respelled(node.start, node.name, near)
    walk.findings.error("unknown-struct", node, text, help=help, fix=fix)


# Calls by name: what is called, with how many arguments of which types. Spec: 03 §7.2, §8.1, §8.2, §9.


def call(walk: Walk, node: ast.Call) -> None:
    undeclared_names.called(walk, node)
    fn = inference.target(walk.inference, node, walk.scope)
    if fn is not None:
        _user_function(walk, node, fn)
    elif _is_builtin(walk, node):
        _builtin(walk, node)
    elif node.name in walk.environment.foreign_functions and walk.scope.find(node.name) is None:
        _of_module(walk, node)
    handled = not _is_builtin(walk, node)
    for arg in node.args:
        argument(walk, arg, handled)


def argument(walk: Walk, arg: ast.Node, handled: bool) -> None:
    """Visit an argument. What goes wrong in a closure does so where it is called, which may handle it."""
    if isinstance(arg, ast.Closure | ast.FnExpr) and not handled:
        names.closure(walk, arg)
    else:
        walk.visit(arg)


def _is_builtin(walk: Walk, node: ast.Call) -> bool:
    """Return True if a call surely calls a builtin."""
    environment = walk.environment
    return (
        environment.knowledge.is_builtin(node.name)
        and node.name not in environment.foreign_functions
        and walk.scope.find(node.name) is None
        and walk.scope.will_declare(node.name) is None
    )


def _user_function(walk: Walk, node: ast.Call, fn: ast.FnDecl) -> None:
    _deprecated(walk, node, fn)
    _type_arguments(walk, node, f"Function '{fn.name}'", len(fn.type_params))
    _count(walk, node, fn)
    bound = inference.explicit(fn.type_params, node)
    pairs = _pairs(fn, node.args)
    _conflicts(walk, fn, pairs, bound)
    _arguments(walk, fn, pairs, bound)
    _bounds(walk, node, fn, bound)
    if is_named(fn.returns, "never"):
        from harnpy.check.walk.blocks import never_returns

        never_returns(walk, f"{fn.name}()", node)


def _deprecated(walk: Walk, node: ast.Call, fn: ast.FnDecl) -> None:
    """Calls of a file-level function that is `@deprecated(since: …, use: …)`."""
    if walk.environment.functions.get(fn.name) is not fn:
        return
    for attribute in fn.attrs:
        if attribute.name == "deprecated":
            given = {arg.name: getattr(arg.value, "value", None) for arg in attribute.args}
            since = f" (since {given['since']})" if given.get("since") else ""
            help = f"use `{given['use']}` instead" if given.get("use") else None
            text = f"`{fn.name}` is deprecated{since}"
            places = [declared_here(attribute)]
            walk.deprecations.warn("deprecated", node, text, help=help, places=places)


def _type_arguments(walk: Walk, node: ast.Call, what: str, wanted: int) -> None:
    given = len(node.type_args)
    if not given or given == wanted:
        return
    text = f"{what} expects {wanted} type arguments, got {given}"
    if not wanted:
        text = f"{what} does not declare type parameters"
    walk.findings.error("type-argument-count", node, text)


def _count(walk: Walk, node: ast.Call, fn: ast.FnDecl) -> None:
    if any(isinstance(arg, ast.Spread) for arg in node.args) or any(param.rest for param in fn.params):
        return
    if walk.environment.knowledge.is_builtin(fn.name):
        return
    most = len(fn.params)
    least = sum(param.default is None for param in fn.params)
    if not least <= len(node.args) <= most:
        wanted = f"{least}-{most}" if least != most else str(most)
        text = f"Function '{fn.name}' expects {wanted} arguments, got {len(node.args)}"
        walk.findings.warn("argument-count", node, text, places=[declared_here(fn)])


_Pairs = list[tuple[int, ast.Param, ast.Node]]


def _pairs(fn: ast.FnDecl, args: Sequence[ast.Node]) -> _Pairs:
    """The arguments, counted from 1, that are compared, and their parameters."""
    pairs: _Pairs = []
    for i, (param, arg) in enumerate(zip(fn.params, args, strict=False), 1):
        if param.rest or isinstance(arg, ast.Spread):
            break
        if param.type is not None:
            pairs.append((i, param, arg))
    return pairs


def _conflicts(walk: Walk, fn: ast.FnDecl, pairs: _Pairs, bound: dict[str, Type]) -> None:
    params = frozenset(param.name for param in fn.type_params)
    given = frozenset(bound)
    if not params:
        return
    for _, param, arg in pairs:
        assert param.type is not None
        conflict = inference.bind_argument(walk.inference, params, param.type, arg, bound, walk.scope)
        if conflict is None:
            continue
        name, first, second = conflict
        # What is said outright holds: an argument has only to fit it.
        if name not in given or not walk.fits(second, first):
            text = f"type parameter '{name}' was inferred as both {shown(first)} and {shown(second)}"
            walk.findings.error("type-parameter-conflict", arg, text)


def _arguments(walk: Walk, fn: ast.FnDecl, pairs: _Pairs, bound: dict[str, Type]) -> None:
    free = {param.name for param in fn.type_params} - bound.keys()
    params = walk.function.type_params | free
    for i, param, arg in pairs:
        assert param.type is not None
        expected = substituted(param.type, bound) if bound else param.type
        actual = inference.argument(walk.inference, expected, arg, walk.scope)
        if actual is not None and not walk.types.accepts(expected, arg, actual, params):
            text = f"Argument {i} ('{param.name}'): expected {shown(expected)}, got {shown(actual)}"
            places = [declared_here(param)]
            walk.findings.error(
                "argument-type", arg, text, help=foreign_type_hint(walk, expected), places=places
            )


def _bounds(walk: Walk, node: ast.Call, fn: ast.FnDecl, bound: dict[str, Type]) -> None:
    for param, interface in fn.where:
        type = bound.get(param)
        if type is None or known(type) is None or is_named(type, "_"):
            continue
        if isinstance(type, ast.TypeName) and type.name in walk.function.type_params:
            continue
        if isinstance(type, ast.TypeName):
            reason = walk.types.unsatisfied(type, interface)
        else:
            reason = "only named types can satisfy interfaces"
        if reason is not None:
            text = (
                f"Type '{shown(type)}' does not satisfy interface '{interface}': {reason}"
                f" (required by constraint `where {param}: {interface}`)"
            )
            walk.findings.error("type-bound", node, text)


def _builtin(walk: Walk, node: ast.Call) -> None:
    signature = walk.environment.knowledge.signature(node.name)
    count = len(signature.type_params) if signature is not None else 0
    _type_arguments(walk, node, f"Builtin function '{node.name}'", count)
    if node.name == "unreachable":
        _unreachable(walk, node)
        from harnpy.check.walk.blocks import never_returns

        never_returns(walk, "unreachable()", node)
    agents(walk, node)


def _unreachable(walk: Walk, node: ast.Call) -> None:
    """`unreachable(x)`: every case of x has been handled, or not."""
    if len(node.args) != 1 or not isinstance(node.args[0], ast.Name):
        return
    found = known(walk.type(node.args[0]))
    if found is not None and not is_named(found, "never"):
        text = f"unreachable() argument has type `{shown(found)}` — not all cases are handled"
        walk.findings.error("unhandled-type", node, text)


def agents(walk: Walk, node: ast.Call | ast.MethodCall) -> None:
    """Have what knows of agents look at a call of a builtin."""
    if walk.findings is walk.reported:
        walk.agents.call(node, lambda name: _written(walk, name), walk.quiet > 0)


def _of_module(walk: Walk, node: ast.Call) -> None:
    """Have it look at a call of a function that comes from a `std/…` module."""
    module = walk.environment.module_of(node.name)
    if module is not None and walk.findings is walk.reported:
        walk.agents.call_of_module(module, node, lambda name: _written(walk, name), walk.quiet > 0)


def _written(walk: Walk, name: str) -> ast.Node | None:
    """Return what a name is bound to for good, as far as that is known here."""
    found = walk.scope.find(name)
    if found is None or found.mutable:
        return None
    return found.value or walk.environment.written(found)


# Methods and properties that a value of certain kind doesn't have. Spec: 03 §9, 04 §3.


#: Kinds of which an unknown property is nothing, which is hardly ever what was meant.
_WITH_PROPERTIES = ("list", "string", "enum")
#: Kinds that have none: reading one fails (02 §14.1).
_WITHOUT_PROPERTIES = frozenset("int float bool nil bytes duration set range closure".split())


def variant(walk: Walk, node: ast.Member | ast.MethodCall) -> None:
    """``E.V`` and ``E.V(…)``."""
    for arg in getattr(node, "args", ()):
        walk.visit(arg)


def method_call(walk: Walk, node: ast.MethodCall, object: Type | None) -> None:
    _unknown(walk, node)
    _bounded(walk, node, object)
    if isinstance(node.object, ast.Name) and walk.environment.knowledge.is_global(node.object.name):
        agents(walk, node)
    for arg in node.args:
        argument(walk, arg, handled=False)


def _unknown(walk: Walk, node: ast.MethodCall) -> None:
    type = None if walk.quiet else certain(walk.inference, node.object, walk.scope)
    if type is None:
        return
    texts = []
    for member in _members(walk, type):
        if node.optional and is_named(member, "nil"):
            continue
        text = _refusal(walk, member, node)
        if text is None:
            return
        texts.append(text)
    if texts:
        near = texts[0].partition(" (did you mean `")[2].partition("`")[0]
        help = f"did you mean `{near}`?" if near else None
        walk.findings.error("unknown-method", node, texts[0], help=help, fix=_renamed(node, near))


def _renamed(node: ast.MethodCall, near: str) -> Fix | None:
    """Return the fix of a method's name; None where more than a dot stands before it.

    The tree doesn't say where the name is, but then the arguments, or the end, are as far away as it is long.
    """
    start = node.object.end + len("?." if node.optional else ".")
    behind = node.args[0].start if node.args else node.end - len(")")
    return respelled(start, node.name, near) if start + len(node.name) + len("(") == behind else None


def _members(walk: Walk, type: Type) -> tuple[Type, ...]:
    """Return what values of a certain type may be. A literal dict, which may be large, is one thing."""
    return (type,) if isinstance(type, ast.TypeShape) else walk.types.members(walk.types.unfolded(type))


def _refusal(walk: Walk, type: Type, node: ast.MethodCall) -> str | None:
    """Return what the run would say of the method on a value of ``type``; None if there is such a method."""
    environment = walk.environment
    kind, own = kind_of(walk, type), []
    struct, is_field = "", False
    if kind is None:
        return None
    if kind == "struct":
        assert isinstance(type, ast.TypeName)
        struct = type.name
        if struct in walk.types.declared.foreign:
            return None
        own = sorted(environment.methods.get(struct, ()))
        is_field = any(field.name == node.name for field in walk.types.declared.structs[struct].fields)
    elif kind == "dict":
        assert isinstance(type, ast.TypeShape)
        own = [field.name for field in type.fields]
    if node.name in own or node.name in environment.knowledge.methods(kind):
        return None
    from harnpy.formats.suggestions import unknown_method

    return unknown_method(
        kind,
        node.name,
        environment.knowledge.method_hint(kind, node.name, own),
        has_methods=bool(environment.knowledge.methods(kind)),
        struct=struct,
        is_field=is_field,
    )


def kind_of(walk: Walk, type: Type) -> str | None:
    """Return what `type_of` says of values of a certain type."""
    if isinstance(type, ast.TypeShape):
        return "dict"
    if isinstance(type, ast.TypeFn):
        return "closure"
    if isinstance(type, ast.TypeLiteral):
        return "string" if isinstance(type.value, str) else "int"
    if not isinstance(type, ast.TypeName) or type.name in ("any", "never", "_"):
        return None
    if type.name in walk.types.declared.structs:
        return "struct"
    if type.name in walk.types.declared.enums:
        return "enum"
    return None if type.name == "dict" else type.name


def _bounded(walk: Walk, node: ast.MethodCall, object: Type | None) -> None:
    """A method of a value whose type is a parameter that `where` binds to an interface."""
    if not isinstance(object, ast.TypeName) or object.name not in walk.function.bounds:
        return
    name = walk.function.bounds[object.name]
    interface = walk.types.declared.interfaces.get(name)
    if interface is None or any(getattr(member, "name", "") == node.name for member in interface.members):
        return
    text = f"Method '{node.name}' not found in interface '{name}' (constraint on '{object.name}')"
    walk.findings.warn("unknown-interface-method", node, text)


def member(walk: Walk, node: ast.Member, object: Type | None) -> None:
    type = None if node.optional or walk.quiet else certain(walk.inference, node.object, walk.scope)
    if type is None:
        return
    kinds = list(dict.fromkeys(kind_of(walk, member) for member in _members(walk, type)))
    if kinds and all(kind in _WITHOUT_PROPERTIES for kind in kinds):
        text = f"cannot access property `{node.name}` on {kinds[0]}"
        is_method = node.name in walk.environment.knowledge.methods(kinds[0] or "")
        help = f"`{node.name}` is a method: `.{node.name}(…)`" if is_method else None
        walk.findings.error("no-properties", node, text, help=help)
    elif len(kinds) == 1 and kinds[0] in _WITH_PROPERTIES:
        _unknown_property(walk, node, kinds[0])


def _unknown_property(walk: Walk, node: ast.Member, kind: str) -> None:
    properties = walk.environment.knowledge.properties(kind)
    if node.name in properties:
        return
    from harnpy.syntax.habits import property_for

    near = _nearest(node.name, properties)
    elsewhere = property_for(node.name)
    if elsewhere in properties:
        near = elsewhere
    help = f"did you mean `{near}`?" if near else None
    if near is None and node.name in walk.environment.knowledge.methods(kind):
        help = f"`{node.name}` is a method: `.{node.name}(…)`"
    text = f"unknown property `{node.name}` on {kind}"
    fix = respelled(node.end - len(node.name), node.name, near)
    walk.findings.error("unknown-property", node, f"{text} — {help}" if help else text, help=help, fix=fix)


def index(walk: Walk, node: ast.Index, object: Type | None) -> None:
    walk.visit(node.index)


def slice_(walk: Walk, node: ast.Slice, object: Type | None) -> None:
    walk.optional(node.first)
    walk.optional(node.last)
