"""Whether a value of one type may flow into a slot of another. Spec: 03 §4, §7.

Type parameters, interfaces and variance are questions of fitting, too: a parameter is bound by the arguments
that fit it, and a type satisfies an interface when its methods fit.
"""

from __future__ import annotations

from harnpy.check.types.declared import substituted
from harnpy.check.types.type_nodes import ANY, HOLE, LAZY, base, is_named, named, shown
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from harnpy.check.types.declared import Questions
    from harnpy.check.types.type_nodes import Type

    Conflict = tuple[str, Type, Type]
    Method = ast.FnDecl | ast.MethodSig
    #: A type and the polarity of its position: 1 covariant, -1 contravariant, 0 invariant.
    Place = tuple[Type | None, int]

# Type parameters: bound by the arguments of a call, replaced in its result. Spec: 03 §7.2.


def bind(
    types: Questions, names: Set[str], expected: Type, actual: Type, bound: dict[str, Type]
) -> Conflict | None:
    """Bind the type parameters ``names`` of ``expected`` by matching it against ``actual`` (03 §7.2).

    ``bound`` is added to. Returns the first contradiction: the parameter, what it is bound to and what it
    should be bound to; the first binding stays.
    """
    if isinstance(expected, ast.TypeName) and not expected.args and expected.name in names:
        return _bind_one(types, expected.name, actual, bound)
    if expected == actual or not names:
        return None
    pairs = _matching(types.unfolded(expected), types.unfolded(actual))
    conflicts = (bind(types, names, wanted, given, bound) for wanted, given in pairs)
    return next((conflict for conflict in conflicts if conflict), None)


def _bind_one(types: Questions, name: str, actual: Type, bound: dict[str, Type]) -> Conflict | None:
    """A hole says nothing; types that fit each other both ways contradict nothing."""
    if actual == HOLE:
        return None
    known = bound.setdefault(name, actual)
    if known == actual or (types.fits(known, actual) and types.fits(actual, known)):
        return None
    return (name, known, actual)


def _matching(expected: Type, actual: Type) -> Iterable[tuple[Type, Type]]:
    """The parts of two types that stand at the same place."""
    if isinstance(expected, ast.TypeName) and isinstance(actual, ast.TypeName):
        if base(expected.name) == base(actual.name) and len(expected.args) == len(actual.args):
            return zip(expected.args, actual.args, strict=True)
    elif isinstance(expected, ast.TypeShape) and isinstance(actual, ast.TypeShape):
        given = {field.name: field.type for field in actual.fields}
        return [(field.type, given[field.name]) for field in expected.fields if field.name in given]
    elif (
        isinstance(expected, ast.TypeFn)
        and isinstance(actual, ast.TypeFn)
        and len(expected.params) == len(actual.params)
    ):
        return [*zip(expected.params, actual.params, strict=True), (expected.returns, actual.returns)]
    return ()


def settled(type: Type, names: Iterable[str], bound: Mapping[str, Type]) -> Type | None:
    """Return ``type``, what isn't ``bound`` of ``names`` being `_`; None when nothing else is left."""
    result = substituted(type, {**dict.fromkeys(names, HOLE), **bound})
    return None if result == HOLE else result


def arguments(params: Sequence[ast.TypeParam], args: Sequence[Type]) -> dict[str, Type]:
    """Return what each type parameter of a declaration stands for; `any` if there are fewer arguments."""
    if len(params) != len(args):
        return {param.name: ANY for param in params}
    return {param.name: arg for param, arg in zip(params, args, strict=True)}


def applied(
    types: Questions, name: str, params: Sequence[ast.TypeParam], given: Iterable[tuple[Type, Type]]
) -> ast.TypeName:
    """Return the type of a struct or enum value: ``given`` are (declared, actual) types of its parts."""
    names = {param.name for param in params}
    bound: dict[str, Type] = {}
    for expected, actual in given:
        bind(types, names, expected, actual, bound)
    return named(name, *(bound.get(param.name, HOLE) for param in params))


