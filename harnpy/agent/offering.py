"""What a loop's model is offered: its instructions, and the tools in view. Spec: 07 §6.2, §4.4, §4.5.

In text format the tools stand in the system prompt, as a contract; in native format they go to the
provider beside it. Either is written anew only when the tools in view change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent import prompts
from harnpy.agent.contract import native_contract, text_contract
from harnpy.llm.tools import native_tools

if TYPE_CHECKING:
    from harnpy.agent.options import LoopOptions
    from harnpy.agent.tool_search import DeferredTools
    from harnpy.llm.request import Request
    from harnpy.llm.tool_search import Search

    Dict = dict[str, Any]


class Offer:
    """``entries`` are all tools of the loop, ``deferred`` decides which of them are in view, if any are not;
    ``style`` is whose native tool JSON is sent; ``ledger`` says whether there is a task ledger to keep.
    """

    def __init__(
        self,
        options: LoopOptions,
        entries: list[Dict],
        system: str | None,
        style: str,
        ledger: bool,
        deferred: DeferredTools | None = None,
    ) -> None:
        self.entries = entries
        self.style = style
        self._options = options
        self._ledger = ledger
        self._deferred = deferred
        self._system = (system or "").strip()
        self._shown: list[Dict] | None = None

    @property
    def has_tools(self) -> bool:
        return bool(self.entries)

    def names(self) -> list[str]:
        """What a call in the text of an answer may name."""
        names = [entry["name"] for entry in self.entries]
        return names if self._deferred is None else [*names, self._deferred.name]

    def renew(self, request: Request) -> None:
        """Let the request offer what is in view now."""
        shown = self.entries if self._deferred is None else self._deferred.visible()
        if self._shown is shown:
            return
        self._shown = shown
        request.system = self._system_prompt(shown)
        native = self._options.tool_format == "native" and self.has_tools
        request.tools = self._native(shown, request.search) if native else None

    def _native(self, shown: list[Dict], search: Search | None) -> list[Dict]:
        if search is not None and self._deferred is None:
            return search.tools(shown, self.style)
        return native_tools(shown, self.style)

    def _system_prompt(self, shown: list[Dict]) -> str | None:
        options = self._options
        parts = [self._system]
        if self.has_tools:
            parts.append(self._contract(shown))
        if options.persistent:
            parts.append(prompts.persistence(options, self.has_tools))
        return "\n\n".join(filter(None, parts)) or None

    def _contract(self, shown: list[Dict]) -> str:
        options = self._options
        stubs = None if self._deferred is None else self._deferred.stubs()
        if options.tool_format == "native":
            return native_contract(options.sentinel, stubs=stubs)
        return text_contract(shown, options.sentinel, options.tool_examples, ledger=self._ledger, stubs=stubs)
