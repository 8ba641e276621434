"""The formatter loses nothing and has nothing to add to its own output. Spec: 01 §12."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.syntax import ast
from harnpy.syntax.comments import comments_of
from harnpy.syntax.errors import SyntaxFault
from harnpy.syntax.formatting.document import format_source
from harnpy.syntax.lexer import lex
from harnpy.syntax.parser import parse
from harnpy.syntax.printer import print_program
from tests.strategies import PROGRAMS

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")
_SETTINGS = settings(max_examples=int(os.environ.get("HARNPY_PROGRAMS", "60")), deadline=None)
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


@_SETTINGS
@given(commented_programs(), st.sampled_from([20, 100]))
def test_every_comment_survives_once_and_formatting_again_changes_nothing(source: str, width: int) -> None:
    text = format_source(source, line_width=width)
    assert words(text) == words(source)
    assert format_source(text, line_width=width) == text


@_SETTINGS
@given(PROGRAMS)
def test_a_program_without_comments_is_its_own_tree_again(program: ast.Program) -> None:
    source = print_program(program)
    assert format_source(format_source(source)) == format_source(source)