# Whether a type satisfies an interface, and if not, why. Spec: 03 §7.1.


def unsatisfied(types: Questions, type: Type, interface: str, args: Sequence[Type]) -> str | None:
    """See `Types.unsatisfied`."""
    declared = types.declared.interfaces.get(interface)
    if declared is None:
        return f"interface '{interface}' not found"
    type = types.unfolded(type)
    if not isinstance(type, ast.TypeName):
        return "only named types can satisfy interfaces"
    wanted = [member for member in declared.members if isinstance(member, ast.MethodSig)]
    if not wanted or type.name in types.declared.foreign:
        return None
    methods = _methods(types, type.name)
    if methods is None:
        return f"missing method(s): {', '.join(method.name for method in wanted)}"
    return _Satisfaction(types, type, declared, args, methods).fault()


def _methods(types: Questions, name: str) -> dict[str, Method] | None:
    """The methods of a type, or those that an interface promises."""
    interface = types.declared.interfaces.get(name)
    if interface is not None:
        return {member.name: member for member in interface.members if isinstance(member, ast.MethodSig)}
    methods = types.declared.impls.get(name)
    return None if methods is None else dict(methods)


class _Satisfaction:
    """One type held against one interface.

    Type parameters of the methods, and those that no arguments fix, fit everything. The associated types of
    the interface are bound by what the methods say.
    """

    def __init__(
        self,
        types: Questions,
        type: ast.TypeName,
        interface: ast.InterfaceDecl,
        args: Sequence[Type],
        methods: dict[str, Method],
    ) -> None:
        self.types = types
        self.interface = interface
        self.methods = methods
        self.associated = [member for member in interface.members if isinstance(member, ast.AssocType)]
        self.bound: dict[str, Type] = {}
        own = types.declared.generic(type.name)
        self.of_interface = arguments(interface.type_params, args)
        self.of_type = arguments(own.type_params, type.args) if own is not None else {}

    def fault(self) -> str | None:
        """The first reason, methods in the order of the interface and then the associated types."""
        for wanted in self.interface.members:
            if isinstance(wanted, ast.MethodSig):
                given = self.methods.get(wanted.name)
                fault = f"missing method '{wanted.name}'" if given is None else self._method(given, wanted)
                if fault is not None:
                    return fault
        return next(self._broken_defaults(), None)

    def _method(self, given: Method, wanted: ast.MethodSig) -> str | None:
        params, expected = _params(given), _params(wanted)
        name = wanted.name
        if len(params) != len(expected):
            return f"method '{name}' has {len(params)} parameter(s), expected {len(expected)}"
        free = {param.name for method in (given, wanted) for param in method.type_params}
        for i, (param, other) in enumerate(zip(params, expected, strict=True), 1):
            fault = self._compared(param.type, other.type, free, f"method '{name}' parameter {i} has type")
            if fault is not None:
                return fault
        return self._compared(given.returns, wanted.returns, free, f"method '{name}' returns")

    def _compared(self, given: Type | None, wanted: Type | None, free: set[str], subject: str) -> str | None:
        if given is None or wanted is None:
            return None
        types = self.types
        given = substituted(given, _outside(self.of_type, free))
        wanted = substituted(wanted, _outside(self.of_interface, free))
        names = {member.name for member in self.associated} - free
        conflict = bind(types, names, wanted, given, self.bound)
        if conflict is not None:
            name, one, other = conflict
            return f"type parameter '{name}' was inferred as both {shown(one)} and {shown(other)}"
        expected = substituted(wanted, self.bound)
        if types.fits(given, expected, free | names):
            return None
        return f"{subject} '{shown(given)}', expected '{shown(expected)}'"

    def _broken_defaults(self) -> Iterator[str]:
        for member in self.associated:
            actual = self.bound.get(member.name)
            if actual is None or member.type is None:
                continue
            expected = substituted(member.type, {**self.of_interface, **self.bound})
            if not self.types.fits(actual, expected):
                yield (
                    f"associated type '{member.name}' resolves to '{shown(actual)}', "
                    f"expected '{shown(expected)}'"
                )


