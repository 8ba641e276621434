"""smolagents: `generate_stream` of `OpenAIModel`, joined by `agglomerate_stream_deltas`; the loop is ours."""

import json

from smolagents import ChatMessage, OpenAIModel, tool
from smolagents.models import agglomerate_stream_deltas


def ask(dialect, url, model, messages, look):
    if dialect != "chat":
        raise NotImplementedError("its models of other dialects are LiteLLM's")
    chat = OpenAIModel(model, api_base=url + "/v1", api_key="k", client_kwargs={"max_retries": 0})
    history, first = [message(each) for each in messages], None
    for _ in range(3):
        deltas = list(chat.generate_stream(history, tools_to_call_from=[tool(look)]))
        reply = agglomerate_stream_deltas(deltas)
        first = first or reply
        history.append(reply)
        for call in reply.tool_calls or ():
            content = [{"type": "text", "text": done(look, call.function)}]
            history.append(ChatMessage("tool-response", content))
        if not reply.tool_calls:
            break
    usage = first.token_usage
    return {
        "text": first.content,
        "thinking": None,
        "finish": None,
        "input": usage and usage.input_tokens,
        "output": usage and usage.output_tokens,
    }


def done(look, call):
    try:
        arguments = call.arguments if isinstance(call.arguments, dict) else json.loads(call.arguments or "{}")
        return look(**arguments) if call.name == "look" else "No such tool."
    except ValueError as error:
        return str(error)


def message(each):
    content = [{"type": "text", "text": each["text"]}]
    if each["role"] == "tool":
        if each["failed"]:
            raise NotImplementedError("its messages have no mark of a failure")
        if each["image"]:
            raise NotImplementedError("images of results are the next step's")
        return ChatMessage("tool-response", content)
    if each.get("calls"):
        raise NotImplementedError("its agents tell earlier calls in words")
    return ChatMessage(each["role"], content)
