"""What a loop's model may call, and whether it can be run. Spec: 07 §6.2, §4.6."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from harnpy.agent.rules.annotations import Annotations
from harnpy.agent.tools import surface
from harnpy.agent.tools.executors import EXECUTORS, RUNTIME_SERVED
from harnpy.faults import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.agent.context import Rules
    from harnpy.agent.rules.policy import Policy
    from harnpy.mcp.client import Client
    from harnpy.reading.dicts import Dict

    #: Answers a call: returns the text, and whether it succeeded.
    Internal = Callable[[Dict], tuple[str, bool]]

_UNKNOWN = Annotations()
_FOR_POLICIES = ("TOOL_SURFACE_MISSING_ANNOTATIONS", "TOOL_SURFACE_MISSING_SIDE_EFFECT_LEVEL")


class Toolbox:
    """``entries`` are the tools by name; ``internal`` the names that the loop answers itself.

    ``clients`` are those of the MCP servers that the loop has started, by name.

    Only the annotations of the policy in force count: a tool's own are no proof.
    """

    def __init__(
        self,
        entries: list[Dict],
        policy: Policy | None = None,
        clients: Mapping[str, Client] = MappingProxyType({}),
    ) -> None:
        self.replace(entries)
        self.clients = clients
        self.internal: dict[str, Internal] = {}
        self._policy = policy

    def replace(self, entries: list[Dict]) -> None:
        """Replace the tools."""
        self.entries = {entry["name"]: entry for entry in entries}

    def executor(self, name: str) -> str:
        """Return who runs a tool; its entry may say so by naming a server alone."""
        entry = self.entries.get(name) or {}
        served = entry.get("mcp_server") is not None and not callable(entry.get("handler"))
        return entry.get("executor") or ("mcp_server" if served else "harn")

    def annotations(self, name: str) -> Annotations:
        found = None if self._policy is None else self._policy.annotations(name)
        return found or _UNKNOWN

    def kind(self, name: str) -> str | None:
        """Return the annotated kind, None for a tool without annotations."""
        found = None if self._policy is None else self._policy.annotations(name)
        return None if found is None else found.kind


def refuse_unbacked(entries: list[Dict], caller: str) -> None:
    """Raise `MisuseError` for a tool that can't be run."""
    for entry in entries:
        name, executor = entry["name"], entry.get("executor")
        handled = callable(entry.get("handler"))
        if executor is None and not handled and entry.get("host_capability") is None:
            if name in RUNTIME_SERVED or entry.get("mcp_server") is not None:
                continue
            raise MisuseError(
                f"{caller}: tool '{name}' has no executable backend — attach a `handler`, or declare the "
                "executor that runs it"
            )
        if executor in (None, "harn", "harn_builtin"):
            if not handled and name not in RUNTIME_SERVED and executor is not None:
                raise MisuseError(
                    f"{caller}: tool '{name}' declares executor: \"harn\" but has no callable `handler`. "
                    "Attach the handler fn or change the executor."
                )
        elif executor not in EXECUTORS:
            expected = ", ".join(f'"{known}"' for known in EXECUTORS)
            raise MisuseError(
                f"{caller}: tool '{name}' declares unknown executor \"{executor}\". "
                f"Expected one of: {expected}"
            )


def validate_surface(given: Dict, rules: Rules, caller: str, warn: Callable[[str, str], None]) -> None:
    """Check the tools, policies and prompts together: warnings are logged, an error raises.

    Missing annotations are reported only where the rules depend on them.
    """
    diagnostics = surface.validate(given)
    for error in surface.errors(diagnostics):
        raise MisuseError(f"{caller} tool surface validation failed: {error['code']}: {error['message']}")
    for diagnostic in diagnostics:
        if not rules.mind_annotations and diagnostic["code"] in _FOR_POLICIES:
            continue
        warn("agent.tool_surface", f"{diagnostic['code']}: {diagnostic['message']}")
