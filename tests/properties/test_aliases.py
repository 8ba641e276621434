"""An alias never changes: in-place updates happen only where nobody else can see. Spec: 02 §8.

Random programs over three variables are run and compared with a model that copies always: steps one after the
other, and in loops, which need not ask each time who holds a value.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy import Vm
from harnpy.vm.values import display
from harnpy.world import World
from harnpy.world.streams import RealStreams
from tests.counts import COUNT

NAMES = st.sampled_from(["x", "y", "z"])
NUMBERS = st.integers(0, 9)
Step = tuple[Any, ...]
STEPS = st.one_of(
    st.tuples(st.just("alias"), NAMES, NAMES),
    st.tuples(st.just("push"), NAMES, NUMBERS),
    st.tuples(st.just("concat"), NAMES, NUMBERS),
    st.tuples(st.just("extend"), NAMES, NAMES),
    st.tuples(st.just("set"), NAMES, st.integers(0, 2), NUMBERS),
    st.tuples(st.just("set_to"), NAMES, st.integers(0, 2), NAMES),
    st.tuples(st.just("nested"), NAMES, st.integers(0, 2), NUMBERS),
    st.tuples(st.just("key"), NAMES, st.sampled_from(["k", "m"]), NUMBERS),
    st.tuples(st.just("wrap"), NAMES, NAMES),
    st.tuples(st.just("spread"), NAMES, NUMBERS),
    st.tuples(st.just("behead"), NAMES, st.integers(-1, 1)),
    st.tuples(st.just("curtail"), NAMES, st.integers(2, 4)),
    st.tuples(st.just("spread_key"), NAMES, st.sampled_from(["k", "m"]), NUMBERS),
    st.tuples(st.just("part_concat"), NAMES, st.integers(0, 2), NUMBERS),
    st.tuples(st.just("part_push"), NAMES, st.integers(0, 2), NAMES),
    st.tuples(st.just("deep"), NAMES, st.integers(0, 2), NUMBERS),
    st.tuples(st.just("part_add"), NAMES, st.integers(0, 2), NUMBERS),
    st.tuples(st.just("key_concat"), NAMES, st.sampled_from(["k", "m"]), NUMBERS),
    st.tuples(st.just("key_text"), NAMES, st.sampled_from(["s", "t"]), NUMBERS),
    st.tuples(st.just("key_pop"), NAMES, st.sampled_from(["k", "m"])),
    st.tuples(st.just("key_alias"), NAMES, NAMES),
    st.tuples(st.just("closure"), NAMES, NUMBERS),
    st.tuples(st.just("call"), NAMES, NUMBERS),
    st.tuples(st.just("loop"), NAMES, NUMBERS),
)

PRELUDE = """\
var x = [[1], [2], [3]]
var y = [[4], [5], [6]]
var z = {k: [7], m: [8]}
fn change(v, n) { var mine = v
  mine[0] = n
  mine = mine + [n]
  return mine }
