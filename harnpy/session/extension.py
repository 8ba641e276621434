"""`SessionExtension`: sessions for an agent that knows nothing of them. Spec: 10 §A2.5, §A2.6, §A2.8, §C9.

It knows which session is active, what a request shows of it and what is recorded of the reply.
"""

from __future__ import annotations

import logging
import re
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from harnpy.formats.tool_messages import RESULT_ROLES, calls_of
from harnpy.session import hooks
from harnpy.session.arguments import instance, mapping
from harnpy.session.errors import InvalidArgument, SessionExists
from harnpy.session.history import ANY, message_drafts
from harnpy.session.hooks import EventBus
from harnpy.session.log import Session
from harnpy.session.registers import Level
from harnpy.session.resize import Resizing
from harnpy.session.resize_policy import ResizePolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from harnpy.session.resize_policy import Analysis, ResizeReport, Strategy
    from harnpy.session.runtime import SessionRuntime

    Message = dict[str, Any]

# Finding a value in JSON by its path: `info.task`, `items[0].name`, or `info/task`. Spec: 10 §A2.6.
#
# | style | keys | indexes | each item |
# |---|---|---|---|
# | dots | ``info.task`` | ``items[0]`` | ``items[*].id`` |
# | slashes | ``info/task`` | ``items/0`` | ``items/*/id``, ``items/[*]/id`` |
#
# A path with a slash in it is of the second style; its empty parts count for nothing. Negative indexes count
# from the end.


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


#: What a path that leads nowhere gives; one that leads to None gives that.
MISSING: Final = _Missing()


class _Each(NamedTuple):
    """Every item of a list."""


#: A key, an index, every item; or of a path with slashes, a number that may be either.
_Step = str | int | _Each | tuple[str, int]

_DOTTED: Final = re.compile(r"([^\[\]]*)((?:\[(?:-?\d+|\*)\])*)")
_BRACKETED: Final = re.compile(r"\[(-?\d+|\*)\]")
_NUMBER: Final = re.compile(r"-?\d+")


def find(value: Any, path: str) -> Any:
    """Return what is at ``path`` in ``value``, `MISSING` where that is nothing.

    A path with "each item" gives a list, and is missing if it is for one of the items.
    """
    steps = _slashed(path) if "/" in path else _dotted(path)
    return _follow(value, steps) if steps else MISSING


def _dotted(path: str) -> list[_Step]:
    """Return the steps of a path with dots, none for one that is malformed."""
    steps: list[_Step] = []
    for number, part in enumerate(path.split(".")):
        whole = _DOTTED.fullmatch(part)
        if whole is None or not part or (number and not whole[1]):
            return []
        if whole[1]:
            steps.append(whole[1])
        steps += [_Each() if index == "*" else int(index) for index in _BRACKETED.findall(whole[2])]
    return steps


def _slashed(path: str) -> list[_Step]:
    return [_slashed_step(part) for part in path.split("/") if part]


def _slashed_step(part: str) -> _Step:
    if part in ("*", "[*]"):
        return _Each()
    return (part, int(part)) if _NUMBER.fullmatch(part) else part


def _follow(value: Any, steps: list[_Step]) -> Any:
    for number, step in enumerate(steps):
        if isinstance(step, _Each):
            return _of_each(value, steps[number + 1 :])
        value = _at(value, step)
        if value is MISSING:
            break
    return value


def _of_each(value: Any, steps: list[_Step]) -> Any:
    if not isinstance(value, list | tuple):
        return MISSING
    found = [_follow(item, steps) for item in value]
    return MISSING if any(item is MISSING for item in found) else found


def _at(value: Any, step: str | int | tuple[str, int]) -> Any:
    key, index = step if isinstance(step, tuple) else (step, step)
    if isinstance(value, dict):
        return value.get(key, MISSING)
    if isinstance(value, list | tuple) and isinstance(index, int) and -len(value) <= index < len(value):
        return value[index]
    return MISSING


# Texts made of chosen values: what a session records of a request and of its result. Spec: 10 §A2.6.


def keys_of(setting: Any) -> list[str] | None:
    """Return the keys that a setting names, None where it is None. What is neither a text nor a list names
    none."""
    if setting is None:
        return None
    if isinstance(setting, str):
        return [setting]
    if not isinstance(setting, list | tuple):
        return []
    return [str(key) for key in setting if key is not None]


def keyed_content(keys: Iterable[str], find: Callable[[str], Any], missing: object) -> str:
    """Return the values of the keys that ``find`` doesn't give ``missing`` for, each below its key."""
    blocks = []
    for key in map(str.strip, keys):
        value = find(key) if key else missing
        if value is not missing:
            blocks.append(f"[{key}]:\n{formatted(value)}")
    return "\n".join(blocks).strip()


