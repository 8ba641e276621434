"""How long from the shell to the first line of a program, or to a session runtime that is ready?

    python bench/startup.py [--rounds N] [--check]

Rows: a one-line program with a warm cache and with an empty one, and a program of 1,000 lines, warm, against
`python -c pass`; the import of `harnpy.session` and a `SessionRuntime` that is ready, against what a service
in Python imports anyway, each without what `python -c pass` takes. All commands are run in turn, round after
round; a row is the ratio of the medians.

The budgets are for the `harnpy` command as today's pip and uv install it. Two other ways to start are shown
for their additional cost, which is not ours: `python -m` imports runpy, and the script that pip 23
writes imports `re`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from options import environment, parser

HELLO = 'println("hello")\n'
#: What pip 25 and uv write for an entry point.
SCRIPT = """\
#!{python}
import sys
from harnpy.cli.main import entry
if __name__ == "__main__":
    sys.exit(entry())
"""
BARE = "python -c pass"
STANDARD = "import asyncio, sqlite3, json"
READY = "from harnpy.session import SessionRuntime; SessionRuntime('sqlite:{directory}/sessions.db')"
BUDGETS = {
    "hello, warm": 1.5,
    "hello, cold": 2.5,
    "1,000 lines, warm": 1.8,
    "import harnpy.session": 1.5,
    "a SessionRuntime, ready": 2.5,
}
#: The rows that are measured beside `STANDARD`.
IMPORTS = ("import harnpy.session", "a SessionRuntime, ready")

#: By their names: the words, and the environment.
Commands = dict[str, tuple[list[str], dict[str, str]]]


def thousand_lines() -> str:
    """Ten-line functions, most of them never called: what a grown pipeline file looks like."""
    function = """\
fn step_{n}(items, limit = {n}) {{
  var total = 0
  for item in items {{
    if item > limit && item % 2 == 0 {{ total = total + item * 2 }}
    else {{ total = total - 1 }}
  }}
  let label = "step {n}: ${{total}}"
  let info = {{name: label, ok: total > 0, parts: [total, limit]}}
  return info.parts.map({{ x -> x + 1 }})
}}
"""
    return "".join(function.format(n=n) for n in range(100)) + "println(step_1([1, 2, 3]))\n"


def once(command: list[str], env: dict[str, str]) -> float:
    start = perf_counter()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
    return perf_counter() - start


def main() -> int:
    options = parser(__doc__, rounds=31).parse_args()
    with tempfile.TemporaryDirectory() as directory:
        return measure(Path(directory), options.rounds, options.check)


def ways(directory: Path) -> Commands:
    """The commands, and the environment of each. What is cold finds an empty ``directory / "cold"``."""
    hello, long = directory / "hello.harn", directory / "long.harn"
    hello.write_text(HELLO)
    long.write_text(thousand_lines())
    warm_env = {**environment(), "XDG_CACHE_HOME": str(directory / "warm")}
    cold_env = {**environment(), "XDG_CACHE_HOME": str(directory / "cold")}
    command = directory / "harnpy"
    command.write_text(SCRIPT.format(python=sys.executable))
    command.chmod(0o755)
    script, module = [str(command), "run"], [sys.executable, "-m", "harnpy", "run"]
    installed = [str(Path(sys.executable).with_name("harnpy")), "run"]
    return {
        BARE: ([sys.executable, "-c", "pass"], warm_env),
        "hello, warm": ([*script, str(hello)], warm_env),
        "hello, cold": ([*script, str(hello)], cold_env),
        "1,000 lines, warm": ([*script, str(long)], warm_env),
        "hello, warm, python -m": ([*module, str(hello)], warm_env),
        "hello, warm, as installed": ([*installed, str(hello)], warm_env),
        STANDARD: ([sys.executable, "-c", STANDARD], warm_env),
        IMPORTS[0]: ([sys.executable, "-c", IMPORTS[0]], warm_env),
        IMPORTS[1]: ([sys.executable, "-c", READY.format(directory=directory)], warm_env),
    }


def timed(directory: Path, commands: Commands, rounds: int) -> dict[str, float]:
    """The seconds of each command, the median of the rounds behind the first."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, (command, env) in commands.items():
            shutil.rmtree(directory / "cold", ignore_errors=True)
            spent = once(command, env)
            if turn:
                times[name].append(spent)
    return {name: median(spent) for name, spent in times.items()}


def ratios(times: dict[str, float]) -> dict[str, float]:
    """Each command against `python -c pass`, imports beyond it against `STANDARD`."""
    base = times[BARE]
    return {
        name: (took - base) / (times[STANDARD] - base) if name in IMPORTS else took / base
        for name, took in times.items()
        if name not in (BARE, STANDARD)
    }


def measure(directory: Path, rounds: int, check: bool) -> int:
    times = timed(directory, ways(directory), rounds)
    base, standard = times[BARE], times[STANDARD] - times[BARE]
    missed = 0
    print(f"python -c pass: {base * 1000:.1f} ms")
    for name, ratio in ratios(times).items():
        budget = BUDGETS.get(name)
        over = budget is not None and ratio > budget
        missed += over
        if name == IMPORTS[0]:
            print(f"{STANDARD}: {standard * 1000:.1f} ms more")
        print(f"{name:26} {ratio:5.2f} x{f'   budget {budget}' if budget else ''}{'  over' if over else ''}")
    return 1 if check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
