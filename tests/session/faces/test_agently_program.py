"""Agently's page on sessions ("Core Concepts", 4.0.8.1), line by line. Spec: 10 §A2, §B2.

What the page shows as code stands here as it is there; what it says is asserted.
"""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.faces.agently import Agent, Session


def analysis_handler(full_context: Any, context_window: Any, memo: Any, session_settings: Any) -> Any:
    if len(context_window) > 6:
        return "keep_last_six"
    return None


def keep_last_six(full_context: Any, context_window: Any, memo: Any, session_settings: Any) -> Any:
    return None, list(context_window[-6:]), memo


def message(number: int, content: str | None = None) -> dict[str, str]:
    return {"role": ("user", "assistant")[number % 2], "content": content or f"message {number}"}


def test_a_session_is_a_pure_state_and_strategy_object() -> None:
    """The page: 1, 2 and 4, "use Session directly"."""
    session = Session()
    session.register_analysis_handler(analysis_handler)
    with pytest.warns(DeprecationWarning, match="register_resize_handler"):
        session.register_execution_handlers("keep_last_six", keep_last_six)

    for number in range(10):
        session.add_chat_history(message(number))

    assert session.full_context == [message(number) for number in range(10)], "for audit and full recovery"
    assert session.context_window == [message(number) for number in range(4, 10)], "what reaches the model"
    assert session.memo is None
    session.set_chat_history([message(number) for number in range(8)])
    assert len(session.context_window) == 6
    assert len(session.full_context) == 8
    recovered = Session().load_json_session(session.get_json_session())
    assert recovered.full_context == session.full_context


def test_automatic_trimming() -> None:
    """The page: 3, `auto_resize`, `session.max_length`, `simple_cut`."""
    agent = Agent()
    agent.set_settings("session.max_length", 12000)
    agent.activate_session("chat")
    session = agent.activated_session
    assert session is not None
    assert session.auto_resize is True

    agent.add_chat_history([message(0, "a" * 6000), message(1, "b" * 5000)])
    assert session.analyze_context() is None
    assert len(session.context_window) == 2
    session.add_chat_history(message(2, "c" * 6000))
    assert session.context_window == [message(1, "b" * 5000), message(2, "c" * 6000)], "simple_cut has run"
    assert len(session.full_context) == 3
    session.set_chat_history([message(0, "a" * 11000), message(1, "b" * 5000)])
    assert session.context_window == [message(1, "b" * 5000)]

    by_hand = Session(auto_resize=False, settings={"session.max_length": 12000})
    by_hand.set_chat_history([message(0, "a" * 11000), message(1, "b" * 5000)])
    assert len(by_hand.context_window) == 2
    assert by_hand.analyze_context() == "simple_cut"
    assert len(by_hand.resize().context_window) == 1


def test_the_life_of_an_agents_request() -> None:
    """The page: 5, `request_prefixes` injects the window, `finally` records input and reply."""
    requests: list[dict[str, Any]] = []

    def model(slots: dict[str, Any]) -> dict[str, Any]:
        requests.append(slots)
        return {"answer": f"answer {len(requests)}", "source": {"page": len(requests)}}

    agent = Agent(model)
    agent.extension.prompt["role"] = "clerk"
    agent.register_session_analysis_handler(analysis_handler)
    agent.register_session_resize_handler("keep_last_six", keep_last_six)
    agent.set_settings("session.input_keys", ["info.task", "info/task", ".request.input", ".agent.role"])
    agent.set_settings("session.reply_keys", ["answer", "source/page"])
    agent.activate_session("chat")
    for number in range(1, 5):
        assert agent.request(f"question {number}", info={"task": "tea"})["answer"] == f"answer {number}"

    assert requests[0]["chat_history"] == []
    assert requests[1]["chat_history"] == [
        {
            "role": "user",
            "content": "[info.task]:\ntea\n[info/task]:\ntea\n"
            "[.request.input]:\nquestion 1\n[.agent.role]:\nclerk",
        },
        {"role": "assistant", "content": "[answer]:\nanswer 1\n[source/page]:\n1"},
    ]
    assert [len(slots["chat_history"]) for slots in requests] == [0, 2, 4, 6]
    session = agent.activated_session
    assert session is not None
    assert (len(session.full_context), len(session.context_window)) == (8, 6)
    assert agent.settings["runtime.session_id"] == session.id == "chat"

    agent.deactivate_session()
    assert agent.request("alone")["answer"] == "answer 5"
    assert "chat_history" not in requests[-1]
    assert len(session.full_context) == 8
    agent.activate_session("chat").request("again")
    assert len(requests[-1]["chat_history"]) == 6
