"""What each name means, decided before anything runs. Spec: 02 §7."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast import walk
from harnpy.syntax.parser import parse
from harnpy.vm.imports import Imports
from harnpy.vm.resolve import Declared, Reference, Resolution, entry_pipeline
from harnpy.vm.resolve.names import Resolver

BUILTINS = {"len", "println", "range", "schema_is"}


def resolver() -> Resolver:
    return Resolver(BUILTINS.__contains__, {"argv"}.__contains__)


def resolved(source: str, entry: str | None = None) -> tuple[ast.Program, Resolution]:
    program = parse(source)
    return program, resolver().program(program, entry_pipeline(program, entry))


def uses(source: str, name: str) -> list[Reference]:
    """What ``name`` means wherever it is read or called, in source order."""
    program, resolution = resolved(source)
    nodes = [node for node in walk(program) if isinstance(node, ast.Name | ast.Call) and node.name == name]
    found = [resolution.refs.get(id(node)) for node in sorted(nodes, key=lambda node: node.start)]
    return [ref for ref in found if ref]


def meanings(source: str, name: str) -> list[str]:
    return [ref.kind for ref in uses(source, name)]


def chain(ref: Reference | None) -> list[str]:
    """What a call tries, from the inside out."""
    kinds: list[str] = []
    while ref is not None:
        kinds.append(ref.kind)
        ref = ref.outer
    return kinds


def test_a_name_is_visible_after_its_declaration_and_not_before() -> None:
    assert meanings("x\nlet x = 1\nx", "x") == ["undefined", "local"]


def test_a_name_ends_with_its_block() -> None:
    assert meanings("if true { let x = 1\n x }\nx", "x") == ["local", "undefined"]


def test_what_no_program_declares() -> None:
    assert meanings("len([])", "len") == ["builtin"]
    assert meanings("argv", "argv") == ["global"]
    assert meanings("println", "println") == ["builtin"]


def test_a_variable_shadows_a_builtin_but_a_call_may_fall_back_on_it() -> None:
    (ref,) = uses("let len = 1\nlen([])", "len")
    assert chain(ref) == ["local", "builtin"]


def test_an_undefined_name_knows_what_is_visible() -> None:
    (ref,) = uses("let total = 1\nif true { let inner = 2 }\ntotl", "totl")
    assert ref.visible == ("total",)


def test_blocks_shadow_without_disturbing_the_outer_variable() -> None:
    outer, inner, again = uses("let x = 1\nx\nif true { let x = 2\n x }\nx", "x")
    assert outer.variable is again.variable is not inner.variable


def test_a_closure_captures_into_a_variable_of_its_own() -> None:
    outside, inside = uses("let x = 1\nx\nlet f = { -> x }", "x")
    assert inside.variable
    assert inside.variable is not outside.variable
    assert inside.variable.captured_from is outside.variable
    assert not inside.variable.late


def test_capture_goes_through_every_function_in_between() -> None:
    outside, inside = uses("let x = 1\nx\nlet f = { -> { -> x } }", "x")
    assert inside.variable
    assert inside.variable.captured_from
    assert inside.variable.captured_from.captured_from is outside.variable


def test_a_closure_that_names_itself_finds_it_in_a_box() -> None:
    (ref,) = uses("let f = { n -> f(n) }", "f")
    assert ref.variable
    assert ref.variable.in_box


def test_a_function_used_above_its_declaration_is_a_shell() -> None:
    (ref,) = uses("fn a() { return b() }\nfn b() { return 1 }", "b")
    assert ref.variable
    assert ref.variable.captured_from
    assert ref.variable.captured_from.shell
    assert ref.variable.known_fn


def test_redeclaring_an_immutable_name_in_one_scope_is_noted() -> None:
    program, resolution = resolved("let x = 1\nlet x = 2\nvar y = 1\nvar y = 2")
    second = program.items[1]
    assert isinstance(second, ast.Let)
    assert resolution.redeclared == {(id(second.target), "x")}


def test_a_match_arm_binds_names_and_reads_the_rest() -> None:
    source = "let v = [1, 2]\nlet limit = 2\nmatch v { [a, 1 + limit] -> { a } _ -> { } }"
    assert meanings(source, "a") == ["local"]
    assert meanings(source, "limit") == ["local"]


def test_the_hole_of_a_pipe_is_a_variable() -> None:
    (ref,) = uses("[1] |> len(_)", "_")
    assert ref.kind == "local"
    assert ref.variable
    assert ref.variable.role == "pipe"


def test_a_pipeline_sees_what_those_it_extends_declare() -> None:
    source = "pipeline base(task) { let x = 1 }\npipeline main(task) extends base { x }"
    program = parse(source)
    resolution = resolver().program(program, entry_pipeline(program, "main"))
    (use,) = [node for node in walk(program) if isinstance(node, ast.Name) and node.name == "x"]
    assert resolution.refs[id(use)].kind == "local"


def test_a_module_shares_its_vars_and_copies_its_lets() -> None:
    program = parse("var count = 0\nlet step = 1\nfn next() { count = count + step }")
    resolution = resolver().module(program, Imports())
    by_name = {variable.name: variable for variable in resolution.variables.values()}
    assert by_name["count"].shared
    assert by_name["count"].in_table
    assert not by_name["step"].shared


def test_inputs_of_a_repl_share_their_names() -> None:
    declared = Declared()
    resolver().input(parse("let x = 1\nstruct P { a: int }"), declared)
    program = parse("x\nlet f = { -> later }")
    resolution = resolver().input(program, declared)
    kinds = {
        node.name: resolution.refs[id(node)].kind for node in walk(program) if isinstance(node, ast.Name)
    }
    assert kinds == {"x": "local", "later": "dynamic"}
    assert declared.names["x"].python == "m['x']"
    assert list(declared.structs) == ["P"]


def test_a_failed_input_is_tried_on_a_copy() -> None:
    declared = Declared()
    resolver().input(parse("let x = 1"), declared.copy())
    assert declared.names == {}


def test_a_function_with_yield_is_a_generator() -> None:
    program, resolution = resolved("fn f() { yield 1 }\nfn g() { let h = { -> yield_ }\n defer { } }")
    functions = [resolution.functions[id(item)] for item in program.items]
    assert [(f.yields, f.defers) for f in functions] == [(True, False), (False, True)]


def test_the_name_of_a_type_may_stand_for_its_schema() -> None:
    source = 'type Answer = "yes" | "no"\nschema_is("yes", Answer)'
    (ref,) = uses(source, "Answer")
    assert ref.kind == "schema"
    assert ref.schema == {"type": "string", "enum": ["yes", "no"]}


def test_types_mean_the_same_everywhere_in_a_file() -> None:
    _, resolution = resolved("if true { enum E { A }\n struct S { x: int } }")
    assert "E" in resolution.enums
    assert "S" in resolution.structs
