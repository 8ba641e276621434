"""Expressions without operators: literals, variables and what is inside them."""

from __future__ import annotations

from tests.vm.differential.scopes import Scopes
from tests.vm.differential.shapes import (
    ANY,
    BOOL,
    ENUM,
    FLOAT,
    INT,
    NIL,
    SCALARS,
    STRING,
    Shape,
    Variable,
    dict_of,
    function,
    list_of,
    paths,
)  # fmt: skip

_INTS = ("1", "2", "3", "0", "7", "(-1)", "(-8)", "10")
#: Around the edges of what fits in a machine word, and in Python's small and one-digit ints.
_EDGES = (
    "1073741823", "1073741824", "2147483648", "4294967296", "4611686018427387904", "9223372036854775807",
    "(-9223372036854775807 - 1)", "(-1073741824)", "9007199254740993",
)  # fmt: skip
_FLOATS = ("1.5", "0.5", "2.0", "(-0.5)", "0.1", "0.0", "9.99", "1000000000000000.0", "(1.0 / 0.0)", "4.0")
_STRINGS = ('""', '"a"', '"bc"', '"é"', '"x y"', '"a,b"', '"7"', 'r"\\d"', '"\\n"')
_TAGS = ("count", "first", "a", "b", "k", "m")


class Operands(Scopes):
    # --- shapes -------------------------------------------------------------------------------------

    def any_shape(self, depth: int = 2) -> Shape:
        """Something that a variable may hold."""
        if depth == 0 or self.choices.chance(45):
            return self.choices.pick((INT, INT, STRING, FLOAT, BOOL, INT))
        inner = self.any_shape
        return self.choices.weighted(
            (
                (6, lambda: list_of(inner(depth - 1))),
                (6, lambda: dict_of(**{key: inner(depth - 1) for key in self._keys()})),
                (2, lambda: self.choices.pick(self.structs) if self.structs else INT),
                (2, lambda: ANY),
                (3, lambda: function(self.scalar(), (self.choices.pick("pq"), self.scalar()))),
                (1, lambda: ENUM),
            )
        )()

    def _keys(self) -> tuple[str, ...]:
        return self.choices.pick((("a", "b"), ("k",), ("b", "a", "c"), ("count", "m")))

    def scalar(self) -> Shape:
        return self.choices.pick((INT, STRING, FLOAT, BOOL))

    # --- reading ------------------------------------------------------------------------------------

    def operand(self, shape: Shape) -> str:
        """A variable, something inside one, or a literal."""
        if self.choices.chance(65):
            found = self.readable(shape)
            if found:
                return self.choices.pick(found[-40:])
        return self.literal(shape)

    def readable(self, shape: Shape) -> list[str]:
        """The places in the variables here that have that shape."""
        if shape is ANY:
            return [variable.name for variable in self.visible()]
        return [
            text
            for variable in self.visible()
            for text, inner in paths(variable.name, variable.shape)
            if inner == shape
        ]

    def holding(self, kind: str) -> list[Variable]:
        """The variables of one kind."""
        return [variable for variable in self.visible() if variable.shape.kind == kind]

    def assignable(self) -> list[Variable]:
        return [variable for variable in self.visible() if variable.mutable]

    # --- literals -----------------------------------------------------------------------------------

    def literal(self, shape: Shape) -> str:
        pick = self.choices.pick
        match shape.kind:
            case "int":
                return pick(_EDGES) if self.choices.chance(15) else pick(_INTS)
            case "float":
                return pick(_FLOATS)
            case "bool":
                return pick(("true", "false"))
            case "string":
                return pick(_STRINGS)
            case "small":
                return str(self.count_literal(5))
            case "many":
                return pick(("700", "3"))
            case "enum":
                return pick(("(Color.Red)", "Color.Green(1)"))
            case "list":
                assert shape.item
                return (
                    "[" + ", ".join(self.literal(shape.item) for _ in range(1 + self.choices.below(3))) + "]"
                )
            case "dict":
                return "{" + self._literal_entries(shape) + "}"
            case "struct":
                return f"{shape.name} {{{self._literal_entries(shape)}}}"
            case "fn":
                assert shape.item
                params = ", ".join(name for name, _ in shape.fields)
                return f"{{ {params} -> {self.literal(shape.item)} }}"
        return "nil" if shape is NIL else self.literal(self.choices.pick((INT, NIL, *SCALARS)))

    def _literal_entries(self, shape: Shape) -> str:
        return ", ".join(f"{name}: {self.literal(inner)}" for name, inner in shape.fields)

    def count_literal(self, most: int = 4) -> int:
        return self.choices.below(most + 1)

    def tag(self) -> str:
        """A key that a dict may or may not have."""
        return self.choices.pick(_TAGS)
