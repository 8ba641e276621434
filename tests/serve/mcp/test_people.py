"""What a served program asks people is asked of the client's user. Spec: 07 §14.6, 09 §11.4."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError

from harnpy.serve import mcp_server
from tests.serve.mcp.serving import converse, text_of

FILE = """
pub fn name() { return ask_user("Who are you?", {schema: {type: "string"}, default: "Ada"}) }
pub fn age() { return ask_user("How old?", {schema: {type: "integer"}}) }
pub fn shape() { return ask_user("Which?", {schema: {type: "object"}, default: {a: 1}}) }
pub fn deploy() { return request_approval("deploy", {reviewers: ["ann", "bob"], detail: "to production"}) }
pub fn help() { return escalate_to("admin", "stuck") }
pub fn each() { return parallel each ["a?", "b?"] { question -> ask_user(question) } }
pub fn tolerant() { return try { ask_user("Anybody?") } catch (e) { "${e.name}: ${e.reason}" } }
"""
ANSWERS: dict[str, dict[str, Any]] = {
    "Who are you?": {"answer": "Grace"},
    "How old?": {"answer": 41},
    "Which?": {"answer": "that"},
    "Approve: deploy\ndetail: to production": {"approved": True, "reviewer": "bob", "reason": "fine"},
    "For admin: stuck": {"accepted": True},
    "a?": {"answer": "A"},
    "b?": {"answer": "B"},
}


class User:
    """Fills in forms, and keeps them."""

    def __init__(self) -> None:
        self.forms: dict[str, dict[str, Any]] = {}

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.forms[params.message] = params.requested_schema
        if params.message not in ANSWERS:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=ANSWERS[params.message])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_user_of_the_client_answers(tmp_path: Path, mode: str) -> None:
    user = User()

    async def session(client: Client) -> None:
        async def called(name: str) -> str:
            return text_of(await client.call_tool(name, {}))

        assert await called("name") == "Grace"
        assert await called("age") == "41"
        assert await called("each") == '["A","B"]'
        assert '"reviewers":["bob"]' in await called("deploy")
        assert '"status":"accepted"' in await called("help")
        assert await called("tolerant") == "HumanCancelledError: the user declined"

    converse(tmp_path / "people.harn", FILE, session, mode=mode, user=user)
    assert user.forms["Who are you?"] == {
        "type": "object",
        "properties": {"answer": {"type": "string", "default": "Ada"}},
        "required": ["answer"],
    }
    approval = user.forms["Approve: deploy\ndetail: to production"]
    assert approval["properties"]["reviewer"] == {
        "type": "string", "title": "Who decides", "enum": ["ann", "bob"],
    }  # fmt: skip


def test_a_client_that_cannot_ask(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        said = text_of(await client.call_tool("tolerant", {}))
        assert said == "HumanCancelledError: the MCP client can't ask its user"
        assert text_of(await client.call_tool("name", {})) == "ERROR the MCP client can't ask its user"

    converse(tmp_path / "people.harn", FILE, session, mode="legacy")
    converse(tmp_path / "people.harn", FILE, session)


# Without a handshake a call asks in rounds, each of which is a request of its own.


ROUNDS = """
let log = shared_cell("log", [])
fn note(text) { shared_set(log, shared_get(log) + [text]) }
pub fn order(item: string) {
  note("begun")
  defer { note("over") }
  let name = ask_user("Who?")
  progress("ask", "more", 1, 2)
  return "${item} for ${name}, ${ask_user("How many?")}"
}
pub fn many() { return parallel each [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] { n -> ask_user("${n}?") } }
pub fn slow() {
  return parallel each [1, 2, 3] { n ->
    var i = 0
    while i < 500000 { i += 1 }
    ask_user("${n}?")
  }
}
pub fn endless() {
  return parallel each [1, 2] { n ->
    if n == 1 { return ask_user("${n}?") }
    while true { }
  }
}
pub fn seen() { return shared_get(log) }
"""
Asked = types.InputRequiredResult
#: The client says it has forms; the rounds are made by hand.
Round = Callable[..., Awaitable[Any]]


def in_rounds(path: Path, session: Callable[[Round], Awaitable[None]]) -> None:
    async def conversation(client: Client) -> None:
        async def made(tool: str, asked: Asked | None = None, text: str | None = None, **given: Any) -> Any:
            more: dict[str, Any] = {}
            if asked is not None:
                more["request_state"] = asked.request_state
            if asked is not None and text is not None:
                filled = types.ElicitResult(action="accept", content={"answer": text})
                more["input_responses"] = dict.fromkeys(asked.input_requests or {}, filled)
            return await client.session.call_tool(tool, given, allow_input_required=True, **more)

        await session(made)

    converse(path, ROUNDS, conversation, user=User())


def test_a_call_goes_on_where_it_asked(tmp_path: Path) -> None:
    async def session(made: Round) -> None:
        first = await made("order", item="nails")
        assert [each.params.message for each in first.input_requests.values()] == ["Who?"]
        second = await made("order", first, "Ada", item="nails")
        assert [each.params.message for each in second.input_requests.values()] == ["How many?"]
        assert second.request_state != first.request_state
        assert text_of(await made("order", second, "3", item="nails")) == "nails for Ada, 3"
        assert text_of(await made("seen")) == '["begun","over"]'  # it was called once

    in_rounds(tmp_path / "rounds.harn", session)


def test_questions_that_are_asked_at_once_share_a_round(tmp_path: Path) -> None:
    async def session(made: Round) -> None:
        asked = await made("many")
        assert len(asked.input_requests) == 12
        assert text_of(await made("many", asked, "yes")).count("yes") == 12

    in_rounds(tmp_path / "rounds.harn", session)


def test_questions_of_tasks_that_compute_share_a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often the loop has its turn meanwhile."""
    monkeypatch.setattr(mcp_server, "_COMPUTING", 60.0)  # a second may be too short on a busy machine

    async def session(made: Round) -> None:
        asked = await made("slow")
        assert len(asked.input_requests) == 3
        assert text_of(await made("slow", asked, "yes")).count("yes") == 3

    in_rounds(tmp_path / "rounds.harn", session)


