"""Makes `openai_agents.db` beside it (openai-agents 0.24.0)."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from agents import SQLiteSession

FILE = Path(__file__).parent / "openai_agents.db"
IMAGE = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk/aGk+"}
SAID = {"type": "output_text", "text": "I look.", "annotations": []}
THOUGHT = {"type": "summary_text", "text": "Look first."}
ITEMS = [
    {"role": "user", "content": "What is red?"},
    {"type": "reasoning", "id": "rs_1", "summary": [THOUGHT], "encrypted_content": "Z0FB"},
    {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [SAID]},
    {"type": "function_call", "id": "f1", "call_id": "c1", "name": "look", "arguments": '{"at":"red"}'},
    {"type": "function_call", "id": "f2", "call_id": "c2", "name": "look", "arguments": '{"at":"blue"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "warm"},
    {"type": "function_call_output", "call_id": "c2", "output": "cold"},
    {"type": "message", "role": "assistant", "content": "Red is warm."},
    {"role": "user", "content": [{"type": "input_text", "text": "And this?"}, IMAGE]},
]


async def main() -> None:
    for name, count in (("talk", len(ITEMS)), ("other", 1)):
        session = SQLiteSession(name, FILE)
        await session.add_items(ITEMS[:count])  # type: ignore[arg-type]
        session.close()


FILE.unlink(missing_ok=True)
asyncio.run(main())
with sqlite3.connect(FILE) as database:
    database.execute("PRAGMA journal_mode = DELETE")
    database.execute("VACUUM")
