"""Every builtin and method with every kind of value that is too much. Spec: 05 §9, 09 §16.1, 02 §30.

Each trial has one aim: few steps between two looks at the deadline, no more items or output than the limits
allow, or no more memory than what it was given explains. CI tries one of many, a campaign all, and both try
what was too much once.

A step is a line of Python. One call of a library is one step, however long it takes, and nothing ends it
earlier: a regex over a very long text (masking its secrets is some forty of them), compiling the largest
regex, a normal form, a digest.
"""

from __future__ import annotations

import builtins
import os
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from harnpy import LimitExceeded, Limits, Vm, VmError
from harnpy.builtins import catalog
from harnpy.cli.testing.sandbox import sandboxed_world
from harnpy.vm.errors import ExitRequest
from tests.clock import simulated_time
from tests.counts import COUNT
from tests.hostile.calls import (
    FEW_ITEMS,
    ITEMS,
    KINDS,
    SOME_ITEMS,
    Call,
    calls,
    containers,
    hostile,
    make_files,
    size_of,
)

AIMS = ("steps", "limits", "memory")

#: Lines of Python between two looks at the deadline.
_MOST_STEPS = 50_000
#: Looks that a trial has until its time is over.
_LOOKS = {"steps": 40, "limits": 1_000, "memory": 1_000}
_OUTPUT = 10_000
#: How far beyond a limit a program may be when it ends.
_BEYOND = 1.2
_MOST_MEMORY = 64 << 20


class _TooManySteps(BaseException):
    pass


class _Trial:
    """One run of a call."""

    def __init__(self, call: Call, kind: str, aim: str, files: str, scratch: Path) -> None:
        self.kind = kind
        self.aim = aim
        self.files = files
        self.begun = False
        self.looks = 0
        self.steps = 0
        self.written = 0
        self.given = 0
        self.problem: str | None = None
        with simulated_time() as clock:
            bounds = {"items": FEW_ITEMS, "output": _OUTPUT} if aim == "limits" else {}
            vm = Vm(
                sandboxed_world(self._write, "mock", str(scratch)),
                limits=Limits(seconds=1e6, **bounds),
                capabilities=["read", "list", "write", "delete", "model", "state", "environment"],
            )
            vm.register("hostile(usual: any) -> any", self._hostile)
            assert vm.meter is not None
            vm.meter._now = lambda: self._look(clock.monotonic)
            self._run(vm, call.source)

    def _write(self, text: str) -> None:
        self.written += len(text)

    def _look(self, now: Callable[[], float]) -> float:
        self.steps = 0
        self.looks += 1
        return 1e12 if self.begun and self.looks > _LOOKS[self.aim] else now()

    def _hostile(self, usual: Any) -> Any:
        items = FEW_ITEMS if self.aim == "limits" else SOME_ITEMS if self.kind == "some" else ITEMS
        value = hostile(self.kind, usual, items, self.files)
        if not self.begun:
            self.begun, self.looks = True, 0
            if self.aim == "memory":
                self.given = size_of(value)
                tracemalloc.start()
        self.steps = 0
        return value

    def _trace(self, frame: Any, event: str, argument: Any) -> Any:
        if not self.begun:
            return None
        self.steps += 1
        if self.steps > _MOST_STEPS and self.problem is None:
            places = [f"{os.path.relpath(name)}:{line}" for name, line in _stack(frame)]
            if any("/re/_" in place for place in places):  # a pattern of ours, compiled when it is first used
                self.steps = 0
                return self._trace
            self.problem = f"{_MOST_STEPS} steps without a look, at {' < '.join(places[:5])}"
            raise _TooManySteps
        return self._trace

    def _run(self, vm: Vm, source: str) -> None:
        result, peak = None, 0
        if self.aim == "steps":
            sys.settrace(self._trace)
        try:
            result = vm.run_source(source)
        except LimitExceeded:
            pass
        except (VmError, ExitRequest) as error:
            if "Out of memory" in str(error):  # Python's own: it was not refused before it was made
                self.problem = str(error)[:200]
        except _TooManySteps:
            return
        except BaseException as error:
            self.problem = f"a raw {type(error).__name__}: {str(error)[:200]}"
        finally:
            sys.settrace(None)
            if tracemalloc.is_tracing():
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
        if peak > _MOST_MEMORY + 4 * self.given:
            self.problem = f"{peak} bytes of memory for a value of {self.given}"
        elif self.aim == "limits":
            most = max(map(len, containers(result)), default=0)
            if most > FEW_ITEMS * _BEYOND or self.written > _OUTPUT * _BEYOND:
                self.problem = f"{most} items in a result, {self.written} characters of output"


