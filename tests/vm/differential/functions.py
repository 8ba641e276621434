"""Declarations of functions: with defaults and rest, recursive, generators, methods."""

from __future__ import annotations

from tests.vm.differential.scopes import Makers, Sources
from tests.vm.differential.shapes import ANY, INT, MANY, SMALL, STRING, Shape, list_of
from tests.vm.differential.statements import Statements

_ANNOTATIONS = {
    "int": "int",
    "float": "float",
    "string": "string",
    "bool": "bool",
    "list": "list",
    "dict": "dict",
}
#: How deep a recursion may go, and how often a tail call may be repeated.
_DEEP, _LONG = 5, 700


class Functions(Statements):
    def more_kinds(self) -> Makers:
        return [
            (3, self.function_declaration),
            (1, self.overflow),
            (2, self.take_next),
            *([(3, self.method_statement)] if self.holding("struct") else []),
        ]

    def more_makers(self, shape: Shape, depth: int) -> Makers:
        makers: Makers = []
        if self.affordable(20):
            makers.append((2, lambda: self.from_generator(shape, depth)))
        if any(method.shape.item == shape for method in self.methods) and self.holding("struct"):
            makers.append((8, lambda: self.method_call(shape, depth)))
        return makers

    def function_declaration(self) -> str:
        """A function, and mostly a call of it."""
        text = self.new_function()
        made = list(self.scopes[-1].values())[-1]
        if made.shape.kind not in ("fn", "gen") or not self.affordable(made.cost) or self.choices.chance(40):
            return text
        call = self.call(made, 2)
        return f"{text}\nprintln({call if made.shape.kind == 'fn' else f'iter({call}).to_list()'})"

    def new_function(self) -> str:
        return self.choices.weighted(
            (
                (10, self.plain_function),
                (4, self.recursive_function),
                (1, self.tail_loop),
                (2, self.mutual_recursion),
                (3, lambda: self.generator_function("generator")),
                (2, lambda: self.generator_function("stream")),
            )
        )()

    # --- functions --------------------------------------------------------------------------------------

    def plain_function(self, result: Shape | None = None) -> str:
        name, result = self.numbered("f"), result or self.any_shape(1)
        with self.function("fn", result) as body:
            header, params, optional = self.parameters()
            text = self.statements(1 + self.choices.below(5))
            text += self.ending(result)
        shape = Shape("fn", result, params)
        self.declare(name, shape, cost=body.cost + 1, optional=optional)
        return f"fn {name}({header}) {{\n{text}}}"

    def ending(self, result: Shape) -> str:
        """The last statement of a function: the many ways to return a value."""
        e = self.expression
        return self.choices.weighted(
            (
                (12, lambda: f"return {e(result, 3)}\n"),
                (3, lambda: f"return {self.call_of(result, 2)}\n"),
                (2, lambda: f"return {e(result, 2)} |> say\n" if self.can_say else f"return {e(result)}\n"),
                (2, lambda: f"return try {self.block(result, 2)} finally {self.inner_block(1)}\n"),
                (2, lambda: f"if {e(INT, 1)} {{ return {e(result, 2)} }} else {{ return {e(result, 2)} }}\n"),
                (2, lambda: f"try {{ return {e(result, 2)} }} finally {self.inner_block(2)}\n"),
                (1, lambda: f"try {self.throwing_block(1)} catch (err) {{ return {e(result, 2)} }}\n"),
            )
        )()

    def parameters(self) -> tuple[str, tuple[tuple[str, Shape], ...], int]:
        """The text of a parameter list, whose names are declared; what they are; how many may be left out."""
        texts: list[str] = []
        params: list[tuple[str, Shape]] = []
        defaults = self.choices.below(5) == 4
        for _ in range(self.choices.below(4)):
            shape, name = self.any_shape(1), self.fresh()
            annotation = _ANNOTATIONS.get(shape.kind) if self.choices.chance(25) else None
            text = f"{name}: {annotation}" if annotation else name
            if defaults and params:
                text += f" = {self.expression(shape, 1)}"
            self.declare(name, shape)
            texts.append(text)
            params.append((name, shape))
        optional = len(params) - 1 if defaults and params else 0
        if self.choices.chance(10):
            name = self.fresh()
            self.declare(name, list_of(ANY))
            texts.append(f"...{name}")
        return ", ".join(texts), tuple(params), optional

    def recursive_function(self) -> str:
        """A function that calls itself a few times, in a tail call or not."""
        name, count, result, inner = (
            self.numbered("f"),
            self.numbered("n"),
            self.any_shape(1),
            self.any_shape(1),
        )
        with self.function("fn", result) as body:
            self.declare(count, INT)
            p = self.fresh()
            self.declare(p, inner)
            base = self.expression(result, 2)
            before = self.statements(1 + self.choices.below(3))
            again = f"{name}({count} - 1, {self.expression(inner, 2)})"
            if self.choices.chance(60):
                last = self.choices.pick((f"return {again}", f"return ({count} - 1) |> {name}(_, {p})"))
            else:
                self.declare(v := self.fresh(), result)
                last = f"let {v} = {again}\n{self.statements(1)}{self.ending(result)}"
        self.declare(name, Shape("fn", result, ((count, SMALL), (p, inner))), cost=(body.cost + 1) * _DEEP)
        stop = f"if {count} <= 0 || {count} > {_DEEP} {{ return {base} }}"
        return f"fn {name}({count}, {p}) {{\n{stop}\n{before}{last}\n}}"

    def tail_loop(self) -> str:
        """Hundreds of tail calls, which need no stack."""
        name, count, inner = self.numbered("f"), self.numbered("n"), self.scalar()
        with self.function("fn"):
            self.declare(p := self.fresh(), inner)
            step = f"{p} + 1" if inner is INT else self.choices.pick((p, self.literal(inner)))
        self.declare(name, Shape("fn", inner, ((count, MANY), (p, inner))), cost=_LONG // 4)
        return (
            f"fn {name}({count}, {p}) {{\nif {count} <= 0 || {count} > {_LONG} {{ return {p} }}\n"
            f"return {name}({count} - 1, {step})\n}}"
        )

    def mutual_recursion(self) -> str:
        """Two functions that call each other; the first is declared before the second."""
        one, two, count, result = (
            self.numbered("f"),
            self.numbered("f"),
            self.numbered("n"),
            self.any_shape(1),
        )
        texts, cost = [], 1
        for name, other in ((one, two), (two, one)):
            with self.function("fn", result) as body:
                self.declare(count, INT)
                self.declare(p := self.fresh(), result)
                base, before = self.expression(result, 2), self.statements(1 + self.choices.below(2))
                again = f"return {other}({count} - 1, {self.expression(result, 2)})"
            stop = f"if {count} <= 0 || {count} > {_DEEP} {{ return {base} }}"
            texts.append(f"fn {name}({count}, {p}) {{\n{stop}\n{before}{again}\n}}")
            cost += body.cost * _DEEP
        self.declare(one, Shape("fn", result, ((count, SMALL), ("p", result))), cost=cost)
        return "\n".join(texts)

    def overflow(self) -> str:
        """A recursion without an end."""
        if not self.affordable(300) or self.body.turns > 1:
            return self.show()
        self.spend(300)
        name = self.numbered("f")
        call = self.choices.pick((f"1 + {name}(p + 1)", f"[{name}(p + 1)]", f"try* {name}(p + 1)"))
        return f"fn {name}(p) {{ return {call} }}\nprintln(try {{ {name}(0) }} catch (err) {{ err }})"

    # --- generators -------------------------------------------------------------------------------------

    def generator_function(self, kind: str) -> str:
        name = self.numbered("f")
        with self.function(kind) as body:
            header, params, optional = self.parameters()
            word = "yield" if kind == "generator" else "emit"
            text = f"{word} {self.expression(INT, 2)}\n{self.statements(1 + self.choices.below(4))}"
        self.declare(name, Shape("gen", INT, params), cost=body.cost + 1, optional=optional)
        return f"{'gen ' if kind == 'stream' else ''}fn {name}({header}) {{\n{text}}}"

    def generator(self, depth: int) -> str:
        """A call of a generator function; a list where there is none."""
        found = [v for v in self.holding("gen") if self.affordable(v.cost)]
        return self.call(self.choices.pick(found), depth) if found else "iter([1, 2, 3])"

    def from_generator(self, shape: Shape, depth: int) -> str:
        found = self.generator(depth)
        if shape.kind == "list" and shape.item:
            return f"iter({found}).map({self.lambda_of(shape.item, INT)}).to_list()"
        return f"(iter({found}).map({self.lambda_of(shape, INT)}).first() ?? {self.literal(shape)})"

    def take_next(self) -> str:
        """A generator that is pulled by hand, and then looped over."""
        if not self.holding("gen") or not self.affordable(30):
            return self.show()
        name = self.numbered("g")
        made = f"let {name} = {self.generator(1)}\nprintln({name}.next())"
        self.declare(name, Shape("sequence", INT))
        return made

    def more_sources(self, turns: int) -> Sources:
        sources: Sources = []
        if self.holding("gen"):
            sources.append((6, lambda: (self.generator(1), self._loop_name(INT))))
        started = self.holding("sequence")
        if started:
            sources.append((6, lambda: (self.choices.pick(started).name, self._loop_name(INT))))
        return sources

    # --- methods ----------------------------------------------------------------------------------------

    def method_declaration(self, struct: Shape) -> str:
        """A method of a struct; its text belongs into the `impl` block."""
        name, result = self.numbered("m"), self.any_shape(1)
        with self.function("fn", result) as body:
            self.declare("self", struct)
            header, params, optional = self.parameters()
            text = self.statements(1 + self.choices.below(3)) + self.ending(result)
        receiver = ("self", struct)
        shape = Shape("method", result, (receiver, *params))
        method = self.declare(name, shape, cost=body.cost + 1, optional=optional)
        del self.scopes[-1][name]
        self.methods.append(method)
        return f"fn {name}(self{', ' if header else ''}{header}) {{\n{text}}}"

    def method_call(self, shape: Shape, depth: int) -> str:
        found = [m for m in self.methods if m.shape.item == shape and self.affordable(m.cost)]
        if not found:
            return self.expression(shape, 0)
        method = self.choices.pick(found)
        receiver = method.shape.fields[0][1]
        self.spend(method.cost)
        rest = [self.expression(inner, depth) for _, inner in method.shape.fields[1:]]
        return f"{self.expression(receiver, depth)}.{method.name}({', '.join(rest)})"

    def method_statement(self) -> str:
        if not self.methods:
            return self.show()
        result = self.choices.pick(self.methods).shape.item
        assert result
        return f"println({self.method_call(result or STRING, 2)})"
