"""How long does a 10,000-line program take to check: all of it, and after an edit in one function?

    python bench/check.py [--rounds N] [--check]

Both are compared with parsing the program. An edit changes a line in the body of a function, in another one
each time; the checker is the one that an editor would keep.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter

from options import parser

from harnpy.checking import Checker
from harnpy.syntax.parser import parse

FUNCTION = """\
fn total_{n}(orders: list<{{price: float, count: int}}>, limit: float | nil = nil) -> float {{
  var total = 0.0
  for order in orders {{
    total = total + order.price * order.count
  }}
  if limit != nil && total > limit {{
    return limit
  }}
  return total
}}

fn label_{n}(status: "open" | "done", name: string) -> string {{
  let shown = match status {{
    "open" -> {{ "[ ] ${{name}}" }}
    "done" -> {{ "[x] ${{name}}" }}
  }}
  println(total_{n}([{{price: {n}.5, count: 2}}]))
  return shown.trim()
}}

"""
LINES = 10_000
COUNT = LINES // FUNCTION.count("\n")


def seconds(run: Callable[[], object]) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


def main() -> int:
    options = parser(__doc__, rounds=5).parse_args()
    source = "".join(FUNCTION.format(n=n) for n in range(COUNT))
    checker = Checker()
    times: dict[str, list[float]] = {"parse": [], "check": [], "edit": []}
    for number in range(options.rounds):
        times["parse"].append(seconds(partial(parse, source)))
        times["check"].append(seconds(partial(Checker().check, {"main.harn": source})))
        found = checker.check({"main.harn": source})["main.harn"]
        assert not found, found
        at = f"total_{COUNT // 2 + number}([{{price: "
        edited = source.replace(at, at + "1")
        times["edit"].append(seconds(partial(checker.check, {"main.harn": edited})))
        source = edited
    middle = {name: median(found) for name, found in times.items()}
    rows = [
        ("check 10,000 lines, x parse", middle["check"] / middle["parse"], 5.0),
        ("check again after an edit, x parse", middle["edit"] / middle["parse"], 0.1),
    ]
    missed = 0
    for name, ratio, budget in rows:
        missed += ratio > budget
        print(f"{name:36} {ratio:6.3f}   must {budget}{'  over' if ratio > budget else ''}")
    print(f"(milliseconds: {', '.join(f'{name} {value * 1000:.0f}' for name, value in middle.items())})")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
