"""Generated code against a 64-bit model: whatever fuses, infers or guards, the answer is the model's.

Random expressions over ints at the edges, floats, strings, bools and nil are computed by a small model
written from 02 §2–4, and by programs that hold the same operands in literals, in locals, in
parameters without and with annotations, so that every path of the emitter is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hypothesis import example, given, settings
from hypothesis import strategies as st

from harnpy import Vm, VmError
from harnpy.vm.values import display
from harnpy.world import World
from harnpy.world.streams import RealStreams
from tests.counts import COUNT

EDGES = [0, 1, -1, 2, 7, -7, 2**30 - 1, 2**30, -(2**30), 2**31, 2**53, 2**62, 2**63 - 1, -(2**63)]
OPERANDS = st.one_of(
    st.sampled_from(EDGES),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-20, 20),
    st.sampled_from([0.0, -0.5, 1.5, 1e300, -2.0]),
    st.sampled_from(["", "a", "bc"]),
    st.booleans(),
    st.none(),
)
ARITHMETIC = ["+", "-", "*", "/", "%"]
COMPARISONS = ["==", "!=", "<", ">", "<=", ">="]


class Failure(Exception):
    """The model's way to say what a `catch` would bind."""


@dataclass(frozen=True)
class Operand:
    """The operand number ``index``."""

    index: int


@dataclass(frozen=True)
class Operation:
    op: str
    left: Operand | Operation
    right: Operand | Operation


def trees(depth: int) -> st.SearchStrategy[Operand | Operation]:
    leaves = st.builds(Operand, st.integers(0, 3))
    ops = st.sampled_from([*ARITHMETIC, *ARITHMETIC, *COMPARISONS, "&&", "||", "??"])
    return st.recursive(leaves, lambda inner: st.builds(Operation, ops, inner, inner), max_leaves=depth)


#: `(x * x) % y`, which is `inf % y` for a large `x`.
REST_OF_A_SQUARE = Operation("%", Operation("*", Operand(0), Operand(0)), Operand(1))


# --- the model --------------------------------------------------------------------------------------


def kind(v: object) -> str:
    return {int: "int", float: "float", str: "string", bool: "bool", type(None): "nil"}[type(v)]


def number(v: object) -> bool:
    return type(v) in (int, float)


def wrapped(v: int | float) -> int | float:
    return (v + 2**63) % 2**64 - 2**63 if isinstance(v, int) else v


def apply(op: str, a: object, b: object) -> object:
    if op in COMPARISONS:
        return compared(op, a, b)
    if number(a) and number(b):
        return arithmetic(op, a, b)  # type: ignore[arg-type]
    if op == "+" and kind(a) == kind(b) == "string":
        return a + b  # type: ignore[operator]
    if op == "*" and {kind(a), kind(b)} == {"string", "int"}:
        return a * b  # type: ignore[operator]
    raise Failure(message(op, a, b))


def message(op: str, a: object, b: object) -> str:
    left, right = kind(a), kind(b)
    return {
        "+": f"Type error: Cannot add {left} and {right}",
        "-": f"Type error: Cannot subtract {right} from {left}",
        "*": f"Type error: Cannot multiply {left} and {right}",
        "/": f"Runtime error: Cannot divide {left} by {right}",
        "%": f"Runtime error: Cannot modulo {left} by {right}",
    }[op]


def arithmetic(op: str, a: int | float, b: int | float) -> int | float:
    ints = isinstance(a, int) and isinstance(b, int)
    if op == "+":
        return wrapped(a + b)
    if op == "-":
        return wrapped(a - b)
    if op == "*":
        return wrapped(a * b)
    if op == "/":
        if not ints:
            return divided(float(a), float(b))
        if b == 0:
            raise Failure("Division by zero")
        quotient = abs(a) // abs(b)
        return wrapped(quotient if (a < 0) == (b < 0) else -quotient)
    if b == 0:
        raise Failure("Division by zero")
    if ints:
        return int(math.copysign(1, a)) * (abs(a) % abs(b))
    return math.nan if math.isinf(a) else math.fmod(a, b)


def divided(a: float, b: float) -> float:
    if b:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1, b)


def compared(op: str, a: object, b: object) -> bool:
    if op in ("==", "!="):
        same = (number(a) and number(b) and numeric_equal(a, b)) or (kind(a) == kind(b) and a == b)
        return same == (op == "==")
    order = 0
    if number(a) and number(b):
        x, y = (float(a), float(b)) if kind(a) != kind(b) else (a, b)  # type: ignore[arg-type]
        order = (x > y) - (x < y)  # type: ignore[operator]
    elif kind(a) == kind(b) == "string":
        order = (a > b) - (a < b)  # type: ignore[operator]
    return {"<": order < 0, ">": order > 0, "<=": order <= 0, ">=": order >= 0}[op]


def numeric_equal(a: object, b: object) -> bool:
    return float(a) == float(b) if kind(a) != kind(b) else a == b  # type: ignore[arg-type]


