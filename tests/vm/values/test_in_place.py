"""Updates in place: common loops copy nothing, and so stay linear."""

from __future__ import annotations

from pathlib import Path

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
    "grow a string of a property": 'var x = {a: ""}\nfor i in 0 to N exclusive { x.a = x.a + "ab" }',
    "grow a string in a defer": 'var x = ""\ndefer { for i in 0 to N exclusive { x = x + "ab" } }',
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


#: What a variable `x` holds, what happens to it at each turn, and the part whose object must stay the same.
TURNS = {
    "append": ("[]", "x = x + [i]", "x"),
    "append what is read of it": ("[]", "x = x + [len(x), x.last]", "x"),
    "spread": ("[]", "x = [...x, i, x.count]", "x"),
    "spread a dict": ("{}", "x = {...x, [i]: i}", "x"),
    "take from the front": ("range(9).to_list()", "x = x[1:]", "x"),
    "take from the end": ("range(9).to_list()", "x = x[:-1]", "x"),
    "pop": ("range(9).to_list()", "x = x.pop()", "x"),
    "append to a property": ("{a: []}", "x.a = x.a + [i]", "x.a"),
    "append what is read of the property": ("{a: []}", "x.a = x.a + [len(x.a), x.a.last, x.a[0]]", "x.a"),
    "add to a property": ("{a: []}", "x.a += [i]", "x.a"),
    "add to a field": ("Box {a: []}", "x.a += [i]", "x.a"),
    "push to a property": ("{a: []}", "x.a = x.a.push(i)", "x.a"),
    "push below it": ("{a: {b: [[]]}}", "x.a.b[0] = x.a.b[0].push(i)", "x.a.b[0]"),
    "spread a property": ("{a: []}", "x.a = [...x.a, i]", "x.a"),
    "spread a dict of a property": ("{a: {}}", "x.a = {...x.a, [i]: i}", "x.a"),
    "merge into a property": ("{a: {}}", "x.a = x.a + {k: i}", "x.a"),
    "take from the front of a property": ("{a: range(9).to_list()}", "x.a = x.a[1:]", "x.a"),
    "twice": (
        "{a: []}",
        "x.a = x.a + [i]\nnote(x.a)\nx.a = x.a.push(i)\nnote(x.a)\nx.a += [x.a.count]",
        "x.a",
    ),
    "pop a property": ("{a: range(9).to_list()}", "x.a = x.a.pop()", "x.a"),
    "push under a key": ("{k7: []}", 'x["k7"] = x["k7"].push(i)', "x.k7"),
    "push under a number": ("{[7]: []}", "x[7] = x[7].push(i)", "x[7]"),
    "push to an element": ("[[]]", "x[0] = x[0] + [i]", "x[0]"),
    "read, push, read": (
        "{a: [1]}",
        "if x.a.count > 0 && x.a[0] == 1 { x.a = x.a.push(x.a.last) } else { println(x.a) }\nlen(x.a)",
        "x.a",
    ),
    "until it is empty": ("{a: range(9).to_list()}", "while len(x.a) > 8 - i { x.a = x.a[1:] }", "x.a"),
    "set an element of a row that is read": (
        "{rows: [[1, 2]]}",
        "if x.rows[0][0] > 0 { x.rows[0][1] = x.rows[0][0] + i }",
        "x.rows[0]",
    ),
}
#: A loop in a function, in a `defer`, and over a variable that the functions of a module share.
FRAMES = {
    "function": "fn run() {{\nvar x = {value}\n{loop}\n}}",
    "defer": "fn run() {{\nvar x = {value}\ndefer {{\n{loop}\n}}\n}}",
    "module": "var x = {value}\npub fn run() {{\n{loop}\n}}",
}


@pytest.mark.parametrize("frame", FRAMES)
def test_a_turn_copies_nothing(frame: str, tmp_path: Path) -> None:
    """The object is the same at each turn: a copy would be another one, since both are there for a while."""
    copied = []
    for name, (value, turn, part) in TURNS.items():
        objects: list[int] = []
        vm = Vm()
        vm.register("note(value: any) -> nil", lambda value, seen=objects: seen.append(id(value)))
        loop = f"for i in 0 to 8 exclusive {{\n{turn}\nnote({part})\n}}"
        source = "struct Box { a: list }\n" + FRAMES[frame].format(value=value, loop=loop)
        if frame == "module":
            Path(tmp_path, "m.harn").write_text(source, encoding="utf-8")
            source = 'import { run } from "./m"'
        vm.run_source(f"{source}\nrun()", file=str(tmp_path / "program.harn"))
        assert len(objects) >= 8
        if len(set(objects[2:])) != 1:
            copied.append(name)
    assert copied == []


@pytest.mark.parametrize("name", ["contains", "count", "empty", "first", "index_of", "join", "last"])
def test_a_method_of_an_impl_may_keep_its_struct(name: str) -> None:
    """Found by reading `updated_alone`: of a list these methods only read."""
    source = f"""
struct Box {{ n: int }}
impl Box {{ fn {name}(self) {{ return self }} }}
fn run() {{
  var box = Box {{n: 9}}
  var kept = []
  for i in 0 to 3 {{
    box.n = i
    kept = kept.push(box.{name}())
  }}
  return kept.map({{ each -> each.n }})
}}
return run()
"""
    assert Vm().run_source(source) == [0, 1, 2, 3]
