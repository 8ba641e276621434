"""Whatever the text, the parser returns a tree, or raises errors with a position, soon. Spec: 01 §9."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.parser import parse
from harnpy.syntax.structure import check_structure
from tests.counts import COUNT
from tests.support import assert_linear, ends, processor_time
from tests.syntax.programs import programs

PARTS = 4
_BITS = r"""{ } ( ) [ ] < > ? ?. . ... , : ; = == -> |> | || && ! - + * / ** ?? @ " "" ${ // /* */ \ ' # 0 1.5
5s 1_0 let fn if else match for in to try catch return select timeout default parallel each settle with as
stream gen tool skill eval_pack summarize description enum struct impl interface type where pub import from
not nil Foo x _ r" é 𝔘 ﷽""".split()
_BITS += ["\n", "\t", "\r", "\0"]


def answer(source: str) -> SyntaxFault | None:
    """Parse; a failure must be one that can be shown."""
    with ends():
        fault = refusal(source)
    if fault is not None:
        assert fault.message
        assert fault.diagnostics
        assert all(found.span is not None and found.span.line >= 1 for found in fault.diagnostics)
        assert fault.render().startswith("error: ")
    return fault


def refusal(source: str) -> SyntaxFault | None:
    try:
        program = parse(source)
    except SyntaxFault as fault:
        return fault
    check_structure(program, source)
    return None


def delete(random: random.Random, text: str) -> str:
    i = random.randrange(len(text) + 1)
    return text[:i] + text[i + random.randrange(1, 20) :]


def insert(random: random.Random, text: str) -> str:
    i = random.randrange(len(text) + 1)
    return text[:i] + random.choice(_BITS) + text[i:]


def replace(random: random.Random, text: str) -> str:
    i = random.randrange(len(text) + 1)
    return text[:i] + random.choice(_BITS) + text[i + 1 :]


def repeat(random: random.Random, text: str) -> str:
    i = random.randrange(len(text) + 1)
    return text[: i + 9] + text[i : i + 9] * random.randrange(5) + text[i + 9 :]


def truncate(random: random.Random, text: str) -> str:
    return text[: random.randrange(len(text) + 1)]


def swap(random: random.Random, text: str) -> str:
    words = text.split(" ")
    i, j = random.randrange(len(words)), random.randrange(len(words))
    words[i], words[j] = words[j], words[i]
    return " ".join(words)


_MUTATORS: list[Callable[[random.Random, str], str]] = [delete, insert, replace, repeat, truncate, swap]


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_programs(part: int) -> None:
    seeds = programs()
    chance = random.Random(COUNT.seed + part)
    refused = 0
    for _ in range(COUNT.fuzzed_texts // PARTS):
        text = chance.choice(seeds)
        for _ in range(chance.randrange(1, 4)):
            text = chance.choice(_MUTATORS)(chance, text)
        refused += answer(text) is not None
    assert refused > 0


def test_every_prefix_of_a_program() -> None:
    source = programs()[0]
    for end in range(0, len(source), COUNT.prefix_share):
        answer(source[:end])


@settings(max_examples=COUNT.examples(20))
@given(st.binary(max_size=200))
def test_arbitrary_bytes(data: bytes) -> None:
    answer(data.decode("utf-8", errors="replace"))
    answer(data.decode("latin-1"))


@settings(max_examples=COUNT.examples(20))
@given(st.lists(st.sampled_from(_BITS), max_size=60).map(" ".join))
def test_arbitrary_tokens(source: str) -> None:
    answer(source)


@pytest.mark.parametrize(
    "opening",
    [
        *"( [ { f( [{a: !- - ! <".split(),
        *(
            "{ x -> ",
            "if a {",
            "fn f() {",
            "fn(x) {",
            "try* ",
            "match x { a -> {",
            "let x: list<",
            "let x: [",
            "a ** ",
        ),
        *(
            "let x: {a: ",
            "let x: fn(",
            "a ? (",
            "if a {} else ",
            "a[",
            "spawn {",
            "let {a = ",
            "@a([",
            "select {",
        ),
        *('"${', '"${"${', '"""${', "/*", "f<a<", "parallel {", "retry (", "enum A { B(a = ", "throw "),
    ],
)
def test_ten_thousand_levels(opening: str) -> None:
    fault = answer(opening * 10_000)
    assert fault is not None
    assert fault.diagnostics[0].span is not None


@pytest.mark.parametrize(
    "source",
    [
        "a" * 1_000_000,
        "1" * 1_000_000,
        '"' + "a" * 1_000_000 + '"',
        '"' + "a" * 1_000_000,
        '"' + "\\" * 1_000_001,
        '"' + "$" * 1_000_000 + '"',
        " " * 1_000_000 + "'",
        "//" + "x" * 1_000_000,
        "/*" + "*" * 1_000_000,
        "\n" * 1_000_000 + ")",
    ],
    ids=[
        "name",
        "digits",
        "string",
        "open string",
        "escapes",
        "dollars",
        "blanks",
        "comment",
        "open comment",
        "breaks",
    ],
)
def test_a_line_of_a_megabyte(source: str) -> None:
    answer(source)


@pytest.mark.parametrize(
    "unit",
    [
        "a < b, ",
        "a < b | ",
        "f<a<",
        "a = 'b\n",
        "let = 1\n",
        "${",
        "a /*\n*/ ",
        "a \\\n",
        "}",
        "x?",
        "{a: 1, ",
    ],
)
def test_the_time_grows_with_the_length(unit: str) -> None:
    assert_linear(lambda size: processor_time(lambda: answer(unit * size)), 1_000)