def _stack(frame: Any) -> Iterator[tuple[str, int]]:
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_files(tmp_path_factory.mktemp("many") / "files")


@pytest.fixture(autouse=True)
def _imports_are_no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def untraced(*given: Any, **options: Any) -> Any:
        trace = sys.gettrace()
        sys.settrace(None)
        try:
            return load(*given, **options)
        finally:
            sys.settrace(trace)

    monkeypatch.setattr(builtins, "__import__", untraced)


#: Tests that share the trials.
_PARTS = 16


@cache
def _calls() -> tuple[Call, ...]:
    return tuple(calls())


def _is_tried(call: Call, kind: str, aim: str) -> bool:
    if (kind, aim) == ("deep", "memory"):  # tracemalloc counts all frames at each allocation
        return False
    if kind == "some" and aim != "steps":
        return False
    return crc32(f"{COUNT.seed} {call.name} {call.place} {kind} {aim}".encode()) % COUNT.call_share == 0


@pytest.mark.parametrize("part", range(_PARTS))
def test_no_value_is_too_much(part: int, files: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    problems = []
    for call, kind, aim in product(_calls()[part::_PARTS], KINDS, AIMS):
        if _is_tried(call, kind, aim):
            problem = _Trial(call, kind, aim, files, tmp_path).problem
            if problem is not None:
                problems.append(f"{kind}: {problem}\n{call.source}")
    assert not problems, "\n\n".join(problems)


#: Calls of what was too much once: of each place in the code that looked too rarely, or made too much.
_ONCE = """
steps   some    add_user(transcript(), hostile("Hi"))
steps   some    agent_session_set_scratchpad(agent_session_open(), hostile({step: 1}))
steps   some    command_policy_push(hostile(command_policy({deny: ["rm"]})))
steps   some    context_pack_manifest_parse(hostile("id = 1"))
steps   again   continue_as_new(hostile("orders"))
steps   some    egress_policy({allow: hostile(["api.example.com:443"])})
steps   again   friction_event({kind: "tool_gap", summary: hostile("Which shop?")})
steps   some    http_mock("GET", "https://api.test/*", {responses: hostile([{status: 503}])})
steps   some    http_server_tls_self_signed_dev(hostile(["localhost"]))
steps   some    json_parse(json_stringify(hostile([1])))
steps   some    multipart_form_data(hostile([{name: "a", content: "b"}]))
steps   some    parallel_race(hostile([2, 1]), { n -> sleep_ms(n) })
memory  wide    parallel_race(hostile([2, 1]), { n -> sleep_ms(n) })
steps   some    plan_entries({steps: hostile(["pack", "drive"])})
memory  wide    regex_captures(hostile("x"), "a")
steps   some    run_record(hostile({status: "completed"}))
steps   some    schema_pick({properties: hostile({a: {}, b: {}})}, ["a"])
memory  number  str_pad("7", hostile(3))
steps   wide    supervisor_start(hostile({children: [{name: "a", task: { info -> nil }}]}))
steps   wide    supervisor_start({restart: hostile("never"), children: [{name: "a", task: { info -> nil }}]})
steps   some    supervisor_start({children: hostile([{name: "a", task: { info -> nil }}])})
steps   some    tar_create(hostile([{path: "a", content: "b"}]))
steps   some    transcript_auto_compact(hostile([{role: "user", content: "a"}]))
steps   some    websocket_mock("wss://a.test/x", hostile(["a"]))
steps   some    workflow_graph({entry: "draft", nodes: hostile({draft: {}})})
"""


@pytest.mark.parametrize("line", _ONCE.strip().split("\n"))
def test_what_was_too_much_is_so_no_more(
    line: str, files: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    aim, kind, source = line.split(maxsplit=2)
    assert _Trial(Call("", 0, source), kind, aim, files, tmp_path).problem is None


def test_all_builtins_with_parameters_are_tried() -> None:
    tried = {call.name for call in _calls()}
    lacking = [
        found.name
        for found in catalog.all_declarations()
        if found.signature().parameters and found.name not in tried
    ]
    assert not lacking
