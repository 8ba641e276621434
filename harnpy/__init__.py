"""harnpy: the Harn language for orchestrating AI agents, and its session runtime.

The embedding API: `Vm` runs programs, `VmError` is how they fail (`VmError.Thrown` carries a thrown
value, `HostError` an exception of a Python function, `Cancelled` ends a run that was cancelled), `World` is
everything outside a program, `Limits` what a run may use (`LimitExceeded` when it uses more). `runtime` opens
sessions on a store; `AgentDef`, `tool`, `Tool`, `Capabilities` and `LoopFactory` make agents for them. See
docs/embedding.md and docs/runtime.md. Names load on first use, so that `harnpy run` pays for what it runs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.agent.factory import Capabilities as Capabilities
    from harnpy.agent.factory import LoopFactory as LoopFactory
    from harnpy.agent.factory import Tool as Tool
    from harnpy.agent.factory import tool as tool
    from harnpy.agent.factory.default import runtime as runtime
    from harnpy.checking import Checker as Checker
    from harnpy.embedding import Vm as Vm
    from harnpy.isolation.vm import IsolatedVm as isolated  # noqa: N813
    from harnpy.llm.errors import CallError as CallError
    from harnpy.llm.reply import Reply as Reply
    from harnpy.llm.request import Request as Request
    from harnpy.session import Session as Session
    from harnpy.session import SessionRuntime as SessionRuntime
    from harnpy.session.agents import AgentDef as AgentDef
    from harnpy.syntax.diagnostic import SourceFault as SourceFault
    from harnpy.version import __version__ as __version__
    from harnpy.vm.errors import Cancelled as Cancelled
    from harnpy.vm.errors import ExitRequest as ExitRequest
    from harnpy.vm.errors import HostError as HostError
    from harnpy.vm.errors import LimitExceeded as LimitExceeded
    from harnpy.vm.errors import Thrown as Thrown
    from harnpy.vm.errors import VmError as VmError
    from harnpy.vm.limits import Limits as Limits
    from harnpy.vm.values.given import UnsupportedValue as UnsupportedValue
    from harnpy.world import World as World
    from harnpy.world.host import Host as Host
    from harnpy.world.host import People as People

__all__ = [
    "AgentDef",
    "CallError",
    "Cancelled",
    "Capabilities",
    "Checker",
    "ExitRequest",
    "Host",
    "HostError",
    "LimitExceeded",
    "Limits",
    "LoopFactory",
    "People",
    "Reply",
    "Request",
    "Session",
    "SessionRuntime",
    "SourceFault",
    "Thrown",
    "Tool",
    "UnsupportedValue",
    "Vm",
    "VmError",
    "World",
    "__version__",
    "isolated",
    "runtime",
    "tool",
]

#: Where each name is, by its room.
_ROOMS = {
    "agent.factory": ("Capabilities", "LoopFactory", "Tool", "tool"),
    "agent.factory.default": ("runtime",),
    "checking": ("Checker",),
    "embedding": ("Vm",),
    "isolation.vm": ("isolated",),
    "llm.errors": ("CallError",),
    "llm.reply": ("Reply",),
    "llm.request": ("Request",),
    "session": ("Session", "SessionRuntime"),
    "session.agents": ("AgentDef",),
    "syntax.diagnostic": ("SourceFault",),
    "version": ("__version__",),
    "vm.errors": ("Cancelled", "ExitRequest", "HostError", "LimitExceeded", "Thrown", "VmError"),
    "vm.limits": ("Limits",),
    "vm.values.given": ("UnsupportedValue",),
    "world": ("World",),
    "world.host": ("Host", "People"),
}


def __getattr__(name: str) -> object:
    for room, names in _ROOMS.items():
        if name in names:
            known = "IsolatedVm" if name == "isolated" else name
            return getattr(__import__(f"harnpy.{room}", fromlist=[known]), known)
    raise AttributeError(f"module 'harnpy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
