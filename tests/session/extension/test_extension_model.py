"""Long random lives of an agent, beside a model of it: lists by id. Spec: 10 §A2.5, §C9."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from harnpy.session import SessionExtension, SessionRuntime
from harnpy.session.extension import RequestPrompt
from tests.counts import COUNT
from tests.session.shapes import said

IDS = st.sampled_from(["a", "b", "c"])
TEXTS = st.text("xyz ", max_size=3)
#: What no view leaves out.
WORDS = st.text("xyz", min_size=1, max_size=3)
Message = dict[str, Any]


class Agent(RuleBasedStateMachine):
    """``windows`` and ``histories`` are what the sessions should have, ``open`` the requests that have no
    result yet: which session each is for."""

    prompts = Bundle("prompts")

    def __init__(self) -> None:
        super().__init__()
        self.runtime = self.make()
        self.agent = SessionExtension(self.runtime)
        self.windows: dict[str, list[Message]] = {}
        self.histories: dict[str, list[Message]] = {}
        self.active: str | None = None
        self.plain: list[Message] = []
        self.open: dict[int, str] = {}

    def make(self) -> SessionRuntime | None:
        """Return where its sessions are kept."""
        return None

    @rule(name=IDS)
    def activate(self, name: str) -> None:
        self.agent.activate(name)
        self.active = name
        self.windows.setdefault(name, [])
        self.histories.setdefault(name, [])

    @rule()
    def deactivate(self) -> None:
        self.agent.deactivate()
        self.active, self.plain = None, []

    @rule(text=WORDS, is_new=st.booleans())
    def history(self, text: str, is_new: bool) -> None:
        message = said("assistant", text)
        (self.agent.set_history if is_new else self.agent.add_history)(message)
        for messages in self._active():
            messages[:] = [message] if is_new else [*messages, message]

    @rule(whole=st.booleans())
    def empty(self, whole: bool) -> None:
        (self.agent.reset if whole else self.agent.clean_window)()
        for messages in self._active()[: None if whole else 1]:
            messages.clear()

    @rule(target=prompts, text=TEXTS)
    def ask(self, text: str) -> RequestPrompt:
        return self._prepared(self.agent.prepare({"input": text}))

    @rule(prompt=prompts)
    def ask_again(self, prompt: RequestPrompt) -> None:
        self._prepared(self.agent.prepare(prompt))

    @rule(prompt=prompts, text=TEXTS)
    def answer(self, prompt: RequestPrompt, text: str) -> None:
        self.agent.finish(prompt, text)
        name = self.open.pop(id(prompt), None)
        both = (("user", prompt.request["input"].strip()), ("assistant", text.strip()))
        spoken = [said(role, words) for role, words in both if words]
        if name is not None:
            self.windows[name] += spoken
            self.histories[name] += spoken

    @invariant()
    def is_as_expected(self) -> None:
        sessions = self.agent.sessions
        assert {name: session.messages() for name, session in sessions.items()} == self.windows
        assert {name: session.history() for name, session in sessions.items()} == self.histories
        assert self.agent.chat_history == self._active()[0]
        assert self.agent.settings.get("runtime.session_id") == self.active

    def teardown(self) -> None:
        if self.runtime is not None:
            self.runtime.close()

    def _active(self) -> list[list[Message]]:
        if self.active is None:
            return [self.plain]
        return [self.windows[self.active], self.histories[self.active]]

    def _prepared(self, prompt: RequestPrompt) -> RequestPrompt:
        self.open.pop(id(prompt), None)
        if self.active is not None:
            self.open[id(prompt)] = self.active
        shown = self._active()[0]
        if self.active is not None or shown:
            assert prompt.slots()["chat_history"] == shown
        return prompt


class AgentOnARuntime(Agent):
    """The same, with a store."""

    def make(self) -> SessionRuntime | None:
        return SessionRuntime("memory:")


TestAgent = Agent.TestCase
TestAgentOnARuntime = AgentOnARuntime.TestCase
TestAgent.settings = TestAgentOnARuntime.settings = settings(max_examples=COUNT.examples(8), deadline=None)
