"""Google's own SDK: a chat that streams, and runs the tool by itself. Its history is in Gemini's own form."""

from google import genai


def ask(dialect, url, model, messages, look):
    if dialect != "gemini" or len(messages) > 1:
        raise NotImplementedError("it knows Gemini's form alone")
    client = genai.Client(api_key="k", http_options={"base_url": url})
    chat = client.chats.create(model=model, config={"tools": [look]})
    chunks = list(chat.send_message_stream(messages[0]["text"]))
    candidate, usage = chunks[0].candidates[0], chunks[0].usage_metadata
    parts = candidate.content.parts or [] if candidate.content else []
    return {
        "text": "".join(part.text or "" for part in parts if not part.thought),
        "thinking": "".join(part.text or "" for part in parts if part.thought),
        "finish": candidate.finish_reason and candidate.finish_reason.value,
        "input": usage.prompt_token_count,
        "output": usage.total_token_count - usage.prompt_token_count,
    }
