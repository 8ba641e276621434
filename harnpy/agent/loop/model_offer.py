"""What a loop's model is offered: its instructions, and the tools in view. Spec: 07 §6.2, §4.4, §4.5.

In text format the tools are a contract in the system prompt; in native format the request carries them
beside it. Either is rebuilt only when the tools in view change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.agent.loop import prompts
from harnpy.agent.skills.loading import ENTRY as LOAD_SKILL_ENTRY
from harnpy.agent.skills.loading import LOAD_SKILL
from harnpy.agent.skills.loading import native_tool as load_skill_tool
from harnpy.agent.tools.contract import native_contract, text_contract
from harnpy.llm.native_tools import native_tools
from harnpy.session.turns.prompt_cache import Prompt
from harnpy.session.turns.request_parts import (
    CONTRACT,
    DEFINITION,
    PERSISTENCE,
    SKILLS,
    SYSTEM,
    TOOLS,
    joined_system,
)

if TYPE_CHECKING:
    from harnpy.agent.loop.options import LoopOptions
    from harnpy.agent.skills.active import ActiveSkills
    from harnpy.agent.tools.search import DeferredTools
    from harnpy.llm.request import Request
    from harnpy.llm.tool_search import Search
    from harnpy.reading.dicts import Dict


class ModelOffer:
    """``entries`` are all tools of the loop, ``allowed`` those that its model may call.

    ``style`` is the provider style of native tool JSON; ``ledger`` says whether there is a task ledger.
    ``skills`` may restrict the tools, and add instructions and a tool of their own; ``deferred`` hides
    tools until the model searches for them.
    """

    def __init__(
        self,
        options: LoopOptions,
        entries: list[Dict],
        system: str | None,
        style: str,
        ledger: bool,
        skills: ActiveSkills,
        deferred: DeferredTools | None = None,
    ) -> None:
        self.entries = entries
        self.allowed = entries
        self.style = style
        self._options = options
        self._ledger = ledger
        self._skills = skills
        self._deferred = deferred
        self._system = (system or "").strip()
        #: What a definition adds to the caller's system prompt.
        self.instructions: str | None = None
        #: Whether the model is told to say when it has finished.
        self.asks_for_end = True
        self._seen: tuple[int, list[Dict]] | None = None
        #: What is offered now.
        self.prompt = Prompt()

    @property
    def has_tools(self) -> bool:
        return bool(self.entries) or bool(self._skills)

    def names(self) -> list[str]:
        """Return the names that a call in the text of an answer may use."""
        names = [entry["name"] for entry in self.allowed]
        names += [LOAD_SKILL] if self._skills else []
        names += [] if self._deferred is None else [self._deferred.name]
        return names

    def renew(self, request: Request) -> bool:
        """Update the request to the tools now in view. Return whether they have changed."""
        visible = self.entries if self._deferred is None else self._deferred.visible()
        if self._seen is not None and self._seen[0] == self._skills.changes and self._seen[1] is visible:
            return False
        self._seen = self._skills.changes, visible
        self.allowed = self._scoped(self.entries)
        shown = self._scoped(visible)
        native = self._options.tool_format == "native" and self.has_tools
        request.tools = self._native_tools(shown, request.search) if native else None
        parts = self._parts(shown, request.tools)
        request.system = joined_system({**parts, SYSTEM: self._system}.get)
        self.prompt = Prompt(request.system, request.tools if native else parts[CONTRACT], parts)
        return True

    def _scoped(self, entries: list[Dict]) -> list[Dict]:
        return [entry for entry in entries if self._skills.allows(entry["name"], entry)]

    def _native_tools(self, shown: list[Dict], search: Search | None) -> list[Dict]:
        own = [load_skill_tool(self.style)] if self._skills else []
        if search is not None and self._deferred is None:
            return own + search.tools(shown, self.style)
        return own + native_tools(shown, self.style)

    def _parts(self, shown: list[Dict], tools: list[Dict] | None) -> Dict:
        options = self._options
        keep_on = prompts.persistence(options, self.has_tools) if options.persistent else None
        return {
            DEFINITION: self.instructions,
            SKILLS: self._skills.block() or None,
            CONTRACT: self._contract(shown) if self.has_tools else None,
            PERSISTENCE: keep_on,
            TOOLS: tools or None,
        }

    def _contract(self, shown: list[Dict]) -> str | None:
        options = self._options
        stubs = None if self._deferred is None else self._deferred.stubs()
        if options.tool_format == "native" and not (self.asks_for_end or stubs):
            return None
        if options.tool_format == "native":
            return native_contract(options.sentinel, stubs=stubs)
        own = [LOAD_SKILL_ENTRY] if self._skills else []
        return text_contract(
            own + shown, options.sentinel, options.tool_examples, ledger=self._ledger, stubs=stubs
        )
