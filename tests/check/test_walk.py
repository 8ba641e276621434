"""What the type checker says, row by row of the catalogue. Spec: 03 §8.1, §8.2."""

from __future__ import annotations

import pytest

from tests.check.programs import findings, said

SHAPES = "struct P { x: int, y?: string }\n"
ERRORS = {
    "let x: int = true": "error assignment-type: 'x' declared as int, but assigned bool",
    "let u: {name: string, age: int} = {age: 3}": (
        "error assignment-type: 'u' declared as {name: string, age: int}, but assigned {age: int}"
        " (missing field 'name' (string))"
    ),
    "fn f() { var x = 1; x = true }": ("error assignment-type: can't assign bool to 'x' (declared as int)"),
    "fn f() { var x: int = 1; x = 1.5 }": (
        "error assignment-type: can't assign float to 'x' (declared as int)"
    ),
    "fn f() { var x: int = 1; x += 1.5 }": (
        "error assignment-type: can't assign float to 'x' (declared as int)"
    ),
    'fn f(xs) { var n = 1; for x in xs { n = n + "a" } }': "error operand-type: can't add int and string",
    'fn f() { var x = 1; x += "a" }': "error operand-type: can't add int and string",
    'fn f() -> int { return "a" }': "error return-type: return type doesn't match: expected int, got string",
    "pipeline default() -> int { if true { return nil } }": (
        "error return-type: return type doesn't match: expected int, got nil"
    ),
    "fn f(n: int) { }\nf(true)": "error argument-type: Argument 1 ('n'): expected int, got bool",
    'let t = true + "a"': "error operand-type: can't add bool and string",
    "let t = nil - 2": "error operand-type: can't use '-' on nil and int (needs numeric operands)",
    'let t = "a" ** 2': "error operand-type: can't use '**' on string and int (needs numeric operands)",
    "let t = nil * 2": "error operand-type: can't multiply nil and int (try string * int)",
    "fn f(x: unknown) { return x + 1 }": "error operand-type: can't add unknown and int",
    SHAPES + "let p = P {x: true}": "error struct-field-type: Field 'x' in struct 'P' expects int, got bool",
    "let p = Pont {x: 1}": "error unknown-struct: unknown struct type `Pont`",
    "struct Point { x: int }\nlet p = Pont {x: 1}": (
        "error unknown-struct: unknown struct type `Pont` — did you mean `Point`?"
    ),
    "no_such_function_at_all()": (
        "error undefined-call: call target `no_such_function_at_all` is not defined or imported"
    ),
    "printn(1)": (
        "error undefined-call: call target `printn` is not defined or imported — did you mean `print`?"
    ),
    "fn greet() { }\nfn f() { grete() }": (
        "error undefined-call: call target `grete` is not defined or imported — did you mean `greet`?"
    ),
    "fn f(xs: list<int>) { xs.pusj(1) }": (
        "error unknown-method: unknown method `pusj` on list (did you mean `push`?)"
    ),
    "let n = 5.foo()": "error unknown-method: cannot call method `foo` on int",
    'let n = "a".size': "error unknown-property: unknown property `size` on string — did you mean `count`?",
    'let n = "a".upper': (
        "error unknown-property: unknown property `upper` on string — `upper` is a method: `.upper(…)`"
    ),
    'let n = "a".cout': "error unknown-property: unknown property `cout` on string — did you mean `count`?",
    "let n = (1 to 3).count": "error no-properties: cannot access property `count` on range",
    "fn f(x: int | nil) { return x.y }": "error no-properties: cannot access property `y` on int",
    "enum E { A }\nlet n = E.A.zzz": "error unknown-property: unknown property `zzz` on enum",
    "fn f(x: int | string) { unreachable(x) }": (
        "error unhandled-type: unreachable() argument has type `int | string` — not all cases are handled"
    ),
    "gen fn f() { yield 1 }": (
        "error misplaced-yield: `yield` is not a stream emit; use `emit` inside `gen fn`"
    ),
    "gen fn f() { let g = { -> emit 1 } }": (
        "error misplaced-emit: `emit` can only be used inside a `gen fn`"
    ),
    'gen fn f() -> Stream<int> { emit "a" }': (
        "error emit-type: emit type doesn't match: expected int, got string"
    ),
    "gen fn f() -> int { emit 1 }": "error generator-result: `gen fn` must return Stream<T>, got int",
    'let t = parallel each [1] with {max_concurrent: "a"} { x -> x }': (
        "error max-concurrent-type: `max_concurrent` on `parallel` must be int, got string"
    ),
    "fn f(a) { }\nf<int>(1)": "error type-argument-count: Function 'f' does not declare type parameters",
    "fn f<T>(a: T) { }\nf<int, int>(1)": (
        "error type-argument-count: Function 'f' expects 1 type arguments, got 2"
    ),
    "println<int>(1)": (
        "error type-argument-count: Builtin function 'println' does not declare type parameters"
    ),
    "interface I { fn m(self) }\nstruct P { x: int }\nfn f<T>(a: T) where T: I { }\nf(P {x: 1})": (
        "error type-bound: Type 'P' does not satisfy interface 'I': missing method(s): m"
        " (required by constraint `where T: I`)"
    ),
    "enum E<in T> { A(value: T) }": (
        "error variance: type parameter 'T' is declared 'in' (contravariant) but appears in a covariant"
        " position in enum 'E'"
    ),
}
WARNINGS = {
    "fn f() { let x = 1; x = 2 }": (
        "error immutable-assignment: Cannot assign to 'x': variable is immutable (declared with 'let')"
    ),
    "fn f(x) { x = 2 }": (
        "error immutable-assignment: Cannot assign to 'x': variable is immutable (declared with 'let')"
    ),
    "fn f(a, b) { }\nf(1)": "warning argument-count: Function 'f' expects 2 arguments, got 1",
    "fn f(a, b = 1) { }\nf(1, 2, 3)": "warning argument-count: Function 'f' expects 1-2 arguments, got 3",
    "fn f() { return 1; println(2); println(3) }": "warning unreachable-code: unreachable code",
    "fn f() { if true { return 1 } else { throw 2 }; println(2) }": (
        "warning unreachable-code: unreachable code"
    ),
    "let b = true < 1": (
        "warning comparison-type: Comparison '<' may not be meaningful for types bool and int"
    ),
    'let b = "a" >= 1': (
        "warning comparison-type: Comparing string with int using '>=' may give unexpected results"
    ),
    SHAPES + "let p = P {x: 1, z: 2}": "warning unknown-struct-field: Unknown field 'z' in struct 'P'",
    SHAPES + "let p = P {}": "warning missing-struct-field: Missing field 'x' in struct 'P' construction",
    "@deprecated\nfn f() { }\nf()": "warning deprecated: `f` is deprecated",
    '@deprecated(since: "2", use: "g")\nfn f() { }\nf()': "warning deprecated: `f` is deprecated (since 2)",
    "interface I { fn m(self) }\nfn f<T>(a: T) where T: I { a.other() }": (
        "warning unknown-interface-method: Method 'other' not found in interface 'I' (constraint on 'T')"
    ),
}
SILENT = [
    # Gradual: what has no type is compared with nothing.
    'fn f(x, y: any) { return x + 1 + y + "a" }',
    'fn f() { let st = {pos: json_parse("1")}; return st.pos + 1 }',
    'let n: int = nil ?? json_parse("1")',
    # File-level variables have no type.
    'var n = 1\nn = "s"\nfn f(x: int) { }\nlet s = "x"\nf(s)',
    "let a: float = 3\nlet b: list<float> = [1.0, 2.0]\nlet d: {a: int} = {a: 1, b: 2}",
    # `var x = nil` takes the type of what it is assigned, in each block anew.
    'fn f(c) { var x = nil; if c { x = 1 } else { x = "a" }; x = 2.5 }',
    "fn f(xs: list<int>) {\n  var best = nil\n"
    "  for x in xs { if best == nil || x > best { best = x } }\n  return best + 1\n}",
    "fn f(x: dict | nil, y: any) { return [x.a, y.b, x?.c, nil?.d] }",
    # Facts.
    "fn f(x: int | nil) -> int { if x == nil { return 0 }; let y: int = x; return x }",
    "fn f(x: string | nil) { guard x != nil else { return }; let y: string = x }",
    'fn f(x: int | string) { if type_of(x) == "int" { return 1 }; let s: string = x }',
    # A function is known before its declaration, a type in the whole file, a name in `${…}` counts.
    "fn f() { return g() }\nfn g() { return 1 }",
    'pipeline default() { let n = 1; println("${n} ${[n].map({ x -> x + n })}") }',
    # Local variables aren't looked into by `return`.
    'fn f() -> int { let x = "a"; return x }',
    "fn f(x: string) -> int { var x = 1; return x }",
    # Struct, enum and builtin names are values; a pipeline's parameters come from the host.
    "enum E { A(n: int), B }\nstruct P { x: int }\nlet xs = [P, len, E.A(1), E.B, Ok(1), pi]\n",
    "pipeline default(task) { println(task) }\nfn f() { return task }",
    # A child sees its parent's bindings, without types.
    'pipeline base() { var n = 1; let m = 2 }\npipeline default() extends base { n = "a"; println(n + m) }',
    # Names that a pattern binds, in order.
    "let {a, b: c, d = a, ...rest} = {a: 1}\nprintln(a, c, d, rest)",
    "for {key, value} in {a: 1} { println(key, value) }\nfor (a, b) in {a: 1}.iter() { println(a, b) }",
    "println(match [1, 2] { [x, y] if x > 1 -> { x } {k: v} -> { v } z -> { z } })",
    # Closures that are called by name, recursion, mutual recursion.
    "fn f() {\n  let even = { n -> n == 0 || odd(n - 1) }\n"
    "  let odd = { n -> n != 0 && even(n - 1) }\n  return even(2)\n}",
    # Errors that the program may handle stay unsaid.
    "println(try { no_such_name } catch (e) { e })\nprintln(try { [1].nope() } catch (e) { e })",
    "fn handled(f) { return try { f() } catch (e) { e } }\nhandled({ -> no_such_name })",
    # What is inside `${…}` isn't typed.
    'let s = "${1 + nil}"',
    "fn f(x: int | nil) { var y = x; while y != nil { y = nil }; return y }",
    "fn g() { yield 1 }\nfor x in g() { println(x + 1) }\nlet n: Generator<any> = g()",
    "gen fn s() -> Stream<int> { emit 1 }\nfor x in s() { let y: int = x }",
    'fn id<T>(x: T) -> T { return x }\nfn f() { let n: int = id(1); let s: string = id("a") }',
    "fn f(cb: fn(int) -> int) { return cb(1) }\nf({ x: int -> x })\nf({ x -> x })\n"
    "fn g(n: int) -> int { return n }\nf(g)",
    'select {\n  x from channel("c") { println(x) }\n  default { }\n}',
    "eval_pack p {\n  version: 1\n  cases: [1]\n  println(cases, version)\n}",
    "fn f() { struct Q { x: int }; let q = Q {x: 1}; return q }\n",
    "let f = { x -> x?.name ?? 5 }\nprintln(f(nil))\nprintln(nil?.foo())",
    "fn same<T>(a: T, b: T) -> T { return a }\nprintln(same<float>(1, 2.5))",
    "let xs: list<int | nil> = [1]\nfn f(xs: list<float | nil>) { }\nf([1.5])",
    "fn f(a: duration, b: duration) { return a < b }",
    "fn f() { type T = {a: int}; return schema_is({a: 1}, T) }",
    'fn f(x) { schema_expect(x, {type: "string"}); return x }',
    "struct O { x?: string }\nfn f(s: string | nil) { return [O {x: s}, O {x: nil}, O {}] }",
    # A variable without annotation keeps the kind of its first value, not its very type.
    "fn f() { var n = 0; n = n + 1.5; n = nil; let m: float = n }",
    'fn f() { var r = {ok: true, n: 1}; r = {ok: false, error: "x"}; let s: string = r.error }',
    'fn f() { var xs = [1]; xs = ["a"]; xs = [xs]; let s: string = xs[0] }',
    "fn f() { var best = nil; best = 1; best = 1.5; best = nil }",
    "struct A { x: int }\nstruct B { y: int }\nfn f() { var s = A {x: 1}; s = B {y: 1}; return s }",
    # What is assigned to a part of a variable may be anything.
    'fn f() { var st = {b: nil, n: 1}; st.b = 5; st.n = "a"; let s: string = st.n; return st.b + 1 }',
    # What has no type may be anything.
    'fn f() { var data = ""; data = json_parse("1"); return data + 1 }',
    'fn f() { var x = ""; while true { println(x - 1); x = json_parse("1") } }',
    'fn f() { var xs = [1]; for i in 0 to 3 { let s: string = xs[0]; xs[0] = "a" } }',
    "retry 3 { let kept = 1 }\nprintln(kept)",
    "fn f(n) { defer { println(n) }; deadline 5s { println(n) }; mutex { println(n) } }",
]


