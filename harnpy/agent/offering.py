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
    from harnpy.llm.request import Request

    Dict = dict[str, Any]


class Offer:
    """``entries`` are all tools of the loop; ``style`` is whose native tool JSON is sent;
    ``ledger`` says whether there is a task ledger to keep.
    """

    def __init__(
        self, options: LoopOptions, entries: list[Dict], system: str | None, style: str, ledger: bool
    ) -> None:
        self.entries = entries
        self.style = style
        self._options = options
        self._ledger = ledger
        self._system = (system or "").strip()
        self._shown: list[Dict] | None = None

    @property
    def has_tools(self) -> bool:
        return bool(self.entries)

    def names(self) -> list[str]:
        """What a call in the text of an answer may name."""
        return [entry["name"] for entry in self.entries]

    def renew(self, request: Request) -> None:
        """Let the request offer what is in view now."""
        if self._shown is self.entries:
            return
        self._shown = self.entries
        request.system = self._system_prompt()
        native = self._options.tool_format == "native" and self.has_tools
        request.tools = native_tools(self.entries, self.style) if native else None

    def _system_prompt(self) -> str | None:
        options = self._options
        parts = [self._system]
        if self.has_tools:
            parts.append(self._contract())
        if options.persistent:
            parts.append(prompts.persistence(options, self.has_tools))
        return "\n\n".join(filter(None, parts)) or None

    def _contract(self) -> str:
        if self._options.tool_format == "native":
            return native_contract(self._options.sentinel)
        return text_contract(
            self.entries, self._options.sentinel, self._options.tool_examples, ledger=self._ledger
        )
