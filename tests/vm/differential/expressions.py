"""Expressions of any kind: side effects, branches, blocks as values, calls, errors that become values."""

from __future__ import annotations

from tests.vm.differential.operators import Operators
from tests.vm.differential.scopes import NAMES, Makers
from tests.vm.differential.shapes import ANY, BOOL, INT, MANY, SMALL, STRING, Shape, Variable, list_of, paths

#: Percentage of expressions that are not what they are meant to be.
_MISTAKES = 1
#: How deep expressions are in the outermost block; inside others they are simpler.
_DEEPEST = 4


class Expressions(Operators):
    def expression(self, shape: Shape, depth: int = 3) -> str:
        depth = min(depth, _DEEPEST - self.nesting // 2)
        if depth <= 0 or shape in (SMALL, MANY):
            return self.operand(shape)
        how = self.choices.weighted(
            (
                (30, self.operand),
                (38, lambda shape: self.combined(shape, depth)),
                (10, lambda shape: self.said(shape, depth - 1)),
                (21, lambda shape: self.wrapped(shape, depth - 1)),
                (_MISTAKES, lambda shape: self.mistake(depth - 1)),
            )
        )
        return how(shape)

    def said(self, shape: Shape, depth: int) -> str:
        """An expression that prints its value: what is evaluated when shows in the output."""
        text = self.expression(shape, depth)
        return f"say({text})" if self.can_say else text

    def wrapped(self, shape: Shape, depth: int) -> str:
        """A construct whose value may be of any kind."""
        e = self.expression
        makers = [
            (8, lambda: f"({e(BOOL, depth)} ? ({e(shape, depth)}) : ({e(shape, depth)}))"),
            (8, lambda: self.if_expression(shape, depth)),
            (8, lambda: self.call_of(shape, depth)),
            (6, lambda: self.match_expression(shape, depth)),
            (8, lambda: self.try_expression(shape, depth)),
            (4, lambda: self.piped(shape, depth)),
            (4, lambda: f"({self.maybe_nil(shape, depth)} ?? {e(shape, depth)})"),
            (2, lambda: f"[{e(ANY, depth)}, {e(shape, depth)}][1]"),
            (2, lambda: f"{{k: {e(shape, depth)}, m: {e(ANY, depth)}}}.k"),
            (2, lambda: f"unwrap(Ok({e(shape, depth)}))"),
            (2, lambda: f"unwrap_or(try {{ {e(shape, depth)} }}, {e(shape, depth)})"),
            (2, lambda: f"(deadline 1h {self.block(shape, depth)})"),
            (2, lambda: self.awaited(shape, depth)),
        ]
        makers += self.more_makers(shape, depth)
        if self.in_declared_function:
            makers.append((3, lambda: f"(try* {e(shape, depth)})"))
        if self.in_function:
            makers.append((2, lambda: self.propagated(shape, depth)))
        return self.choices.weighted(makers)()

    def more_makers(self, shape: Shape, depth: int) -> Makers:
        """Further constructs that may have that value, each with its weight."""
        raise NotImplementedError

    def mistake(self, depth: int) -> str:
        """Something that fails, or that at least nobody expects there."""
        self.risky = True
        e = self.expression
        return self.choices.weighted(
            (
                (6, lambda: e(self.any_shape(2), depth)),
                (2, lambda: "nil"),
                (2, lambda: self.choices.pick(NAMES)),
                (2, lambda: f"(nil.{self.tag()})"),
                (2, lambda: f'({e(INT, depth)} + "a")'),
                (2, lambda: f"({e(list_of(INT), depth)} - {e(INT, depth)})"),
                (2, lambda: f"({e(INT, depth)} / 0)"),
                (1, lambda: f"({e(STRING, depth)} - nil)"),
                (1, lambda: f"(-{e(STRING, depth)})"),
                (1, lambda: f"{e(INT, depth)}[{e(INT, depth)}]"),
                (1, lambda: f"{e(list_of(INT), depth)}.flip({e(INT, depth)})"),
                (1, lambda: f"unwrap(Err({e(ANY, depth)}))"),
                (1, lambda: f"({e(ANY, depth)} |> {e(INT, depth)})"),
                (1, lambda: f"[...{e(INT, depth)}, {e(ANY, depth)}]"),
                (1, lambda: f"(match {e(INT, depth)} {{ 99 -> {{ {e(ANY, depth)} }} }})"),
                (1, lambda: f"(range(3)[{e(INT, depth)}])"),
            )
        )()

    # --- branches and blocks --------------------------------------------------------------------------

    def block(self, shape: Shape, depth: int) -> str:
        """A block with that value."""
        with self.scope():
            before = self.statements(self.choices.below(2)) if depth > 0 else ""
            value = self.expression(shape, depth)
            return f"{{\n{before}{value}\n}}" if before else f"{{ {value} }}"

    def statements(self, count: int) -> str:
        """That many statements, or as many as may still be written; a line each."""
        raise NotImplementedError

    def if_expression(self, shape: Shape, depth: int) -> str:
        middle = ""
        if self.choices.chance(25):
            middle = f"else if {self.expression(BOOL, depth)} {self.block(shape, depth)} "
        condition = self.expression(BOOL, depth)
        return f"(if {condition} {self.block(shape, depth)} {middle}else {self.block(shape, depth)})"

    def try_expression(self, shape: Shape, depth: int) -> str:
        body = self.block(shape, depth) if self.choices.chance(70) else self.throwing_block(depth)
        with self.scope():
            self.declare("err", ANY)
            name = self.choices.pick((" (err) ", " ", " err "))
            handler = f" catch{name}{self.block(shape, depth)}"
        if self.choices.chance(35):
            with self.loop(1, is_loop=False):
                return f"(try {body}{handler} finally {self.block(self.scalar(), depth)})"
        return f"(try {body}{handler})"

    def throwing_block(self, depth: int) -> str:
        with self.scope():
            before = self.statements(1) if depth > 0 else ""
            return f"{{\n{before}throw {self.expression(self.any_shape(1), depth)}\n}}"

    def match_expression(self, shape: Shape, depth: int) -> str:
        subject = self.any_shape(1)
        text = f"(match {self.expression(subject, depth)} {{\n"
        for _ in range(self.choices.below(3)):
            with self.scope():
                text += f"{self.match_pattern(subject)}{self.guard(depth)} -> {self.block(shape, depth)}\n"
        return f"{text}_ -> {self.block(shape, depth)}\n}})"

    def guard(self, depth: int) -> str:
        return f" if {self.expression(BOOL, min(depth, 1))}" if self.choices.chance(25) else ""

    def match_pattern(self, shape: Shape) -> str:
        """A pattern for such a value; what it binds is declared."""
        if self.choices.chance(25):
            return self._bound(shape)
        literal = self.literal
        match shape.kind:
            case "dict":
                entries = [
                    f"{key}: {self._bound(inner) if self.choices.chance(60) else literal(inner)}"
                    for key, inner in shape.fields
                ]
                return "{" + ", ".join(entries[: 1 + self.choices.below(2)]) + "}"
            case "list":
                assert shape.item
                item = shape.item
                parts = [self._bound(item) if self.choices.chance(70) else literal(item)]
                return "[" + ", ".join(parts + ["_"] * self.choices.below(2)) + "]"
            case "any":
                payload = self._bound(ANY)
                return self.choices.pick((f"Result.Ok({payload})", f"Result.Err({payload})"))
            case "enum":
                return self.choices.pick((f"Color.Green({self._bound(ANY)})", "Color.Red"))
            case "int" | "string" | "float" | "bool":
                return " | ".join(literal(shape) for _ in range(1 + self.choices.below(2)))
        return "nil"

    def _bound(self, shape: Shape) -> str:
        name = self.fresh()
        self.declare(name, shape)
        return name

    # --- values that pass through others ----------------------------------------------------------------

    def piped(self, shape: Shape, depth: int) -> str:
        inner = self.any_shape(1)
        value = self.expression(inner, depth)
        match self.choices.below(3):
            case 0:
                return f"({value} |> {self.lambda_of(shape, inner, times=1)})"
            case 1:
                return f"({value} |> [{self.expression(shape, depth)}, _][0])"
        return f"({self.expression(shape, depth)} |> {'say' if self.can_say else '[_][0]'})"

    def maybe_nil(self, shape: Shape, depth: int) -> str:
        dicts = [variable for variable in self.visible() if variable.shape.kind in ("dict", "list")]
        if dicts and self.choices.chance(40):
            name = self.choices.pick(dicts).name
            return f"{name}?[{self.choices.pick((4, -4))}]"
        if self.choices.chance(50):
            return "nil"
        return f"({self.expression(BOOL, depth)} ? ({self.expression(shape, depth)}) : nil)"

    def awaited(self, shape: Shape, depth: int) -> str:
        """The value of a task that is waited for at once."""
        return f"await({self.spawned(shape, depth)})"

    def spawned(self, shape: Shape, depth: int) -> str:
        """A new task with that value."""
        with self.function("task", shape) as task:
            body = self.block(shape, depth)
        self.spend(task.cost + 1)
        return f"spawn {body}"

    def propagated(self, shape: Shape, depth: int) -> str:
        """`?`, which seldom leaves the function."""
        if self.body.bound or self.choices.chance(85):
            return f"(Ok({self.expression(shape, depth)})?)"
        failed = f"Err({self.expression(self.scalar(), depth)})"
        return f"(({self.expression(BOOL, depth)} ? (Ok({self.expression(shape, depth)})) : ({failed}))?)"

    # --- calls ------------------------------------------------------------------------------------------

    def call_of(self, shape: Shape, depth: int) -> str:
        """A call whose result has that shape, of a function that is in scope or of a new closure."""
        found = [
            variable
            for variable in self.holding("fn")
            if variable.shape.item == shape and self.affordable(variable.cost)
        ]
        if found and self.choices.chance(80):
            return self.call(self.choices.pick(found[-12:]), depth)
        if held := self.held_functions(shape):
            return self.held_call(*self.choices.pick(held), depth)
        argument = self.any_shape(1)
        return f"({self.expression(argument, depth)} |> {self.lambda_of(shape, argument, times=1)})"

    def held_functions(self, result: Shape) -> list[tuple[str, Shape]]:
        """The closures inside lists and dicts that have such a result."""
        return [
            (text, shape)
            for variable in self.visible()
            if variable.shape.kind in ("list", "dict")
            for text, shape in paths(variable.name, variable.shape)
            if shape.kind == "fn" and shape.item == result
        ]

    def held_call(self, text: str, shape: Shape, depth: int) -> str:
        """A call of a closure that is no variable: by a pipe, or as a method of its dict."""
        self.spend(6)
        [argument] = [self.expression(inner, depth) for _, inner in shape.fields]
        if text.endswith("]") or self.choices.chance(40):
            return f"({argument} |> {text})"
        return f"{text}({argument})"

    def call(self, variable: Variable, depth: int) -> str:
        self.spend(variable.cost)
        return f"{variable.name}({self.arguments(variable, depth)})"

    def arguments(self, variable: Variable, depth: int) -> str:
        """Arguments for a function: sometimes too many, too few where it has defaults, or spread."""
        given = [self.expression(inner, depth) for _, inner in variable.shape.fields]
        if variable.optional and self.choices.chance(50):
            del given[-1 - self.choices.below(variable.optional) :]
        if self.choices.chance(5):
            given.append(self.expression(self.any_shape(1), depth))
        if given and self.choices.chance(10):
            at = self.choices.below(len(given))
            given[at:] = ["...[" + ", ".join(given[at:]) + "]"]
        return ", ".join(given)

    def lambda_of(self, result: Shape, *params: Shape, times: int = 3) -> str:
        """A closure whose parameters have those shapes."""
        names = []
        with self.function("closure", result) as body:
            for inner in params:
                names.append(self.fresh())
                self.declare(names[-1], inner)
            if self.left > 0 and self.choices.chance(20):
                text = self.statements(1 + self.choices.below(2)) + self.expression(result, 1)
                text = f"{{ {', '.join(names)} ->\n{text}\n}}"
            else:
                text = f"{{ {', '.join(names)} -> {self.expression(result, 2)} }}"
        self.spend((body.cost + 1) * times)
        return text
