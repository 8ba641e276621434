"""Loops that read fields and update parts of dicts, structs and lists do the same compiled and walked.

The compiler reads some fields before a loop, lets go of others before an update, and changes parts in place
where nobody else holds them. Programs of any kind seldom have all that in one loop; these have little else.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.counts import COUNT
from tests.vm.differential.outcomes import Program, outcome

HEAD = """\
fn told(x) {
  println("told ${x}")
  return x
}
struct Point { x: int
  y: any }
"""
VARIABLES = """\
%s s = {n: 1, l: {m: 3, b: %s}}
let q = {t: {u: %s}}
var p = Point {x: 7, y: "y"}
var o = {n: 1, items: [9], k: {k: 0, items: []}}
var xs = [1]
var d = {}
"""
END = "println([s, p, q, o, xs, d])"
LOOPS = ("for i in 0 to 4 exclusive", "for i in [1, 2, 3, 4]", "var i = 0\nwhile i < 4")

FIELDS = ("s.n", "s.l.m", "s.l.b", "p.x", "p.y", "o.n", "q.t.u")
CONDITIONS = ("s.l.b", "s.n > 2", "p.x % 2 == i % 2", "q.t.u", "o.n == 1", "len(o.items) > 2")
#: Updates with a value, ``@``, and without.
UPDATES = (
    "o.items = o.items + [@]",
    "o.items.push(@)",
    "o.items[0] = @",
    "o.k.k = @",
    "o.k.items = o.k.items + [@, @]",
    "o.k = {...o.k, k: @}",
    "o.n = @",
    "xs = xs + [@]",
    "xs.push(@)",
    'd["k"] = @',
    "p = Point {x: p.x + 1, y: @}",
    "p.x = p.x + 1",
    "let c = @\n o.k.k = c",
    "match @ { 1 -> { o.k.k = 5 } _ -> { xs = xs + [0] } }",
    "if len(o.items) > 3 { o.items = o.items[1:] }",
    "for z in [1, 2] { o.items = o.items + [z]\n o.k.k = s.l.m }",
)


def program_of(seed: int) -> Program:
    chance = Random(seed)
    loop = chance.choice(LOOPS)
    body = [_update(chance) for _ in range(chance.randint(1, 5))]
    if "while" in loop:
        body.insert(0, "i = i + 1")
    variables = VARIABLES % (
        chance.choice(("let", "var")),
        _any(chance, "true false"),
        _any(chance, "1 nil true"),
    )
    lines = "\n".join([variables, f"{loop} {{", *body, "}", END])
    if chance.random() < 0.5:
        return Program(f"{HEAD}fn go() {{\n{lines}\n}}\ngo()\ngo()\n")
    return Program(f"{HEAD}{lines}\n")


def _any(chance: Random, words: str) -> str:
    return chance.choice(words.split())


def _update(chance: Random) -> str:
    first, *rest = chance.choice(UPDATES).split("@")
    return first + "".join(_value(chance) + part for part in rest)


def _value(chance: Random, depth: int = 0) -> str:
    field, other, condition = chance.choice(FIELDS), chance.choice(FIELDS), chance.choice(CONDITIONS)
    inner = _value(chance, depth + 1) if depth < 2 else "1"
    return chance.choice(
        [
            field,
            field,
            f"({condition} ? {inner} : nil) ?? told({field})",
            f"({field} ?? {other})",
            f"(o.missing ?? {field})",
            f"told({field})",
            f"if {condition} {{ {field} }} else {{ {other} }}",
            "len(o.items)",
            str(chance.randint(0, 9)),
        ]
    )


def test_loops_with_fields_do_the_same_when_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNPY_NO_CACHE", "1")
    ends = Counter[str]()
    for seed in COUNT.seeds(COUNT.field_programs):
        program = program_of(seed)
        compiled = outcome(program, "compile")
        assert compiled == outcome(program, "walk"), f"seed {seed}:\n{program.text}"
        ends[compiled.ending] += 1
    assert ends["value"] > ends.total() / 2
    assert ends["refused"] < ends.total() / 20
