"""Functions that a file offers, called with arguments by name. Spec: 07 §4.3, 09 §11.4."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy import Vm
from harnpy.serve.functions import functions_of
from harnpy.vm.modules import Library

FILE = """
tool by_name(shop) { "${shop} is open" }
tool by_dict(shop) { "${shop.shop} is open" }
tool several(a: int, b: int = 2, ...c: int) { [a, b, c] }
"""


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
def test_tools_are_called_as_loops_call_them(evaluator: Any) -> None:
    vm = Vm(evaluator=evaluator)
    library = Library(vm, FILE, "tools.harn", "/tools.harn")
    library.load()
    functions = functions_of(library)

    def called(name: str, **arguments: Any) -> Any:
        function = functions[name]
        return vm.call(function.call, *function.positional(arguments))

    assert called("by_name", shop="Baker") == "Baker is open"
    assert called("by_dict", shop="Baker") == "Baker is open"
    assert called("several", a=1) == [1, 2, []]
    assert called("several", a=1, b=3, c=[4, 5]) == [1, 3, [4, 5]]
