"""Programs made to hurt: deep, long, flat, binary. Each runs or is refused, soon, with a position."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.syntax.diagnostic import SourceFault
from harnpy.world import World
from harnpy.world.streams import RealStreams
from tests.support import ends

DEEP = 10_000
REFUSED = {
    "parentheses": "let x = " + "(" * DEEP,
    "lists": "let x = " + "[" * DEEP + "]" * DEEP,
    "dicts": "let x = " + "{a: " * DEEP + "1" + "}" * DEEP,
    "closures": "let x = " + "{ -> " * DEEP + "1" + "}" * DEEP,
    "blocks": "if true {" * DEEP + "}" * DEEP,
    "functions": "fn f() {\n" * DEEP + "}\n" * DEEP,
    "negations": "let x = " + "!" * DEEP + "true",
    "minuses": "let x = " + "-" * DEEP + "1",
    "powers": "let x = " + "**".join(["1"] * DEEP),
    "interpolations": "let x = " + '"${' * 2_000 + "1" + '}"' * 2_000,
    "a line of 1 MB that is no program": "a " * 500_000,
    "an open string of 5 MB": 'let x = "' + "a" * 5_000_000,
    "an open comment of 5 MB": "/* " + "a" * 5_000_000,
}
RUN = {
    "a string of 5 MB": ('println(len("' + "a" * 5_000_000 + '"))', "5000000"),
    "a comment of 5 MB": ("println(1) // " + "a" * 5_000_000, "1"),
    "a sum of 5,000 terms": ("println(" + "+".join(["1"] * 5_000) + ")", "5000"),
    "5,000 strings together": ("println(len(" + "+".join(['"ab"'] * 5_000) + "))", "10000"),
    "5,000 conditions": ("println(" + "&&".join(["true"] * 5_000) + ")", "true"),
    "2,000 pipes": ("fn f(x) { return x + 1 }\nprintln(0" + " |> f" * 2_000 + ")", "2000"),
    "2,000 methods": ('println("a"' + ".trim()" * 2_000 + ")", "a"),
    "2,000 optional reads": ("let d = nil\nprintln(d" + "?.a" * 2_000 + ")", "nil"),
    "5,000 statements": ("var x = 0\n" + "x = x + 1\n" * 5_000 + "println(x)", "5000"),
    "20,000 items": ("println(len([" + ",".join(["1"] * 20_000) + "]))", "20000"),
    "2,000 arms": (
        "match 1999 {\n" + "".join(f"{i} -> {{ println({i}) }}\n" for i in range(2_000)) + "}",
        "1999",
    ),
    "loops beyond what Python may nest": (
        "var x = 1\n" + "while x == 1 {\n" * 60 + "x = 2\n" + "}" * 60 + "\nprintln(x)",
        "2",
    ),
    "handlers beyond what Python may nest": ("try {\n" * 60 + "println(1)\n" + "} finally { }" * 60, "1"),
    "150 ternaries in each other": ("println(" + "(true ? " * 150 + "1" + " : 0)" * 150 + ")", "1"),
    "a list of lists 10,000 deep, shown": (
        "var x = []\nfor i in 0 to 10000 { x = [x] }\nprintln(len(to_string(x)))",
        "20004",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_program_is_refused_with_a_position(name: str) -> None:
    with ends(), pytest.raises(SourceFault) as refused:
        Vm().run_source(REFUSED[name], file="hostile.harn")
    assert refused.value.diagnostics[0].span
    assert len(refused.value.render()) < 20_000


@pytest.mark.parametrize("name", RUN)
def test_a_hostile_program_runs(name: str) -> None:
    source, expected = RUN[name]
    out: list[str] = []
    with ends():
        Vm(World(streams=RealStreams(stdout=out.append))).run_source(source)
    assert "".join(out).strip() == expected


def test_files_of_arbitrary_bytes_are_refused(tmp_path: Path) -> None:
    chance = random.Random(7)
    for size in [1, 2, 10, 1_000, 100_000]:
        path = tmp_path / f"{size}.harn"
        path.write_bytes(bytes([0xFF]) + chance.randbytes(size))
        with pytest.raises(SourceFault, match=r"at 1:1$"):
            Vm().run_file(str(path))
