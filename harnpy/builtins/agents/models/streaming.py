"""Replies as they come, and text between two others. Spec: 07 §1.11."""

from __future__ import annotations

from harnpy.builtins.agents.models.llm_calls import CallErrors, options_of
from harnpy.builtins.bridge.live_models import models_of
from harnpy.builtins.bridge.option_tables import checked_system
from harnpy.faults import Fault
from harnpy.llm.call_result import result_dict
from harnpy.llm.infill import complete, infill_prompt
from harnpy.llm.streaming import stream_into
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.run.tasks.channels import Channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin(
    "llm_stream(prompt: string, system?: string | nil, options?: dict) -> channel", family="llm", guarded=True
)
def llm_stream(vm: Vm, prompt: str, system: Value, options: Value) -> Channel:
    """A channel with the pieces of a model's reply, closed after the last: `for piece in llm_stream(…)`.

    A call that fails sends `error: <message>` as its last piece. Spec: 07 §1.11.

    Example:
        var story = ""
        for piece in llm_stream("A story", nil, {provider: "mock"}) { story = story + piece }
        story.contains("story")  // true
    """
    models = models_of(vm)
    text = checked_system(vm, "llm_stream", system, options)
    request = models.request(prompt, text, options_of(vm, options))
    with CallErrors(vm, request):
        models.account.check(request)
    channel = Channel(vm.tasks, "llm_stream")

    def produce(depth: int) -> None:
        try:
            stream_into(channel.send, models, request)
        except Fault as error:
            channel.send(f"error: {error.message}")
        finally:
            channel.close()

    vm.tasks.detach(produce)
    return channel


@builtin(
    "llm_completion(prefix: string, suffix?: string, system?: string | nil, options?: dict) -> dict",
    family="llm",
    guarded=True,
)
def llm_completion(vm: Vm, prefix: str, suffix: str | None, system: Value, options: Value) -> dict[str, Any]:
    r"""Ask a model for the text between `prefix` and `suffix`.

    Returns what `llm_call` does, without `transcript`. Spec: 07 §1.11.

    Example:
        llm_completion("def add(a, b):\n", nil, nil, {provider: "mock"}).provider  // "mock"
    """
    models = models_of(vm)
    text = checked_system(vm, "llm_completion", system, options)
    request = models.request(infill_prompt(prefix, suffix or ""), text, options_of(vm, options))
    with CallErrors(vm, request):
        return result_dict(complete(models, request, prefix, suffix or ""))
