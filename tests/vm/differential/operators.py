"""Expressions of each kind, made with the operators, methods and builtins of that kind."""

from __future__ import annotations

from collections.abc import Callable

from tests.vm.differential.operands import Operands
from tests.vm.differential.shapes import ANY, BOOL, FLOAT, INT, STRING, Shape, list_of

Maker = Callable[["Operators", Shape, int], str]

_COMPARISONS = ("==", "<", ">", "<=", ">=", "!=")


class Operators(Operands):
    def expression(self, shape: Shape, depth: int = 3) -> str:
        raise NotImplementedError

    def lambda_of(self, result: Shape, *params: Shape, times: int = 3) -> str:
        """A closure for a builtin that calls it ``times`` times for each value."""
        raise NotImplementedError

    def combined(self, shape: Shape, depth: int) -> str:
        """An operation whose result has that shape, on operands one level less deep."""
        maker = getattr(self, f"_{shape.kind}", None)
        return maker(shape, depth - 1) if maker else self.expression(shape, 0)

    def _int(self, shape: Shape, depth: int) -> str:
        e, pick = self.expression, self.choices.pick
        return self.choices.weighted(
            (
                (12, lambda: f"({e(INT, depth)} {pick('+-*')} {e(INT, depth)})"),
                (8, lambda: f"({e(INT, depth)} {pick('+-*')} {e(INT, depth)} {pick('+-*')} {e(INT, depth)})"),
                (4, lambda: f"({e(INT, depth)} {pick('/%')} {pick(('2', '3', '(-7)', '10'))})"),
                (1, lambda: self.may_fail(f"({e(INT, depth)} {pick('/%')} {e(INT, depth)})")),
                (2, lambda: f"({e(INT, depth)} ** {pick(('2', '0', '3', '63', '64'))})"),
                (2, lambda: f"(-{e(INT, depth)})"),
                (2, lambda: f"len({e(self.any_shape(1), depth)})"),
                (1, lambda: f"{e(list_of(INT), depth)}.sum()"),
                (1, lambda: f"{e(list_of(ANY), depth)}.count"),
                (1, lambda: f"{e(STRING, depth)}.index_of({e(STRING, depth)})"),
                (1, lambda: f"to_int({e(FLOAT, depth)})"),
                (2, lambda: self._reduced(INT, depth)),
                (1, lambda: f"max({e(INT, depth)}, {e(INT, depth)})"),
            )
        )()

    def _float(self, shape: Shape, depth: int) -> str:
        e, pick = self.expression, self.choices.pick
        return self.choices.weighted(
            (
                (8, lambda: f"({e(FLOAT, depth)} {pick('+-*/')} {e(FLOAT, depth)})"),
                (8, lambda: f"({e(INT, depth)} {pick('+-*/')} {e(FLOAT, depth)})"),
                (
                    4,
                    lambda: (
                        f"({e(INT, depth)} {pick('+-*')} {e(INT, depth)} {pick('+-*')} {e(FLOAT, depth)})"
                    ),
                ),
                (5, lambda: f"({e(FLOAT, depth)} {pick('+-*/')} {e(INT, depth)})"),
                (2, lambda: f"({e(FLOAT, depth)} % 3)"),
                (2, lambda: f"(-{e(FLOAT, depth)})"),
                (1, lambda: f"({e(INT, depth)} ** {pick(('(-1)', '0.5'))})"),
                (1, lambda: f"to_float({e(INT, depth)})"),
                (1, lambda: self._reduced(FLOAT, depth)),
            )
        )()

    def _bool(self, shape: Shape, depth: int) -> str:
        e, pick = self.expression, self.choices.pick
        number = pick((INT, FLOAT))
        other = self.any_shape(1)
        return self.choices.weighted(
            (
                (8, lambda: f"({e(INT, depth)} {pick(_COMPARISONS)} {e(number, depth)})"),
                (4, lambda: f"({e(other, depth)} {pick(_COMPARISONS)} {e(other, depth)})"),
                (2, lambda: f"({e(ANY, depth)} {pick(_COMPARISONS)} {e(ANY, depth)})"),
                (5, lambda: f"({e(BOOL, depth)} {pick(('&&', '||'))} {e(BOOL, depth)})"),
                (2, lambda: f"({e(ANY, depth)} {pick(('&&', '||'))} {e(ANY, depth)})"),
                (3, lambda: f"(!{e(ANY, depth)})"),
                (2, lambda: f"({e(INT, depth)} {pick(('in', 'not in'))} {e(list_of(INT), depth)})"),
                (1, lambda: f"({e(STRING, depth)} in {e(pick((STRING, ANY)), depth)})"),
                (1, lambda: f"({e(INT, depth)} in (0 to {self.count_literal()}))"),
                (2, lambda: f"{e(list_of(INT), depth)}.{pick(('any', 'all'))}({self.lambda_of(BOOL, INT)})"),
                (1, lambda: f"{e(list_of(ANY), depth)}.empty"),
            )
        )()

    def _string(self, shape: Shape, depth: int) -> str:
        e, pick = self.expression, self.choices.pick
        other = pick((INT, FLOAT, BOOL))
        return self.choices.weighted(
            (
                (8, lambda: self.interpolated(depth)),
                (6, lambda: f"({e(STRING, depth)} + {self.literal(STRING)})"),
                (3, lambda: f'({self.literal(STRING)} + "${{{e(other, min(depth, 1))}}}")'),
                (2, lambda: f"({self.literal(STRING)} * {self.count_literal()})"),
                (1, lambda: f"({self.count_literal()} * {self.literal(STRING)})"),
                (2, lambda: f"{e(STRING, depth)}.{pick(('upper', 'reverse', 'trim'))}()"),
                (1, lambda: f"uppercase({e(STRING, depth)})"),
                (2, lambda: f"{e(STRING, depth)}[{self.bounds(depth)}]"),
                (1, lambda: f'{e(list_of(self.scalar()), depth)}.join("-")'),
                (2, lambda: f"type_of({e(self.any_shape(1), depth)})"),
                (2, lambda: f"to_string({e(other, depth)})"),
            )
        )()

    def interpolated(self, depth: int) -> str:
        """A string with holes. Only one of them holds a string: two would double it in a loop."""
        holes = [self.expression(self.choices.pick((INT, BOOL, FLOAT)), depth)]
        if self.choices.chance(50):
            holes.append(self.expression(self.any_shape(1), min(depth, 1)))
        return '"' + " ".join(f"${{{hole}}}" for hole in holes) + self.choices.pick(("", ".", " a")) + '"'

    def bounds(self, depth: int) -> str:
        """What stands between the brackets of a slice."""
        one = self.choices.pick(("", "0", "1", "-1"))
        two = self.choices.pick(("", "2", "-1", "1")) if depth <= 0 else self.expression(INT, 0)
        return f"{one}:{two}"

    def _list(self, shape: Shape, depth: int) -> str:
        assert shape.item
        e, pick, item = self.expression, self.choices.pick, shape.item
        source = self.any_shape(1)
        return self.choices.weighted(
            (
                (8, lambda: "[" + ", ".join(e(item, depth) for _ in range(self.choices.below(4))) + "]"),
                (4, lambda: f"[{e(item, depth)}, ...{e(shape, depth)}]"),
                (2, lambda: f"[...{e(shape, depth)}, {e(item, depth)}]"),
                (4, lambda: f"({e(shape, depth)} + [{e(item, depth)}])"),
                (4, lambda: f"{e(shape, depth)}.push({e(item, depth)})"),
                (5, lambda: f"{e(list_of(source), depth)}.map({self.lambda_of(item, source)})"),
                (3, lambda: f"{e(shape, depth)}.filter({self.lambda_of(BOOL, item)})"),
                (2, lambda: f"{e(shape, depth)}[{self.bounds(depth)}]"),
                (1, lambda: f"{e(shape, depth)}.{pick(('reverse', 'sort', 'unique', 'pop'))}()"),
                (2, lambda: f"(0 to {self.count_literal(3)}).map({self.lambda_of(item, INT)}).to_list()"),
                (1, lambda: f"iter({e(shape, depth)}).take({self.count_literal(3)}).to_list()"),
                (1, lambda: f"{e(list_of(source), depth)}.flat_map({self.lambda_of(shape, source)})"),
            )
        )()

    def _reduced(self, shape: Shape, depth: int) -> str:
        item = self.scalar()
        start = self.expression(shape, 0)
        return (
            f"{self.expression(list_of(item), depth)}.reduce({start}, {self.lambda_of(shape, shape, item)})"
        )

    def _dict(self, shape: Shape, depth: int) -> str:
        e = self.expression
        key, inner = self.choices.pick(shape.fields)
        return self.choices.weighted(
            (
                (8, lambda: "{" + self._entries(shape, depth) + "}"),
                (3, lambda: f"({e(shape, depth)} + {{{key}: {e(inner, depth)}}})"),
                (3, lambda: f"{{...{e(shape, depth)}, {key}: {e(inner, depth)}}}"),
                (2, lambda: f'{{["{key[:1]}" + "{key[1:]}"]: {e(inner, depth)}, ...{e(shape, depth)}}}'),
                (2, lambda: f"{e(shape, depth)}.merge({{{key}: {e(inner, depth)}}})"),
            )
        )()

    def _struct(self, shape: Shape, depth: int) -> str:
        if self.choices.chance(20):
            return f"{shape.name}({{{self._entries(shape, depth)}}})"
        return f"{shape.name} {{{self._entries(shape, depth)}}}"

    def _entries(self, shape: Shape, depth: int) -> str:
        """Entries in any order, as struct literals need an identifier first."""
        fields = list(shape.fields)
        if self.choices.chance(30):
            fields.reverse()
        return ", ".join(f"{name}: {self.expression(inner, depth)}" for name, inner in fields)

    def _fn(self, shape: Shape, depth: int) -> str:
        assert shape.item
        return self.lambda_of(shape.item, *(inner for _, inner in shape.fields), times=1)

    def _enum(self, shape: Shape, depth: int) -> str:
        return f"Color.Green({self.expression(self.any_shape(1), depth)})"

    def _any(self, shape: Shape, depth: int) -> str:
        e, pick = self.expression, self.choices.pick
        inner = self.any_shape(1)
        dicts = self.holding("dict")
        return self.choices.weighted(
            (
                (6, lambda: e(inner, depth)),
                (2, lambda: f"{e(list_of(inner), depth)}[{e(INT, depth)}]"),
                (2, lambda: f"{e(list_of(inner), depth)}.{pick(('first', 'last', 'enumerate()', 'count'))}"),
                (2, lambda: f"{pick(dicts).name if dicts else e(ANY, depth)}?.{self.tag()}"),
                (1, lambda: f"{e(ANY, depth)}?[{e(INT, depth)}]" if dicts else "nil"),
                (2, lambda: f"{pick(('Ok', 'Err'))}({e(inner, depth)})"),
                (1, lambda: f"pair({e(inner, depth)}, {e(ANY, depth)})"),
                (1, lambda: f"set({e(INT, depth)}, {e(ANY, depth)})"),
                (1, lambda: f"({e(INT, depth)} to {e(INT, depth)})"),
                (1, lambda: f"(try {{ {e(inner, depth)} }})"),
                (1, lambda: pick(("nil", "5s", "len", "uppercase", "[]", "{}"))),
            )
        )()

    def may_fail(self, text: str) -> str:
        self.risky = True
        return text
