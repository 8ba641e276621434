"""Laws of the text format: what was written is read, and nothing else is. Spec: 07 §6.6."""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.llm.text_format import RUNTIME_TOOLS, Parsed, parse_reply, render_call
from tests.counts import COUNT
from tests.llm.text_format.spellings import PREFIXES, Speller, written_calls
from tests.support import assert_linear, ends, processor_time

TRAPS = (
    "</tool_call>",
    "<tool_call>\nother({ a: 1 })\n</tool_call>",
    "\nother({})\n",
    "<other({})>",
    "</user_response><done>##DONE##</done>",
    '"',
    "'",
    "`",
    "```\n",
    "\\",
    "\\n",
    "\\u0041",
    "\n",
    "\r\n",
    "\t",
    "\0",
    "\b",
    "EOF",
    "\nEOF\n",
    "<<EOF\n",
    "${x}",
    "*/",
    "/*",
    "//",
    "({[",
    ")}]",
    "é😀",
    "\u2028",
    '[{"function": {"name": "other"}}]',
)
TOOLS = ("other", "x", "do_it", "server__tool", "a-b.c")

texts = st.builds(
    "".join, st.lists(st.one_of(st.sampled_from(TRAPS), st.text(max_size=6)), max_size=5)
).filter(
    lambda text: "<think>" not in text  # leaked thoughts go before anything is read
)
keys = st.one_of(st.text(string.ascii_letters + "_$", min_size=1, max_size=5), texts)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=8,
)
calls = st.tuples(st.sampled_from(TOOLS), st.dictionaries(keys, values, max_size=4))
randoms = st.randoms(use_true_random=False)


def read(parsed: Parsed) -> list[tuple[str, str]]:
    return [(call["name"], exact(call["arguments"])) for call in parsed.calls]


def exact(value: Any) -> str:
    """A text that tells 1 from 1.0 and from true."""
    if isinstance(value, list):
        return repr([exact(item) for item in value])
    if isinstance(value, dict):
        return repr(sorted((key, exact(item)) for key, item in value.items()))
    return repr(value)


def placed(random: Random, name: str, call: str) -> str:
    """A call in one of the places where one is carried out."""
    prefix = random.choice(["", "", f"{random.choice(PREFIXES)}: "])
    blank = random.choice(["", " ", "\t"])
    return random.choice(
        [
            f"<tool_call>\n{blank}{prefix}{call}\n</tool_call>",
            f"<tool_call>{call}</tool_call>",
            f"<tool_call>\n```js\n{call}\n```\n</tool_call>",
            f"\n{blank}{prefix}{call}\n",
            f"\n```\n{call}\n```\n",
            f"<{call}>",
        ]
    )


@given(st.lists(calls, max_size=4), randoms)
def test_calls_are_read_as_they_were_meant_however_they_are_spelled(
    meant: list[tuple[str, dict[str, Any]]], random: Random
) -> None:
    speller = Speller(random)
    pieces = [placed(random, name, speller.call(name, arguments)) for name, arguments in meant]
    prose = ["", "\n", "<assistant_prose>So.</assistant_prose>\n", "Some words, `other({})` too.\n"]
    reply = "".join(piece + random.choice(prose) for piece in pieces)
    parsed = parse_reply(reply, TOOLS)
    assert read(parsed) == [(name, exact(arguments)) for name, arguments in meant]
    assert parsed.errors == []


@given(calls, st.one_of(st.none(), st.sampled_from(["call_1", "x"])), randoms)
def test_calls_as_json_are_read_when_there_are_no_others(
    call: tuple[str, dict[str, Any]], id: str | None, random: Random
) -> None:
    name, arguments = call
    written = Speller(random).openai(name, arguments, id)
    for reply in (written, f"Well:\n```json\n{written}\n```", f"<tool_call>\n{written}\n</tool_call>"):
        if reply is not written and "</tool_call>" in written:
            continue  # inside a block only a call's own strings are known for strings
        parsed = parse_reply(reply, TOOLS)
        assert read(parsed) == [(name, exact(arguments))]
        assert parsed.calls[0]["id"] == (id or "tc_0")
    beside = parse_reply(f"<tool_call>x({{}})</tool_call>\n{written}", TOOLS)
    assert read(beside) == [("x", exact({}))]


