"""`agent_loop` as the agent of a session's turn, for definitions and for programs. Spec: 10 §C7.1, §C9."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from harnpy.agent.factory.build import AgentBuild, Capabilities, check_options, loop_options
from harnpy.agent.factory.runner import LoopRunner
from harnpy.builtins.agents.agent_functions import with_python_functions
from harnpy.builtins.agents.agent_runtime import runtime_of, runtime_on, tools_bound, with_bound_tools
from harnpy.builtins.agents.tool_runtime import hooks_of
from harnpy.builtins.bridge.contexts import context_of
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.builtins.live_models import models_of
from harnpy.llm.native_tools import tool_entries
from harnpy.session.registry import SessionRegistry
from harnpy.session.send import AgentFactory
from harnpy.vm.errors import CategorizedFault

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from harnpy.session.agent_turn import Turn
    from harnpy.session.agents import AgentDef
    from harnpy.session.calling import Caller
    from harnpy.session.transaction import Txn
    from harnpy.vm.vm import Vm

    Dict = dict[str, Any]

_LOOP: Final = "agent_loop"
#: Options of a program's loop that its definition names otherwise.
_OWN: Final = ("tools", "skills", "provider", "model")


class ProgramLoops(AgentFactory):
    """Runs definitions in loops of a program: with its models, its hooks, its people, under its rules."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm
        self._capabilities = Capabilities()

    def check(self, definition: AgentDef) -> None:
        """Raise for a definition that can't be run, as far as shows without a session."""
        self._capabilities.of(definition.capabilities)
        models = models_of(self._vm)
        check_options(definition, [*models.config.known_providers.names(), *models.provided])

    def close(self, call: Caller) -> None:
        """Do nothing: connections are the program's."""

    def __call__(self, definition: AgentDef, session: Txn) -> LoopRunner:
        """Return what runs the definition in the session's next turn; its options may be the program's.

        Raises `AgentError` for an unknown capability, tool or skill, `OptionError` for what can't be.
        """
        vm, usual = self._vm, runtime_of(self._vm)
        _require_loops(vm)
        given = with_bound_tools(vm, dict(definition.options))
        own = {key: given.pop(key) for key in _OWN if given.get(key) is not None}
        build = AgentBuild(definition, session, vm.world, usual.tasks)
        build.hooks = hooks_of(vm).beside()
        for entry in tool_entries(own.get("tools")):
            build.add_entry(entry)
        for capability in self._capabilities.of(definition.capabilities):
            capability(build)
        model: Dict = {key: own[key] for key in ("provider", "model") if key in own}
        build.definition = replace(build.definition, options={**given, **model})
        options = loop_options(build, usual.models, usual.found_skills)
        if "skills" in own:
            options["skills"] = own["skills"]
        options = with_python_functions(vm, options)
        runtime = runtime_on(vm, sessions_of_turn(vm, session), build.hooks)
        runner = _Runner(build, runtime, options, "session_send")
        runner.bound = partial(tools_bound, vm, own)
        return runner


def sessions_of_turn(vm: Vm, session: Txn) -> SessionRegistry:
    """Return a registry in which the session of a turn is, for the loop that is the turn.

    Whoever listens to all loops, or subscribed to the session, hears of this one, and notes that the program
    queues for the session reach its loop.
    """
    usual = sessions_of(vm)
    sessions = SessionRegistry(world=vm.world, stack=lambda: context_of(vm).sessions)
    sessions.observers, sessions.feedback = usual.observers, usual.feedback
    usual.share_subscribers(session.live, sessions.admit(session))
    return sessions


def _require_loops(vm: Vm) -> None:
    """Refuse a loop where the program may not call `agent_loop`. Spec: 07 §8.1."""
    if vm.builtins.denies(_LOOP):
        raise CategorizedFault("tool_rejected", f"Tool '{_LOOP}' is not permitted.")
    context = vm.task_context
    reason = None if context is None else context.refuses(_LOOP)
    if reason is not None:
        raise CategorizedFault("tool_rejected", reason)


class _Runner(LoopRunner):
    """A loop inside which the tools that it was given are the bound ones."""

    bound: Callable[[], AbstractContextManager[None]]

    def run(self, turn: Turn) -> None:
        with self.bound():
            super().run(turn)