fn is_list(v) { return type_of(v) == "list" }
"""


#: The statement for each kind of step; those that don't fit the variable's kind are skipped by both sides.
STATEMENTS = {
    "alias": "{0} = {1}",
    "push": "if is_list({0}) {{ {0} = {0}.push([{1}]) }}",
    "concat": "if is_list({0}) {{ {0} = {0} + [[{1}]] }}",
    "extend": "if is_list({0}) && is_list({1}) && len({0}) < 20 {{ {0} += {1} }}",
    "set": "if is_list({0}) {{ {0}[{1}] = [{2}] }}",
    "set_to": "if is_list({0}) && len(to_string({2})) < 500 {{ {0}[{1}] = {2} }}",
    "nested": "if is_list({0}) && is_list({0}[{1}]) {{ {0}[{1}][0] = {2} }}",
    "key": "if !is_list({0}) {{ {0}.{1} = [{2}] }}",
    "wrap": "if len(to_string({1})) < 500 {{ {0} = [{1}, {1}, {1}] }}",
    "spread": "if is_list({0}) {{ {0} = [...{0}, [{1}]] }}",
    "behead": "if is_list({0}) && len({0}) > 4 {{ {0} = {0}[{1}:]\n {0} += [[0], [1], [2]] }}",
    "curtail": """if is_list({0}) && len({0}) > 3 {{
  {0} = {0}[1:]
  {0} = {0}[:{1}]
  {0} = {0}.pop()
  {0} += [[0], [1]]
}}""",
    "spread_key": "if !is_list({0}) {{ {0} = {{...{0}, {1}: [{2}]}} }}",
    "part_concat": "if is_list({0}) && is_list({0}[{1}]) {{ {0}[{1}] = {0}[{1}] + [{2}] }}",
    "part_push": """if is_list({0}) && is_list({0}[{1}]) && len(to_string({2})) < 300 {{
  {0}[{1}] = {0}[{1}].push({2})
}}""",
    "deep": """if is_list({0}) && is_list({0}[{1}]) && is_list({0}[{1}][0]) {{
  {0}[{1}][0] = {0}[{1}][0] + [{2}]
}}""",
    "part_add": "if is_list({0}) && is_list({0}[{1}]) {{ {0}[{1}] += [{2}] }}",
    "key_concat": "if !is_list({0}) {{ {0}.{1} = {0}.{1} + [{2}, len({0}.{1})] }}",
    "key_text": 'if !is_list({0}) {{ {0}.{1} = ({0}.{1} ?? "") + "."\n {0}.{1} = {0}.{1} + "{2}" }}',
    "key_pop": "if !is_list({0}) {{ {0}.{1} = {0}.{1}.pop() }}",
    "key_alias": "if !is_list({0}) && len(to_string({1})) < 300 {{ {0}.k = [{1}]\n {0}.m = {0}.k }}",
    "closure": "if is_list({0}) {{ let f = {{ -> {0}[0] = {1} }}\n f() }}",
    "call": "if is_list({0}) {{ change({0}, {1}) }}",
    "loop": "if is_list({0}) {{ for item in {0} {{ {0}[0] = {1} }} }}",
}


def harn(step: Step) -> str:
    kind, *operands = step
    return STATEMENTS[kind].format(*operands)


def model(variables: dict[str, Any], step: Step) -> None:
    kind, a, *rest = step
    value = copy.deepcopy(variables[a])
    is_list = isinstance(value, list)
    if kind == "alias":
        value = copy.deepcopy(variables[rest[0]])
    elif kind in ("push", "concat") and is_list:
        value.append([rest[0]])
    elif kind == "extend" and is_list and isinstance(variables[rest[0]], list) and len(value) < 20:
        value = value + copy.deepcopy(variables[rest[0]])
    elif kind == "set" and is_list:
        value[rest[0]] = [rest[1]]
    elif kind == "set_to" and is_list and len(display(variables[rest[1]])) < 500:
        value[rest[0]] = copy.deepcopy(variables[rest[1]])
    elif kind == "nested" and is_list and isinstance(value[rest[0]], list):
        value[rest[0]][0] = rest[1]
    elif kind == "key" and not is_list:
        value[rest[0]] = [rest[1]]
    elif kind == "spread" and is_list:
        value = [*value, [rest[0]]]
    elif kind == "behead" and is_list and len(value) > 4:
        value = [*value[rest[0] :], [0], [1], [2]]
    elif kind == "curtail" and is_list and len(value) > 3:
        value = [*value[1:][: rest[0]][:-1], [0], [1]]
    elif kind == "spread_key" and not is_list:
        value = {**value, rest[0]: [rest[1]]}
    elif kind in ("part_concat", "part_add") and is_list and isinstance(value[rest[0]], list):
        value[rest[0]].append(rest[1])
    elif kind == "deep" and is_list and isinstance(value[rest[0]], list):
        if value[rest[0]] and isinstance(value[rest[0]][0], list):
            value[rest[0]][0].append(rest[1])
    elif kind == "part_push" and is_list and isinstance(value[rest[0]], list):
        if len(display(variables[rest[1]])) < 300:
            value[rest[0]].append(copy.deepcopy(variables[rest[1]]))
    elif kind == "key_concat" and not is_list:
        value[rest[0]] += [rest[1], len(value[rest[0]])]
    elif kind == "key_text" and not is_list:
        value[rest[0]] = f"{value.get(rest[0]) or ''}.{rest[1]}"
    elif kind == "key_pop" and not is_list:
        value[rest[0]] = value[rest[0]][:-1]
    elif kind == "key_alias" and not is_list and len(display(variables[rest[0]])) < 300:
        value["k"] = [copy.deepcopy(variables[rest[0]])]
        value["m"] = copy.deepcopy(value["k"])
    elif kind == "wrap" and len(display(variables[rest[0]])) < 500:
        value = [copy.deepcopy(variables[rest[0]]) for _ in range(3)]
    elif kind == "loop" and is_list:
        value[0] = rest[0]
    variables[a] = value


@settings(max_examples=COUNT.examples(20))
@given(st.lists(STEPS, max_size=12))
def test_programs_agree_with_a_model_that_always_copies(steps: list[Step]) -> None:
    show = "println([x, y, z])\n"
    body = "".join(harn(step) + "\n" + show for step in steps)
    for source in (
        PRELUDE + body,
        PRELUDE + "fn main() {\nvar x = [[1], [2], [3]]\nvar y = [[4], [5], [6]]\nvar z = {k: [7], m: [8]}\n"
        f"defer {{ println(x) }}\n{body}}}\nmain()\n",
    ):
        out: list[str] = []
        Vm(World(streams=RealStreams(stdout=out.append))).run_source(source, checked=False)
        variables: dict[str, Any] = {"x": [[1], [2], [3]], "y": [[4], [5], [6]], "z": {"k": [7], "m": [8]}}
        expected = []
        for step in steps:
            model(variables, step)
            expected.append(display([variables["x"], variables["y"], variables["z"]]))
        assert "".join(out).splitlines()[: len(steps)] == expected


@settings(max_examples=COUNT.examples(20))
@given(st.lists(st.lists(STEPS, min_size=1, max_size=3), max_size=5))
def test_loops_agree_with_it(loops: list[list[Step]]) -> None:
    lines = ["fn main() {", *PRELUDE.splitlines()[:3]]
    for steps in loops:
        # A call of a function with a variable would show that to others than the loop.
        body = re.sub(r"is_list\((.*?)\)", r'(type_of(\1) == "list")', "\n".join(map(harn, steps)))
        lines += ["for turn in 1 to 3 {", body, "}", "println([x, y, z])"]
    source = PRELUDE + "\n".join([*lines, "}", "main()"])
    variables: dict[str, Any] = {"x": [[1], [2], [3]], "y": [[4], [5], [6]], "z": {"k": [7], "m": [8]}}
    expected = []
    for steps in loops:
        for step in steps * 3:
            model(variables, step)
        expected.append(display([variables["x"], variables["y"], variables["z"]]))
    out: list[str] = []
    Vm(World(streams=RealStreams(stdout=out.append))).run_source(source, checked=False)
    assert "".join(out).splitlines() == expected
