"""Statements: what a block is made of."""

from __future__ import annotations

from tests.vm.differential.assignments import Assignments
from tests.vm.differential.scopes import Makers, Sources
from tests.vm.differential.shapes import ANY, BOOL, INT, SCALARS, STRING, Shape, list_of

#: Statements that a statement of the outermost block may have inside.
SECTION = 4


class Statements(Assignments):
    def statements(self, count: int) -> str:
        text = ""
        for _ in range(count):
            text += (self.statement() if self.left > 0 else self.small_statement()) + "\n"
            if self.left <= 0:
                break
        return text

    def sections(self, count: int) -> str:
        """Statements that can each have others inside, in the outermost block of a program."""
        text = "".join(self.declaration() + "\n" for _ in range(1 + self.choices.below(4)))
        for _ in range(count):
            self.left = SECTION
            text += self.statement() + "\n"
        return text

    def small_statement(self) -> str:
        """One without others inside."""
        found = [v for v in self.assignable() if v.shape in SCALARS]
        if not found or self.choices.chance(40):
            return f"println({self.expression(self.any_shape(1), 1)})"
        variable = self.choices.pick(found)
        return f"{variable.name} = {self.expression(variable.shape, 1)}"

    def statement(self) -> str:
        self.left -= 1
        self.spend(1)
        outer, self.risky = self.risky, False
        known = set(self.scopes[-1])
        text = self.choices.weighted(self.kinds())()
        declares = known != set(self.scopes[-1])
        if self.risky and not declares and self.choices.chance(85):
            text = f"try {{\n{text}\n}} catch (err) {{\nprintln(err)\n}}"
            self.risky = False
        self.risky = self.risky or outer
        return text

    def kinds(self) -> Makers:
        """The kinds of statement that may stand here, each with its weight."""
        kinds = [
            (22, self.declaration),
            (26, self.assignment),
            (12, self.show),
            (9, self.if_statement),
            (11, self.for_statement),
            (5, self.while_statement),
            (4, self.match_statement),
            (7, self.try_statement),
            (4, self.call_statement),
            (3, self.closure_declaration),
            (3, self.retry_statement),
            (2, self.check),
            *self.more_kinds(),
        ]
        if self.body.loops:
            kinds.append((8, self.leave_loop))
        if self.in_function:
            kinds.append((4, self.defer))
            if not self.body.bound:
                kinds.append((4, self.leave_function))
        if self.body.kind == "generator":
            kinds.append((30, lambda: f"yield {self.guarded(INT, 2)}"))
        if self.body.kind == "stream":
            kinds.append((30, lambda: f"emit {self.guarded(INT, 2)}"))
        return kinds

    def more_kinds(self) -> Makers:
        raise NotImplementedError

    # --- simple -----------------------------------------------------------------------------------------

    def show(self) -> str:
        """Print variables; often all of them, so that a change which nobody made is seen."""
        names = [v.name for v in self.visible() if v.shape.kind != "fn"]
        if self.choices.chance(50) or not names:
            return f"println({self.expression(self.any_shape(), 2)})"
        return f"println([{', '.join(names[-12:])}])"

    def call_statement(self) -> str:
        found = [v for v in self.holding("fn") if self.affordable(v.cost)]
        if not found:
            return self.show()
        return f"println({self.call(self.choices.pick(found), 2)})"

    def closure_declaration(self) -> str:
        """A closure in a variable: what it captures is what its variables hold now."""
        result = self.any_shape(1)
        params = [self.any_shape(1) for _ in range(self.choices.below(3))]
        before = self.body.cost
        text = self.lambda_of(result, *params, times=1)
        cost = (self.body.cost - before) // self.body.turns
        name = self.numbered("g")
        shape = Shape("fn", result, tuple((f"p{i}", inner) for i, inner in enumerate(params)))
        self.declare(name, shape, self.choices.chance(20), cost=cost)
        return f"var {name} = {text}"

    def check(self) -> str:
        """`guard` and `require`, which seldom fail."""
        condition = f"({self.expression(BOOL, 1)} || true)"
        if self.choices.chance(50):
            return f"guard {condition} else {self.inner_block(1)}"
        if self.choices.chance(30):
            self.risky, condition = True, self.expression(BOOL, 1)
        return f"require {condition}, {self.expression(self.scalar(), 1)}"

    def leave_loop(self) -> str:
        word = self.choices.pick(("continue", "break"))
        return f"if {self.expression(BOOL, 2)} {{ {word} }}"

    def leave_function(self) -> str:
        """`return` of something, or an error, under a condition."""
        condition = self.expression(BOOL, 1)
        value = self.expression(self.body.result or self.any_shape(1), 2)
        if self.body.kind in ("generator", "stream") or self.choices.chance(20):
            return f"if {condition} {{ return }}"
        if self.choices.chance(25):
            self.risky = True
            return f"if {condition} {{ throw {value} }}"
        return f"if {condition} {{ return {value} }}"

    def defer(self) -> str:
        with self.loop(1, is_loop=False), self.scope():
            loops, self.body.loops = self.body.loops, 0
            bound, self.body.bound = self.body.bound, True
            text = f'defer {{\nprintln("deferred")\n{self.statements(self.choices.below(3))}}}'
            self.body.loops, self.body.bound = loops, bound
        return text

    # --- blocks -----------------------------------------------------------------------------------------

    def inner_block(self, most: int = 3) -> str:
        """A block for its effects."""
        with self.scope():
            return "{\n" + self.statements(1 + self.choices.below(most)) + "}"

    def if_statement(self) -> str:
        text = f"if {self.expression(BOOL, 2)} {self.inner_block()}"
        if self.choices.chance(25):
            text += f" else if {self.expression(BOOL, 1)} {self.inner_block(2)}"
        if self.choices.chance(45):
            text += f" else {self.inner_block()}"
        return text

    def match_statement(self) -> str:
        subject = self.any_shape(1)
        text = f"match {self.expression(subject, 2)} {{\n"
        for _ in range(1 + self.choices.below(2)):
            with self.scope():
                text += f"{self.match_pattern(subject)}{self.guard(1)} -> {self.inner_block(2)}\n"
        return f"{text}_ -> {self.inner_block(1)}\n}}"

    def try_statement(self) -> str:
        body = self.inner_block() if self.choices.chance(50) else self.throwing_block(2)
        text, self.risky = f"try {body}", False
        finally_ = self.choices.chance(40)
        if self.choices.chance(80) or not finally_:
            with self.scope():
                self.declare("err", ANY)
                show = "println(err)\n" if self.choices.chance(60) else ""
                text += f" catch (err) {{\n{show}{self.statements(1)}}}"
        else:
            self.risky = True
        return f"{text} finally {self.inner_block(2)}" if finally_ else text

    def retry_statement(self) -> str:
        """Attempts of which the last succeeds, mostly."""
        turns = self.turns(3)
        if turns < 2:
            return self.show()
        attempt = self.numbered("t")
        self.risky = self.choices.chance(15)
        fails = f"if {attempt} < {turns + self.risky} {{ throw {self.expression(self.scalar(), 1)} }}"
        with self.loop(turns, is_loop=False), self.scope():
            self.declare(attempt, INT)
            before, after = self.statements(self.choices.below(3)), self.statements(self.choices.below(2))
        return f"var {attempt} = 0\nretry {turns} {{\n{attempt} = {attempt} + 1\n{before}{fails}\n{after}}}"

    # --- loops ------------------------------------------------------------------------------------------

    def while_statement(self) -> str:
        turns = self.turns(2 + self.choices.below(3))
        if turns < 2:
            return self.show()
        counter = self.numbered("i")
        extra = f" && {self.expression(BOOL, 2)}" if self.choices.chance(25) else ""
        with self.loop(turns), self.scope():
            self.declare(counter, INT)
            body = self.statements(1 + self.choices.below(4))
        return f"var {counter} = 0\nwhile {counter} < {turns}{extra} {{\n{counter} = {counter} + 1\n{body}}}"

    def for_statement(self) -> str:
        turns = self.turns(4)
        if turns < 2:
            return self.show()
        with self.scope():
            source, pattern = self.source(turns)
            with self.loop(turns):
                body = self.statements(1 + self.choices.below(4))
        return f"for {pattern} in {source} {{\n{body}}}"

    def source(self, turns: int) -> tuple[str, str]:
        """What a loop goes over, and the pattern for its items, whose names are declared."""
        e = self.expression
        item = self.any_shape(1)
        return self.choices.weighted(
            (
                (5, lambda: (f"(0 to {turns} exclusive)", self._loop_name(INT))),
                (3, lambda: (f"range({turns})", self._loop_name(INT))),
                (2, lambda: (f"(({e(INT, 1)} % 3) to ({e(INT, 1)} % 3))", self._loop_name(INT))),
                (8, lambda: (self._short(e(list_of(item), 2), turns), self._loop_name(item))),
                (3, lambda: (self._mixed(), self._loop_name(ANY))),
                (3, lambda: self._pattern_source(turns)),
                (2, lambda: (f"iter({self._some_dict()})", self._pair())),
                (2, lambda: (self._some_dict(), self._dict_entry())),
                (1, lambda: (self.choices.pick(('"abc"', "nil", "5")), self._loop_name(ANY))),
                *self.more_sources(turns),
            )
        )()

    def more_sources(self, turns: int) -> Sources:
        raise NotImplementedError

    def _short(self, text: str, turns: int) -> str:
        """A list of so many items at most; variables may have grown, but outside of loops not much."""
        if text.isidentifier() and self.body.turns == 1 and not self.in_function:
            return text
        return text if text.startswith("[") and len(text) < 60 else f"{text}[:{turns}]"

    def _mixed(self) -> str:
        """Items of many kinds."""
        return "[" + ", ".join(self.expression(self.any_shape(2), 1) for _ in range(3)) + "]"

    def _loop_name(self, shape: Shape) -> str:
        name = self.fresh()
        self.declare(name, shape, mutable=True)
        return name

    def _pattern_source(self, turns: int) -> tuple[str, str]:
        inner = self.any_shape(1)
        if inner.kind not in ("list", "dict"):
            inner = list_of(inner)
        source = self._short(self.expression(list_of(inner), 2), turns)
        return source, self.pattern(inner, mutable=True)

    def _pair(self) -> str:
        one, two = self._loop_name(ANY), self._loop_name(ANY)
        return f"({one}, {two})"

    def _dict_entry(self) -> str:
        if self.choices.chance(50):
            return self._loop_name(ANY)
        self.declare("key", STRING, mutable=True)
        return f"{{key, value: {self._loop_name(ANY)}}}"

    def _some_dict(self) -> str:
        found = self.holding("dict")
        return self.choices.pick(found).name if found else "{k: 1, a: [2], m: nil}"
