"""Makes `langchain.json`: python make_langchain.py > langchain.json (langchain-core 1.8.3)."""

from __future__ import annotations

import json

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, messages_to_dict

messages = [
    SystemMessage("Be short."),
    HumanMessage(
        [
            {"type": "text", "text": "What is in it?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk/aGk+"}},
            {"type": "image", "base64": "aGk/aGk+", "mime_type": "image/png"},
            {"type": "file", "url": "https://example.com/a.pdf", "mime_type": "application/pdf"},
        ],
        id="h1",
    ),
    AIMessage(
        [
            {"type": "thinking", "thinking": "Two looks are needed.", "signature": "c2ln"},
            {"type": "text", "text": "I look at both."},
            {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "red"}},
        ],
        tool_calls=[{"name": "look", "args": {"at": "red"}, "id": "c1"}],
        invalid_tool_calls=[{"name": "look", "args": '{"at": ', "id": "c2", "error": "cut off"}],
        id="run-1",
        response_metadata={"model_name": "claude-opus-4-8", "model_provider": "anthropic"},
        usage_metadata={"input_tokens": 12, "output_tokens": 7, "total_tokens": 19},
    ),
    ToolMessage("warm", tool_call_id="c1", name="look", artifact={"warmth": 3}),
    ToolMessage("Say where.", tool_call_id="c2", name="look", status="error"),
    AIMessage(
        [
            {
                "type": "text",
                "text": "Red is warm.",
                "annotations": [{"type": "citation", "url": "https://example.com"}],
            }
        ],
        additional_kwargs={"reasoning_content": "One look was enough."},
    ),
]
print(json.dumps(messages_to_dict(messages), indent=1))
