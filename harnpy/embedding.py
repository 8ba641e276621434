"""`harnpy.Vm`: the interpreter with harnpy's builtins, sessions and models, for Python programs.

from harnpy import Vm
vm = Vm()
vm.run_source('println("hello")')
"""

from __future__ import annotations

from harnpy.builtins import catalog
from harnpy.vm.declare.builtin import Declaration
from harnpy.vm.vm import Vm as BaseVm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from harnpy.agent.rules.hooks import Hook
    from harnpy.agent.skills.library import FoundSkill
    from harnpy.llm.call import Models
    from harnpy.llm.providers import Provider
    from harnpy.world.world import World


class Vm(BaseVm):
    """A Harn interpreter. Several may live in one process; they never see each other.

    ``world`` is everything outside (default: the real one); ``deny`` and ``allow`` name builtins that must
    fail, or the only ones that may work; ``trace_llm`` lets programs see what their model calls took
    (`llm_usage`).
    """

    def __init__(
        self,
        world: World | None = None,
        *,
        deny: Iterable[str] = (),
        allow: Iterable[str] | None = None,
        trace_llm: bool = False,
    ) -> None:
        services: dict[str, Callable[[BaseVm], Any]] = {
            "sessions": _session_store,
            "session_stack": _session_stack,
            "llm_tracing": lambda vm: trace_llm,
            "providers": lambda vm: self.providers,
            "event_log": _event_log,
        }
        super().__init__(catalog, world, services, deny, allow)
        self.hooks: list[Hook] = []
        #: Called with the models of each program run here, when it first needs them.
        self.on_models: list[Callable[[Models], None]] = []
        self.providers: dict[str, Provider] = {}
        #: The skills for the programs run here, by id; None until somebody looked for some.
        self.found_skills: Sequence[FoundSkill] | None = None

    def global_names(self) -> Iterator[str]:
        yield from super().global_names()
        yield "skills"

    def global_value(self, name: str) -> Any:
        if name != "skills" or name in self._given:
            return super().global_value(name)
        from harnpy.agent.skills.library import found_registry

        return found_registry(self.found_skills or ())

    def register(self, signature: str, function: Callable[..., Any]) -> None:
        """Make ``function(*args)`` a builtin, declared in the specification's notation.

            vm.register("word_count(text: string) -> int", lambda text: len(text.split()))

        A coroutine function may wait: the calling task is suspended, others go on. What it raises as
        VmError the script can catch; any other exception ends the run.
        """

        def call(vm: BaseVm, *args: Any) -> Any:
            return vm.tasks.awaited(function(*args))

        call.__doc__ = function.__doc__
        self.builtins.register(Declaration(signature, "host", call, False, None))

    def provide(self, name: str, provider: Provider) -> None:
        """Let ``provider`` answer the model calls of the provider ``name``, for every program run here.

        It has one method, ``complete(request) -> Reply``, which may be a coroutine: other tasks run while
        it waits. What fails raises `harnpy.llm.errors.CallError(category, message)`.
        """
        self.providers[name] = provider

    def hook(self, event: str, handler: Callable[[dict[str, Any]], Any], pattern: str = "*") -> None:
        """Let ``handler(payload)`` see, and for tools change, what agents do in every program run here.

        ``event``: `PreToolUse`, `PostToolUse`, `PreAgentTurn`, `PostAgentTurn` or a worker event;
        ``pattern``: which tools, or a condition on the payload. Spec: 07 §8.4.
        """
        from harnpy.agent.rules.hooks import hook

        self.hooks.append(hook(event, handler, pattern))


def _session_store(vm: BaseVm) -> Any:
    from harnpy.builtins.agents.sessions.service import make_store

    return make_store(vm)


def _session_stack(vm: BaseVm) -> Any:
    from harnpy.agent.context import Ambient

    return Ambient()


def _event_log(vm: BaseVm) -> Any:
    from harnpy.eventlog.topics import memory_log

    return memory_log(vm.world.clock.now)