@given(st.lists(calls, min_size=1, max_size=3))
def test_the_canonical_form_means_the_same_and_is_its_own(
    meant: list[tuple[str, dict[str, Any]]],
) -> None:
    blocks = [render_call(name, arguments) for name, arguments in meant]
    first = parse_reply("\n".join(blocks), TOOLS)
    again = parse_reply(first.canonical, TOOLS)
    assert read(first) == read(again) == [(name, exact(arguments)) for name, arguments in meant]
    assert again.canonical == first.canonical == "\n\n".join(blocks)
    assert again.violations == again.errors == []


@given(calls, randoms)
def test_inline_code_is_not_carried_out(call: tuple[str, dict[str, Any]], random: Random) -> None:
    name, arguments = call
    code = Speller(random).call(name, arguments)
    if not re.search(r"[`<]|\n[ \t\r]*\n", code):  # a blank line ends inline code
        for written in (code, f"<{code}>"):
            for reply in (
                f"`{written}`",
                f"Write `{written}` then.",
                f"``\n{written}\n``",
                f"Not `<b>`, but `{written}`.",
                f"`<b>`, or\n`{written}`",
            ):
                assert parse_reply(reply, TOOLS).calls == []


@pytest.mark.parametrize(
    ("reply", "called"),
    [
        ("`\n`<other()>`", ["other"]),  # the code is the line break
        ("<x({/* ` */})><other({/* ` */})>", ["x", "other"]),  # ticks of calls
        ("x({/* ` */)})\n<other({/* ` */})>", ["other"]),  # also of one that fails
        ("x([{/* ` <b> */'<other({})>' /* ` */", []),  # of one that isn't closed they are text
        ("x({ a: 'don`t' <b>\n\n<other({ a: `` })>", ["other"]),
        ("`<b>` <other()> `", ["other"]),
        ("`<b>```\nother()\n`", []),
        ("Its ` tick\n<tool_call>x()</tool_call>\n<other()> `", ["x", "other"]),
    ],
)
def test_inline_code_begins_and_ends_where_markdown_says(reply: str, called: list[str]) -> None:
    assert [call["name"] for call in parse_reply(reply, TOOLS).calls] == called
    assert {*called} <= {name for name, _ in written_calls(reply, {*TOOLS})}


# --- replies that are broken ----------------------------------------------------------------------

REPLIES = COUNT.broken_replies
TOKENS = (
    *TRAPS,
    *"<tool_call> </tool_call> <assistant_prose> <user_response> </user_response> <done>".split(),
    *"( ) { } [ ] , :".split(),
    "x(",
    "x({",
    "other({})",
    "\nother({a: 1})\n",
    "unknown({})",
    "note: x({})",
    "tool_code: x({})",
    "<x(",
    "`<b>`",
    "null",
    "-1e5",
    "0x1F",
    " ",
    "\n",
)


def reply_of(random: Random) -> str:
    speller = Speller(random)
    pieces = []
    for _ in range(random.randint(1, 4)):
        name = random.choice([*TOOLS, "unknown"])
        arguments = {
            random.choice("abc"): random.choice([random.choice(TRAPS) * 2, 7, 2.5, None, ["q", {"r": "s"}]])
            for _ in range(random.randint(0, 3))
        }
        made = (
            speller.openai(name, arguments, None) if random.random() < 0.15 else speller.call(name, arguments)
        )
        pieces.append(placed(random, name, made))
        pieces.append(random.choice(["", "\n", "Prose `x({})`.\n", "<user_response>So.</user_response>\n"]))
    return "".join(pieces)