def formatted(value: Any) -> str:
    """Return a value as text: a text as it is, numbers, bools and None as Python prints them, all else as a
    YAML block, or Python's text of what YAML has no form for."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool | int | float):
        return str(value)
    from yaml import YAMLError

    from harnpy.session.transfer.agently import YAML, write_text

    try:
        return write_text(value, YAML).rstrip("\n")
    except (YAMLError, RecursionError):
        return str(value)


# What one request to a model is made of, by slot, and what of it is recorded. Spec: 10 §A2.5, §A2.6.


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
        """Return the session in which the request will be recorded; None once it is."""
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


# Which session the request at hand is made with. Spec: 10 §A2.5, §B2.


_CURRENT: ContextVar[str | None] = ContextVar("harnpy.session", default=None)


def current_session_id() -> str | None:
    """Return the id of the session that the last request of this thread or task was prepared with; None if
    that was none."""
    return _CURRENT.get()


def enter(session_id: str | None) -> None:
    """Have `current_session_id` return that from now on, in this thread or task."""
    _CURRENT.set(session_id)


# An agent's resize handlers and settings, and the sessions that go by them. Spec: 10 §A2.5, §C8.1.


class AgentHandlers:
    """Each session of the agent has a policy of its own, to which these handlers are added: a later one of
    the session itself takes their place there.

    ``settings`` hold for all of them that haven't set their own.
    """

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        self.settings = Level(settings)
        self._analysis: Analysis | None = None
        self._strategies: dict[str, Strategy] = {}

    def bind(self, session: Session) -> None:
        """Let a session go by them, instead of those of another agent."""
        if self._binds(session):
            return
        was = session.resizing or Resizing(ResizePolicy())
        was = was.unbound or was
        policy = was.policy.copy()
        if self._analysis is not None:
            policy.on_analyze(self._analysis)
        policy.strategies |= self._strategies
        session.resize_by(was._replace(policy=policy, agent=self.settings, unbound=was))

    def on_analyze(self, fn: Analysis | None, sessions: Iterable[Session]) -> None:
        """Have ``fn`` name the strategy that is due; None: the default analysis again."""
        self._analysis = fn
        for session in filter(self._binds, sessions):
            session.policy.on_analyze(fn)

    def strategy(self, name: str, fn: Strategy, sessions: Iterable[Session]) -> None:
        """Register a strategy. Raises `InvalidArgument` for a blank name."""
        ResizePolicy().strategy(name, fn)  # refuses what is no name
        self._strategies[name] = fn
        for session in filter(self._binds, sessions):
            session.policy.strategy(name, fn)

    def _binds(self, session: Session) -> bool:
        return session.resizing is not None and session.resizing.agent is self.settings


# A history in which user and assistant take turns, as some providers want it. Spec: 10 §A2.5.


_FIRST: Final = {"role": "user", "content": "[CHAT HISTORY]"}
_LAST: Final = {"role": "assistant", "content": "[User continue input]"}


def strictly_ordered(messages: Iterable[Message]) -> list[Message]:
    """Return the messages, neighbours of one role as one; a user's first, an assistant's last. None stay
    none. Each result of a tool stays a message of its own."""
    found: list[Message] = []
    for message in messages:
        if found and _belong_together(found[-1], message):
            content = _joined(found[-1].get("content"), message.get("content"))
            found[-1] = {**found[-1], **message, "content": content}
        else:
            found.append(message)
    if found and found[0].get("role") != "user":
        found.insert(0, dict(_FIRST))
    if found and found[-1].get("role") != "assistant":
        found.append(dict(_LAST))
    return found


def _belong_together(first: Message, second: Message) -> bool:
    role = first.get("role")
    return role == second.get("role") and role not in RESULT_ROLES and not calls_of(first)


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n{second}" if first and second else first or second
    return [*_parts(first), *_parts(second)]


def _parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": str(content)}] if content else []


# What an agent remembers beyond one session: recalled before a request, told after it. Spec: 10 §A2.8.


#: What is recalled at most: characters in all and of one text, and how many texts.
CHARS: Final = 4000
BLOCK_CHARS: Final = 1200
BLOCKS: Final = 16


class Memory(Protocol):
    """A store of memories, over `std/memory`, a database or whatever finds them again."""

    def recall(self, query: str) -> Iterable[str]:
        """Return the texts that belong to ``query``, the best first."""

    def remember(self, session_id: str, asked: str, answered: str) -> object:
        """Take notice of what was said; either may be empty."""


def show(memory: Memory, prompt: RequestPrompt) -> None:
    """Put what belongs to a request into its slot ``info.session_memory_context``."""
    try:
        text = _within_budget(memory.recall(prompt.text()))
    except Exception:
        _failed("recall")
        text = ""
    info = prompt.request.get(INFO)
    if info is not None and not isinstance(info, dict):
        _put(prompt.request, MEMORY_SLOT, text)
        return
    known = dict(info or {})
    _put(known, MEMORY, text)
    _put(prompt.request, INFO, known)


def tell(memory: Memory, session_id: str, asked: str, answered: str) -> None:
    """Tell what was said."""
    try:
        memory.remember(session_id, asked, answered)
    except Exception:
        _failed("remember")


def _put(slots: dict[str, Any], key: str, value: Any) -> None:
    if value:
        slots[key] = value
    else:
        slots.pop(key, None)


def _within_budget(texts: Iterable[str]) -> str:
    """Return the texts that fit, each cut to its share, with a blank line between two of them."""
    found: list[str] = []
    left = CHARS
    for text in texts:
        block = text.strip()[: min(BLOCK_CHARS, left)]
        if block:
            found.append(block)
            left -= len(block)
        if not left or len(found) == BLOCKS:
            break
    return "\n\n".join(found)


def _failed(verb: str) -> None:
    """A memory that fails fails no request."""
    logging.getLogger(__name__).exception("a session's memory could not %s", verb)


# `SessionExtension`: sessions for an agent that knows nothing of them. Spec: 10 §A2.5, §C9.


#: The setting that names the active session.
SESSION_ID = "runtime.session_id"


class SessionExtension:
    """The sessions of one agent, one of them active at most.

    Before a request `prepare` puts the active session into its prompt, afterwards `finish` records in it
    what was asked and answered. ``events`` tells of all that: the runtime's, or its own without a runtime.
    Its sessions are the runtime's, without one each is by itself (`Session()`).

    ``agent`` is the agent's name, or what else `SessionRuntime.create` takes. ``input_keys`` and
    ``reply_keys`` choose what is recorded (10 §A2.6); a session's own setting counts first, as for all
    ``settings`` (10 §C8.1). ``strict_roles``: user and assistant take turns in what a request shows.
    ``memory`` is what it remembers beyond one session.
    """

    def __init__(
        self,
        runtime: SessionRuntime | None = None,
        agent: Any = None,
        *,
        input_keys: str | list[str] | None = None,
        reply_keys: str | list[str] | None = None,
        strict_roles: bool = False,
        memory: Memory | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.runtime = runtime
        self.events = EventBus() if runtime is None else runtime.events
        self.strict_roles = strict_roles
        self.memory = memory
        #: The slots that each request of the agent has.
        self.prompt: dict[str, Any] = {}
        self._agent = agent or ""
        self._sessions: dict[str, Session] = {}
        self._session: Session | None = None
        self._plain: list[Message] = []
        keys = {"input_keys": input_keys, "reply_keys": reply_keys}
        self._handlers = AgentHandlers({**keys, **mapping("settings", settings)})

    @property
    def agent_name(self) -> str:
        return self._agent if isinstance(self._agent, str) else str(self._agent.name)

    # Which session.

    @property
    def session(self) -> Session | None:
        """The active session."""
        return self._session

    @property
    def sessions(self) -> dict[str, Session]:
        """All that were ever active, by id."""
        return dict(self._sessions)

    def activate(self, id: str | None = None) -> Session:
        """Make a session active, one that is made now if there is none of that id; None: of a new id."""
        session = self._opened(id)
        self._handlers.bind(session)
        self._sessions[session.id] = self._session = session
        self.settings[SESSION_ID] = session.id
        self._tell(hooks.ACTIVATED, session.id, agent_name=self.agent_name)
        return session

    def deactivate(self) -> None:
        """Go on without a session, and without a history. The session stays in `sessions`."""
        session, self._session = self._session, None
        self._plain = []
        if session is None:
            return
        self.settings[SESSION_ID] = None
        self._tell(hooks.DEACTIVATED, session.id, agent_name=self.agent_name)

    def _opened(self, id: str | None) -> Session:
        if self.runtime is None:
            return self._sessions.get(id or "") or self._alone(id)
        if id is not None and self.runtime.exists(id):
            return self.runtime.get(id)
        try:
            return self.runtime.create(self._agent, id=id)
        except SessionExists:
            return self.runtime.get(id or "")  # somebody was faster

    def _alone(self, id: str | None) -> Session:
        session = Session(id)
        session.resize_by(Resizing(ResizePolicy(), tell=self._tell_resize))
        return session

    def _tell_resize(self, report: ResizeReport) -> None:
        self.events.emit(hooks.RESIZED, report.data())

    # What holds for all its sessions.

    @property
    def settings(self) -> Level:
        """The agent's settings, which its sessions inherit (10 §C8.1)."""
        return self._handlers.settings

    def set_settings(self, key: str, value: Any) -> None:
        """Set one of the agent's settings; None unsets it. Raises `InvalidArgument`."""
        self.settings[key] = value

    def on_analyze(self, fn: Analysis | None) -> None:
        """Have ``fn`` name the resize strategy that is due, in all sessions, those to come too; None: the
        default analysis. See `ResizePolicy`."""
        self._handlers.on_analyze(fn, self._sessions.values())

    def strategy(self, name: str, fn: Strategy) -> None:
        """Register a resize strategy in all sessions, those to come too. Raises `InvalidArgument` for a
        blank name."""
        self._handlers.strategy(name, fn, self._sessions.values())

    # What the agent remembers: the active session's window, or a plain list.

    @property
    def chat_history(self) -> list[Message]:
        """The messages that requests show."""
        return list(self._plain) if self._session is None else self._session.messages()

    def set_history(self, messages: Any) -> None:
        """Restart the history with these messages."""
        if self._session is None:
            self._plain = _messages(messages)
        else:
            self._session.set_history(messages)

    def add_history(self, messages: Any) -> None:
        """Append one message or several."""
        if self._session is None:
            self._plain += _messages(messages)
        else:
            self._session.add_history(messages)

    def reset(self) -> None:
        """Empty the history; a session's memo stays."""
        if self._session is None:
            self._plain = []
        else:
            self._session.reset()

    def clean_window(self) -> None:
        """Empty what requests show; a session's history stays."""
        if self._session is None:
            self._plain = []
        else:
            self._session.clean_window()

    # The life of a request.

    def prepare(self, prompt: RequestPrompt | dict[str, Any]) -> RequestPrompt:
        """Put the window into the slot ``chat_history``, and the memo, if there is one, into
        ``CHAT SESSION MEMO``. Return the prompt, for `finish`."""
        prompt = prompt_of(prompt, self.prompt)
        session = self._session
        prompt.tie(session)
        enter(None if session is None else session.id)
        if session is None:
            if self._plain:
                self._show(prompt, self._plain)
            return prompt
        session.refresh()
        messages, memo = session.window(), session.memo
        self._show(prompt, messages)
        prompt.request.pop(MEMO, None)
        if memo is not None:
            prompt.request[MEMO] = memo
        if self.memory is not None:
            show(self.memory, prompt)
        counts = {"context_window_size": len(messages), "memo_size": _size(memo)}
        self._tell(hooks.APPLIED, session.id, **counts)
        return prompt

    def _show(self, prompt: RequestPrompt, messages: list[Message]) -> None:
        shown = strictly_ordered(messages) if self.strict_roles else list(messages)
        prompt.request[CHAT_HISTORY] = shown

    def finish(self, prompt: RequestPrompt, result: Any) -> None:
        """Append what was asked and what was answered, in one append, to the session that the prompt was
        prepared with. A second time nothing happens, nor without a session."""
        session = instance("prompt", prompt, RequestPrompt, "what `prepare` returned").session
        if session is None:
            return
        asked = input_text(prompt, session.settings.get("input_keys"))
        answered = reply_text(result, session.settings.get("reply_keys"))
        said = {"user": asked, "assistant": answered}
        messages = [{"role": role, "content": text} for role, text in said.items() if text]
        if not session.locked(lambda: _record(prompt, messages)):
            return
        if messages:
            session.history_changed()
            if self.memory is not None:
                tell(self.memory, session.id, asked, answered)
        facts = {"has_user_content": bool(asked), "has_assistant_content": bool(answered)}
        self._tell(hooks.CONTEXT_APPENDED, session.id, **facts, context_window_size=session.length)

    def _tell(self, name: str, session_id: str, **data: Any) -> None:
        self.events.emit(name, {"session_id": session_id, **data})


def _record(prompt: RequestPrompt, messages: list[Message]) -> bool:
    """Append the messages to the prompt's session. Return False if that has been done before."""
    session = prompt.session
    if session is None:
        return False
    if messages:
        session.append(*message_drafts(messages), expected_version=ANY)
    prompt.tie(None)
    return True


def _messages(given: Any) -> list[Message]:
    return [draft.data for draft in message_drafts(given)]


def _size(value: Any) -> int:
    """Return how many elements a memo has; 0 if it has none to count."""
    return len(value) if isinstance(value, str | list | dict) else 0
