"""Whether a value of one type may flow into a slot of another. Spec: 03 §4.

The rules are those of the section, in an order that answers the commonest questions first. An alias is
unfolded where it is met: a comparison that comes back to itself through a recursive alias holds.
"""

from __future__ import annotations

from harnpy.check.types.names import LAZY, base, is_named
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set

    from harnpy.check.types.names import Type
    from harnpy.check.types.questions import Questions

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
        """Whether ints would have to become floats, which those in a list don't."""
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
    """Whether an expression is a literal with parts, or a choice between such."""
    if isinstance(node, ast.Ternary):
        return is_fresh(node.then) and is_fresh(node.otherwise)
    return isinstance(node, ast.List | ast.Dict | ast.StructLit)
