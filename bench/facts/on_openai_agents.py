"""The Agents SDK: `Runner.run_streamed` with a `SQLiteSession`; after a crash, a run without a prompt.

That goes on with what the session has, if a run begins with an empty list.
"""

import asyncio

from agents import Agent, Model, Runner, RunState, SQLiteSession, function_tool, set_tracing_disabled
from agents.extensions.memory import AdvancedSQLiteSession
from desk import APPROVALS, FOLDER, TEXT, TURNS, answer, call, main, refund, stored
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

set_tracing_disabled(True)
PATH, STATE = FOLDER / "desk.db", FOLDER / "state.json"


class Desk(Model):
    async def get_response(self, *args, **options):
        raise NotImplementedError

    async def stream_response(self, system, items, *args, **options):
        if not any(each.get("type") == "function_call_output" for each in since_the_prompt(items)):
            call()
            output = [
                ResponseFunctionToolCall(
                    arguments='{"euros": 12}', call_id="call_1", name="refund", type="function_call"
                )
            ]
        else:
            said = ""
            for number, piece in enumerate(answer()):
                said += piece
                yield ResponseTextDeltaEvent(
                    content_index=0, delta=piece, item_id="m", logprobs=[], output_index=0,
                    sequence_number=number, type="response.output_text.delta",
                )  # fmt: skip
            text = ResponseOutputText(annotations=[], text=said, type="output_text")
            output = [
                ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
            ]
        made = Response(
            id="r", created_at=0, model="m", object="response", output=output, parallel_tool_calls=False,
            tool_choice="auto", tools=[],
        )  # fmt: skip
        yield ResponseCompletedEvent(response=made, sequence_number=9, type="response.completed")


def since_the_prompt(items):
    prompts = [index for index, each in enumerate(items) if each.get("role") == "user"]
    return items[prompts[-1] :]


def resume(prompt):
    return send([])


def approve(prompt):
    return send(None)


def send(prompt):
    async def run():
        session = SQLiteSession("chat", PATH)
        agent = Agent(name="clerk", model=Desk(), tools=[function_tool(refund, needs_approval=APPROVALS)])
        result = Runner.run_streamed(
            agent, await approved(agent) if prompt is None else prompt, session=session
        )
        async for _ in result.stream_events():
            pass
        if result.interruptions:
            STATE.write_text(result.to_state().to_string())
        session.close()
        return result.final_output

    return asyncio.run(run())


def show():
    session = SQLiteSession("chat", PATH)
    found = asyncio.run(session.get_items())
    session.close()
    return [[each.get("role", each.get("type")), text(each)] for each in found] or None


async def approved(agent):
    """Return the state that the application has stored, with all that waits in it approved."""
    state = await RunState.from_string(agent, STATE.read_text())
    for each in state.get_interruptions():
        state.approve(each)
    return state


def text(item):
    content = item.get("content", item.get("output", ""))
    return content if isinstance(content, str) else content[0]["text"]


def delete():
    session = SQLiteSession("chat", PATH)
    asyncio.run(session.clear_session())
    session.close()


def fork():
    """By `create_branch_from_turn` of its `AdvancedSQLiteSession`: behind the last turn but one."""

    async def run():
        session = AdvancedSQLiteSession(session_id="long", db_path=PATH, create_tables=True)
        for _ in range(TURNS + 1):
            await session.add_items(
                [{"role": "user", "content": TEXT}, {"role": "assistant", "content": TEXT}]
            )
        session.close()
        before = stored()
        session = AdvancedSQLiteSession(session_id="long", db_path=PATH)
        await session.create_branch_from_turn(TURNS + 1)
        length = len(await session.get_items())
        session.close()
        return [before, stored() - before, length]

    return asyncio.run(run())


main(send=send, resume=resume, show=show, delete=delete, fork=fork, begin=send, approve=approve)
