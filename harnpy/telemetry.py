"""Spans by OpenTelemetry's conventions for generative AI, and the trace context of requests. Spec: 11 §5.

An application that sets a tracer provider has imported OpenTelemetry itself. So nothing is imported here, and
where no provider is set a span costs a look. Spans tell what happened and what it took: no prompts, no
answers, no arguments, no results.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping
    from contextlib import AbstractContextManager
    from types import ModuleType
    from typing import Any

    Attribute = str | bool | int | float | list[str] | None
    Attributes = Mapping[str, Attribute]

#: The scope that spans are recorded under.
SCOPE = "harnpy"


class Span:
    """A span while it lasts. This one records nothing."""

    records = False

    def set(self, attributes: Attributes) -> None:
        """Set attributes; None sets nothing."""

    def fail(self, kind: str) -> None:
        """Say that it failed, and how: a category, or the name of an exception."""


#: What there is where nothing is recorded.
OFF: AbstractContextManager[Span] = nullcontext(Span())


def is_on() -> bool:
    """Return whether the application has set what records spans."""
    trace = sys.modules.get("opentelemetry.trace")
    return trace is not None and not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def span(name: str, attributes: Attributes, *, calls: bool = False) -> AbstractContextManager[Span]:
    """Return a span for a ``with`` block, within that of the caller; an exception is its failure.

    ``calls``: it is a request to a service, and no work of this process.
    """
    return _recorded(sys.modules["opentelemetry.trace"], name, attributes, calls) if is_on() else OFF


def tool_span(tool: str, call_id: str | None) -> AbstractContextManager[Span]:
    """Return the span of a call of a tool."""
    if not is_on():
        return OFF
    known = {"gen_ai.tool.name": tool, "gen_ai.tool.call.id": call_id, "gen_ai.tool.type": "function"}
    return span(f"execute_tool {tool}", {"gen_ai.operation.name": "execute_tool", **known})


def agent_span(agent: str | None, session_id: str) -> AbstractContextManager[Span]:
    """Return the span of a turn: of an agent's work on a session. An agent loop may have no name."""
    if not is_on():
        return OFF
    known = {"gen_ai.agent.name": agent, "gen_ai.conversation.id": session_id or None}
    name = f"invoke_agent {agent}" if agent else "invoke_agent"
    return span(name, {"gen_ai.operation.name": "invoke_agent", **known})


def run_span(workflow: str, run_id: str) -> AbstractContextManager[Span]:
    """Return the span of a run: of a workflow, or of a durable program."""
    if not is_on():
        return OFF
    known = {"gen_ai.workflow.name": workflow, "harn.run.id": run_id}
    return span(f"invoke_workflow {workflow}", {"gen_ai.operation.name": "invoke_workflow", **known})


def stage_span(node: str, stage_id: str) -> AbstractContextManager[Span]:
    """Return the span of a stage of a workflow, for which the conventions have no name."""
    return span(f"stage {node}", {"harn.stage.id": stage_id, "harn.stage.node": node}) if is_on() else OFF


def inject(headers: MutableMapping[str, str]) -> None:
    """Add the trace context of the caller to the headers of a request."""
    if is_on():
        from opentelemetry.propagate import inject as add

        add(headers)


@contextmanager
def within(headers: Mapping[str, str]) -> Iterator[None]:
    """Be, inside the block, within the span that the headers of a request name, if they name one."""
    if not is_on():
        yield
        return
    from opentelemetry import context
    from opentelemetry.propagate import extract

    token = context.attach(extract(headers))
    try:
        yield
    finally:
        context.detach(token)


@contextmanager
def _recorded(trace: ModuleType, name: str, attributes: Attributes, calls: bool) -> Iterator[Span]:
    kind = trace.SpanKind.CLIENT if calls else trace.SpanKind.INTERNAL
    real = trace.get_tracer(SCOPE).start_as_current_span(
        name, kind=kind, record_exception=False, set_status_on_exception=False
    )
    with real as inner:
        seen = _Recorded(inner, trace)
        seen.set(attributes)
        try:
            yield seen
        except BaseException as error:
            # Only what kind it is of: its text may hold what somebody said.
            seen.fail(getattr(error, "category", None) or type(error).__name__)
            raise


class _Recorded(Span):
    records = True

    def __init__(self, real: Any, trace: ModuleType) -> None:
        self._real = real
        self._trace = trace

    def set(self, attributes: Attributes) -> None:
        for name, value in attributes.items():
            if value is not None:
                self._real.set_attribute(name, value)

    def fail(self, kind: str) -> None:
        self._real.set_attribute("error.type", kind)
        self._real.set_status(self._trace.StatusCode.ERROR)