def _params(method: Method) -> list[ast.Param]:
    return [param for param in method.params if param.name != "self"]


def _outside(bound: dict[str, Type], free: set[str]) -> dict[str, Type]:
    return {name: type for name, type in bound.items() if name not in free}


# Whether a value of one type may flow into a slot of another. Spec: 03 §4.
#
# The rules are those of the section, in an order that answers the commonest questions first. An alias is
# unfolded where it is met: a comparison that comes back to itself through a recursive alias holds.


#: A comparison deeper than this, through aliases that grow as they are unfolded, holds.
_MOST_UNFOLDED = 20
_INVARIANT = frozenset(["list", "dict"])
_DYNAMIC = frozenset(["_", "any"])


class Fitting:
    """One comparison; ``params`` are the type parameters in scope, which fit everything.

    ``fresh``: the value has just been written down, so nobody else can see it change.
    """

    __slots__ = ("_aliases", "_answers", "_fresh", "_params", "_pending", "_types")

    def __init__(self, types: Questions, params: Set[str], fresh: bool = False) -> None:
        self._types = types
        self._fresh = fresh
        self._aliases = types.declared.aliases
        self._params = params
        # Both by identity: all nodes outlive this, those that unfolding makes are kept.
        self._pending: set[tuple[int, int]] = set()
        # Invariance compares both ways: without it each level of nesting would double the work.
        self._answers: dict[tuple[int, int], bool] = {}

    def fits(self, actual: Type, expected: Type) -> bool:
        if actual is expected or self._is_free(actual) or self._is_free(expected):
            return True
        if self._is_alias(actual) or self._is_alias(expected):
            return self._unfolded_fits(actual, expected)
        pair = (id(actual), id(expected))
        answer = self._answers.get(pair)
        if answer is None:
            answer = self._answers[pair] = self._compare(actual, expected)
        return answer

    def _is_free(self, type: Type) -> bool:
        if not isinstance(type, ast.TypeName):
            return False
        return type.name in _DYNAMIC or type.name in self._params or self._types.declared.is_open(type.name)

    def _is_alias(self, type: Type) -> bool:
        return isinstance(type, ast.TypeName) and type.name in self._aliases

    def _unfolded_fits(self, actual: Type, expected: Type) -> bool:
        pair = (id(actual), id(expected))
        if actual == expected or pair in self._pending or len(self._pending) > _MOST_UNFOLDED:
            return True
        self._pending.add(pair)
        unfold = self._types.unfolded
        one, other = unfold(actual), unfold(expected)
        # An alias that is nothing but itself unfolds to itself.
        compare = self._compare if self._is_alias(one) or self._is_alias(other) else self.fits
        held = compare(one, other)
        if not held and (whole := self._types.aliases.undistributed(expected)) is not None:
            held = self.fits(one, whole)
        self._pending.discard(pair)
        return held

    def _compare(self, actual: Type, expected: Type) -> bool:
        """Two types that are neither free nor aliases."""
        if isinstance(actual, ast.TypeName) and actual.name == "never":
            return True
        if isinstance(actual, ast.TypeUnion):
            return all(self.fits(member, expected) for member in actual.members)
        if isinstance(expected, ast.TypeUnion):
            return any(self.fits(actual, member) for member in expected.members)
        if isinstance(expected, ast.TypeName):
            return self._fits_name(actual, expected)
        if isinstance(expected, ast.TypeShape):
            return self._fits_shape(actual, expected)
        if isinstance(expected, ast.TypeFn):
            return self._fits_function(actual, expected)
        assert isinstance(expected, ast.TypeLiteral)
        return self._fits_literal(actual, expected)

    def _fits_name(self, actual: Type, expected: ast.TypeName) -> bool:
        name = expected.name
        if isinstance(actual, ast.TypeName) and actual.name == name and not (actual.args and expected.args):
            return True
        if name in self._types.declared.interfaces:
            return self._types.unsatisfied(actual, name, expected.args) is None
        if name in ("unknown", "never"):
            return name == "unknown"
        if isinstance(actual, ast.TypeName):
            return self._names_fit(actual, expected)
        if isinstance(actual, ast.TypeShape):
            return self._shape_fits_name(actual, expected)
        if isinstance(actual, ast.TypeFn):
            return name == "closure"
        if isinstance(actual, ast.TypeLiteral):
            return name in (("string",) if isinstance(actual.value, str) else ("int", "float"))
        return False

    def _names_fit(self, actual: ast.TypeName, expected: ast.TypeName) -> bool:
        one, other = base(actual.name), base(expected.name)
        if one != other:
            return self._other_name_fits(actual, expected)
        if not actual.args or not expected.args:
            return True
        if len(actual.args) != len(expected.args):
            return False
        variances = self._types.variances(one, len(actual.args))
        return all(map(self._arg_fits, variances, actual.args, expected.args))

    def _other_name_fits(self, actual: ast.TypeName, expected: ast.TypeName) -> bool:
        if expected.name == "dict":
            struct = self._types.shape_of(actual)
            return actual.name == "Schema" or (struct is not None and self._shape_fits_name(struct, expected))
        if expected.name == "Schema":
            return actual.name == "dict"
        return actual.name == "int" and expected.name == "float"

    def _arg_fits(self, variance: str, actual: Type, expected: Type) -> bool:
        if self._fresh and not variance:
            return self.fits(actual, expected) and not self._widens(actual, expected)
        if variance != "in" and not self.fits(actual, expected):
            return False
        return variance == "out" or self.fits(expected, actual)

    def _widens(self, actual: Type, expected: Type) -> bool:
        """Return True if ints would have to become floats, which those in a list don't."""
        actual, expected = self._types.unfolded(actual), self._types.unfolded(expected)
        return is_named(actual, "int") and is_named(expected, "float")

    def _shape_fits_name(self, actual: ast.TypeShape, expected: ast.TypeName) -> bool:
        if expected.name != "dict":
            return expected.name == "Schema"
        if len(expected.args) != 2:
            return True
        key, value = expected.args
        if not self._is_string(key):
            return False
        return all(self.fits(field.type, value) for field in actual.fields)

    def _is_string(self, key: Type) -> bool:
        key = self._types.unfolded(key)
        return self._is_free(key) or (isinstance(key, ast.TypeName) and key.name == "string")

    def _fits_shape(self, actual: Type, expected: ast.TypeShape) -> bool:
        if isinstance(actual, ast.TypeName):
            if actual.name in ("dict", "Schema"):
                return True
            shape = self._types.shape_of(actual)
            if shape is None:
                return False
            actual = shape
        if not isinstance(actual, ast.TypeShape):
            return False
        given = {field.name: field.type for field in actual.fields}
        return all(
            field.name in given and self.fits(given[field.name], field.type)
            for field in expected.fields
            if not field.optional
        )

    def _fits_function(self, actual: Type, expected: ast.TypeFn) -> bool:
        if not isinstance(actual, ast.TypeFn):
            return isinstance(actual, ast.TypeName) and actual.name == "closure"
        return (
            len(actual.params) == len(expected.params)
            and all(map(self.fits, expected.params, actual.params))
            and self.fits(actual.returns, expected.returns)
        )

    def _fits_literal(self, actual: Type, expected: ast.TypeLiteral) -> bool:
        """A plain `string` or `int` fits any literal of its kind: the run decides."""
        if isinstance(actual, ast.TypeLiteral):
            return type(actual.value) is type(expected.value) and actual.value == expected.value
        wanted = "string" if isinstance(expected.value, str) else "int"
        return isinstance(actual, ast.TypeName) and actual.name == wanted


