"""Deferred tools in a loop: hidden until the model searches for them. Spec: 07 §5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.tools.contract import Stubs
from harnpy.agent.tools.search_index import Hits, search_pattern, search_words
from harnpy.llm.native_tools import native_tools, parameters_of
from harnpy.llm.tool_search import loaded, search_entry
from harnpy.session.transcript import lifecycle_event
from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.llm.tool_search import ToolSearch

    Entry = dict[str, Any]

_EMPTY_QUERY = "empty query; specify search terms or a regex pattern"
_NOTHING_DEFERRED = "no deferred tools in the search index; all tools are in view already"
_NO_BRIDGE = 'strategy "{}" needs a host bridge, and none is connected; no tools were searched'
_MCP_TAGS = ("_mcp_server", "mcp_server")


class Answer(NamedTuple):
    """The result of a search. ``text`` is what the model reads, ``promoted`` what it brought into view."""

    text: str
    names: list[str]
    diagnostic: str | None
    promoted: list[str]


class DeferredTools:
    """The tools of one loop, some of them deferred; `visible` are those in view."""

    def __init__(self, entries: Sequence[Entry], search: ToolSearch) -> None:
        self.search = search
        self._searcher = search_entry(search)
        self._loaded = [loaded(entry) for entry in entries if not search.defers(entry)]
        self._deferred = {entry["name"]: entry for entry in entries if search.defers(entry)}
        self._texts = {name: _search_text(entry) for name, entry in self._deferred.items()}
        self._promoted: dict[str, int] = {}  # sizes in tokens, the oldest first
        self._visible = [self._searcher, *self._loaded]

    @property
    def name(self) -> str:
        """The name of the search tool."""
        return self.search.name

    def visible(self) -> list[Entry]:
        """The search tool, the tools that aren't deferred, and those found so far.

        The same list until others come into view.
        """
        return self._visible

    def stubs(self) -> Stubs | None:
        """Return the tools that only a search brings into view, if they are to be listed."""
        if not self.search.include_stub_listing:
            return None
        hidden = [entry for name, entry in self._deferred.items() if name not in self._promoted]
        return Stubs(self.name, hidden)

    def answer(self, arguments: dict[str, Any]) -> Answer:
        """Search, and bring the found tools into view from the next turn on."""
        query = arguments.get("query")
        hits = self._hits(query if isinstance(query, str) else "")
        result: dict[str, Any] = {"tool_names": hits.names}
        if hits.diagnostic is not None:
            result["diagnostic"] = hits.diagnostic
        return Answer(compact_json(result), hits.names, hits.diagnostic, self._promote(hits.names))

    def _hits(self, query: str) -> Hits:
        strategy = self.search.strategy
        if strategy in ("semantic", "host"):
            return Hits([], _NO_BRIDGE.format(strategy))
        if not query.strip():
            return Hits([], _EMPTY_QUERY)
        if not self._texts:
            return Hits([], _NOTHING_DEFERRED)
        if strategy == "regex":
            return search_pattern(self._texts, query)
        return search_words(self._texts, query)

    def _promote(self, names: list[str]) -> list[str]:
        """Bring tools into view, the most relevant first, within the budget. Return the new ones."""
        promoted = []
        for name in names:
            size = _tokens(self._deferred[name])
            if name not in self._promoted and self._make_room(size, keep=names):
                self._promoted[name] = size
                promoted.append(name)
        if promoted:
            found = [loaded(self._deferred[name]) for name in self._promoted]
            self._visible = [self._searcher, *self._loaded, *found]
        return promoted

    def _make_room(self, size: int, keep: list[str]) -> bool:
        """Hide the oldest found tools, but none of ``keep``, until one more of ``size`` fits."""
        budget = self.search.budget_tokens
        if budget is None:
            return True
        spent = sum(self._promoted.values())
        evicted = []
        for name, freed in self._promoted.items():
            if spent + size <= budget:
                break
            if name not in keep:
                evicted.append(name)
                spent -= freed
        if spent + size > budget:
            return False
        for name in evicted:
            del self._promoted[name]
        return True


def searcher(
    tools: DeferredTools, note: Callable[[dict[str, Any]], None], emit: Callable[..., None]
) -> Callable[[dict[str, Any]], tuple[str, bool]]:
    """Return the function that answers calls of the search tool.

    ``note`` records transcript events, ``emit(type, **fields)`` notifies subscribers.
    """
    how = {"strategy": tools.search.strategy, "mode": "client"}
    name = f"tool_search_tool_{tools.search.variant}"

    def search(call: dict[str, Any]) -> tuple[str, bool]:
        id, given = call.get("id"), call["arguments"]
        query = given if isinstance(given, dict) else {}
        asked = {"name": name, "query": query, **how}
        note(lifecycle_event("tool_search_query", role="assistant", metadata={"id": id, **asked}))
        emit("tool_search_query", tool_use_id=id, **asked)
        answer = tools.answer(query)
        fields = {"tool_use_id": id, "promoted": answer.promoted, **how}
        references = [{"tool_name": found} for found in answer.names]
        metadata = {**fields, "tool_references": references}
        note(lifecycle_event("tool_search_result", answer.text, role="tool", metadata=metadata))
        emit("tool_search_result", **fields)
        return answer.text, True

    return search


def _search_text(entry: Entry) -> str:
    """Return what a query is compared with: name, description, parameters, and the tool's owner."""
    parts = [entry["name"], entry.get("description")]
    parameters = parameters_of(entry)
    for name in sorted(parameters):
        schema = parameters[name]
        described = schema.get("description") if isinstance(schema, dict) else None
        parts.append(f"{name}: {described}" if isinstance(described, str) and described else name)
    parts += [entry.get(tag) for tag in _MCP_TAGS]
    return "\n".join(part for part in parts if isinstance(part, str) and part)


def _tokens(entry: Entry) -> int:
    """Return the estimated size of a tool in view."""
    size = len(compact_json(native_tools([entry], "openai")[0]).encode("utf-8", "surrogatepass"))
    return -(-size // 4)