def evaluate(tree: Operand | Operation, values: list[object]) -> object:
    if isinstance(tree, Operand):
        return values[tree.index]
    left = evaluate(tree.left, values)
    if tree.op == "&&":
        return bool(left) and bool(evaluate(tree.right, values))
    if tree.op == "||":
        return bool(left) or bool(evaluate(tree.right, values))
    if tree.op == "??":
        return left if left is not None else evaluate(tree.right, values)
    return apply(tree.op, left, evaluate(tree.right, values))


def repeats_too_much(tree: Operand | Operation, values: list[object]) -> bool:
    """A string times a huge number would ask the model, and Harn, for a huge string."""
    strings = any(isinstance(v, str) and v for v in values)
    huge = any(type(v) is int and v > 1000 for v in values)
    return strings and huge and "*" in text(tree, ["", "", "", ""])


# --- the programs -----------------------------------------------------------------------------------


def text(tree: Operand | Operation, names: list[str]) -> str:
    if isinstance(tree, Operand):
        return names[tree.index]
    return f"({text(tree.left, names)} {tree.op} {text(tree.right, names)})"


def literal(value: object) -> str:
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if value == -(2**63):
        return "(-9223372036854775807 - 1)"
    return display(value) if not isinstance(value, int) or value >= 0 else f"(0 - {-value})"


def annotation(value: object) -> str:
    return {"int": ": int", "float": ": float", "string": ": string", "bool": ": bool"}.get(kind(value), "")


def programs(tree: Operand | Operation, values: list[object]) -> dict[str, str]:
    literals = [literal(value) for value in values]
    names = ["a", "b", "c", "d"]
    expr = text(tree, names)
    lets = "\n".join(f"let {n} = {v}" for n, v in zip(names, literals, strict=True))
    mutables = lets.replace("let", "var")
    typed = ", ".join(n + annotation(v) for n, v in zip(names, values, strict=True))
    call = ", ".join(literals)
    return {
        "literals": f"println(try {{ {text(tree, literals)} }} catch (e) {{ e }})",
        "locals": f"{lets}\nprintln(try {{ {expr} }} catch (e) {{ e }})",
        "assigned": f"{mutables}\nvar r = nil\ntry {{ r = {expr} }} catch (e) {{ r = e }}\nprintln(r)",
        "updated": f"{mutables}\ntry {{ a = {expr} }} catch (e) {{ a = e }}\nprintln(a)",
        "params": f"fn f(a, b, c, d) {{ return {expr} }}\nprintln(try {{ f({call}) }} catch (e) {{ e }})",
        "typed": f"fn f({typed}) {{ return {expr} }}\nprintln(try {{ f({call}) }} catch (e) {{ e }})",
        "closure": f"{lets}\nlet f = {{ -> {expr} }}\nprintln(try {{ f() }} catch (e) {{ e }})",
        "interpolated": f'{lets}\nprintln(try {{ "${{{expr}}}" }} catch (e) {{ e }})',
    }


def output(source: str) -> str:
    out: list[str] = []
    try:
        Vm(World(streams=RealStreams(stdout=out.append))).run_source(source, checked=False)
    except VmError as error:
        return error.text
    return "".join(out).removesuffix("\n")


@settings(max_examples=COUNT.examples(20))
@given(trees(8), st.lists(OPERANDS, min_size=4, max_size=4))
@example(REST_OF_A_SQUARE, [1e300, 1.5, None, None])
@example(REST_OF_A_SQUARE, [1e300, 7, None, None])
def test_every_form_of_an_expression_gives_the_models_answer(
    tree: Operand | Operation, values: list[object]
) -> None:
    if repeats_too_much(tree, values):
        return
    try:
        expected = display(evaluate(tree, values))
    except Failure as failure:
        expected = str(failure)
    found = {form: output(source) for form, source in programs(tree, values).items()}
    assert found == dict.fromkeys(found, expected), programs(tree, values)["locals"]


@settings(max_examples=COUNT.examples(12))
@given(trees(6), st.lists(OPERANDS, min_size=4, max_size=4))
def test_a_condition_takes_the_branch_of_its_truth(tree: Operand | Operation, values: list[object]) -> None:
    if repeats_too_much(tree, values):
        return
    try:
        expected = "yes" if evaluate(tree, values) else "no"
    except Failure:
        return
    names = ["a", "b", "c", "d"]
    lets = "\n".join(f"let {n} = {literal(v)}" for n, v in zip(names, values, strict=True))
    expr = text(tree, names)
    assert output(f'{lets}\nif {expr} {{ println("yes") }} else {{ println("no") }}') == expected
    assert output(f'{lets}\nprintln({expr} ? "yes" : "no")') == expected
    loop = f'var seen = "no"\nwhile {expr} {{ seen = "yes"\n break }}\nprintln(seen)'
    assert output(f"{lets}\n{loop}") == expected
