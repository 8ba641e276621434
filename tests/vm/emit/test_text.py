"""The shape of generated text: what is fused, what is guarded, what is left out."""

from __future__ import annotations

import ast as python

import pytest

from harnpy import Vm
from harnpy.syntax.parser import parse
from harnpy.vm import emit
from harnpy.vm.compile import compile_program
from harnpy.vm.emit.emitter import TooDeep
from harnpy.vm.emit.program import UnitDraft, draft_of, unit_lines
from harnpy.vm.emit.source_map import render
from harnpy.vm.imports import Imports
from harnpy.vm.resolve import Declared, entry_pipeline
from harnpy.vm.resolve.names import Resolver
from harnpy.vm.unit import LANGUAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.emit.source_map import SourceRange


def drafted(source: str) -> tuple[UnitDraft, str, list[SourceRange]]:
    table, program = Vm().builtins, parse(source)
    entry = entry_pipeline(program)
    resolution = Resolver(table.is_builtin, table.is_global).program(program, entry)
    draft = draft_of(program, resolution, table)
    return draft, *render(unit_lines(draft, "program", entry))


def text_of(source: str) -> str:
    return drafted(source)[1]


def functions(text: str) -> list[str]:
    tree = python.parse(text)
    return [node.name for node in python.walk(tree) if isinstance(node, python.FunctionDef)]


def test_a_function_is_one_python_function_and_its_maker() -> None:
    text = text_of("fn f(x) { if x { return [x, x + 1] } else { for y in x { println(y) } } }")
    assert functions(text) == ["make1", "main", "f1"]


def test_every_line_stands_for_a_place_in_the_source() -> None:
    source = 'let a = {b: 1}\nprintln(a.b.c)\nthrow "x"'
    _, text, ranges = drafted(source)
    lines = text.splitlines()
    assert len(ranges) == len(lines)
    (raising,) = [at for line, at in zip(lines, ranges, strict=True) if "raise Thrown" in line]
    assert source[slice(*raising)] == 'throw "x"'


def test_arithmetic_on_ints_has_no_guards() -> None:
    text = text_of("var x = 1\nwhile true { x = x * 2 + 3 }")
    assert "type(" not in text
    assert "wrap(" in text


def test_arithmetic_on_unknown_values_is_guarded_and_falls_back() -> None:
    text = text_of("fn f(x) { return x + 1 }")
    assert "is int" in text
    assert "add(" in text


def test_a_tree_of_ring_operators_is_wrapped_once() -> None:
    text = text_of("let x = len([])\nlet y = x + x * x - x")
    assert text.count("wrap(") == 1


def test_comparing_ints_is_pythons_own() -> None:
    assert "if (x_1 < 3):" in text_of("let x = 1\nif x < 3 { println(x) }")


def test_a_condition_is_the_value_itself() -> None:
    """Python truthiness is Harn truthiness."""
    assert "if x_1:" in text_of("var x = nil\nif x { println(1) }")


def test_evaluation_keeps_its_order_when_an_operand_needs_lines() -> None:
    text = text_of("fn g() { }\nlet x = [g(), if true { 1 } else { 2 }]")
    assert text.index(".call)(") < text.index("if True:")


def test_constants_are_written_where_they_are_used() -> None:
    text = text_of("""println("it's \\"quoted\\"")""")
    assert "t1" not in text


def test_the_only_holder_of_a_list_is_updated_in_place() -> None:
    text = text_of("var xs = []\nxs = xs + [1]\nxs = xs.push(2)\nxs[0] = 3")
    lines = text.splitlines()
    for update in ("xs_1.append(1", "xs_1.append(2", "xs_1[0] = "):
        (at,) = [i for i, line in enumerate(lines) if update in line and "else" not in line]
        assert "getrefcount(xs_1) == SOLE" in lines[at] + lines[at - 1]


