"""Agents that are data: definitions put together and run by harnpy's loop, from Python. Spec: 10 §C7.1.

`tools` and `signatures` make tools of functions, `capabilities` and `ready_made` bring tools under a name
to a `build`, `loops` makes a loop of a definition for one turn, which `runner` runs.
"""

from harnpy.agent.factory.build import AgentBuild, Capabilities
from harnpy.agent.factory.loops import LoopFactory
from harnpy.agent.factory.tools import Tool, tool

__all__ = ["AgentBuild", "Capabilities", "LoopFactory", "Tool", "tool"]
