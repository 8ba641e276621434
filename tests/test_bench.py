"""The comparison with other libraries runs, and says what it leaves out.

As processes, for that is how it is used, and what the peers do on import is nobody else's business.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from harnpy import Vm
from tests.forked import Forks
from tests.support import PATIENCE, ROOT, Popen, calls_made

pytestmark = pytest.mark.long

Run = Callable[..., str]

_TINY = ["--rounds", "1", "--length", "20", "--sessions", "2"]
_SIDES = {"agents": ["OpenAI Agents SDK"], "agently": ["Agently", "Agently, auto_resize=False"]}
_REMEDIES = {"agents": "pip install openai-agents", "agently": "pip install agently"}

_IMPORTED = ["agently", "langgraph.graph", "langgraph.prebuilt", "langgraph.checkpoint.sqlite"]
_AGENTS = {"agents": "OpenAI Agents SDK", "pydantic_ai": "pydantic-ai", "langgraph": "LangGraph"}

# `-c` instead of the script itself: imports of `argv[1]` fail from here on, also if it was imported before.
_BLOCKED = """
import runpy, sys
missing = sys.argv.pop(1)
for name in [name for name in sys.modules if name.startswith(f"{missing}.")]:
    del sys.modules[name]
sys.modules[missing] = None
sys.path.insert(0, "bench")
runpy.run_path("bench/peers.py", run_name="__main__")
"""


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Run a script in a process that is forked from one which has imported the peers."""
    forks = Forks(ROOT, *_AGENTS, *_IMPORTED)
    yield lambda *command: output(forks.popen, *command)
    forks.end()


def output(popen: Popen, *command: str) -> str:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with popen([sys.executable, *command], cwd=ROOT, encoding="utf-8", **pipes) as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, out + err
    return str(out)


def is_there(module: str) -> bool:
    """Whether a peer must be measured: it is installed, or this is CI, where each is."""
    return "CI" in os.environ or find_spec(module) is not None


def left_out(output: str) -> list[str]:
    return re.findall(r"^  ([\w ]+).* is left out", output, re.MULTILINE)


def measured(output: str, side: str) -> int:
    """In how many rows a side stands with its ratio."""
    lines = [line.strip() for line in output.splitlines()]
    return sum(line.startswith(f"{side}  ") and line.endswith("× harnpy") for line in lines)


def assert_skipped(output: str, module: str) -> None:
    name = _SIDES[module][0]
    lines = [line.strip() for line in output.splitlines() if "skipped" in line and name in line]
    assert len(lines) == 1
    assert lines[0].startswith(f"{name}: skipped, it can't be imported (")
    assert lines[0].endswith(_REMEDIES[module])
    assert not any(measured(output, side) for side in _SIDES[module])


def test_every_peer_that_is_installed_does_the_same_work(run: Run) -> None:
    output = run("bench/peers.py", *_TINY)
    for module, sides in _SIDES.items():
        if is_there(module):
            # Four kinds of writing, and one of the two of reading.
            assert [measured(output, side) for side in sides] == [5] * len(sides), output
        else:
            assert_skipped(output, module)


@pytest.mark.parametrize("module", _SIDES)
def test_a_peer_that_is_missing_is_skipped_with_a_line(run: Run, module: str) -> None:
    assert_skipped(run("-c", _BLOCKED, module, *_TINY), module)


def test_every_library_of_agents_that_is_installed_holds_the_conversations(run: Run) -> None:
    output = run("bench/agents.py", *"--rounds 1 --turns 3 --late 110 --loops 9".split())
    for module, side in _AGENTS.items():
        if is_there(module):
            assert output.count(f"  {side} ") == 2, output
        else:
            assert f"{side} is left out: pip install" in output
    assert "loops at once" in output


def test_stages_are_measured_one_after_the_other_and_in_a_map(run: Run) -> None:
    output = run("bench/workflows.py", "--rounds", "1", "--stages", "12")
    assert len([line for line in output.splitlines() if line.startswith("  harnpy")]) == 2, output


