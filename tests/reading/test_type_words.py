"""Type words: the language's, whoever made the value."""

from __future__ import annotations

import pytest

from harnpy.reading.type_words import type_word
from harnpy.vm.values.objects import Set, type_name


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "a", [], {}, b"a", Set([1])], ids=type_name)
def test_they_are_those_of_the_language(value: object) -> None:
    assert type_word(value) == type_name(value)


def test_a_python_function_is_a_closure() -> None:
    assert type_word(print) == "closure"