@pytest.mark.parametrize("program", [*ERRORS, *WARNINGS])
def test_each_row_of_the_catalogue(program: str) -> None:
    expected = ERRORS.get(program) or WARNINGS[program]
    assert [text.partition(" ")[2] for text in said(program)] == [expected]


@pytest.mark.parametrize("program", SILENT)
def test_sound_programs_pass_in_silence(program: str) -> None:
    assert said(program) == []


def test_helps() -> None:
    def help_of(program: str) -> str | None:
        return findings(program)[0].help

    assert help_of("printn(1)") == "did you mean `print`?"
    assert help_of("let p = Pont {x: 1}") == "declare `struct Pont { ... }` before constructing it"
    assert help_of("struct Point { x: int }\nlet p = Pont {x: 1}") == (
        "declare `struct Point { ... }` or fix the type name"
    )
    assert help_of('@deprecated(use: "g")\nfn f() { }\nf()') == "use `g` instead"


def test_the_fix_of_a_sum_with_text_is_interpolation() -> None:
    program = 'fn f(n: int) { return "a" + n }'
    (found,) = findings(program)
    assert found.fix is not None
    (edit,) = found.fix.edits
    assert program[: edit.start] + edit.text + program[edit.end :] == 'fn f(n: int) { return "a${n}" }'