def test_durable_appends_are_measured_beside_databases_and_peers(run: Run) -> None:
    output = run("bench/storage.py", "--rounds", "1", "--appends", "5", "--length", "200")
    sides = {
        "bare sqlite3": 3,
        "bare psycopg": 2,
        "OpenAI Agents SDK, ": 1,
        "LangGraph, ": 2,
        "harnpy, a record": 4,
    }
    assert {side: output.count(f"  {side}") for side in sides} == sides, output
    assert left_out(output) == [
        *["OpenAI Agents SDK"] * (not is_there("agents")),
        *["LangGraph"] * (not is_there("langgraph")) * 2,
    ]
    assert "an event, from threads" in output
    assert "the long one, p99" in output
    assert output.count("  open, and the window") == 3


def test_imports_are_measured_beside_their_bare_lines(run: Run) -> None:
    output = run("bench/adapters.py", *"--rounds 1 --turns 0 --megabytes 1".split())
    assert [output.count(f"  {side}") for side in ("json.loads", "import_sessions", "its memory")] == [
        2,
        2,
        2,
    ]


def test_actions_and_turns_are_measured_beside_their_appends_and_services_beside_peers(run: Run) -> None:
    few = ["--rounds", "1", "--times", "2", "--sessions", "2", "--turns", "1"]
    output = run("bench/runtime.py", *few)
    rows = ["memory", "jsonl", "sqlite", "postgresql"]
    assert {row: output.count(f"  {row} ") + output.count(f"  {row}, ") for row in rows} == dict.fromkeys(
        rows, 3
    )
    sides = ["harnpy, a function", "harnpy, its loop", "OpenAI Agents SDK", "LangGraph"]
    assert {side: output.count(f"  {side}") for side in sides} == dict.fromkeys(sides, 1), output
    assert left_out(output) == [
        *["OpenAI Agents SDK"] * (not is_there("agents")),
        *["LangGraph"] * (not is_there("langgraph")),
    ]


def test_starts_and_imports_are_measured_beside_python(popen: Popen) -> None:
    printed = output(popen, "bench/startup.py", "--rounds", "1")
    for row in ("hello, cold", "1,000 lines, warm", "import harnpy.session", "a SessionRuntime, ready"):
        assert f"\n{row} " in printed


def test_long_logs_are_written_read_searched_and_held(popen: Popen) -> None:
    printed = output(popen, "bench/long_logs.py", "--rounds", "1", "--length", "500")
    rows = [line.split("  ")[1] for line in printed.splitlines()]
    assert [row.split(" ")[0] for row in rows] == [
        "write",
        "read",
        "search,",
        "search",
        *["raw"] * 2,
        *["memory"] * 2,
        "the",
        *["import"] * 2,
    ]


def test_the_bytes_of_a_conversation_are_counted_on_every_store(popen: Popen) -> None:
    printed = output(popen, "bench/stored_bytes.py", "--turns", "10", "--first", "5")
    names = [line.split(",")[0].strip() for line in printed.splitlines()[1:]]
    assert names == [*["jsonl"] * 3, *["sqlite"] * 3, *["postgresql"] * 3]


def test_reading_and_looking_up_are_measured_behind_rules(popen: Popen) -> None:
    printed = output(popen, "bench/door.py", "--rounds", "1")
    assert [line.split("  ")[0] for line in printed.splitlines()] == ["read", "look up"]


@pytest.mark.parametrize("shape", ["chain", "fan"])
def test_a_stage_among_many_costs_what_one_among_few_does(
    shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "bench")
    source = runpy.run_path(str(ROOT / "bench/workflows.py"))["SOURCE"]

    def calls(stages: int) -> int:
        vm = Vm()
        run = vm.call(vm.run_source(source)[shape], stages, str(tmp_path / "run.json"), "mock")
        return calls_made(lambda: vm.call(run))

    assert calls(200) / 200 < 1.5 * calls(20) / 20


def test_a_keystroke_is_measured_and_a_server_that_is_missing_is_left_out(run: Run) -> None:
    few = "--lines 60 --keys 14 --files 2 --peer nobody=no-such-server".split()
    output = run("bench/editor.py", *few)
    assert "nobody: left out, no-such-server is not installed" in output
    assert "nan" not in next(line for line in output.splitlines() if line.startswith("  harnpy lsp"))