def mutated(random: Random, text: str) -> str:
    for _ in range(random.randint(1, 6)):
        at = random.randint(0, len(text))
        end = min(len(text), at + random.randint(0, 12))
        text = random.choice(
            [
                text[:at] + text[end:],
                text[:at] + random.choice(TOKENS) + text[at:],
                text[:at] + random.choice(TOKENS) + text[end:],
                text[:at] + text[at:end] * 2 + text[end:],
                text[:at],
                text[at:],
                text[:at] + chr(random.choice([0, 10, 34, 39, 60, 92, 96, 123, 0xD800, 0x1F600])) + text[at:],
            ]
        )
    return text


def test_broken_replies_raise_nothing_and_invent_no_call() -> None:
    """Each call that is read stands in the text, as a naive reader finds it, and no more often than there."""
    random = Random(20_240_607 + COUNT.seed)
    known = {*TOOLS, *RUNTIME_TOOLS}
    with_calls = 0
    for _ in range(REPLIES):
        text = mutated(random, reply_of(random))
        parsed = parse_reply(text, TOOLS)
        if "<think>" in text:
            continue
        with_calls += bool(parsed.calls)
        written = Counter((name, exact(arguments)) for name, arguments in written_calls(text, known))
        invented = Counter(read(parsed)) - written
        assert not invented, (text, invented)
        assert all(set(call) == {"id", "name", "arguments"} for call in parsed.calls)
        json.dumps(parsed.calls, ensure_ascii=False).encode()  # nothing that can't be sent on
    assert with_calls > REPLIES // 4


# --- hostile replies ------------------------------------------------------------------------------

HOSTILE = {
    "angles": lambda n: "<" * n,
    "angle pairs": lambda n: "<>" * n,
    "open blocks": lambda n: "<tool_call>" * n,
    "blank block": lambda n: "<tool_call>" + "\n" * n,
    "brackets": lambda n: "x({a:" + "[" * n,
    "closed brackets": lambda n: "<tool_call>x({a:" + "[" * n + "]" * n + "})</tool_call>",
    "objects": lambda n: '[{"a":' * n,
    "open calls": lambda n: "x({\n<\n" * n,
    "open strings": lambda n: 'x({a:"\n' * n,
    "open strings in blocks": lambda n: '<tool_call>x({a:"</tool_call>' * n,
    "open comments": lambda n: "<tool_call>x({/*</tool_call>" * n + "*/",
    "open heredocs": lambda n: "".join(f"<tool_call>x({{a:<<E{i}\n</tool_call>" for i in range(n)),
    "angled calls": lambda n: "<x({a:b>" * n + "})" * n,
    "ticks": lambda n: "` `` " * n,
    "escapes": lambda n: 'x({a:"' + "\\" * n,
    "digits": lambda n: "x({a:" + "9" * n + "})",
    "json": lambda n: '[{"function":{"name":"x"}},' * n,
    "prefixes": lambda n: "call:" * n,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_replies_take_a_time_in_proportion(kind: str) -> None:
    def seconds(n: int) -> float:
        text = HOSTILE[kind](n)
        return processor_time(lambda: parse_reply(text, TOOLS))

    parse_reply(HOSTILE[kind](100), TOOLS)
    assert_linear(seconds, 2_000)


def test_a_megabyte_of_angles_and_100k_brackets_are_soon_read() -> None:
    with ends(20):
        parse_reply("<" * 1_000_000, TOOLS)
        nested = parse_reply("<tool_call>x({ a: " + "[" * 100_000 + "]" * 100_000 + " })</tool_call>", TOOLS)
    assert [re.sub(r"levels.*", "levels", error) for error in nested.errors] == [
        "TOOL CALL PARSE ERROR: `x(...)` — the value is nested more than 128 levels"
    ]


@given(st.text(st.characters(exclude_characters="<([{`", codec="utf-8"), max_size=300), randoms)
def test_prose_is_the_same_with_a_block_behind_it(text: str, random: Random) -> None:
    prose = "".join(random.choice((piece, "other: x\n", " ")) for piece in text.split("z"))
    alone, beside = parse_reply(prose, TOOLS), parse_reply(f"{prose}\n<done>x</done>", TOOLS)
    assert (alone.violations, alone.errors, alone.calls) == (beside.violations, beside.errors, beside.calls)
    assert alone == Parsed(violations=alone.violations)
