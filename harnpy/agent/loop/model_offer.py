"""The offer to a loop's model: its instructions, the tools in view, and those deferred until searched for.

In text format the tools are a contract in the system prompt; in native format the request carries them beside
it. Either is rebuilt only when the tools in view change. Spec: 07 §4.4–4.5, §5, §6.2.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.active_skills import LOAD_SKILL
from harnpy.agent.active_skills import LOAD_SKILL_ENTRY as LOAD_SKILL_ENTRY
from harnpy.agent.active_skills import load_skill_tool as load_skill_tool
from harnpy.agent.loop import prompts
from harnpy.agent.loop.prompts import Stubs, native_contract, text_contract
from harnpy.formats.json import compact_json
from harnpy.formats.regex import PatternError, compiled
from harnpy.formats.text_size import text_tokens
from harnpy.llm.native_tools import loaded, native_tools, parameters_of, search_entry
from harnpy.session.prompt import (
    CONTRACT,
    DEFINITION,
    PERSISTENCE,
    SKILLS,
    SYSTEM,
    TOOLS,
    Prompt,
    joined_system,
)
from harnpy.session.transcript import lifecycle_event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harnpy.agent.active_skills import ActiveSkills
    from harnpy.agent.loop.loop_settings import LoopOptions
    from harnpy.formats.dicts import Dict
    from harnpy.llm.native_tools import Search, ToolSearch
    from harnpy.llm.request import Request

    Entry = dict[str, Any]

# Searching a few hundred short texts: by words (BM25) or by a regular expression. Pure. Spec: 07 §5.


K1 = 1.5
B = 0.75
MOST_RESULTS = 20

#: Seconds for one text. A model's pattern may backtrack for ever.
_TIMEOUT = 0.25

_TOKEN = re.compile(r"[^\W_]+")
_NO_WORDS = "empty query after tokenization; use alphanumeric search terms"
_NO_MATCH = "no tools matched your regex; widen the alternation or relax quantifiers"
_NO_TOOL = "no tools matched your BM25 query; try shorter or more generic terms"


class Hits(NamedTuple):
    """Names in order of relevance, or else the reason why there are none."""

    names: list[str]
    diagnostic: str | None = None


def search_words(texts: Mapping[str, str], query: str) -> Hits:
    """Return the texts that have words of the query, by BM25; ties by name."""
    terms = dict.fromkeys(_tokens(query))
    if not terms:
        return Hits([], _NO_WORDS)
    documents = {name: Counter(_tokens(text)) for name, text in texts.items()}
    lengths = {name: words.total() for name, words in documents.items()}
    average = sum(lengths.values()) / len(documents) if documents else 0.0
    scores = dict.fromkeys(documents, 0.0)
    for term in terms:
        holding = [name for name, words in documents.items() if term in words]
        rarity = math.log(1 + (len(documents) - len(holding) + 0.5) / (len(holding) + 0.5))
        for name in holding:
            count = documents[name][term]
            norm = K1 * (1 - B + B * lengths[name] / average)
            scores[name] += rarity * count * (K1 + 1) / (count + norm)
    return _ranked(scores) or Hits([], _NO_TOOL)


def search_pattern(texts: Mapping[str, str], pattern: str) -> Hits:
    """Return the texts that match, ignoring case, those with the most matches first; ties by name."""
    try:
        found: Any = compiled(f"(?i){pattern}")
    except PatternError as error:
        return Hits([], f"regex compile error: {error}")
    scores = {}
    for name, text in texts.items():
        try:
            scores[name] = float(sum(1 for _ in found.finditer(text, timeout=_TIMEOUT)))
        except TimeoutError:
            return Hits([], "regex compile error: the pattern takes too long; simplify its repetitions")
    return _ranked(scores) or Hits([], _NO_MATCH)


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())


def _ranked(scores: Mapping[str, float]) -> Hits | None:
    found = sorted((name for name in scores if scores[name] > 0), key=lambda name: (-scores[name], name))
    return Hits(found[:MOST_RESULTS]) if found else None


# Deferred tools in a loop: hidden until the model searches for them. Spec: 07 §5.


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
            size = _estimated_tokens(self._deferred[name])
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


def _estimated_tokens(entry: Entry) -> int:
    """Return the estimated size of a tool in view."""
    return text_tokens(compact_json(native_tools([entry], "openai")[0]))


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
        self.has_tools = bool(entries) or bool(skills)
        self.allowed = entries
        #: What a call in the text of an answer may name.
        self.names: list[str] = []
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

    def renew(self, request: Request) -> bool:
        """Update the request to the tools now in view. Return whether they have changed."""
        visible = self.entries if self._deferred is None else self._deferred.visible()
        if self._seen is not None and self._seen[0] == self._skills.changes and self._seen[1] is visible:
            return False
        self._seen = self._skills.changes, visible
        self.allowed = self._scoped(self.entries)
        self.names = [entry["name"] for entry in self.allowed]
        if self._skills:
            self.names.append(LOAD_SKILL)
        if self._deferred is not None:
            self.names.append(self._deferred.name)
        shown = self.allowed if visible is self.entries else self._scoped(visible)
        native = self._options.tool_format == "native" and self.has_tools
        request.tools = self._native_tools(shown, request.search) if native else None
        parts = self._parts(shown, request.tools)
        request.system = joined_system({**parts, SYSTEM: self._system}.get)
        self.prompt = Prompt(request.system, request.tools if native else parts[CONTRACT], parts)
        return True

    def _scoped(self, entries: list[Dict]) -> list[Dict]:
        if not self._skills:
            return entries
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
            SKILLS: (self._skills.block() or None) if self._skills else None,
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
