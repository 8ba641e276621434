"""Whole programs that are well typed by construction, and end without an error. Spec: 03."""

from __future__ import annotations

from random import Random

from tests.check.soundness.expressions import WORDS
from tests.check.soundness.kinds import (
    BOOL,
    FLOAT,
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
    Outcome,
    Routine,
    Scope,
    Shape,
    Struct,
    Tagged,
    Variable,
    Words,
)
from tests.check.soundness.statements import Lines, Slot, Statements, indented

#: Functions and types with parameters, and what wants an interface.
_GENERAL = """
type Box<T> = {value: T}

enum Maybe<T> {
  Some(value: T)
  None
}

fn labelled(one: Labelled) -> string {
  return one.label()
}

fn shout<T>(one: T) -> string where T: Labelled {
  return one.label().uppercase()
}

fn either<T>(first: T, second: T, take_first: bool) -> T {
  if take_first {
    return first
  }
  return second
}

fn unboxed<T>(box: Box<T>) -> T {
  return box.value
}

fn applied<A, B>(f: fn(A) -> B, value: A) -> B {
  return f(value)
}

fn first_or<T>(items: list<T>, other: T) -> T {
  for item in items {
    return item
  }
  return other
}

fn halved(n: int) -> Result<int, string> {
  if n % 2 == 1 {
    return Err("odd")
  }
  return Ok(n / 2)
}

fn quartered(n: int) -> Result<int, string> {
  let half = halved(n)?
  return halved(half)
}"""


def program_of(seed: int, slot: Slot | None = None) -> str:
    """The program of a seed; ``slot`` may add statements, which leaves all others as they are."""
    return Programs(Random(seed), slot).text()


