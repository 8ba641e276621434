"""The payload of ``step_started``, with what tells whether a provider's prompt cache can still be hit.

Hashes are computed when somebody looks at them: in memory perhaps never, on a store with each step. A chain
of them is carried along, one hash a message. Spec: 10 §C16.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.events import Payload
from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.reading.dicts import Dict
    from harnpy.session.events import Event


class Prompt:
    """What a request has beside its messages: ``system``, and ``tools`` as the provider gets them, or the
    text of their contract. ``parts`` are the registers from which a reader of the log makes both."""

    __slots__ = ("parts", "system", "tools")

    def __init__(
        self, system: str | None = None, tools: list[Dict] | str | None = None, parts: Dict | None = None
    ) -> None:
        self.system = system
        self.tools = tools
        self.parts = parts or {}

    def equals(self, other: Prompt) -> bool:
        return self is other or (self.system == other.system and self.tools == other.tools)


class PromptCache:
    """What requests to ``model`` with this ``prompt`` have in common: a list of ``messages`` that only grows,
    the first ``prefix`` of them context before the conversation."""

    __slots__ = ("_chain", "_messages", "_prefix", "_tools", "model", "prompt")

    def __init__(self, model: str, prompt: Prompt, messages: list[Dict], prefix: int) -> None:
        self.model = model
        self.prompt = prompt
        self._messages = messages
        self._prefix = prefix
        self._tools: str | None = None
        self._chain: list[str] = []  # of the prefix, then of each message

    def is_of(self, model: str, prompt: Prompt) -> bool:
        return self.model == model and self.prompt.equals(prompt)

    def at(self, count: int, fresh: Sequence[Dict] = ()) -> Dict:
        """Return what the log says of a request: the first ``count`` messages, and ``fresh`` behind them."""
        hash = self._upto(count)
        for message in fresh:
            hash = chained(hash, message)
        shown: Dict = {} if self._tools is None else {"tool_schema_hash": self._tools}
        numbers = {"stable_messages": count + len(fresh), "stable_hash": hash}
        return {**shown, "prefix_hash": self._chain[0], **numbers}

    def _upto(self, count: int) -> str:
        chain, messages = self._chain, self._messages
        if not chain:
            self._tools = tool_schema_hash(self.prompt.tools)
            prefix = messages[: self._prefix]
            chain.append(prefix_hash(self.model, self.prompt.system, self._tools, prefix))
        for message in messages[len(chain) - 1 : count]:
            chain.append(chained(chain[-1], message))
        return chain[count]


class StepStarted(Payload):
    """A model is about to be asked: ``facts``, and what its request has in common with others.

    The request has the first ``count`` messages of ``cache``, and ``fresh`` behind them: those that the same
    append holds.
    """

    __slots__ = ("_cache", "_count", "_fresh", "_shown", "facts")

    def __init__(self, facts: Dict, cache: PromptCache, count: int, fresh: Sequence[Dict]) -> None:
        self.facts = facts
        self._cache = cache
        self._count = count
        self._fresh = fresh
        self._shown: Dict | None = None

    def data(self, event: Event) -> Dict:
        if self._shown is None:
            self._shown = {**self.facts, "prompt_cache": self._cache.at(self._count, self._fresh)}
        return self._shown

    def stored(self, event: Event) -> Dict:
        return self.data(event)


def tool_schema_hash(tools: list[Dict] | str | None) -> str | None:
    """Return the hash of a list of tools or the text of their contract; None without tools."""
    if not tools:
        return None
    return _hash(tools if isinstance(tools, str) else compact_json(tools))


def prefix_hash(model: str, system: str | None, tools: str | None, prefix: Sequence[Dict]) -> str:
    """Return the hash of what stands before the conversation; ``tools`` is the hash of the tools."""
    return _hash(compact_json({"model": model, "system": system, "tools": tools, "prefix": prefix}))


def chained(before: str, message: Dict) -> str:
    """Return the hash of a message behind those whose hash is ``before``."""
    return _hash(before + compact_json(message))


def _hash(text: str) -> str:
    from hashlib import sha256

    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
