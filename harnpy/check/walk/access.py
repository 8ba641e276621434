"""Methods and properties that a value of certain kind doesn't have. Spec: 03 §9, 04 §3."""

from __future__ import annotations

from harnpy.check.inference.certain import certain
from harnpy.check.types.names import is_named
from harnpy.check.walk import calls
from harnpy.syntax import ast
from harnpy.text.spell import STATIC_LIMIT, nearest
from harnpy.text.unknown_methods import unknown_method

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.types.names import Type
    from harnpy.check.walk.visitor import Walk

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
        calls.agents(walk, node)
    for arg in node.args:
        calls.argument(walk, arg, handled=False)


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
        walk.findings.error("unknown-method", node, texts[0], help=help)


def _members(walk: Walk, type: Type) -> tuple[Type, ...]:
    """What values of a certain type may be. A literal dict, which may be large, is one thing."""
    return (type,) if isinstance(type, ast.TypeShape) else walk.types.members(walk.types.unfolded(type))


def _refusal(walk: Walk, type: Type, node: ast.MethodCall) -> str | None:
    """What the run would say of the method on a value of ``type``; None when there is such a method."""
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
    return unknown_method(
        kind,
        node.name,
        environment.knowledge.method_hint(kind, node.name, own),
        has_methods=bool(environment.knowledge.methods(kind)),
        struct=struct,
        is_field=is_field,
    )


def kind_of(walk: Walk, type: Type) -> str | None:
    """What `type_of` says of values of a certain type."""
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
    near = nearest(node.name, sorted(properties), limit=STATIC_LIMIT)
    help = f"did you mean `{near}`?" if near else None
    text = f"unknown property `{node.name}` on {kind}"
    walk.findings.error("unknown-property", node, f"{text} — {help}" if help else text, help=help)


def index(walk: Walk, node: ast.Index, object: Type | None) -> None:
    walk.visit(node.index)


def slice_(walk: Walk, node: ast.Slice, object: Type | None) -> None:
    walk.optional(node.first)
    walk.optional(node.last)
