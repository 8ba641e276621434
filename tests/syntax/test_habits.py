"""What people write who come from other languages, and what helps them. Spec: 01 §9.5, 02 §9.3."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest

from harnpy import Vm
from harnpy.syntax import habits
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.parser import parse
from harnpy.vm.declare import Signature
from harnpy.vm.errors import VmError
from harnpy.vm.run import methods
from harnpy.vm.run.methods import method_names


def helps(source: str) -> list[str | None]:
    with pytest.raises(SyntaxFault) as caught:
        parse(source)
    return [diagnostic.help for diagnostic in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("def f(x):\n  return x", "`fn name(params) { … }`"),
        ("function f() { }", "`fn name(params) { … }`"),
        ("pipeline main(task: any) { }", "parameters of a pipeline have no types"),
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
        ('let a = f"Hello {user.name}!"', '`"Hello ${user.name}!"`'),
        ('let a = f"{x:.2f}"', '`"${x}"`'),
        ('let a = f"{{x}} {y}"', '`"${x}"`'),
        ("let b = xs.map(lambda x: x + 1)", "`{ x -> x + 1 }`"),
        ("let a = xs[::-1]", "`xs.reverse()`"),
        ("let a = {1: 2}", '`{"1": value}`'),
        ("type(1)", "`type_of(value)`"),
        ("let a = 'text'", "double quotes"),
        ("println(`a`)", "double quotes"),
        ("# a comment", "`//`"),
        (r'let r = r"a\"b"', "raw string"),
        # In conditions, too, where braces are missing as well.
        ("if a and b { }", "`&&`"),
        ("if a or b { }", "`||`"),
        ("if not a { }", "`!`"),
        ("if x is nil { }", "`== nil`"),
        ("let a = x is None", "`== nil`"),
        ("let a = x is not None", "`!= nil`"),
        ("let a = x is not y", "`!=`"),
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


# What a help says to write instead can be written: each replacement is tried.

#: Where a piece of a program may stand; `@` is its place.
CONTEXTS = [
    "@", "match 1 { @ }", "if true { } @ 1 { }", "if true @", "1 @ 2", "let @ = 1", "@1", "[@xs]",
    "{ x @ 1 }", "try { 1 } @", "let x: @ = nil", "@ { }", "fn f<T>(x: T) @ { }",
]  # fmt: skip
#: What the helps say that there isn't.
NOT_IN_HARN = {"!==", "$"}
#: What stands for more.
ELLIPSES = {"impl Name { … }": "impl Name { }", "{ … }": "{ 1 }", "(…)": "(1)", "…": "int"}


def helps_of_habits() -> set[str]:
    tables = [value for name, value in vars(habits).items() if name.isupper() and name.startswith("_")]
    texts = [text for table in tables if isinstance(table, dict) for text in table.values()]
    others = {*habits._NAMES_ELSEWHERE.values(), *habits._TYPES_ELSEWHERE.values()}
    return {*texts, *(text for text in tables if isinstance(text, str))} - others


def can_be_written(code: str) -> bool:
    for short, long in ELLIPSES.items():
        code = code.replace(short, long)
    for context in CONTEXTS:
        with suppress(SyntaxFault):
            parse(context.replace("@", code))
            return True
    return False


def test_what_a_help_writes_can_be_written() -> None:
    written = {code for text in helps_of_habits() for code in re.findall(r"`([^`]+)`", text)}
    assert len(written) > 80
    assert {code for code in written if not can_be_written(code)} == NOT_IN_HARN


@pytest.mark.parametrize("name", sorted({*habits._NAMES_ELSEWHERE.values()}))
def test_names_that_are_called_otherwise_here(name: str) -> None:
    """A builtin, a value, a method of lists, or a sign."""
    if name.startswith("value."):
        assert name.removeprefix("value.").removesuffix("(…)") in method_names("list")
    elif name in ("{", "}", "{}", "self"):
        parse("impl A { fn f(self) { self } }\nlet d = {}")
    else:
        Vm().run_source(f"let found = {name}")


@pytest.mark.parametrize("name", sorted({*habits._TYPES_ELSEWHERE.values()}))
def test_types_that_are_called_otherwise_here(name: str) -> None:
    Vm().run_source(f"fn f(x: {name} | nil) {{ return x }}\nf(nil)")
    if name != "any":
        other = VALUES["int" if name == "nil" else "pair"]
        with pytest.raises(VmError):
            Vm().run_source(f"fn f(x: {name}) {{ return x }}\nf({other})", checked=False)


VALUES = {
    "list": "[1]", "set": "set(1)", "range": "(1 to 3)", "iter": "iter([1])", "string": '"a"',
    "dict": "{a: 1}",
    "int": "1", "bool": "true", "pair": "pair(1, 2)", "duration": "5s", "closure": "{ x -> x }", "nil": "nil",
    "stream": "(parallel each [1] { x -> x } as stream)", "channel": 'channel("c")',
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES)
def test_methods_that_are_called_otherwise_here(kind: str) -> None:
    """The method that is named is one; a function takes the value."""
    vm, known = Vm(), [*method_names(kind)]
    assert vm.run_source(f"return type_of({VALUES[kind]})") == kind
    elsewhere = {*method_names("list"), *method_names("string"), *method_names("dict"), *methods._ELSEWHERE}
    for name in sorted((elsewhere | {*vm.builtins.names()}) - {*known}):
        hint = methods.method_hint(kind, name, known, vm.builtins.signature)
        _, _, meant = hint.partition(" (did you mean `")
        meant = meant.removesuffix("`?)")
        if meant.startswith("to_list()."):
            assert vm.run_source(f"return {VALUES[kind]}.to_list().count()") >= 1
            assert meant.removeprefix("to_list().") in method_names("list")
        elif meant.endswith("(…)"):
            assert vm.builtins.is_builtin(name)
            taken = Signature(vm.builtins.signature(name)).parameters[0].type
            assert taken == kind or taken not in VALUES or taken in ("any", "string"), (name, taken)
        elif meant:
            assert meant in known


def test_an_iterator_that_is_joined() -> None:
    """`join(…)` takes lists: of an iterator it makes an empty text."""
    with pytest.raises(VmError, match=re.escape("on iter (did you mean `to_list().join`?)")):
        Vm().run_source('iter([1, 2]).join("-")')
    assert Vm().run_source('return iter([1, 2]).to_list().join("-")') == "1-2"
