"""Where a program that is traced begins and ends its spans. Spec: 04 §25.

A function is recorded if the program was traceable when it was made, which nearly no program is: the others
run no line of this module.
"""

from __future__ import annotations

from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from harnpy.spans import Span, Spans
    from harnpy.vm.run.calls import Calls
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm


def recorder(vm: Vm) -> Spans | None:
    """Return where spans are recorded now, if they are."""
    spans = vm.spans
    return spans if spans is not None and spans.on else None


def recorded_pipeline(vm: Vm, name: str, main: Callable[[int], Value]) -> Callable[[int], Value]:
    """Return what runs a program, in a span if spans are recorded when it starts."""

    def run(depth: int) -> Value:
        with _span(vm, "pipeline", name):
            return main(depth)

    return run


def recorded_function(calls: Calls, name: str, body: Callable[..., Value]) -> Callable[..., Value]:
    """The body of a function, each call in a span of its own while spans are recorded.

    A tail call of the function to itself is a turn of a loop, as in generated code: it stays in the span.
    """
    vm, following = calls.vm, calls.TAIL

    def call(depth: int, *args: Value) -> Value:
        spans = vm.spans
        if spans is None or not spans.on:
            return body(depth, *args)
        span = spans.begin("fn_call", name)
        try:
            result = body(depth, *args)
            while result is following and following.body is call:
                if vm.signal.pending:
                    vm.poll()
                result = body(depth, *following.args)
            return result
        finally:
            spans.end(span)

    return call


def recorded_task(vm: Vm, body: Callable[[int], Value]) -> Callable[[int], Value]:
    """The body of a task in a span that has the task's id for a name."""

    def run(depth: int) -> Value:
        with _span(vm, "spawn", vm.tasks.current.id()):
            return body(depth)

    return run


@contextmanager
def _span(vm: Vm, kind: str, name: str) -> Iterator[None]:
    spans = recorder(vm)
    if spans is None:
        yield
        return
    span = spans.begin(kind, name)
    try:
        yield
    finally:
        spans.end(span)


def inside(spans: Spans, span: Span, body: Callable[..., Value]) -> Callable[..., Value]:
    """The body of a task that is part of ``span``, whichever task starts it."""

    def call(*args: Value) -> Value:
        spans.enter(span)
        return body(*args)

    return call


def until_drawn(spans: Spans, span: Span, items: Iterator[Value], **metadata: Any) -> Iterator[Value]:
    """The items of a stream; ``span`` ends when nobody draws any more."""
    try:
        yield from items
    finally:
        spans.complete(span, **metadata)