def variances(types: Questions, name: str, count: int) -> tuple[str, ...]:
    """The variance of each of ``count`` arguments of ``name``: `out`, `in`, or nothing for invariant."""
    if name in LAZY:
        return ("out",) * count
    declared = None if name in _INVARIANT else types.declared.generic(name)
    if declared is None or len(declared.type_params) != count:
        return ("",) * count
    return tuple([param.variance for param in declared.type_params])


def is_fresh(node: ast.Node) -> bool:
    """Return True if an expression is a literal with parts, or a choice between such."""
    if isinstance(node, ast.Ternary):
        return is_fresh(node.then) and is_fresh(node.otherwise)
    return isinstance(node, ast.List | ast.Dict | ast.StructLit)


# Where type parameters marked `in` or `out` may appear. Spec: 03 §7.3.


_POSITIONS = {1: "covariant", -1: "contravariant", 0: "invariant"}
_ALLOWED = {"out": 1, "in": -1}
_POLARITIES = {**_ALLOWED, "": 0}
_KINDS: dict[type, str] = {
    ast.FnDecl: "function",
    ast.TypeDecl: "type alias",
    ast.EnumDecl: "enum",
    ast.StructDecl: "struct",
    ast.InterfaceDecl: "interface",
}


def variance_faults(types: Questions, node: ast.Node) -> Iterator[tuple[ast.Node, str]]:
    """Each wrong appearance in a declaration: the type that names the parameter, and what to say."""
    if not isinstance(node, ast.FnDecl | ast.TypeDecl | ast.EnumDecl | ast.StructDecl | ast.InterfaceDecl):
        return
    marked = {param.name: param.variance for param in node.type_params if param.variance}
    if not marked:
        return
    for type, polarity in _places(node):
        for found, position in _appearances(types, type, polarity, marked):
            variance = marked[found.name]
            if position != _ALLOWED[variance]:
                yield (
                    found,
                    f"type parameter '{found.name}' is declared '{variance}' "
                    f"({_POSITIONS[_ALLOWED[variance]]}) but appears in a {_POSITIONS[position]} "
                    f"position in {_KINDS[node.__class__]} '{node.name}'",
                )