def test_a_task_that_never_ends_to_compute_holds_up_no_question(tmp_path: Path) -> None:
    async def session(made: Round) -> None:
        assert len((await made("endless")).input_requests) == 1

    in_rounds(tmp_path / "rounds.harn", session)


def test_what_was_not_answered_is_asked_again(tmp_path: Path) -> None:
    async def session(made: Round) -> None:
        first = await made("order", item="nails")
        again = await made("order", first, item="nails")
        assert again.input_requests == first.input_requests
        assert isinstance(await made("order", again, "Ada", item="nails"), Asked)

    in_rounds(tmp_path / "rounds.harn", session)


def test_a_state_belongs_to_one_request_and_one_round(tmp_path: Path) -> None:
    async def session(made: Round) -> None:
        async def refused(*round: Any, **given: Any) -> bool:
            with pytest.raises(MCPError, match="Unknown request state"):
                await made(*round, **given)
            return True

        first = await made("order", item="nails")
        assert await refused("order", first, "Eve", item="gold")
        assert await refused("many", first, "Eve")
        assert await refused("order", Asked(request_state="guess"), "Eve", item="nails")
        second = await made("order", first, "Ada", item="nails")
        assert await refused("order", first, "Eve", item="nails")
        assert text_of(await made("order", second, "3", item="nails")) == "nails for Ada, 3"

    in_rounds(tmp_path / "rounds.harn", session)


def test_a_client_that_does_not_come_back_ends_its_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harnpy.serve.mcp_server._AWAY", 0.01)

    async def session(made: Round) -> None:
        first = await made("order", item="nails")
        while text_of(await made("seen")) != '["begun","over"]':
            await asyncio.sleep(0.001)
        with pytest.raises(MCPError, match="Unknown request state"):
            await made("order", first, "Ada", item="nails")

    in_rounds(tmp_path / "rounds.harn", session)


def test_a_client_can_not_keep_any_number_of_calls_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harnpy.serve.mcp_server._MOST_WAITING", 2)

    async def session(made: Round) -> None:
        first, _ = await made("order", item="a"), await made("order", item="b")
        said = text_of(await made("order", item="c"))
        assert said == "ERROR 2 calls of this client wait for its user already"
        assert isinstance(await made("order", first, "Ada", item="a"), Asked)

    in_rounds(tmp_path / "rounds.harn", session)
