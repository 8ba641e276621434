"""The builtin functions: one family of `builtins.tsv` or one idea a module, all thin; and their settings.

A module declares with `@builtin` (`harnpy.vm.declare`) and changes nothing when imported;
`harnpy.builtins.catalog` finds the declarations. Everything below this package may be imported here; Harn
values meet the domain packages nowhere else. `Settings` is what an embedder sets for the agents of every
program that a Vm runs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from harnpy.agent.rules.hooks import Hook
    from harnpy.agent.skills import FoundSkill
    from harnpy.llm.call import Models
    from harnpy.llm.providers import Provider
    from harnpy.vm.vm import Vm
    from harnpy.world.egress_rules import Policy


class Settings:
    """``hooks`` see what agents do; ``providers`` answer model calls, by name. ``on_models`` are called with
    the models of a program when it first needs them. ``found_skills`` are the skills of files, None until
    somebody looked for some. ``trace_llm`` lets programs see what their model calls took. ``home`` is the
    directory whose project keeps what outlives a program; None for that of the program's file.
    ``on_progress`` receives what `progress` shows: how far, of how much (None where it isn't said), what.
    ``egress`` is the policy on what programs may reach; None for that of the environment. In the block
    ``calling(tool, policy)``, if there is one, each call of an agent's tool is made.
    """

    def __init__(self) -> None:
        self.hooks: list[Hook] = []
        self.providers: dict[str, Provider] = {}
        self.on_models: list[Callable[[Models], None]] = []
        self.found_skills: Sequence[FoundSkill] | None = None
        self.trace_llm = False
        self.home: str | None = None
        self.on_progress: Callable[[float | None, float | None, str], object] | None = None
        self.egress: Policy | None = None
        self.calling: Callable[[str, str], AbstractContextManager[None]] | None = None


def settings_of(vm: Vm) -> Settings:
    return vm.service(Settings, lambda vm: Settings())
