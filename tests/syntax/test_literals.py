"""Literals, comments and blank space. Spec: 01 §1, §2, §4."""

from __future__ import annotations

import pytest

from harnpy.syntax import ast
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.lexer import lex
from harnpy.syntax.parser import parse


def value(text: str) -> ast.Node:
    """The node of an expression."""
    (node,) = parse(text).items
    return node


def shown(text: str) -> str:
    """What a string literal shows when x is 1 and y is 2."""
    node = value(text)
    if isinstance(node, ast.Str):
        return node.value
    assert isinstance(node, ast.Interp)
    known = {"x": "1", "y": "2"}
    return "".join(part.value if isinstance(part, ast.Str) else known[part.name] for part in node.parts)


def message(text: str) -> str:
    with pytest.raises(SyntaxFault) as caught:
        parse(text)
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("01", 1),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_ints(text: str, expected: int) -> None:
    assert value(text) == ast.Int(0, 0, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1.5", 1.5), ("0.25", 0.25), ("9223372036854775808", 2.0**63), ("9" * 5000, float("inf"))],
)
def test_floats_and_ints_too_large(text: str, expected: float) -> None:
    node = value(text)
    assert isinstance(node, ast.Float)
    assert node.value == expected


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("5ms", 5),
        ("2s", 2_000),
        ("3m", 180_000),
        ("1h", 3_600_000),
        ("1d", 86_400_000),
        ("2w", 1_209_600_000),
        ("0ms", 0),
    ],
)
def test_durations(text: str, ms: int) -> None:
    assert value(text) == ast.Duration(0, 0, ms)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("5ms", ["DURATION"]),
        ("5msx", ["DURATION", "IDENT"]),
        ("5s_", ["DURATION", "IDENT"]),
        ("5s.foo", ["DURATION", ".", "IDENT"]),
        ("5sx", ["INT", "IDENT"]),
        ("10min", ["INT", "IDENT"]),
        ("1mo", ["INT", "IDENT"]),
        ("2h30m", ["INT", "IDENT"]),
        ("1.5s", ["FLOAT", "IDENT"]),
        ("1.", ["INT", "."]),
        (".5", [".", "INT"]),
        ("1.2.3", ["FLOAT", ".", "INT"]),
        ("5.times", ["INT", ".", "IDENT"]),
        ("0x1F", ["INT", "IDENT"]),
        ("1_000", ["INT", "IDENT"]),
        ("1e3", ["INT", "IDENT"]),
        ("a>>b", ["IDENT", ">", ">", "IDENT"]),
        ("a>=b", ["IDENT", ">=", "IDENT"]),
        ("a**b", ["IDENT", "**", "IDENT"]),
        ("a***b", ["IDENT", "**", "*", "IDENT"]),
        ("a?.b", ["IDENT", "?.", "IDENT"]),
        ("a??b", ["IDENT", "??", "IDENT"]),
        ("a|>b||c|d", ["IDENT", "|>", "IDENT", "||", "IDENT", "|", "IDENT"]),
        ("a->b-=c", ["IDENT", "->", "IDENT", "-=", "IDENT"]),
        ("...x", ["ELLIPSIS", "IDENT"]),
        (". . .x", ["ELLIPSIS", "IDENT"]),
        ("..x", [".", ".", "IDENT"]),
        ("é_1 Ω x²", ["IDENT", "IDENT", "IDENT"]),
        ('r"x"', ["RAW_STRING"]),
        ('r "x"', ["IDENT", "STRING"]),
        ('bar"x"', ["IDENT", "STRING"]),
        ('r"""a"""', ["RAW_STRING", "STRING", "STRING"]),
        ('"a${x}"', ["INTERP"]),
        ('"a$x"', ["STRING"]),
    ],
)
def test_token_kinds(text: str, kinds: list[str]) -> None:
    assert lex(text, 0, len(text)).kinds == [*kinds, "$END"]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("#!/usr/bin/env harn\na", ["NL", "IDENT"]),
        ("a // b\nc", ["IDENT", "NL", "IDENT"]),
        ("a /// b\n// c\n\nd", ["IDENT", "NL", "IDENT"]),
        ("a /* b\n */ c", ["IDENT", "IDENT"]),
        ("a /* b /* c */ d */ e", ["IDENT", "IDENT"]),
        ("a /**/ b /*** c ***/ d", ["IDENT", "IDENT", "IDENT"]),
        ("a \\\nb", ["IDENT", "IDENT"]),
        ("a // no join \\\nb", ["IDENT", "NL", "IDENT"]),
        ("a\r\nb\t c", ["IDENT", "NL", "IDENT", "IDENT"]),
        ('"// text" /* c */', ["STRING"]),
    ],
)
def test_blanks_and_comments(text: str, kinds: list[str]) -> None:
    assert lex(text, 0, len(text)).kinds == [*kinds, "$END"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'"\n\t\\\"\$"', '\n\t\\"$'),
        (r'"\${x}"', "${x}"),
        (r'"\r\u00e9\x41\0\'\{"', r"\r\u00e9\x41\0\'\{"),
        ('"a\\\nb"', "a\\\nb"),
        ('"$x $ {"', "$x $ {"),
        (r'r"a\"', "a\\"),
        (r'r"${x}\n"', r"${x}\n"),
        ('""', ""),
        ('"a${x}b${y}"', "a1b2"),
        ('"${x}${y}"', "12"),
        ('"$${x}"', "$1"),
        ('"${x\n}"', "1"),
        ('"${ x // y\n}"', "1"),
        ('"a${ x /* } */ }"', "a */ }"),
    ],
)
def test_strings(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"""\n  a\n    b\n  """', "a\n  b"),
        ('"""\n\n  a\n\n"""', "\na\n"),
        ('"""\n   k: ${x}\n   m: ${y}\n   """', "k: 1\nm: 2"),
        ('"""\n  k: ${x} ${y}\n  z\n"""', "k: 12\nz"),
        ('"""\n  a\n  ${x} b\n"""', "a1b"),
        ('"""\nk: ${x}\nz\n"""', "k: 1\nz\n"),
        ('"""\n  ${x}\n"""', "  1"),
        # Beyond the table:
        ('"""abc"""', "abc"),
        ('"""\nabc\n"""', "abc"),
        ('"""\n\ta\n\t\tb\n"""', "a\n\tb"),
        ('"""  \n  \n"""', "  \n  \n"),
        ('"""a "quoted" ""x"""', 'a "quoted" ""x'),
        ('"""\\n \\" \\$"""', '\\n \\" \\$'),
        ('"""\\${x}"""', "\\1"),
        ('"""${}"""', ""),
        ('"""\r\n  a"""', "\r\n  a".replace("\n  ", "\n").replace("\r", "")),
    ],
)
def test_triple_quoted_strings_lose_their_indentation(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('"${a b}"', '"${a}"'),
        ('"${a, b}"', '"${a}"'),
        ('"${1 +}"', '"1 +${""}"'),
        ('"a${1 +}b"', '"a1 +b${""}"'),
        ('"x${`}y"', '"xy${""}"'),
        ('"${d["k"]}"', '"${ d["k"] }"'),
        ('"${join(xs, ", ")}"', '"${(join(xs, ", "))}"'),
        ('"${"in ${x}"}"', '"${ "in ${ x }" }"'),
        ('"${{a: 1}.a}"', '"${ ({a: 1}).a }"'),
        ('"${xs.map({ x -> x })}"', '"${ xs.map({ x -> x }) }"'),
    ],
)
def test_interpolations(text: str, same: str) -> None:
    assert value(text) == value(same)


