"""What may be done with the text of a value."""

from __future__ import annotations

from harnpy.vm.emit.operand import NIL, Constant, Operand, Slot, Temp, is_fixed, reading, tuple_text
from harnpy.vm.resolve.scopes import Variable


def test_what_is_put_together_from_operands_computes() -> None:
    assert isinstance(Slot("x"), Operand)
    assert not isinstance(Slot("x") + " + 1", Operand)
    assert not isinstance(f"-{Constant(1)}", Operand)


def test_only_temporaries_and_constants_stay_what_they_are() -> None:
    assert is_fixed(Temp("t1"))
    assert is_fixed(NIL)
    assert not is_fixed(Slot("x_1"))
    assert not is_fixed("f()")


def test_a_variable_is_read_from_its_slot_or_from_the_shared_table() -> None:
    variable = Variable("x", 3, True, "let")
    assert reading(variable) == "x_3"
    assert isinstance(reading(variable), Slot)
    variable.keep_in_table()
    assert reading(variable) == "m['x']"
    assert not isinstance(reading(variable), Operand)


def test_tuples() -> None:
    assert [tuple_text(items) for items in ([], ["a"], ["a", "b"])] == ["()", "(a,)", "(a, b)"]
