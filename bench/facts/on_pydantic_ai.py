"""pydantic-ai: `run_stream`; it has no store, so the application keeps the messages of each run."""

import asyncio

from desk import FOLDER, answer, call, main, refund
from pydantic_ai import Agent
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


def send(prompt):
    async def run():
        agent = Agent(FunctionModel(stream_function=model), tools=[refund])
        async with agent.run_stream(prompt, message_history=stored()) as result:
            output = await result.get_output()
        PATH.write_bytes(ModelMessagesTypeAdapter.dump_json(result.all_messages()))
        return output

    return asyncio.run(run())


def show():
    roles = {"user-prompt": "user", "text": "assistant"}
    parts = [part for message in stored() for part in message.parts]
    return [[roles.get(part.part_kind, "tool"), str(getattr(part, "content", ""))] for part in parts] or None


main(send=send, resume=send, show=show)
