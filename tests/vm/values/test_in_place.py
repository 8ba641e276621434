"""Updates in place: common loops stay linear, and an object somebody else holds is never touched."""

from __future__ import annotations

import pytest

from harnpy import Vm
from tests.support import assert_linear, processor_time

LOOPS = {
    "append": "var x = []\nfor i in 0 to N exclusive { x = x + [i] }",
    "push": "var x = []\nfor i in 0 to N exclusive { x = x.push(i) }",
    "set an element": "var x = range(N).to_list()\nfor i in 0 to N exclusive { x[i] = 0 }",
    "set a key": 'var x = {}\nfor i in 0 to N exclusive { x["k${i}"] = i }',
    "set a key that is no string": "var x = {}\nfor i in 0 to N exclusive { x[i] = i }",
    "set a property's key": 'var x = {a: {b: {}}}\nfor i in 0 to N exclusive { x.a.b["k${i}"] = i }',
    "set an element of a row": "var x = [[], range(N).to_list()]\nfor i in 0 to N exclusive { x[1][i] = 0 }",
    "merge": 'var x = {}\nfor i in 0 to N exclusive { x = x + {["k${i}"]: i} }',
    "grow a string": 'var x = ""\nfor i in 0 to N exclusive { x = x + "ab" }',
    "grow a string by a chain": 'var x = ""\nfor i in 0 to N exclusive { x = x + "ab" + "\\n" }',
    "push after a match": """var x = []
for i in 0 to N exclusive {
  match x { [] -> { 0 } _ -> { 1 } }
  x = x.push(i)
}""",
}


def seconds(loop: str, n: int) -> float:
    vm = Vm()
    function = vm.run_source(f"fn run() {{\n{loop.replace('N', str(n))}\nreturn len(x) }}\nreturn run")
    vm.call(function)
    return processor_time(lambda: vm.call(function))


@pytest.mark.parametrize("name", LOOPS)
def test_a_common_loop_takes_time_in_proportion(name: str) -> None:
    assert_linear(lambda size: seconds(LOOPS[name], size), 4_000)
