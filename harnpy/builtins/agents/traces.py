"""What the calls and loops of the program did so far. Spec: 07 §9.4."""

from __future__ import annotations

from harnpy.builtins.bridge.live_models import models_of
from harnpy.vm.declare.builtin import builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.vm import Vm


@builtin("agent_trace() -> list", family="llm")
def agent_trace(vm: Vm) -> list[Dict]:
    """Every model call, retry, tool run and loop of the program so far, as dicts with a `type`.

    Example:
        agent_loop("Hi", nil, {provider: "mock"})
        agent_trace().map({ event -> event.type }).contains("llm_call")  // true
    """
    return list(models_of(vm).trace.events)


@builtin("agent_trace_summary() -> dict", family="llm")
def agent_trace_summary(vm: Vm) -> Dict:
    """The totals of the events of `agent_trace`; `status` and `iterations` are the last loop's.

    Example:
        agent_loop("Hi", nil, {provider: "mock"})
        agent_trace_summary().llm_calls > 0  // true
    """
    return models_of(vm).trace.summary()
