"""`harnpy.Vm`: the interpreter with harnpy's builtins, sessions and models, for Python programs.

from harnpy import Vm
vm = Vm()
vm.run_source('println("hello")')
"""

from __future__ import annotations

from harnpy.builtins import Settings, catalog
from harnpy.vm.declare import Declaration, name_of
from harnpy.vm.vm import Vm as BaseVm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from harnpy.llm.providers import Provider
    from harnpy.session.registry import SessionRegistry
    from harnpy.vm.limits import Limits
    from harnpy.world import World


class Vm(BaseVm):
    """A Harn interpreter. Several may live in one process; they never see each other.

    ``world`` is everything outside (default: the real one). ``capabilities`` are the effects that programs
    may have on it (default: all): some of read, list, write, delete, process, network, environment, model,
    person and state. ``deny`` names builtins that must fail, and whose effect no other may have; ``allow``
    the only ones that may work. With ``trace_llm`` programs can read the usage of their model calls
    (`llm_usage`). With ``tracing`` what programs do is recorded, as `spans`. ``evaluator="walk"`` walks
    programs instead of compiling them: slower, and the same. ``limits``: what each run may use; one that
    goes beyond ends with `LimitExceeded`. ``egress``: what programs and their models may reach,
    `{"allow": [...], "deny": [...], "default": "deny"}`, as `egress_policy` takes it; it holds instead of the
    environment's, and no program can change it.

    Raises ValueError for an unknown capability or evaluator, and for an egress policy that can't be read.
    Spec: 07 §8.5, 04 §21.4.
    """

    def __new__(cls, world: World | None = None, *rest: Any, **options: Any) -> Vm:
        """Make the kind of Vm that the world asks for: that of a tape has one of its own."""
        vm_class = getattr(world, "vm_class", None) if cls is Vm else None
        vm: Vm = super().__new__(cls if vm_class is None else vm_class())
        return vm

    def __init__(
        self,
        world: World | None = None,
        *,
        deny: Iterable[str] = (),
        allow: Iterable[str] | None = None,
        trace_llm: bool = False,
        tracing: bool = False,
        evaluator: str = "compile",
        limits: Limits | None = None,
        capabilities: Iterable[str] | None = None,
        egress: Mapping[str, Any] | None = None,
    ) -> None:
        deny = frozenset(deny)
        refused = _refused(capabilities, deny)
        super().__init__(catalog, world, deny, allow, evaluator, limits, refused)
        self.traced = tracing
        if trace_llm:
            self.settings.trace_llm = True
        if egress is not None:
            from harnpy.net.egress_policies import embedders_policy

            self.settings.egress = embedders_policy(egress)

    @property
    def settings(self) -> Settings:
        """The settings for the agents of every program run here."""
        from harnpy.builtins import settings_of

        return settings_of(self)

    @property
    def sessions(self) -> SessionRegistry:
        """The live sessions, with the session builtins of 08 §1 as methods."""
        from harnpy.builtins.bridge.live_sessions import sessions_of

        return sessions_of(self)

    def global_names(self) -> Iterator[str]:
        yield from super().global_names()
        yield "skills"

    def global_value(self, name: str) -> Any:
        if name != "skills" or name in self._given:
            return super().global_value(name)
        from harnpy.agent.skills import found_registry

        return found_registry(self.settings.found_skills or ())

    def register(self, signature: str, function: Callable[..., Any]) -> None:
        """Make ``function(*args)`` a builtin, declared in the specification's notation.

            vm.register("word_count(text: string) -> int", lambda text: len(text.split()))

        A coroutine function may wait: the calling task is suspended, others run. Its result becomes a
        value of Harn, or is refused with the path to what can't (09 §16.4). A program can catch what it
        raises; uncaught, that is the `__cause__` of the `HostError` that the run raises (09 §16.5).
        """
        name = name_of(signature)

        def call(vm: BaseVm, *args: Any) -> Any:
            from harnpy.vm.run.embedders import answer

            return answer(vm, name, function, *args)

        call.__doc__ = function.__doc__
        self.builtins.register(Declaration(signature, "host", call, False, None))

    def provide(self, name: str, provider: Provider) -> None:
        """Make ``provider`` handle the model calls of the provider ``name``, for every program run here.

        It has one method, ``complete(request) -> Reply``, which may be a coroutine: other tasks run while
        it waits. A failure raises `harnpy.llm.errors.CallError(category, message)`.
        """
        self.settings.providers[name] = provider

    def hook(self, event: str, handler: Callable[[dict[str, Any]], Any], pattern: str = "*") -> None:
        """Call ``handler(payload)`` for what agents do in every program run here; it may change tool calls.

        ``event``: `PreToolUse`, `PostToolUse`, `PreAgentTurn`, `PostAgentTurn` or a worker event;
        ``pattern``: which tools, or a condition on the payload. Spec: 07 §8.4.
        """
        from harnpy.agent.rules.hooks import hook

        def call(payload: dict[str, Any]) -> Any:
            from harnpy.vm.run.embedders import answer

            return answer(self, event, handler, payload)

        self.settings.hooks.append(hook(event, call, pattern))


def _refused(capabilities: Iterable[str] | None, deny: frozenset[str]) -> frozenset[str]:
    """Return the effects that aren't among ``capabilities``, and those of the builtins in ``deny``."""
    if capabilities is None and not deny:
        return frozenset()
    from harnpy.agent.rules.policy import effects_of
    from harnpy.world.effects import without

    return effects_of(deny) | (frozenset() if capabilities is None else without(capabilities))
