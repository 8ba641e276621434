"""harnpy's sessions as message histories of pydantic-ai: `HarnpyHistory`. Spec: 10 §C20.

The conversation is a session like any other: `harnpy sessions` lists it, programs fork and compact it, and
what is cleared stays in its log. Extra: ``pydantic-ai``. Messages come out equal to what went in; those that
programs have added come out as `harnpy sessions export --format pydantic-ai` writes them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from msgspec.json import decode as from_json
from msgspec.json import encode as to_json

from harnpy.adapters.session_memory import DEFAULT_STORE, SessionMemory, shown
from harnpy.session.history import ANY
from harnpy.session.transfer import originals
from harnpy.session.transfer.pydantic_ai import TOOL, conversation, messages_of

try:
    from pydantic_ai.messages import ModelMessagesTypeAdapter
except ImportError as error:
    raise ImportError(
        "harnpy.adapters.pydantic_ai needs pydantic-ai: pip install 'harnpy[pydantic-ai]'"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage

    from harnpy.session.stored import StoredSession
    from harnpy.session.transfer.foreign import Entry
    from harnpy.storage import Store

    Json = dict[str, Any]


class HarnpyHistory:
    """The message history ``session_id`` of a store.

    ``store`` is a store's URL, e.g. ``sqlite:.harn/sessions.db``, or an open store, which stays the caller's
    to close. Safe to use from many tasks and processes: messages are written at the end, each `add` whole.
    """

    def __init__(self, session_id: str, store: Store | str = DEFAULT_STORE) -> None:
        self.session_id = session_id
        self._memory = SessionMemory(session_id, store)

    async def messages(self) -> list[ModelMessage]:
        """Return the messages of the window, oldest first, for ``message_history=``."""
        return ModelMessagesTypeAdapter.validate_python(await self._memory.run(_messages))

    async def add(self, messages: Sequence[ModelMessage]) -> None:
        """Append messages, all or none: those of ``result.new_messages()``."""
        given: list[Json] = from_json(ModelMessagesTypeAdapter.dump_json([*messages]))
        drafts = originals.drafts(TOOL, given, _entries)
        if drafts:
            await self._memory.run(lambda session: session.append(*drafts, expected_version=ANY))

    async def clear(self) -> None:
        """Empty the window. The log keeps what was."""
        await self._memory.run(lambda session: session.reset())


def _messages(session: StoredSession) -> list[Json]:
    return messages_of(session, shown(session.view.window.visible()), Counter())


def _entries(message: Json) -> Sequence[Entry]:
    return conversation(to_json([message]).decode()).entries
