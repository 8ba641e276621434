"""Agently's `Session`. Spec: 10 §A2.1 to §A2.4, §A2.7, §B2."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

from harnpy.session import log
from harnpy.session.faces.asynchronous import calling, later
from harnpy.session.kept.ids import validate_session_id
from harnpy.session.resize.resizable import Resizing
from harnpy.session.resize.resize_policy import ResizePolicy
from harnpy.session.transfer import agently
from harnpy.session.transfer.documents import JSON, YAML, load_document
from harnpy.storage.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.session.resize.resize_policy import Analysis, Strategy

    Message = dict[str, Any]


class Session:
    """Three states: ``full_context``, ``context_window``, ``memo``; and the strategies that change them."""

    def __init__(
        self, id: str | None = None, auto_resize: bool = True, settings: Mapping[str, Any] | None = None
    ) -> None:
        self._warned: set[str] = set()
        self._is_shared = False
        self._take(log.Session(id, auto_resize=auto_resize, settings=settings))

    @classmethod
    def of(cls, session: log.Session) -> Self:
        """Return a face of a session that others use, too: of a runtime, of an agent."""
        face = cls.__new__(cls)
        face._warned = set()
        face._is_shared = True
        face._take(session)
        return face

    def _take(self, session: log.Session) -> None:
        resizing = session.resizing or Resizing(ResizePolicy())
        policy = resizing.policy.copy()
        policy.on_unknown = "warn"
        self._resizing = resizing._replace(policy=policy, call=calling(resizing.call))
        session.resize_by(self._resizing)
        #: harnpy's.
        self.session = session

    def is_of(self, session: log.Session) -> bool:
        """Whether that is the session, and nobody else has said meanwhile how to resize it."""
        return self.session is session and session.resizing is self._resizing

    # The states.

    @property
    def id(self) -> str:
        return self.session.id

    @property
    def auto_resize(self) -> bool:
        return self.session.auto_resize

    @property
    def full_context(self) -> list[Message]:
        return self.session.history()

    @property
    def context_window(self) -> list[Message]:
        return self.session.messages()

    @property
    def memo(self) -> Any:
        return self.session.memo

    @property
    def session_settings(self) -> Mapping[str, Any]:
        return self.session.settings

    def set_settings(self, key: str, value: Any) -> Self:
        """Set one of its own settings; None: what it inherits holds again."""
        self.session.set(f"settings.{key.removeprefix('session.')}", value)
        return self

    # The history.

    def set_chat_history(self, messages: Any) -> Self:
        """Replace both lists by one message or several, then resize."""
        self.session.set_history(messages)
        return self

    def add_chat_history(self, messages: Any) -> Self:
        """Append to both lists, then resize."""
        self.session.add_history(messages)
        return self

    def reset_chat_history(self) -> Self:
        """Empty both lists. The memo stays."""
        self.session.reset()
        return self

    def clean_context_window(self) -> Self:
        """Empty the window. The full context stays."""
        self.session.clean_window()
        return self

    def clean_window_context(self) -> Self:
        """`clean_context_window` by its old name."""
        self._deprecated("clean_window_context", "clean_context_window")
        return self.clean_context_window()

    # Resizing.

    def register_analysis_handler(self, handler: Analysis | None) -> Self:
        """Have ``handler`` name the strategy that is due; None: the default analysis."""
        self.session.policy.on_analyze(handler)
        return self

    def register_resize_handler(self, strategy_name: str, handler: Strategy) -> Self:
        """Register a strategy; the last one of a name counts."""
        self.session.policy.strategy(strategy_name, handler)
        return self

    def register_execution_handlers(self, strategy_name: str, handler: Strategy) -> Self:
        """`register_resize_handler` by its old name."""
        self._deprecated("register_execution_handlers", "register_resize_handler")
        return self.register_resize_handler(strategy_name, handler)

    def analyze_context(self) -> str | None:
        """Return the name of the strategy that is due, None for none."""
        return self.session.analyze()

    def run_resize_strategy(self, strategy_name: str) -> Self:
        """Run a strategy; of an unknown one only warn."""
        self.session.resize(strategy_name)
        return self

    def execute_strategy(self, strategy_name: str) -> Self:
        """`run_resize_strategy` by its old name."""
        self._deprecated("execute_strategy", "run_resize_strategy")
        return self.run_resize_strategy(strategy_name)

    def resize(self) -> Self:
        """Run the strategy that is due, if one is."""
        self.session.resize()
        return self

    # Files.

    def to_serializable_session_data(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        return agently.dump_state(self.session, plain=True)

    def get_json_session(self) -> str:
        """Return all of it as a JSON text."""
        return agently.dumps(self.session, JSON, plain=True)

    def get_yaml_session(self) -> str:
        """Return all of it as a YAML text."""
        return agently.dumps(self.session, YAML, plain=True)

    def load_json_session(
        self, path_or_text: str, session_key_path: str | None = None, encoding: str = "utf-8"
    ) -> Self:
        """Take over what a JSON or JSON5 file, or a text, says; ``session_key_path`` is where in it.

        Its id, too, unless others use the session. Handlers stay; nothing is resized.
        """
        return self._load(path_or_text, JSON, session_key_path, encoding)

    def load_yaml_session(
        self, path_or_text: str, session_key_path: str | None = None, encoding: str = "utf-8"
    ) -> Self:
        """`load_json_session` for YAML."""
        return self._load(path_or_text, YAML, session_key_path, encoding)

    def _load(self, path_or_text: str, language: str, part: str | None, encoding: str) -> Self:
        world = self.session.origin.world
        state = load_document(path_or_text, language, world, part=part, encoding=encoding)
        given = state.get("id") if isinstance(state, dict) else None
        session = self.session if given is None or self._is_shared else self._called(str(given))
        agently.load_into(session, state)
        self.session = session
        return self

    def _called(self, id: str) -> log.Session:
        validate_session_id(id)
        return self.session if id == self.id else self.session.fork(id, MemoryStore())

    def _deprecated(self, old: str, new: str) -> None:
        if old not in self._warned:
            self._warned.add(old)
            warnings.warn(f"`{old}` is now called `{new}`", DeprecationWarning, stacklevel=3)

    to_json = get_json_session
    to_yaml = get_yaml_session
    load_json = load_json_session
    load_yaml = load_yaml_session

    async_set_chat_history = later(set_chat_history)
    async_add_chat_history = later(add_chat_history)
    async_reset_chat_history = later(reset_chat_history)
    async_clean_context_window = later(clean_context_window)
    async_clean_window_context = later(clean_window_context)
    async_set_settings = later(set_settings)
    async_register_analysis_handler = later(register_analysis_handler)
    async_register_resize_handler = later(register_resize_handler)
    async_register_execution_handlers = later(register_execution_handlers)
    async_to_serializable_session_data = later(to_serializable_session_data)
    async_analyze_context = later(analyze_context)
    async_run_resize_strategy = later(run_resize_strategy)
    async_execute_strategy = later(execute_strategy)
    async_resize = later(resize)
    async_get_json_session = async_to_json = later(get_json_session)
    async_get_yaml_session = async_to_yaml = later(get_yaml_session)
    async_load_json_session = async_load_json = later(load_json_session)
    async_load_yaml_session = async_load_yaml = later(load_yaml_session)
