"""Programs on the command line, killed with `kill -9` again and again, until one process gets to the end.

Spec: 10 §C19.1 "Program runs", §C12.1 e.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

from tests.counts import COUNT
from tests.support import PATIENCE, ROOT, Popen

PROGRAM = """
let noted = channel("noted", 100)
let parts = parallel each [1, 2, 3] { part ->
  for n in 1 to 4 {
    exec("sh", "-c", "echo ${part}.${n} >> calls; sleep 0.01")
    write_file("part${part}", "${n}")
    sleep(10ms)
    send(noted, "${part}.${n}")
  }
  read_file("part${part}")
}
println("parts ${parts}")
for n in 1 to 12 {
  println("line ${n}")
  exec("sh", "-c", "echo line.${n} >> calls; sleep 0.01")
}
println("end ${receive(noted) != nil}")
"""
PRINTED = ["parts [4, 4, 4]", *(f"line {n}" for n in range(1, 13)), "end true"]


def test_killed_again_and_again(popen: Popen, tmp_path: Path) -> None:
    """Each process goes on: nothing is printed twice, and only what was cut off is called again."""
    (tmp_path / "night.harn").write_text(PROGRAM)
    env = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    for seed in COUNT.seeds(COUNT.killed_programs):
        chance, kills, lines = Random(seed), 0, list[str]()
        id = f"run{seed}"
        (tmp_path / "calls").unlink(missing_ok=True)
        words = ["run", "--durable", "night.harn", "--run-id", id]
        while True:
            process = popen(
                [sys.executable, "-m", "harnpy", *words],
                cwd=tmp_path,
                env=env,
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            try:
                printed, errors = process.communicate(
                    timeout=chance.uniform(0.2, 0.6) if kills < 6 else PATIENCE
                )
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                printed, errors = process.communicate(timeout=PATIENCE)
                kills += 1
            lines += printed.splitlines()
            if process.returncode == 0:
                break
            assert process.returncode == -signal.SIGKILL, errors
        # What was recorded when the process was killed, and not yet shown, is not shown: a line for a kill.
        assert [line for line in PRINTED if line in lines] == lines
        assert len(lines) >= len(PRINTED) - kills
        calls = Counter((tmp_path / "calls").read_text().split())
        assert len(calls) == 24
        assert sum(calls.values()) <= 24 + 3 * kills