def test_an_interpolation_knows_where_it_stands() -> None:
    node = value('"ab${ foo(1) }"')
    assert isinstance(node, ast.Interp)
    call = node.parts[1]
    assert (call.start, call.end) == (6, 12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("let q = 'hi'", "Unexpected character ''' at 1:9"),
        ("a # b", "Unexpected character '#' at 1:3"),
        ("a & b", "Unexpected character '&' at 1:3"),
        ("a\n\\ b", "Unexpected character '\\' at 2:1"),
        ("a \\\r\n b", "Unexpected character '\\' at 1:3"),
        ("\ufeffa", "Unexpected character '\ufeff' at 1:1"),
        ("a\u00a0b", "Unexpected character '\u00a0' at 1:2"),
        ("٣", "Unexpected character '٣' at 1:1"),
        ("²", "Unexpected character '²' at 1:1"),
        ('let s = "abc\n', "Unterminated string at 1:9"),
        ('"""abc', "Unterminated string at 1:1"),
        ('"a${b', "Unterminated string at 1:1"),
        ('"${f("}")}"', "Unterminated string at 1:11"),
        ("/* a /* b */", "Unterminated block comment at 1:1"),
        ('"${}"', "Unexpected character '}' at 1:5"),
        ('"${  }"', "Unexpected character '}' at 1:7"),
    ],
)
def test_lexer_errors(text: str, expected: str) -> None:
    assert message(text) == expected
