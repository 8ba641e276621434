"""What may be done with the text of a value."""

from __future__ import annotations

from harnpy.vm.emit import (
    CONSTANT,
    ENTRY,
    NIL,
    SLOT,
    TEMP,
    Operand,
    at_hand,
    constant,
    is_fixed,
    joined,
    reading,
    tuple_text,
)
from harnpy.vm.resolve import Variable


def test_an_operand_is_put_into_a_text_by_its_own() -> None:
    assert f"{Operand('x', SLOT)} + {constant(1)}" == "x + 1"
    assert repr(constant("a")) == "Operand(\"'a'\", 'constant')"


def test_what_is_at_hand_computes_nothing() -> None:
    assert all(at_hand(Operand("x", kind)) for kind in (CONSTANT, SLOT, TEMP))
    assert not at_hand(Operand("m['x']", ENTRY))
    assert not at_hand("x + 1")


def test_only_temporaries_and_constants_stay_what_they_are() -> None:
    assert is_fixed(Operand("t1", TEMP))
    assert is_fixed(NIL)
    assert not is_fixed(Operand("x_1", SLOT))
    assert not is_fixed(Operand("m['x']", ENTRY))
    assert not is_fixed("f()")


def test_slots_are_python_variables() -> None:
    assert Operand("x_1", SLOT).is_slot
    assert Operand("t1", TEMP).is_slot
    assert not NIL.is_slot


def test_operands_of_the_same_text_are_the_same() -> None:
    assert Operand("x", SLOT) == Operand("x", SLOT)
    assert Operand("x", SLOT) != "x"
    assert len({Operand("x", SLOT), Operand("x", SLOT)}) == 1


def test_a_variable_is_read_from_its_slot_or_from_the_shared_table() -> None:
    variable = Variable("x", 3, True, "let")
    assert (reading(variable).text, reading(variable).kind) == ("x_3", SLOT)
    variable.keep_in_table()
    assert (reading(variable).text, reading(variable).kind) == ("m['x']", ENTRY)


def test_tuples() -> None:
    x = Operand("x", SLOT)
    assert [tuple_text(items) for items in ([], [x], [x, "f()"])] == ["()", "(x,)", "(x, f())"]
    assert joined([x, "f()"]) == "x, f()"
