"""How long does a 1,000-line program take to parse, to format, and to come back from the cache?

    python bench/parse.py [--rounds N] [--check]

Parsing is compared with `ast.parse` of the same program written in Python; formatting, which parses its own
output again, with parsing; loading the cached, compiled unit
with parsing and compiling it.
"""

from __future__ import annotations

import ast
import os
import sys
import tempfile
from collections.abc import Callable
from statistics import median
from time import perf_counter

from options import parser
from startup import thousand_lines

from harnpy import Vm
from harnpy.syntax.formatter import format_source
from harnpy.syntax.parser import parse
from harnpy.vm.compile import compile_program, program_unit
from harnpy.vm.unit import LANGUAGE

PYTHON = """\
def step_{n}(items, limit={n}):
    total = 0
    for item in items:
        if item > limit and item % 2 == 0:
            total = total + item * 2
        else:
            total = total - 1
    label = f"step {n}: {{total}}"
    info = {{"name": label, "ok": total > 0, "parts": [total, limit]}}
    return [x + 1 for x in info["parts"]]
"""


def seconds(run: Callable[[], object]) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


def main() -> int:
    options = parser(__doc__, rounds=9).parse_args()
    source = thousand_lines()
    python = "".join(PYTHON.format(n=n) for n in range(100))
    table = Vm().builtins
    with tempfile.TemporaryDirectory() as directory:
        os.environ["XDG_CACHE_HOME"] = directory
        program_unit(source, "bench.harn", None, table)
        times: dict[str, list[float]] = {"python": [], "parse": [], "format": [], "compile": [], "load": []}
        for _ in range(options.rounds):
            times["python"].append(seconds(lambda: ast.parse(python)))
            times["parse"].append(seconds(lambda: parse(source)))
            times["format"].append(seconds(lambda: format_source(source)))
            times["compile"].append(
                seconds(lambda: compile_program(source, "bench.harn", None, table, LANGUAGE, None))
            )
            times["load"].append(seconds(lambda: program_unit(source, "bench.harn", None, table)))
    middle = {name: median(found) for name, found in times.items()}
    rows = [
        ("parse 1,000 lines, x ast.parse", middle["parse"] / middle["python"], 4.7),
        ("format 1,000 lines, x parse", middle["format"] / middle["parse"], 6.0),
        ("load the compiled unit, x parse", middle["load"] / middle["parse"], 0.06),
        ("parse and compile, x parse", middle["compile"] / middle["parse"], None),
    ]
    missed = 0
    for name, found, budget in rows:
        over = budget is not None and found > budget
        missed += over
        print(f"{name:34} {found:6.3f}{f'   must {budget}' if budget else ''}{'  over' if over else ''}")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
