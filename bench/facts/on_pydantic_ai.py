"""pydantic-ai: `run_stream`; it has no store, so the application keeps the messages of each run."""

import asyncio

from desk import APPROVALS, FOLDER, answer, call, main, refund
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

PATH = FOLDER / "messages.json"


async def model(messages, info):
    if not any(part.part_kind == "tool-return" for part in messages[-1].parts):
        call()
        yield {0: DeltaToolCall(name="refund", json_args='{"euros": 12}', tool_call_id="call_1")}
    else:
        for piece in answer():
            yield piece


def stored():
    return ModelMessagesTypeAdapter.validate_json(PATH.read_bytes()) if PATH.exists() else []


def approve(prompt):
    calls = [part for part in stored()[-1].parts if part.part_kind == "tool-call"]
    return send(None, DeferredToolResults(approvals={each.tool_call_id: True for each in calls}))


def send(prompt, results=None):
    async def run():
        agent = Agent(
            FunctionModel(stream_function=model),
            tools=[Tool(refund, requires_approval=APPROVALS)],
            output_type=[str, DeferredToolRequests],
        )
        async with agent.run_stream(
            prompt, message_history=stored(), deferred_tool_results=results
        ) as result:
            output = await result.get_output()
        PATH.write_bytes(ModelMessagesTypeAdapter.dump_json(result.all_messages()))
        return str(output)

    return asyncio.run(run())


def show():
    roles = {"user-prompt": "user", "text": "assistant"}
    parts = [part for message in stored() for part in message.parts]
    return [[roles.get(part.part_kind, "tool"), str(getattr(part, "content", ""))] for part in parts] or None


main(send=send, resume=send, show=show, begin=send, approve=approve)