def test_a_fault_stands_where_the_program_is_wrong() -> None:
    program = "fn f(n: int, s: string) { }\nf(1, 2 + 3)"
    (found,) = findings(program)
    assert program[found.start : found.end] == "2 + 3"
    (place,) = found.places
    assert program[place.start : place.end] == "s: string"


ORDER = """\
@deprecated
fn old(n: int) -> string { return 5 }
fn f<T>(a: T, b: T, c: int, d: int) where T: I { }
interface I { fn m(self) }
pipeline default() {
  let x: int = missing(1 + nil)
  f<int, int>(1, "a", true)
  old("x")
  let y = P {x: nil + 1, z: 1}
}
struct P { x: int, w: int }
"""


def test_faults_come_in_the_order_of_discovery() -> None:
    assert said(ORDER) == [
        "8 warning deprecated: `old` is deprecated",
        "2 error return-type: return type doesn't match: expected string, got int",
        "6 error undefined-call: call target `missing` is not defined or imported",
        "6 error operand-type: can't add int and nil",
        "7 error type-argument-count: Function 'f' expects 1 type arguments, got 2",
        "7 warning argument-count: Function 'f' expects 4 arguments, got 3",
        "7 error type-parameter-conflict: type parameter 'T' was inferred as both int and string",
        "7 error argument-type: Argument 2 ('b'): expected int, got string",
        "7 error argument-type: Argument 3 ('c'): expected int, got bool",
        "7 error type-bound: Type 'int' does not satisfy interface 'I': missing method(s): m"
        " (required by constraint `where T: I`)",
        "8 error argument-type: Argument 1 ('n'): expected int, got string",
        "9 error operand-type: can't add nil and int",
        "9 warning unknown-struct-field: Unknown field 'z' in struct 'P'",
        "9 warning missing-struct-field: Missing field 'w' in struct 'P' construction",
    ]


