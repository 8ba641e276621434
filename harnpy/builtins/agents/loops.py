"""Agents: `agent_loop`, and named configurations. Spec: 07 §6, §10.1."""

from __future__ import annotations

from harnpy.agent.loop.loop import run_loop
from harnpy.agent.subagents import execution_here, make_sub_agent
from harnpy.builtins.agents.agent_functions import with_python_functions
from harnpy.builtins.agents.agent_runtime import runtime_of, tools_bound, with_bound_tools
from harnpy.builtins.bridge.live_sessions import on_active_session
from harnpy.builtins.options import check_options, checked_system
from harnpy.vm.declare import ABSENT, builtin
from harnpy.vm.errors import RuntimeFault, Thrown
from harnpy.vm.values import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm


@builtin(
    "agent_loop(message: string, system?: string | nil, options?: dict) -> dict", family="llm", guarded=True
)
def agent_loop(vm: Vm, message: str, system: Value, options: Value) -> dict[str, Any]:
    """Run an agent until it is done: ask the model, call the tools it asks for, continue as the options say.

    With `session_id` the loop continues that session and writes its transcript back; without one it is
    on the active session (`std/session`), or leaves nothing behind. A message that may be sent twice goes
    through `session_send` of std/session, with an `idempotency_key`. Returns `{status, text, visible_text,
    transcript, llm, tools, trace, …}`.

    Example:
        llm_mock({text: "There are 40."})
        agent_loop("How many bolts have we got?", nil, {provider: "mock"}).text  // "There are 40."
    """
    text = checked_system(vm, "agent_loop", system, options)
    options = on_active_session(vm, options)
    with tools_bound(vm, options):
        return run_loop(runtime_of(vm), message, text, with_python_functions(vm, options))


@builtin("sub_agent_run(task: string, options?: dict) -> dict", family="agents", counted=True, guarded=True)
def sub_agent_run(vm: Vm, task: Value = ABSENT, options: Value = None) -> dict[str, Any]:
    """Run a child agent on `task` in a session of its own, a fork of the current one. Return its envelope.

    `{ok, summary, data, error, tokens_used, session_id, transcript, …}`, also when the child fails.
    Options: those of `agent_loop`, `name`, `system`, `allowed_tools`, `returns: {schema}`, `background`.

    Example:
        llm_mock({text: "There are 40."})
        sub_agent_run("Count the bolts", {provider: "mock"}).summary  // "There are 40."
    """
    if task is ABSENT:
        raise RuntimeFault("sub_agent_run: task is required")
    check_options(vm, "sub_agent_run", options)
    given = with_python_functions(vm, with_bound_tools(vm, options))
    runtime, text = runtime_of(vm), display(task)
    if type(given) is dict and given.get("background"):
        from harnpy.agent.subagents import delegate

        return delegate(runtime, runtime.workers(), text, given).handle()
    with runtime.context().work_at(execution_here(given)):
        child = make_sub_agent(runtime, text, given)
        with tools_bound(vm, given):
            return child.run()


#: Keys of an agent's config that are options of a loop (07 §10.1).
_LOOP_OPTIONS = (
    "provider model thinking tools max_iterations tool_format structural_experiment context_callback "
    "context_filter tool_retries tool_backoff_ms".split()
)


@builtin("agent(name: string, config?: dict) -> dict", family="agents", counted=True)
def agent(vm: Vm, name: Value = "", config: Value = ABSENT) -> dict[str, Any]:
    """Return a named set of loop options: the config with `_type: "agent"` and the name.

    Example: agent("clerk", {system: "Be brief."}).system  // "Be brief."
    """
    given = {} if config is ABSENT else config
    if type(given) is not dict:
        raise Thrown("agent: second argument must be a config dict")
    return {**given, "_type": "agent", "name": display(name)}


@builtin("agent_name(agent: dict) -> string", family="agents")
def agent_name(vm: Vm, agent: Value) -> Value:
    """Return the agent's name.

    Example: agent_name(agent("clerk"))  // "clerk"
    """
    if not _is_agent(agent):
        raise Thrown("agent_name: argument must be an agent")
    return agent["name"]


@builtin("agent_config(agent: dict, prompt: string) -> dict", family="agents", counted=True)
def agent_config(vm: Vm, agent: Value = ABSENT, prompt: Value = ABSENT) -> dict[str, Any]:
    """Return the arguments of `agent_loop` that run the agent: `{prompt, system, options}`.

    Example: agent_config(agent("clerk", {system: "Be brief."}), "Hi").prompt  // "Hi"
    """
    if prompt is ABSENT:
        raise Thrown("agent_config: requires agent and prompt")
    if not _is_agent(agent):
        how = " (created with agent())" if type(agent) is dict else ""
        raise Thrown(f"agent_config: first argument must be an agent{how}")
    options = {key: agent[key] for key in _LOOP_OPTIONS if key in agent}
    return {"prompt": display(prompt), "system": agent.get("system"), "options": options}


def _is_agent(value: Value) -> bool:
    return type(value) is dict and value.get("_type") == "agent"
