"""What one request to a model is made of, by slot, and what of it is recorded. Spec: 10 §A2.5, §A2.6."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harnpy.session.errors import InvalidArgument
from harnpy.session.extension.keyed_content import formatted, keyed_content, keys_of
from harnpy.session.extension.value_paths import MISSING, find

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.session.log import Session

#: The slots that a session fills.
CHAT_HISTORY: Final = "chat_history"
MEMO: Final = "CHAT SESSION MEMO"
#: The one that a caller fills when nothing else is to be said.
INPUT: Final = "input"
#: What the caller's own information stands in; long-term memory adds to it.
INFO: Final = "info"
MEMORY: Final = "session_memory_context"
#: Its slot where the information isn't a dict.
MEMORY_SLOT: Final = f"{INFO}.{MEMORY}"

_PREFIXES: Final = (".request", ".execution", ".agent")
_INPUT_PATH: Final = "input."
_OF_THE_SESSION: Final = (CHAT_HISTORY, MEMO, MEMORY_SLOT)


class RequestPrompt:
    """``request`` are the slots of this request, ``agent`` those that all requests of the agent have.

    `SessionExtension.prepare` ties it to a session; `SessionExtension.finish` records it there, once.
    """

    def __init__(self, request: dict[str, Any] | None = None, agent: Mapping[str, Any] | None = None) -> None:
        self.request: dict[str, Any] = {} if request is None else request
        self.agent: Mapping[str, Any] = {} if agent is None else agent
        self._session: Session | None = None

    def tie(self, session: Session | None) -> None:
        """Have the request recorded in ``session``, None: nowhere."""
        self._session = session

    @property
    def session(self) -> Session | None:
        """Where the request will be recorded; None once it is."""
        return self._session

    def slots(self) -> dict[str, Any]:
        """Return all slots; those of the request count first."""
        return {**self.agent, **self.request}

    def text(self) -> str:
        """Return what the caller says in it, as one text: the input alone, or each slot below its name.

        What comes from the session, and the agent's slots, isn't in it.
        """
        said = {key: value for key, value in self.request.items() if key not in _OF_THE_SESSION}
        info = said.get(INFO)
        if isinstance(info, dict) and MEMORY in info:
            said[INFO] = {key: value for key, value in info.items() if key != MEMORY} or None
        said = {key: value for key, value in said.items() if value is not None}
        if said.keys() == {INPUT}:
            return formatted(said[INPUT]).strip()
        return keyed_content(said, said.__getitem__, MISSING)

    def find(self, key: str) -> Any:
        """Return what an input key names, `MISSING` where that is nothing."""
        for prefix in _PREFIXES:
            if key == prefix or key.startswith(f"{prefix}."):
                slots = self.agent if prefix == ".agent" else self.request
                path = key[len(prefix) + 1 :]
                return find(dict(slots), path) if key != prefix else dict(slots)
        found = value_called(self.request, key)
        given = self.request.get(INPUT)
        if found is MISSING and isinstance(given, dict):
            return find(given, key.removeprefix(_INPUT_PATH))
        return found


def value_called(values: Mapping[str, Any], key: str) -> Any:
    """Return the value under ``key`` itself, or at that path; `MISSING` where there is none."""
    return values[key] if key in values else find(dict(values), key)


def input_text(prompt: RequestPrompt, setting: Any) -> str:
    """Return what is recorded of a request; "" for nothing. ``setting``: the session's ``input_keys``."""
    keys = keys_of(setting)
    return prompt.text() if keys is None else keyed_content(keys, prompt.find, MISSING)


def reply_text(result: Any, setting: Any) -> str:
    """Return what is recorded of a result; "" for nothing. ``setting``: the session's ``reply_keys``."""
    keys = keys_of(setting)
    if keys is None:
        return "" if result is None else formatted(result).strip()
    if not isinstance(result, dict):
        return ""
    return keyed_content(keys, lambda key: value_called(result, key), MISSING)


def prompt_of(given: RequestPrompt | dict[str, Any], agent: Mapping[str, Any]) -> RequestPrompt:
    """Return a prompt of the slots that a caller gives. Raises `InvalidArgument`."""
    if isinstance(given, RequestPrompt):
        return given
    if not isinstance(given, dict):
        raise InvalidArgument(f"a prompt is a dict of slots, got {type(given).__name__}")
    return RequestPrompt(given, agent)