@pytest.mark.parametrize("terms", [20_000])
def test_long_chains_take_no_stack(terms: int) -> None:
    total = " + ".join(["1"] * terms)
    assert said(f"fn f() {{ let n: int = {total}; return n }}") == []
    methods = "[1]" + ".push(1)" * 5_000
    assert said(f"let xs = {methods}") == []


def test_nested_blocks_take_no_time() -> None:
    depth = 190
    program = "fn f(x) { " + "if x { " * depth + "return 1 + nil" + " }" * depth + " }"
    assert [found.code for found in findings(program)] == ["operand-type"]


def test_a_result_in_results_takes_no_time() -> None:
    depth = 90
    program = "fn f() { let n: string = " + "try { (" * depth + "try { 1 }" + ")? }" * depth + " }"
    assert [found.code for found in findings(program)] == ["assignment-type"]


@pytest.mark.parametrize(
    ("source", "help"),
    [
        ('let a: str = "x"', "in Harn, the type is `string`"),
        ("let a: list<number> = [1]", "in Harn, the type is `float`"),
        ("fn f(ok: boolean) { return ok }\nf(true)", "in Harn, the type is `bool`"),
        ('fn f() -> String { return "x" }\nf()', "in Harn, the type is `string`"),
        ("struct A { n: Integer }\nlet a = A {n: 1}\nprintln(a)", "in Harn, the type is `int`"),
        ("struct Map { n: int }\nlet a: Map = 1", None),
        ("let a: Colour = 1", None),
    ],
)
def test_a_type_of_another_language_is_told_what_it_is_called_here(source: str, help: str | None) -> None:
    (found,) = (each for each in findings(source) if each.severity == "error")
    assert found.help == help
