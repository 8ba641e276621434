"""Statements of all sorts, well typed where they stand. Spec: 03 §5, §6."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.check.soundness.expressions import Expressions
from tests.check.soundness.kinds import (
    BOOL,
    INT,
    SCALARS,
    STRING,
    DictOf,
    Either,
    Enum,
    Function,
    Kind,
    ListOf,
    Optional,
    Scope,
    Shape,
    Struct,
    Tagged,
    Variable,
    Words,
)

Lines = list[str]
#: What stands between two statements of a block: lines of a statement that has an error, or none.
Slot = Callable[["Statements", Scope], Lines]


def indented(lines: Lines) -> Lines:
    return ["  " + line for line in lines]


class Statements(Expressions):
    """``kinds`` are the types of the program, ``structs`` those of them."""

    def __init__(self, random: Random, slot: Slot | None) -> None:
        super().__init__(random)
        self.slot = slot
        self.structs: list[Struct] = []
        self.kinds: list[Kind] = list(SCALARS)

    def block(self, scope: Scope, depth: int) -> Lines:
        return indented(self.statements(scope, self.random.randint(1, 2), depth))

    def statements(self, scope: Scope, count: int, depth: int) -> Lines:
        lines: Lines = []
        for _ in range(count):
            if self.slot is not None:
                lines += self.slot(self, scope)
            lines += self._statement(scope, depth)
        if self.slot is not None:
            lines += self.slot(self, scope)
        return lines

    def _statement(self, scope: Scope, depth: int) -> Lines:
        choices: list[Callable[[Scope, int], Lines]] = [self._let, self._let, self._print, self._assign]
        if depth > 0:
            choices += [self._if, self._for, self._match, self._narrow, self._try, self._while]
            choices += [self._widened, self._unknown, self._generic, self._take_apart, self._parallel]
            choices += [self._pairs, self._piped, self._guard, self._results, self._deferred]
        return self.random.choice(choices)(scope, depth - 1)

    def _bind(self, scope: Scope, name: str, kind: Kind, *, mutable: bool, annotated: bool) -> None:
        certain = annotated and not scope.file_level
        scope.variables.append(Variable(name, kind, mutable, certain))

    def _let(self, scope: Scope, depth: int) -> Lines:
        kind = self.random.choice(self.kinds)
        annotated = self.random.random() < 0.6
        mutable = annotated and self.random.random() < 0.5
        value = self.into(kind, scope) if annotated else self.of(kind, scope)
        name = self.name()
        self._bind(scope, name, kind, mutable=mutable, annotated=annotated)
        return [f"{'var' if mutable else 'let'} {name}{f': {kind}' if annotated else ''} = {value}"]

    def _print(self, scope: Scope, depth: int) -> Lines:
        kind = self.random.choice([one for one in self.kinds if not isinstance(one, Function)])
        return [f"println({self.of(kind, scope)})"]

    def _assign(self, scope: Scope, depth: int) -> Lines:
        """In a loop nothing grows: what is assigned is no larger than what was there."""
        targets = [one for one in scope.variables if one.mutable]
        if not targets:
            return self._let(scope, depth)
        target = self.random.choice(targets)
        if target.kind == INT and self.random.random() < 0.4:
            return [f"{target.name} {self.random.choice(['+=', '-=', '*='])} {self.random.randint(1, 5)}"]
        size = 0 if scope.loops else 2
        return [f"{target.name} = {self.into(target.kind, scope, size)}"]

    def _if(self, scope: Scope, depth: int) -> Lines:
        lines = [f"if {self.of(BOOL, scope)} {{", *self.block(scope.inner(), depth)]
        if scope.direct and self.random.random() < 0.5:
            assert scope.returns is not None, "a function is around"
            lines.append(f"  return {self.into(scope.returns, scope)}")
        elif self.random.random() < 0.4:
            lines += [f"}} else if {self.of(BOOL, scope)} {{", *self.block(scope.inner(), depth)]
            lines += ["} else {", *self.block(scope.inner(), depth)]
        return [*lines, "}"]

    def _for(self, scope: Scope, depth: int) -> Lines:
        streams = [one for one in self.routines if one.word == "gen" and one.cost * self.times < 20]
        name, item = self.name("i"), self.random.choice(SCALARS)
        if streams and self.random.random() < 0.4:
            stream = self.random.choice(streams)
            item, source = stream.returns, self.call(stream, scope, 1)
        elif self.random.random() < 0.5:
            item, source = INT, "1 to 3"
        else:
            source = f"[{', '.join(self.of(item, scope, 1) for _ in range(2))}]"
        self.times *= 3
        inside = scope.inner(Variable(name, item, certain=False), direct=False, loops=scope.loops + 1)
        lines = [f"for {name} in {source} {{", *self.block(inside, depth), "}"]
        self.times //= 3
        return lines

    def _while(self, scope: Scope, depth: int) -> Lines:
        name = self.name("n")
        self.times *= 2
        inside = scope.inner(Variable(name, INT, certain=False), direct=False, loops=scope.loops + 1)
        lines = [f"var {name} = 0", f"while {name} < 2 {{", f"  {name} += 1"]
        lines += [*self.block(inside, depth), "}"]
        self.times //= 2
        return lines

    def _match(self, scope: Scope, depth: int) -> Lines:
        kind = self.random.choice([one for one in self.kinds if isinstance(one, Enum | Words | Tagged)])
        name = self.name()
        lines = [f"let {name}: {kind} = {self.into(kind, scope)}"]
        self._bind(scope, name, kind, mutable=False, annotated=True)
        inside = scope.inner(direct=False)
        subject, arms = name, []
        match kind:
            case Enum(variants=variants):
                for variant, payload in variants:
                    names = [self.name("x") for _ in payload]
                    pairs = zip(names, payload, strict=True)
                    bound = [Variable(one, each, certain=False) for one, each in pairs]
                    pattern = f"{kind.name}.{variant}" + (f"({', '.join(names)})" if names else "")
                    arms.append((pattern, inside.inner(*bound)))
            case Words(words=words):
                arms = [(f'"{word}"', inside.inner()) for word in words]
            case Tagged(variants=variants):
                subject = f"{name}.kind"
                for tag, field, each in variants:
                    narrowed = inside.narrowed(name, Shape((("kind", STRING), (field, each))))
                    arms.append((f'"{tag}"', narrowed))
        lines.append(f"match {subject} {{")
        for pattern, arm in arms:
            lines += [f"  {pattern} -> {{", *indented(self.block(arm, depth)), "  }"]
        return [*lines, "}"]

    def _narrow(self, scope: Scope, depth: int) -> Lines:
        """A union of which only one member is left in a block."""
        return self.random.choice([self._not_nil, self._either])(scope, depth)

    def _not_nil(self, scope: Scope, depth: int) -> Lines:
        inner = self.random.choice([INT, STRING, self.random.choice(self.structs)])
        name = self.name()
        lines = [f"let {name}: {inner} | nil = {self.into(Optional(inner), scope)}"]
        self._bind(scope, name, Optional(inner), mutable=False, annotated=True)
        test = name if isinstance(inner, Struct) else self.random.choice([f"{name} != nil", f"nil != {name}"])
        return [*lines, f"if {test} {{", *self.block(scope.narrowed(name, inner), depth), "}"]

    def _either(self, scope: Scope, depth: int) -> Lines:
        name = self.name()
        lines = [f"let {name}: int | string = {self.into(self.random.choice([INT, STRING]), scope)}"]
        self._bind(scope, name, Either((INT, STRING)), mutable=False, annotated=True)
        lines += [f'if type_of({name}) == "int" {{', *self.block(scope.narrowed(name, INT), depth)]
        return [*lines, "} else {", *self.block(scope.narrowed(name, STRING), depth), "}"]

    def _try(self, scope: Scope, depth: int) -> Lines:
        inside = scope.inner(direct=False, handled=True)
        lines = ["try {", *self.block(inside, depth)]
        if self.random.random() < 0.5:
            lines.append(f"  throw {self.of(STRING, inside, 1)}")
        name = self.name("e")
        caught = scope.inner(direct=False)
        return [*lines, f"}} catch ({name}) {{", f"  println({name})", *self.block(caught, depth), "}"]

    def _widened(self, scope: Scope, depth: int) -> Lines:
        name, kind = self.name(), self.random.choice(SCALARS)
        lines = [f"var {name} = nil", f"{name} = {self.of(kind, scope, 1)}", f"println({name})"]
        scope.variables.append(Variable(name, Optional(kind), certain=False))
        return lines

    def _unknown(self, scope: Scope, depth: int) -> Lines:
        name = self.name()
        lines = [f"let {name}: unknown = {self.of(self.random.choice(SCALARS), scope)}"]
        lines += [f'if type_of({name}) == "int" {{', f"  let {name}_i: int = {name}"]
        lines += [*self.block(scope.inner(Variable(f"{name}_i", INT)), depth)]
        lines += [f'}} else if type_of({name}) == "string" {{', f"  println({name}.uppercase())", "}"]
        return lines

    def _generic(self, scope: Scope, depth: int) -> Lines:
        kind = self.random.choice([INT, STRING, BOOL, *self.structs])
        name, p = self.name(), self.name("p")
        a, b = self.written(kind, scope, 0), self.written(kind, scope, 0)
        value = self.random.choice(
            [
                f"either({a}, {b}, {self.of(BOOL, scope, 1)})",
                f"unboxed({{value: {a}}})",
                f"applied({{ {p}: {kind} -> {p} }}, {a})",
                f"first_or([{a}], {b})",
            ]
        )
        lines = [f"let {name}: {kind} = {value}"]
        self._bind(scope, name, kind, mutable=False, annotated=True)
        for struct in self.structs:
            if struct.named:
                function = self.random.choice(["labelled", "shout"])
                lines.append(f"println({function}({self.written(struct, scope, 1)}))")
                lines.append(f"println({self.written(struct, scope, 1)}.label())")
        return lines

    def _pairs(self, scope: Scope, depth: int) -> Lines:
        key, value = self.name("k"), self.name("w")
        self.times *= 3
        inside = scope.inner(
            Variable(key, STRING, certain=False),
            Variable(value, INT, certain=False),
            direct=False,
            loops=scope.loops + 1,
        )
        lines = [f"for ({key}, {value}) in {self.of(DictOf(INT), scope, 0)}.iter() {{"]
        lines += [*self.block(inside, depth), "}"]
        self.times //= 3
        return lines

    def _piped(self, scope: Scope, depth: int) -> Lines:
        name, p = self.name(), self.name("p")
        inside = scope.inner(Variable(p, INT, certain=False))
        lines = [f"let {name} = {self.of(INT, scope, 1)} |> {{ {p} -> {self.quiet(INT, inside)} }}"]
        scope.variables.append(Variable(name, INT, certain=False))
        return lines

    def _guard(self, scope: Scope, depth: int) -> Lines:
        """Behind a guard the variable is no longer nil."""
        if not scope.direct:
            return self._let(scope, depth)
        assert scope.returns is not None, "a function is around"
        kind, name = self.random.choice([INT, STRING]), self.name()
        lines = [f"let {name}: {kind} | nil = {self.into(Optional(kind), scope)}"]
        leaving = indented([f"return {self.written(scope.returns, Scope(), 0)}"])
        lines += [f"guard {name} != nil else {{", *leaving, "}"]
        self._bind(scope, name, kind, mutable=False, annotated=True)
        return lines

    def _results(self, scope: Scope, depth: int) -> Lines:
        name, ok, error, maybe = self.name(), self.name("x"), self.name("x"), self.name()
        kind = self.random.choice(SCALARS)
        lines = [f"let {name} = quartered({self.of(INT, scope, 1)})", f"match {name} {{"]
        inside = scope.inner(Variable(ok, INT, certain=False), direct=False)
        lines += [f"  Result.Ok({ok}) -> {{", *indented(self.block(inside, depth)), "  }"]
        lines += [f"  Result.Err({error}) -> {{ println({error}) }}", "}"]
        lines.append(f"let {maybe}: Maybe<{kind}> = Maybe.Some({self.of(kind, scope, 1)})")
        return [*lines, f"println({maybe})"]

    def _deferred(self, scope: Scope, depth: int) -> Lines:
        inside = scope.inner(direct=False)
        return ["if 1 < 2 {", "  defer {", *indented(self.block(inside, 0)), "  }", "  println(1)", "}"]

    def _take_apart(self, scope: Scope, depth: int) -> Lines:
        first, second = self.name(), self.name()
        a, b = self.random.choice(SCALARS), self.random.choice(SCALARS)
        values = self.of(a, scope, 1), self.of(b, scope, 1)
        scope.variables += [Variable(first, a, certain=False), Variable(second, b, certain=False)]
        if self.random.random() < 0.5:
            return [f"let {{left: {first}, right: {second}}} = {{left: {values[0]}, right: {values[1]}}}"]
        return [f"let [{first}, {second}] = [{', '.join(values)}]"]

    def _parallel(self, scope: Scope, depth: int) -> Lines:
        name, item, kind = self.name("i"), self.random.choice(SCALARS), self.random.choice([INT, STRING])
        result = self.name()
        items = ", ".join(self.of(item, scope, 1) for _ in range(2))
        inside = scope.inner(Variable(name, item, certain=False))
        value = self.quiet(kind, inside)
        scope.variables.append(Variable(result, ListOf(kind), certain=False))
        return [f"let {result} = parallel each [{items}] {{ {name} ->", f"  {value}", "}"]
