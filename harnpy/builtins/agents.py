"""Agents: `agent_loop`. Spec: 07 §6."""

from __future__ import annotations

from harnpy.agent.loop import run_loop
from harnpy.builtins.convert import domain_errors
from harnpy.builtins.llm import models_of
from harnpy.builtins.sessions.service import with_callables
from harnpy.builtins.sessions.summarizing import prompt_from
from harnpy.vm.builtin import builtin
from harnpy.vm.values import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.machine import Vm
    from harnpy.vm.values import Value


@builtin("agent_loop(message: string, system?: string, options?: dict) -> dict", family="llm")
def agent_loop(vm: Vm, message: str, system: str | None, options: Value) -> dict[str, Any]:
    """Run an agent until it is done: ask the model, take the answer in, go on as the options say.

    With `session_id` the loop continues that session and writes its transcript back; without one it
    leaves nothing behind. Answers `{status, text, visible_text, transcript, llm, tools, trace, …}`.
    """
    given = with_callables(vm, options, "compact_callback", "mask_callback", "compress_callback")
    if type(given) is dict and given.get("summarize_prompt") is not None:
        given["summarize_prompt"] = prompt_from(vm, display(given["summarize_prompt"]))
    with domain_errors:
        return run_loop(models_of(vm), vm.sessions, message, system, given)