def _places(node: ast.Node) -> Iterator[Place]:
    """The types that a declaration writes down, in source order."""
    if isinstance(node, ast.TypeDecl):
        yield node.type, 1
    elif isinstance(node, ast.StructDecl):
        for field in node.fields:
            yield field.type, 0
    elif isinstance(node, ast.EnumDecl):
        for variant in node.variants:
            for param in variant.params:
                yield param.type, 1
    elif isinstance(node, ast.InterfaceDecl):
        for member in node.members:
            yield from _places(member)
    elif isinstance(node, ast.FnDecl | ast.MethodSig):
        for param in node.params:
            yield param.type, -1
        yield node.returns, 1
    elif isinstance(node, ast.AssocType):
        yield node.type, 1


def _appearances(
    types: Questions, type: Type | None, polarity: int, names: dict[str, str]
) -> Iterator[tuple[ast.TypeName, int]]:
    if isinstance(type, ast.TypeName):
        if type.name in names and not type.args:
            yield type, polarity
        variances = types.variances(base(type.name), len(type.args))
        for arg, variance in zip(type.args, variances, strict=True):
            yield from _appearances(types, arg, polarity * _POLARITIES[variance], names)
    elif isinstance(type, ast.TypeUnion):
        for member in type.members:
            yield from _appearances(types, member, polarity, names)
    elif isinstance(type, ast.TypeShape):
        for field in type.fields:
            yield from _appearances(types, field.type, polarity, names)
    elif isinstance(type, ast.TypeFn):
        for param in type.params:
            yield from _appearances(types, param, -polarity, names)
        yield from _appearances(types, type.returns, polarity, names)
