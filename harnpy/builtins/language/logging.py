"""Structured log lines and tracing spans. Spec: 04 §1, §25."""

from __future__ import annotations

import math
from functools import partial

from harnpy.faults import paced
from harnpy.formats.json import float_text, quote
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import Thrown
from harnpy.vm.values import display
from harnpy.world.clock import milliseconds, rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# Structured log lines: one compact JSON object each, on standard output. Spec: 04 §1.


log_builtin = partial(declare, family="io")

_LEVELS = ("debug", "info", "warn", "error")


class LogLevel:
    """``lowest`` is the index in the levels from which lines are written."""

    def __init__(self) -> None:
        self.lowest = 0


@log_builtin("log_debug(msg: string, fields?: dict) -> nil")
def log_debug(vm: Vm, msg: str, fields: Value) -> None:
    """Log `msg` and the entries of `fields` at level `debug`.

    Example:
        log_set_level("info")
        log_debug("not shown")  // nil
    """
    _log(vm, "debug", msg, fields)


@log_builtin("log_info(msg: string, fields?: dict) -> nil")
def log_info(vm: Vm, msg: str, fields: Value) -> None:
    """Log `msg` and the entries of `fields` at level `info`.

    Example: log_info("started", {port: 80})  // nil
    """
    _log(vm, "info", msg, fields)


@log_builtin("log_warn(msg: string, fields?: dict) -> nil")
def log_warn(vm: Vm, msg: str, fields: Value) -> None:
    """Log `msg` and the entries of `fields` at level `warn`.

    Example: log_warn("almost full", {free: 3})  // nil
    """
    _log(vm, "warn", msg, fields)


@log_builtin("log_error(msg: string, fields?: dict) -> nil")
def log_error(vm: Vm, msg: str, fields: Value) -> None:
    """Log `msg` and the entries of `fields` at level `error`.

    Example: log_error("disk full", {free: 0})  // nil
    """
    _log(vm, "error", msg, fields)


@log_builtin("log_json(key: string, value: any) -> nil")
def log_json(vm: Vm, key: str, value: Value) -> None:
    """Log one value under `key`, whatever the level.

    Example: log_json("totals", {a: 1})  // nil
    """
    _write(vm, {"key": key, "value": value})


@log_builtin("log_set_level(level: string) -> nil")
def log_set_level(vm: Vm, level: str) -> None:
    """Drop log lines below `level`: `debug` (the default), `info`, `warn` or `error`.

    Example:
        log_set_level("warn")
        log_info("not shown")  // nil
    """
    if level not in _LEVELS:
        raise Thrown(f"log_set_level: invalid level '{level}'. Expected debug, info, warn, or error")
    vm.state(LogLevel).lowest = _LEVELS.index(level)


def _log(vm: Vm, level: str, msg: str, fields: Value) -> None:
    spans = vm.open_spans
    ids = {key: spans[-1][key] for key in ("trace_id", "span_id")} if spans else {}
    log_line(vm, level, {"msg": msg, **ids}, fields if type(fields) is dict else {})


def log_line(vm: Vm, level: str, head: dict[str, Value], fields: dict[str, Value]) -> None:
    """Write a line with ``head`` and then ``fields``, unless the program drops lines of this level."""
    if _LEVELS.index(level) >= vm.state(LogLevel).lowest:
        _write(vm, {"level": level, **head}, fields)


def _write(vm: Vm, head: dict[str, Value], fields: dict[str, Value] | None = None) -> None:
    """One line: the time, `head`, then `fields` in key order."""
    entries = [("ts", rfc3339(vm.world.clock.now())), *head.items(), *sorted((fields or {}).items())]
    vm.write("{" + ",".join([f"{quote(key)}:{_encode(value)}" for key, value in paced(entries)]) + "}\n")


def _encode(value: Value) -> str:
    """Scalars as JSON, NaN and infinities as null, other values as their text."""
    if type(value) is float:
        return float_text(value) if math.isfinite(value) else "null"
    if value is None:
        return "null"
    if type(value) is int or type(value) is bool:
        return display(value)
    return quote(display(value))


# Spans: those that a program opens itself, and those that are recorded of all it does. Spec: 04 §25.


trace_builtin = partial(declare, family="tracing")

#: How many digits of a new id are those of a span: the last ones are random.
_DIGITS = 8
_SPAN = {"trace_id": str, "span_id": str, "name": str, "start_ms": int}


@trace_builtin("trace_start(name: string) -> dict")
def trace_start(vm: Vm, name: str) -> dict[str, Value]:
    """Open a span of the running task: `{trace_id, span_id, name, start_ms}`. Log lines name it
    until it ends.

    It shares the trace of the enclosing span, also of one in which the task began; otherwise it starts a
    new one.

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


@trace_builtin("trace_end(span: dict) -> nil")
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


@trace_builtin("trace_id() -> string | nil")
def trace_id(vm: Vm) -> str | None:
    """Return the trace id of this task's innermost open span of `trace_start`, or nil.

    Example:
        let span = trace_start("load")
        let known = trace_id() == span.trace_id
        trace_end(span)
        known  // true
    """
    spans = vm.tasks.current.open_spans
    return spans[-1]["trace_id"] if spans else None


@trace_builtin("enable_tracing(on: bool = true) -> nil")
def enable_tracing(vm: Vm, on: bool) -> None:
    """Start recording the program as spans, without the earlier ones; `false` stops it.

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


@trace_builtin("trace_spans() -> list")
def trace_spans(vm: Vm) -> list[dict[str, Value]]:
    """Return the spans that have ended, in the order they ended.

    Each is `{span_id, parent_id, kind, name, start_ms, duration_ms, metadata?}`.

    Example:
        enable_tracing()
        parallel each [1, 2] { n -> n * 2 }
        trace_spans()[0].metadata  // {"tasks": 2}
    """
    return [] if vm.spans is None else [span.as_dict() for span in vm.spans.completed]


@trace_builtin("trace_summary() -> string")
def trace_summary(vm: Vm) -> str:
    """Return the ended spans as a tree: lines `kind name Nms (key=value)`, below a line with totals.

    Example:
        enable_tracing()
        trace_summary()  // "No spans recorded."
    """
    from harnpy.spans import summary

    return summary([] if vm.spans is None else vm.spans.completed, display)


def _new_id(vm: Vm) -> str:
    return vm.unguarded.ids.new()[-_DIGITS:]
