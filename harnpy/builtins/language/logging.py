"""Structured log lines: one compact JSON object each, on standard output. Spec: 04 §1."""

from __future__ import annotations

import math
from functools import partial

from harnpy.text.json.writer import float_text, quote
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import Thrown
from harnpy.vm.values.objects import display
from harnpy.world.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="io")

_LEVELS = ("debug", "info", "warn", "error")


class LogLevel:
    """``lowest`` is the index in the levels from which lines are written."""

    def __init__(self) -> None:
        self.lowest = 0


@builtin("log_debug(msg: string, fields?: dict) -> nil")
def log_debug(vm: Vm, msg: str, fields: Value) -> None:
    """Log `msg` and the entries of `fields` at level `debug`.

    Example:
        log_set_level("info")
        log_debug("not shown")  // nil
    """
    _log(vm, "debug", msg, fields)


@builtin("log_info(msg: string, fields?: dict) -> nil")
def log_info(vm: Vm, msg: str, fields: Value) -> None:
    """Log `msg` and the entries of `fields` at level `info`.

    Example:
        log_info("started", {port: 80})  // nil
    """
    _log(vm, "info", msg, fields)


@builtin("log_warn(msg: string, fields?: dict) -> nil")
def log_warn(vm: Vm, msg: str, fields: Value) -> None:
    """Log `msg` and the entries of `fields` at level `warn`.

    Example:
        log_warn("almost full", {free: 3})  // nil
    """
    _log(vm, "warn", msg, fields)


@builtin("log_error(msg: string, fields?: dict) -> nil")
def log_error(vm: Vm, msg: str, fields: Value) -> None:
    """Log `msg` and the entries of `fields` at level `error`.

    Example:
        log_error("disk full", {free: 0})  // nil
    """
    _log(vm, "error", msg, fields)


@builtin("log_json(key: string, value: any) -> nil")
def log_json(vm: Vm, key: str, value: Value) -> None:
    """Log one value under `key`, whatever the level.

    Example:
        log_json("totals", {a: 1})  // nil
    """
    _write(vm, {"key": key, "value": value})


@builtin("log_set_level(level: string) -> nil")
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
    vm.write("{" + ",".join([f"{quote(key)}:{_encode(value)}" for key, value in entries]) + "}\n")


def _encode(value: Value) -> str:
    """Scalars as JSON, NaN and infinities as null, other values as their text."""
    if type(value) is float:
        return float_text(value) if math.isfinite(value) else "null"
    if value is None:
        return "null"
    if type(value) is int or type(value) is bool:
        return display(value)
    return quote(display(value))
