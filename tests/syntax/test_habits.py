"""What people write who come from other languages, and what helps them. Spec: 01 §9.5, 02 §9.3."""

from __future__ import annotations

import pytest

from harnpy import Vm
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.parser import parse
from harnpy.vm.errors import VmError


def helps(source: str) -> list[str | None]:
    with pytest.raises(SyntaxFault) as caught:
        parse(source)
    return [diagnostic.help for diagnostic in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("def f(x):\n  return x", "`fn name(params) { … }`"),
        ("function f() { }", "`fn name(params) { … }`"),
        ("let f = lambda x: x", "`{ x -> x + 1 }`"),
        ("let f = x => x", "`{ x -> … }`"),
        ("let m = match 1 { 1 => 2 }", "`pattern -> { … }`"),
        ("let m = match 1 { 1 -> 2 }", "braces"),
        ("if 1 { } elif 2 { }", "`else if`"),
        ("switch 1 { }", "`match value"),
        ("try { 1 } except (e) { 2 }", "`catch (e) { … }`"),
        ("const x = 1", "`let`"),
        ("class A { }", "`struct`"),
        ('throw new Error("x")', "no classes"),
        ("async fn f() { }", "`spawn { … }`"),
        ("let p = await f()", "`await(task)`"),
        ("export fn f() {}", "`pub`"),
        ("delete x", "`d = d.remove(key)`"),
        ("assert 1 == 1", "`assert(condition, message)`"),
        ("try f()", "`try { … }`"),
        ("import json", '`import "lib/text"`'),
        ("let a = true and false", "`&&`"),
        ("let a = true or false", "`||`"),
        ("let a = not true", "`!`"),
        ("let a = 1 === 1", "`===`"),
        ("if x = 1 { }", "`==`"),
        ("var n = 1\nn++", "`n += 1`"),
        ("var n = 1\nn--", "`n -= 1`"),
        ("var xs = [1]\nxs[0]++", "`x += 1`"),
        ("let a = 5 if true else 6", "`condition ? a : b`"),
        ("let c = 1 ? 2 : 3 ? 4 : 5", "parentheses"),
        ("f(a: 1)", "pass a dict"),
        ("f(a=1)", "pass a dict"),
        ("let t = (1, 2)", "`[a, b]`"),
        ("let xs = [i for i in 5]", "`map` and `filter`"),
        ("let d = {name}", "`{name: name}`"),
        ("for k, v in d { }", "`for {key, value} in dict { … }`"),
        ("for (let i = 0; i < 3; i += 1) { }", "`for i in 0 to n exclusive { … }`"),
        ("for i in 0..3 { }", "`0 to 3`"),
        ("let (a, b) = [1, 2]", "`let [a, b] = list`"),
        ("xs.map({ {key} -> key })", "plain names"),
        ("let {a: [b]} = c", "don't nest"),
        ("while (true) && true { }", "leave out the parentheses"),
        ("if (1) f()", "braces"),
        ("let f = fn(x) -> int { x }", "no type of its result"),
        ("enum A { X = 1 }", "no values"),
        ("let x", "`var x = nil`"),
        ("{ x -> x }(1)", "only a name can be called"),
        ("let a = xs?.[0]", "`x?[i]`"),
        ("let x = 1_000", "decimal digits"),
        ("let x = 0xff", "decimal digits"),
        ('let a = f"x"', '`"${x}"`'),
        ("let a = 'text'", "double quotes"),
        ("println(`a`)", "double quotes"),
        ("# a comment", "`//`"),
        (r'let r = r"a\"b"', "raw string"),
        # In conditions, too, where braces are missing as well.
        ("if a and b { }", "`&&`"),
        ("if a or b { }", "`||`"),
        ("if not a { }", "`!`"),
        ("if x is nil { }", "`==`"),
        ("if x instanceof Foo { }", "`type_of(value)"),
        ('if typeof x == "string" { }', "`type_of(value)`"),
        ("if (a == 1 and b == 2) { }", "`&&`"),
        ("if x == 1:\n  y()", "without a colon"),
        ("if x then\n y()\nend", "without `then`"),
        ("fn f(x: int): int { return x }", "behind an arrow"),
        ("print x", "parentheses"),
        ('echo "a"', "parentheses"),
        ("elsif x { }", "`else if`"),
        ("else if x { }", "follows the `}` of its `if`"),
        ("try { } rescue e { }", "`catch (e)"),
        ("let mut x = 1", "`var`"),
        ("int x = 5", "`let` or `var`"),
        ("x := 5", "`let x = 5`"),
        ("let a, b = f()", "`let [a, b] = list`"),
        ("a, b = b, a", "`let [a, b] = list`"),
        ("for x of xs { }", "`for x in list`"),
        ("foreach x in xs { }", "`for x in list"),
        ("unless x { }", "`while condition"),
        ("++i", "`x += 1`"),
        ("let a = x !== y", "`!=`"),
        ("let a = x <> y", "`!=`"),
        ("let a = x & y", "`&&`"),
        ("let a = x | y", "`||`"),
        ("let a = x << 2", "bits"),
        ("let a = x mod y", "`%`"),
        ("let a = x ?: y", "`value ?? default`"),
        ("x!.y", "`value ?? default`"),
        ("x::y()", "`x.y`"),
        ("let x = y as int", "`to_int(x)`"),
        ("let a = .5", "`0.5`"),
        ("let a = 5.", "`5.0`"),
        ('let a = "a" . "b"', "`+`"),
        ('let a = b"a"', "without a letter"),
        ("let a = {a = 1}", "`key: value`"),
        ('let a = {"a" => 1}', "`key: value`"),
        ("let a = [1; 2]", "commas"),
        ("let a: List[int] = []", "`list<int>`"),
        ("let a: int? = nil", "`int | nil`"),
        ("fn f(x?: int) { }", "`x = nil`"),
        ("fn f(*args) { }", "`...rest`"),
        ("f(*xs)", "`...list`"),
        ("spawn f()", "`spawn { … }`"),
        ("match x { case 1 -> { } }", "without `case`"),
        ("match x { 1: y() }", "`pattern -> { … }`"),
        ("xs.map { x -> x }", "`f({ x -> … })`"),
        ("let f = fn x -> x", "`{ x -> … }`"),
        ("let f = function(x) { return x }", "`{ x -> … }`"),
        (r"let f = \x -> x", "`{ x -> … }`"),
        ("let f = |x| x", "`{ x -> … }`"),
        ("from a import b", '`import { name } from "lib/text"`'),
        ("let x = throw 1", "is a statement"),
        ("let x-y = 1", "letters, digits"),
        ("let s = “text”", "straight double quotes"),
        ("let\u00a0x = 1", "blanks are spaces"),
        ("\ufefflet x = 1", "can't be seen"),
    ],
)
def test_a_habit_is_told_what_to_write(source: str, part: str) -> None:
    help = helps(source)[0] or ""
    assert help.startswith("in Harn, ")
    assert part in help


def test_a_word_of_the_language_is_no_name() -> None:
    assert helps("let to = 5") == ["`to` is a word of the language: take another name"]


@pytest.mark.parametrize("source", ["let a = 1 let b = 2", "let v =", "a();; b()", "let q = \\ 1", "a - - "])
def test_other_errors_get_no_help_of_the_sort(source: str) -> None:
    assert helps(source)[0] is None


def test_a_variable_may_have_a_word_of_another_language_as_its_name() -> None:
    (help,) = helps("let sum = (old + new")
    assert help == "add a closing `)` to finish this expression or parameter list"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("let a = None", "did you mean `nil`?"),
        ("let a = null ?? 1", "did you mean `nil`?"),
        ("let a = True", "did you mean `true`?"),
        ("console.log(1)", "did you mean `println`?"),
    ],
)
def test_a_name_of_another_language_suggests_the_one_here(source: str, text: str) -> None:
    with pytest.raises(VmError, match="Undefined variable") as caught:
        Vm().run_source(source)
    assert text in caught.value.text