#: What a loop does with a list beside updates of it, and whether it alone is sure to hold it throughout.
BESIDE = {
    "nothing": ("", True),
    "a part": ("let y = xs[0]", True),
    "its length": ("let y = len(xs) + xs.count", True),
    "a comparison": ("let y = xs == [1]", True),
    "another value": ("xs = [i]", True),
    "the list": ("let y = xs", False),
    "a loop over it": ("for x in xs { }", False),
    "a closure": ("let f = { -> xs }", False),
    "an argument": ("println(xs)", False),
    "an update inside an expression": ("let y = [xs[0], if true { xs[0] = 2\n1 } else { 2 }]", False),
    "updates of another kind": ('xs["k"] = 1', False),
}


@pytest.mark.parametrize("beside", BESIDE)
def test_a_loop_that_only_updates_a_list_asks_once_who_holds_it(beside: str) -> None:
    statement, alone = BESIDE[beside]
    text = text_of(f"fn f(n) {{ var xs = []\nfor i in 0 to n {{ xs = xs + [i]\n{statement} }}\nreturn xs }}")
    assert ("if sole" in text) == alone
    assert ("sole1 = False\n" in text) == alone


def test_a_variable_shared_by_functions_lives_in_a_table() -> None:
    table, program = Vm().builtins, parse("var n = 0\nfn next() { n = n + 1 }")
    resolution = Resolver(table.is_builtin, table.is_global).module(program, Imports())
    text, _ = render(unit_lines(draft_of(program, resolution, table), "module"))
    assert "m['n'] = 0" in text
    assert "publish({'next': next_" in text


def test_the_value_of_an_input_is_that_of_its_last_expression() -> None:
    table, program = Vm().builtins, parse("let x = 1\nx")
    resolution = Resolver(table.is_builtin, table.is_global).input(program, Declared())
    text, _ = render(unit_lines(draft_of(program, resolution, table), "input"))
    assert "return m['x']" in text


def test_a_self_call_in_tail_position_is_a_loop() -> None:
    text = text_of("fn f(n) { if n == 0 { return 0 }\n return f(n - 1) }")
    assert "while True:" in text
    assert "continue" in text
    assert "TAIL" not in text


def test_another_tail_call_is_left_to_the_caller() -> None:
    text = text_of("fn g(n) { return h(n) }\nfn h(n) { return g(n) }")
    assert "return TAIL" in text
    assert "bouncing(" in text


def test_a_tail_call_of_a_function_that_calls_nothing_is_a_call() -> None:
    assert "TAIL" not in text_of("fn leaf(n) { return n }\nfn g(n) { return leaf(n) }")


def test_a_captured_name_that_is_assigned_to_is_copied_first() -> None:
    text = text_of("var x = 1\nlet f = { -> x = 2 }")
    assert "_given" in text


def test_loops_and_all_functions_check_the_signal() -> None:
    assert "signal.pending" in text_of("while true { break }")
    assert "signal.pending" in text_of("fn leaf(x) { return x }")


def test_a_unit_knows_what_it_refers_to() -> None:
    draft, text, _ = drafted('println(len("a"))\nlet f = println\nargv.first\n[1].join(",")')
    assert ("b_println_", "println") in draft.called
    assert draft.valued == {("v_println_", "println")}
    assert draft.globals == {("g_argv_", "argv")}
    assert draft.methods == {("m_join_1_", "join", 1)}
    helpers = emit.helpers_used([compile(text, "x", "exec")])
    assert ("get_prop", "values.operators") in helpers


def test_python_names_of_builtins_globals_and_methods() -> None:
    assert emit.builtin_function("stream.map") == "b_stream__map_"
    assert emit.builtin_value("len") == "v_len_"
    assert emit.global_value("argv") == "g_argv_"
    assert emit.method_table("größe", 2).isascii()


def test_a_function_deeper_than_python_allows_is_named_and_its_maker_walks() -> None:
    source = "fn f(x) { " + "if x { " * 120 + "return x" + " }" * 120 + " }"
    with pytest.raises(TooDeep) as error:
        text_of(source)
    assert source[error.value.function.start :].startswith("fn f")
    unit = compile_program(source, "f.harn", None, Vm().builtins, LANGUAGE, None)
    assert unit.walked is not None
    assert [place for name, place in unit.helpers if name == "overflow"] == []
