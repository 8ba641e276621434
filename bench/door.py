"""What do rules cost? Reading a small file and looking whether it is there: by the plain files, by a Vm's
world without rules in force, and with rules.

    python bench/door.py [--rounds N] [--check]

All three are measured in turns in one run; medians are printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from options import parser

from harnpy import Vm
from harnpy.world.files import RealFiles

#: How many calls are timed at once.
BATCH = 200

#: The most that a world without rules may cost, × the plain files.
MUST = 2.0

CALLS: dict[str, Callable[[Any, str], object]] = {
    "read": lambda files, path: files.read_text(path),
    "look up": lambda files, path: files.exists(path),
}


def micros(call: Callable[[Any, str], object], files: Any, path: str) -> float:
    """Microseconds of one call."""
    begin = process_time()
    for _ in range(BATCH):
        call(files, path)
    return (process_time() - begin) / BATCH * 1e6


def main() -> int:
    options = parser(__doc__, rounds=25).parse_args()
    worlds = {
        "plain": RealFiles(),
        "no rules": Vm().world.files,
        "rules": Vm(capabilities=["read", "list"]).world.files,
    }
    missed = 0
    with TemporaryDirectory() as directory:
        path = str(Path(directory, "text.txt"))
        Path(path).write_text("hello\n")
        for name, call in CALLS.items():
            found: dict[str, list[float]] = {world: [] for world in worlds}
            for _ in range(options.rounds):
                for world, files in worlds.items():
                    found[world].append(micros(call, files, path))
            plain, free, held = (median(times) for times in found.values())
            missed += free > plain * MUST
            print(f"{name:10}{plain:7.1f} µs   no rules × {free / plain:4.2f}   rules × {held / plain:5.2f}")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
