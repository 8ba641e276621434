"""Programs that move much data, each beside the same one in Python.

    python bench/data.py [--rounds N] [--check] [ROW ...]

JSON of 5 MB there and back, a million rows of CSV, a chain of iterators over a million elements, 100,000
messages on a channel, 10,000 tasks, and reading 10,000 files. Both sides alternate in this process; a row is
the median of the rounds' ratios. ``ROW``: only rows whose names contain the word.
"""

from __future__ import annotations

import asyncio
import csv
import gc
import json
import os
import sys
from collections.abc import Callable
from functools import cache
from io import StringIO
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from options import parser

from harnpy import Vm

#: Name, program, what makes its input, and the same in Python.
Row = tuple[str, str, Callable[[], Any], Callable[[], object]]

#: What a ratio may be unless the README explains it.
MUST = 6.0
ELEMENTS, ROWS, MESSAGES, TASKS, FILES = 1_000_000, 1_000_000, 100_000, 10_000, 10_000


def records() -> list[dict[str, Any]]:
    """What JSON of 5 MB may hold: strings, some with escapes, numbers, nested lists and dicts."""
    return [
        {
            "id": i,
            "name": f"Name {i}",
            "text": "a line\nand “another” one" if i % 7 == 0 else "nothing special about this one",
            "score": i / 7,
            "tags": ["red", "green", str(i % 13)],
            "nested": {"active": i % 2 == 0, "parent": None, "weights": [i % 5, 0.25, -1]},
        }
        for i in range(28_000)
    ]


def python_chain() -> int:
    """A chain of generators, as one would write it by hand."""
    doubled = (x * 2 for x in range(ELEMENTS))
    kept = (x for x in doubled if x % 3 == 0)
    return sum(islice(kept, ELEMENTS))


def python_messages() -> int:
    async def run() -> int:
        queue: asyncio.Queue[int | None] = asyncio.Queue(256)

        async def send() -> None:
            for i in range(MESSAGES):
                await queue.put(i)
            await queue.put(None)

        sender = asyncio.create_task(send())
        total = 0
        while (message := await queue.get()) is not None:
            total += message
        await sender
        return total

    return asyncio.run(run())


def python_tasks() -> int:
    async def one(i: int) -> int:
        await asyncio.sleep(0.001)
        return i

    async def run() -> int:
        tasks = [asyncio.create_task(one(i)) for i in range(TASKS)]
        return sum([await task for task in tasks])

    return asyncio.run(run())


def python_files(directory: str) -> int:
    total = 0
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            total += len(file.read())
    return total


CHAIN = """
fn run(_input) {
  return iter(0 to ELEMENTS exclusive).map({ x -> x * 2 }).filter({ x -> x % 3 == 0 }).take(ELEMENTS).sum()
}
return run
""".replace("ELEMENTS", str(ELEMENTS))
MESSAGE = """
fn run(_input) {
  let ch = channel("messages", 256)
  let sender = spawn {
    for i in 0 to COUNT exclusive { send(ch, i) }
    close_channel(ch)
  }
  var total = 0
  for message in ch { total = total + message }
  await(sender)
  return total
}
return run
""".replace("COUNT", str(MESSAGES))
TASK = """
fn run(_input) {
  let tasks = range(COUNT).map({ i -> spawn {
    sleep(1)
    i
  } }).to_list()
  var total = 0
  for task in tasks { total = total + await(task) }
  return total
}
return run
""".replace("COUNT", str(TASKS))
READ = """
fn run(directory) {
  var total = 0
  for name in list_dir(directory) {
    total = total + len(read_file(path_join(directory, name)))
  }
  return total
}
return run
"""
CSV = "fn run(text) { return csv_parse(text).count }\nreturn run"
PARSE = "fn run(text) { return json_parse(text).count }\nreturn run"
#: Returns what is measured: the value is the program's own, as handing one over is no part of writing it.
WRITE = """
fn prepare(text) {
  let value = json_parse(text)
  return { _input -> len(json_stringify(value)) }
}
return prepare
"""


def seconds(work: Callable[[], object]) -> float:
    gc.collect()
    start = perf_counter()
    work()
    return perf_counter() - start


@cache
def text() -> str:
    return json.dumps(records(), ensure_ascii=False, sort_keys=True)


@cache
def table() -> str:
    return "".join(f'{i},"name, of {i}",{i / 7:.3f}\n' for i in range(ROWS))


def filled(directory: str) -> str:
    for i in range(FILES):
        Path(directory, f"{i}.txt").write_text(f"file {i}\n" * 20, encoding="utf-8")
    return directory


def rows(directory: str) -> list[Row]:
    value = records()
    return [
        (f"parse {len(text().encode()) / 1e6:.1f} MB of JSON", PARSE, text, lambda: len(json.loads(text()))),
        ("write it", WRITE, text, lambda: len(json.dumps(value, ensure_ascii=False, sort_keys=True))),
        (f"parse {ROWS:,} rows of CSV", CSV, table, lambda: len(list(csv.reader(StringIO(table()))))),
        (f"a chain over {ELEMENTS:,} elements", CHAIN, lambda: None, python_chain),
        (f"{MESSAGES:,} messages on a channel", MESSAGE, lambda: None, python_messages),
        (f"{TASKS:,} tasks that sleep and end", TASK, lambda: None, python_tasks),
        (f"read {FILES:,} files", READ, lambda: filled(directory), lambda: python_files(directory)),
    ]


def measured(row: Row, rounds: int) -> tuple[float, float]:
    """The ratio to Python, and the seconds that the program takes, medians of the rounds."""
    _, source, prepared, native = row
    vm, value = Vm(), prepared()
    run = vm.run_source(source)
    if source is WRITE:
        run = vm.call(run, value)
    assert vm.call(run, value) == native() or source is WRITE
    ratios, took = [], []
    for _ in range(rounds):
        took.append(seconds(lambda: vm.call(run, value)))
        ratios.append(took[-1] / seconds(native))
    return median(ratios), median(took)


def main() -> int:
    options = parser(__doc__, rounds=5)
    options.add_argument("row", nargs="*")
    given = options.parse_args()
    missed = 0
    with TemporaryDirectory() as directory:
        for row in rows(directory):
            name = row[0]
            if given.row and not any(word in name for word in given.row):
                continue
            found, took = measured(row, given.rounds)
            missed += found > MUST
            over = "  over" if found > MUST else ""
            print(f"{name:36} {found:6.2f} x Python   {took * 1000:8.0f} ms   must {MUST}{over}")
    return 1 if given.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
