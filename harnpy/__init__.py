"""harnpy: the Harn language for orchestrating AI agents, and its session runtime.

The embedding API: `Vm` runs programs, `VmError` is how they fail (`VmError.Thrown` carries a thrown
value), `World` is everything outside a program, `Limits` what a run may use (`LimitExceeded` when it uses
more). `runtime` opens sessions on a store; `AgentDef`, `tool`, `Tool`, `Capabilities` and `LoopFactory`
make agents for them. See docs/embedding.md and docs/runtime.md. Names load on first use, so that `harnpy
run` pays for what it runs.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    raise ImportError("harnpy runs on Linux and macOS; on Windows, install it in WSL 2 (docs/platforms.md)")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.agent.factory import Capabilities as Capabilities
    from harnpy.agent.factory import LoopFactory as LoopFactory
    from harnpy.agent.factory import Tool as Tool
    from harnpy.agent.factory import tool as tool
    from harnpy.agent.factory.default import runtime as runtime
    from harnpy.embedding import Vm as Vm
    from harnpy.isolation.vm import IsolatedVm as isolated  # noqa: N813
    from harnpy.session.agents import AgentDef as AgentDef
    from harnpy.version import __version__ as __version__
    from harnpy.vm.errors import LimitExceeded as LimitExceeded
    from harnpy.vm.errors import Thrown as Thrown
    from harnpy.vm.errors import VmError as VmError
    from harnpy.vm.limits import Limits as Limits
    from harnpy.world import World as World

__all__ = [
    "AgentDef",
    "Capabilities",
    "LimitExceeded",
    "Limits",
    "LoopFactory",
    "Thrown",
    "Tool",
    "Vm",
    "VmError",
    "World",
    "__version__",
    "isolated",
    "runtime",
    "tool",
]


def __getattr__(name: str) -> object:
    if name == "Vm":
        from harnpy.embedding import Vm

        return Vm
    if name == "__version__":
        from harnpy.version import __version__

        return __version__
    if name == "World":
        from harnpy.world import World

        return World
    if name == "isolated":
        from harnpy.isolation.vm import IsolatedVm

        return IsolatedVm
    if name == "runtime":
        from harnpy.agent.factory.default import runtime

        return runtime
    if name == "AgentDef":
        from harnpy.session.agents import AgentDef

        return AgentDef
    if name in ("Capabilities", "LoopFactory", "Tool", "tool"):
        from harnpy.agent import factory

        return getattr(factory, name)
    if name == "Limits":
        from harnpy.vm.limits import Limits

        return Limits
    if name in ("VmError", "Thrown", "LimitExceeded"):
        from harnpy.vm import errors

        return getattr(errors, name)
    raise AttributeError(f"module 'harnpy' has no attribute {name!r}")
