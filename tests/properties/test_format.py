"""The formatter loses nothing and has nothing to add to its own output. Spec: 01 §12."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.syntax import ast
from harnpy.syntax.comments import comments_of
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.formatter import format_source
from harnpy.syntax.lexer import lex
from harnpy.syntax.parser import parse
from harnpy.syntax.printer import print_program
from tests.counts import COUNT
from tests.strategies import PROGRAMS
from tests.support import ROOT

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")
_SETTINGS = settings(max_examples=COUNT.examples(12), deadline=None)
_FORMS = [
    " /* {} */ ",
    "/* {} */",
    " // {}\n",
    "\n// {}\n",
    "\n\n  // {}\n\n",
    " /// {}\n",
    "\n/// {}\n",
    "\n/** {} */\n",
    " /** {} */ ",
    "/* {}\n   x */",
    "\n  /* {}\n   x */\n",
    "\n/** {}\n * x */\n",
    "\n// ---- {} ----\n",
    "\n// --------\n// {}\n// ------\n",
    "\n",
]


@st.composite
def commented_programs(draw: Any) -> str:
    """The text of a program with comments in gaps between its tokens, where they change nothing."""
    program = draw(PROGRAMS)
    text = print_program(program, line_width=draw(st.sampled_from([20, 100])))
    for number in range(draw(st.integers(1, 5))):
        tokens = lex(text, 0, len(text))
        at = draw(st.sampled_from(tokens.starts + tokens.ends))
        comment = draw(st.sampled_from(_FORMS)).format(f"c{number}")
        changed = text[:at] + comment + text[at:]
        try:
            text = changed if parse(changed) == program else text
        except SyntaxFault:
            continue
    return str(text)


def words(source: str) -> Counter[str]:
    """The words of the comments of a text."""
    found = " ".join(source[comment.start : comment.end] for comment in comments_of(source))
    return Counter(re.findall(r"\w+", found))


def unbroken(text: str, width: int) -> Iterator[str]:
    """What stands on one line, is longer than ``width`` without its comments, and could stand on several.

    Arguments, items, entries, a block's one statement and chains of operators can; a type's arguments, an
    interpolation and what a closure takes cannot.
    """
    nodes: list[ast.Node] = [parse(text)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Interp | ast.Attribute):
            continue
        nodes += node.children()
        if breakable(node):
            code = without_comments(text[node.start : node.end])
            if "\n" not in code and len(code) > width:
                yield code


def breakable(node: ast.Node) -> bool:
    if isinstance(node, ast.Call | ast.MethodCall):
        return bool(node.args) and not getattr(node, "type_args", ())
    if isinstance(node, ast.Closure):
        return bool(node.body.statements) and not node.params
    return (
        isinstance(node, ast.Binary | ast.Pipe)
        or (isinstance(node, ast.List) and bool(node.items))
        or (isinstance(node, ast.Dict | ast.StructLit) and bool(node.entries))
    )


def without_comments(code: str) -> str:
    for comment in reversed(comments_of(code)):
        code = code[: comment.start].rstrip(" \t") + code[comment.end :]
    return code


@_SETTINGS
@given(commented_programs(), st.sampled_from([20, 100]))
def test_every_comment_survives_once_and_formatting_again_changes_nothing(source: str, width: int) -> None:
    text = format_source(source, line_width=width)
    assert words(text) == words(source)
    assert format_source(text, line_width=width) == text


@_SETTINGS
@given(commented_programs(), st.sampled_from([20, 100]))
def test_no_line_is_too_long_that_could_be_broken(source: str, width: int) -> None:
    text = format_source(source, line_width=width)
    assert not list(unbroken(text, width))


@_SETTINGS
@given(PROGRAMS)
def test_a_program_without_comments_is_its_own_tree_again(program: ast.Program) -> None:
    source = print_program(program)
    assert format_source(format_source(source)) == format_source(source)


def sources() -> Iterator[tuple[str, str]]:
    """Some files of each folder of the repository, all of them in a campaign."""
    files = sorted(path for path in ROOT.rglob("?*.harn") if ".git" not in path.parts)
    for path in files[:: COUNT.format_share]:
        with contextlib.suppress(UnicodeDecodeError):
            yield str(path), path.read_bytes().decode()
    for page in sorted((ROOT / "docs").glob("*.md")):
        for text in re.findall(r"^```harn\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            yield page.name, text


def test_the_programs_of_the_repository() -> None:
    formatted = refused = 0
    for name, source in sources():
        try:
            text = format_source(source, file=name)
        except SyntaxFault:
            refused += 1
            continue
        assert words(text) == words(source), name
        assert format_source(text) == text, name
        assert not list(unbroken(text, 100)), name
        formatted += 1
    assert formatted > 10 * refused
