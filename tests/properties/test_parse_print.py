"""Parse and print are inverse: text → tree → text. Spec: 01 §12."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.syntax import ast
from harnpy.syntax.ast import pack, unpack
from harnpy.syntax.parser import parse
from harnpy.syntax.printer import print_program
from tests.counts import COUNT
from tests.strategies import EXPRESSIONS, PROGRAMS

#: Hypothesis prints strategies in some warnings of its own, and ours describe a language.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")
_SETTINGS = settings(max_examples=COUNT.examples(12))


@_SETTINGS
@given(PROGRAMS, st.sampled_from([20, 100]))
def test_a_printed_program_parses_to_the_same_tree(program: ast.Program, width: int) -> None:
    text = print_program(program, line_width=width)
    assert parse(text) == program


@_SETTINGS
@given(EXPRESSIONS, st.sampled_from([20, 100]))
def test_so_does_a_printed_expression(value: ast.Node, width: int) -> None:
    program = ast.Program(0, 0, (value,))
    assert parse(print_program(program, line_width=width)) == program


@_SETTINGS
@given(PROGRAMS)
def test_canonical_text_prints_as_itself(program: ast.Program) -> None:
    text = print_program(program)
    assert print_program(parse(text)) == text


@_SETTINGS
@given(PROGRAMS)
def test_a_packed_tree_unpacks_to_itself(program: ast.Program) -> None:
    assert unpack(pack(program)) == program
