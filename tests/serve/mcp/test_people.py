"""What a served program asks people is asked of the client's user. Spec: 07 §14.6, 09 §11.4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client

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


def test_the_user_of_the_client_answers(tmp_path: Path) -> None:
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

    converse(tmp_path / "people.harn", FILE, session, mode="legacy", user=user)
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

    converse(tmp_path / "people.harn", FILE, session, mode="legacy")
    converse(tmp_path / "people.harn", FILE, session)