class Programs(Statements):
    def text(self) -> str:
        lines = self._types() + self._interface()
        for _ in range(self.random.randint(2, 5)):
            lines += ["", *self._function()]
        self.cost, self.times = 0, 1
        if self.random.random() < 0.6:
            scope = Scope()
            body = self.statements(scope, self.random.randint(4, 9), 2) + self._calls(scope)
            lines += ["", "pipeline main(task) {", *indented(body), "}"]
        else:
            scope = Scope(file_level=True)
            lines += ["", *self.statements(scope, self.random.randint(4, 9), 2), *self._calls(scope)]
        return "\n".join(lines) + "\n"

    def _calls(self, scope: Scope) -> Lines:
        """Each function once, so that all run."""
        lines: Lines = []
        for routine in self.routines:
            call = self.call(routine, scope, 0)
            if routine.word == "gen":
                lines += [f"for item in {call} {{", "  println(item)", "}"]
            else:
                lines.append(f"println({call})")
        return lines

    # --- types ------------------------------------------------------------------------------------

    def _types(self) -> Lines:
        random = self.random
        enums: list[Enum] = []
        lines: Lines = []
        for _ in range(random.randint(1, 2)):
            struct = Struct(self.name("Part"), self._field_kinds(), named=random.random() < 0.6)
            self.structs.append(struct)
            lines += [f"struct {struct.name} {{"]
            lines += [f"  {name}: {kind}" for name, kind in struct.fields]
            lines += ["}", ""]
        for _ in range(random.randint(1, 2)):
            names = random.sample(["Idle", "Busy", "Done", "Lost"], random.randint(2, 3))
            payloads = [tuple(random.choices(SCALARS, k=random.choice([0, 0, 1, 2]))) for _ in names]
            enum = Enum(self.name("State"), tuple(zip(names, payloads, strict=True)))
            enums.append(enum)
            lines += [f"enum {enum.name} {{"]
            for name, payload in enum.variants:
                inside = ", ".join(f"x{i}: {kind}" for i, kind in enumerate(payload))
                lines.append(f"  {name}({inside})" if payload else f"  {name}")
            lines += ["}", ""]
        optional = ((self.name("opt"), random.choice(SCALARS)),)
        record = Shape(self._field_kinds(), optional, self.name("Record"))
        words = Words(self.name("Mode"), tuple(random.sample(WORDS, random.randint(2, 3))))
        tags = random.sample(["circle", "square", "line"], random.randint(2, 3))
        tagged = Tagged(
            self.name("Figure"), tuple((tag, self.name("f"), random.choice(SCALARS)) for tag in tags)
        )
        lines.append(f"type {record.alias} = {record.body}")
        lines.append(f"type {words.alias} = " + " | ".join(f'"{word}"' for word in words.words))
        shapes = [f'{{kind: "{tag}", {field}: {kind}}}' for tag, field, kind in tagged.variants]
        lines.append(f"type {tagged.alias} = " + " | ".join(shapes))
        self.kinds += [*self.structs, *enums, record, words, tagged]
        self.kinds += [ListOf(INT), ListOf(STRING), DictOf(INT), Optional(INT), Optional(STRING)]
        self.kinds += [Either((INT, STRING)), Function((INT,), INT), Outcome(INT), Shape(self._field_kinds())]
        self.kinds += [ListOf(random.choice(self.structs)), Optional(random.choice(self.structs))]
        self.kinds += [ListOf(ListOf(FLOAT)), Function((STRING, INT), BOOL)]
        return lines

    def _field_kinds(self) -> tuple[tuple[str, Kind], ...]:
        count = self.random.randint(1, 3)
        return tuple((self.name("k"), self.random.choice(self.kinds)) for _ in range(count))

    def _interface(self) -> Lines:
        """An interface, who satisfies it, and functions that want it or are generic."""
        lines = ["", "interface Labelled {", "  fn label(self) -> string", "}"]
        for struct in self.structs:
            if struct.named:
                field = struct.fields[0][0]
                lines += ["", f"impl {struct.name} {{", "  fn label(self) -> string {"]
                lines += [f'    return "{struct.name}: ${{self.{field}}}"', "  }", "}"]
        return lines + _GENERAL.splitlines()

    # --- functions --------------------------------------------------------------------------------

    def _function(self) -> Lines:
        random = self.random
        word = random.choice(["fn", "fn", "fn", "fn", "tool", "gen", "yield"])
        params = tuple(random.choice(self.kinds) for _ in range(random.randint(0, 3)))
        names = [self.name("a") for _ in params]
        returns = random.choice(self.kinds)
        self.cost, self.times = 1, 1
        declared = word == "tool" or random.random() < 0.85
        variables = [Variable(name, kind, param=True) for name, kind in zip(names, params, strict=True)]
        scope = Scope(variables, returns=returns, direct=declared and word == "fn")
        heads = [f"{name}: {kind}" for name, kind in zip(names, params, strict=True)]
        defaults = 0
        if params and word == "fn" and random.random() < 0.3:
            heads[-1] += f" = {self.written(params[-1], Scope(), 0)}"
            defaults = 1
        name = self.name("work")
        if word in ("gen", "yield"):
            lines = self._sequence(word, name, heads, scope, returns)
        else:
            body = self.statements(scope, random.randint(1, 4), 2)
            body.append(f"return {self.into(returns, scope)}")
            result = f" -> {returns}" if declared else ""
            lines = [f"{word} {name}({', '.join(heads)}){result} {{", *indented(body), "}"]
        if word != "tool":
            # A tool is for models to call.
            kind = "fn" if word == "fn" else "gen"
            self.routines.append(Routine(name, params, returns, kind, defaults, self.cost))
        return lines

    def _sequence(self, word: str, name: str, heads: list[str], scope: Scope, item: Kind) -> Lines:
        """A stream or a generator of two items."""
        inside = scope.inner(returns=None, direct=False, emits=item if word == "gen" else None)
        give, type = ("emit", "Stream") if word == "gen" else ("yield", "Generator")
        body = self.statements(inside, 1, 1)
        body += [f"{give} {self.into(item, inside)}", f"{give} {self.into(item, inside)}"]
        opening = "gen fn" if word == "gen" else "fn"
        return [f"{opening} {name}({', '.join(heads)}) -> {type}<{item}> {{", *indented(body), "}"]
