"""Spans: times, the whole tree as an embedder sees it, and that recording changes nothing. Spec: 04 §25."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.cli.testing import conformance
from harnpy.cli.testing.conformance import find_cases
from harnpy.cli.testing.sandbox import run_program
from harnpy.spans import Span, Spans, summary
from tests.clock import SimulatedClock
from tests.support import ROOT
from tests.worlds import OwnWorld

EVALUATORS = ("compile", "walk")


class Holder:
    span: Span | None = None


def times(vm: Vm) -> list[tuple[str, str, int | None, int, int | None]]:
    assert vm.spans
    return [
        (span.kind, span.name, span.parent and span.parent.id, span.start_ms, span.duration_ms)
        for span in vm.spans.completed
    ]


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_a_traced_vm_records_the_whole_run_in_the_time_of_its_world(evaluator: str) -> None:
    vm = Vm(OwnWorld(clock=SimulatedClock(1000.0, 0.0)), tracing=True, evaluator=evaluator)
    vm.run_source(
        "fn nap(d) { sleep(d) }\n"
        "pipeline main(task) {\n"
        "  mock_time(5)\n"  # what the program sees of the time doesn't matter
        "  let t = spawn { nap(30ms) }\n"
        "  nap(20ms)\n"
        "  await(t)\n"
        "}",
        file="naps.harn",
    )
    assert times(vm) == [
        ("fn_call", "nap", 1, 1_000_000, 20),
        ("fn_call", "nap", 3, 1_000_000, 30),
        ("spawn", "task_root:spawn:1", 1, 1_000_000, 30),
        ("pipeline", "naps.harn", None, 1_000_000, 30),
    ]
    vm.run_source("pipeline other(task) { }", entry="other")
    assert [name for _, name, *_ in times(vm)] == ["other"]


def test_a_failed_run_has_its_spans() -> None:
    vm = Vm(OwnWorld(clock=SimulatedClock(0.0, 0.0)), tracing=True)
    with pytest.raises(Exception, match="no"):
        vm.run_source(
            'import "std/json"\nfn f() { throw "no" }\nlet t = spawn { sleep(1h) }\nsleep(1ms)\nf()'
        )
    assert sorted((kind, name) for kind, name, *_ in times(vm)) == [
        ("fn_call", "f"),
        ("import", "std/json"),
        ("pipeline", "<script>"),
        ("spawn", "task_root:spawn:1"),
    ]


def test_functions_are_recorded_only_where_a_file_names_the_switch() -> None:
    vm = Vm()
    vm.run_source("fn f() { return 1 }\nf()")
    assert (vm.traceable, vm.spans) == (False, None)
    vm.run_source("fn f() { return 1 }\nf() // enable_tracing")
    assert (vm.traceable, vm.spans) == (True, None)


def test_functions_of_earlier_inputs_of_a_repl_are_recorded() -> None:
    repl = Vm().repl()
    repl.run("fn f() { return 1 }")
    repl.run("enable_tracing()")
    repl.run("f()")
    assert repl.run("trace_spans().map({ s -> s.name })") == ["f"]


def test_a_span_that_began_before_tracing_began_anew_is_no_parent() -> None:
    holder = Holder()
    first = Spans(SimulatedClock(0.0), lambda: holder)
    outer = first.begin("fn_call", "outer")
    second = Spans(SimulatedClock(0.0), lambda: holder)
    inner = second.begin("fn_call", "inner")
    assert inner.parent is None
    second.end(inner)
    first.end(outer)
    assert ([span.name for span in first.completed], len(second.completed)) == (["outer"], 1)


def test_a_summary_hangs_spans_below_those_that_have_ended() -> None:
    holder, clock = Holder(), SimulatedClock(0.0, 0.0)
    spans = Spans(clock, lambda: holder)
    outer = spans.begin("fn_call", "outer")
    clock.sleep(1)
    inner = spans.begin("llm_call", "m")
    clock.sleep(2)
    spans.end(inner, tokens=3, provider="p")
    assert (
        summary(spans.completed)
        == "Trace: 1 span, 2000ms total\n\n  llm_call m 2000ms (provider=p, tokens=3)"
    )
    clock.sleep(1)
    spans.end(outer)
    assert summary(spans.completed) == (
        "Trace: 2 spans, 4000ms total\n\n  fn_call outer 4000ms\n    llm_call m 2000ms (provider=p, tokens=3)"
    )


#: Areas of the conformance suite in which much is called, fails and runs at the same time.
AREAS = ("errors", "functions", "tasks")


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("area", AREAS)
def test_recording_changes_nothing(area: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    def traced(path: Path, **options: object) -> object:
        def attach(vm: Vm) -> None:
            vm.traced = True

        return run_program(path, attach=attach, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(conformance, "run_program", traced)
    results = [conformance.run_case(case, 30_000) for case in find_cases(Path("conformance"), area)]
    assert [(each.name, each.detail) for each in results if each.status not in ("pass", "skip")] == []
