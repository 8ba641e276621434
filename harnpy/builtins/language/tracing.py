"""Spans: those that a program opens itself, and those that are recorded of all it does. Spec: 04 §25."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.logging import log_line
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import Thrown
from harnpy.vm.values.objects import display
from harnpy.world.clock import milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="tracing")

#: How many digits of a new id are those of a span: the last ones are random.
_DIGITS = 8
_SPAN = {"trace_id": str, "span_id": str, "name": str, "start_ms": int}


@builtin("trace_start(name: string) -> dict")
def trace_start(vm: Vm, name: str) -> dict[str, Value]:
    """Open a span of the running task: `{trace_id, span_id, name, start_ms}`. Log lines name it
    until it ends.

    It has the trace of the span around it, also of one that the task began in; else a new one.

    Example:
        let span = trace_start("load")
        trace_end(span)
        span.name  // "load"
    """
    task = vm.tasks.current
    trace = task.open_spans[-1]["trace_id"] if task.open_spans else _new_id(vm)
    started = milliseconds(vm.unguarded.clock.now())
    span = {"trace_id": trace, "span_id": _new_id(vm), "name": name, "start_ms": started}
    task.open_spans += (span,)
    return span


@builtin("trace_end(span: dict) -> nil")
def trace_end(vm: Vm, span: Value) -> None:
    """Close a span if it is the innermost of the task, and log its `duration_ms` at level `info`.

    Example:
        trace_end(trace_start("load"))
        trace_id()  // nil
    """
    if type(span) is not dict or any(type(span.get(key)) is not kind for key, kind in _SPAN.items()):
        raise Thrown("trace_end: argument must be a span dict from trace_start")
    task = vm.tasks.current
    if task.open_spans and task.open_spans[-1]["span_id"] == span["span_id"]:
        task.open_spans = task.open_spans[:-1]
    ms = max(0, milliseconds(vm.unguarded.clock.now()) - span["start_ms"])
    ids = {key: span[key] for key in ("name", "span_id", "trace_id")}
    log_line(vm, "info", {"msg": "span_end"}, {"duration_ms": ms, **ids})


@builtin("trace_id() -> string | nil")
def trace_id(vm: Vm) -> str | None:
    """The trace of the innermost span that `trace_start` opened in this task; nil when none is open.

    Example:
        let span = trace_start("load")
        let known = trace_id() == span.trace_id
        trace_end(span)
        known  // true
    """
    spans = vm.tasks.current.open_spans
    return spans[-1]["trace_id"] if spans else None


@builtin("enable_tracing(on: bool = true) -> nil")
def enable_tracing(vm: Vm, on: bool) -> None:
    """Record what the program does from now on as spans, after those so far are dropped; `false` stops it.

    Recorded are calls of declared functions, model calls, tool calls, imports, `parallel` and `spawn`.

    Example:
        fn load(name) { return name }
        enable_tracing()
        load("a")
        trace_spans().map({ span -> "${span.kind} ${span.name}" })  // ["fn_call load"]
    """
    if on:
        vm.record_spans()
    elif vm.spans is not None:
        vm.spans.on = False


@builtin("trace_spans() -> list")
def trace_spans(vm: Vm) -> list[dict[str, Value]]:
    """The spans that have ended, in the order in which they did.

    Each is `{span_id, parent_id, kind, name, start_ms, duration_ms, metadata?}`.

    Example:
        enable_tracing()
        parallel each [1, 2] { n -> n * 2 }
        trace_spans()[0].metadata  // {"tasks": 2}
    """
    return [] if vm.spans is None else [span.as_dict() for span in vm.spans.completed]


@builtin("trace_summary() -> string")
def trace_summary(vm: Vm) -> str:
    """The spans that have ended as a tree: lines `kind name Nms (key=value)`, below a line with totals.

    Example:
        enable_tracing()
        trace_summary()  // "No spans recorded."
    """
    from harnpy.spans import summary

    return summary([] if vm.spans is None else vm.spans.completed, display)


def _new_id(vm: Vm) -> str:
    return vm.unguarded.ids.new()[-_DIGITS:]
