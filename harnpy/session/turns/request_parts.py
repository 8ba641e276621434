"""What a step's request is made of beside the conversation: registers of the log. Spec: 10 §C16.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.reading.dicts import Dict

#: The caller's system prompt, and what a definition and a loop add to it, in that order.
SYSTEM = "system_prompt"
DEFINITION = "settings.request.definition"
SKILLS = "settings.request.skills"
CONTRACT = "settings.request.contract"
PERSISTENCE = "settings.request.persistence"
#: The list of native tools.
TOOLS = "settings.request.tools"


def joined_system(part: Callable[[str], str | None]) -> str | None:
    """Return the system prompt that is sent; ``part`` returns the value of a register. Spec: 07 §6.2."""
    system = (part(SYSTEM) or "").strip()
    added = (part(DEFINITION), part(SKILLS), part(CONTRACT), part(PERSISTENCE))
    return "\n\n".join(filter(None, (system, *added))) or None


def memo_message(memo: Any) -> Dict:
    """Return the message that shows a model the session's memo."""
    text = memo if isinstance(memo, str) else compact_json(memo)
    content = f'<runtime_injection kind="memo">\n{text}\n</runtime_injection>'
    return {"role": "user", "content": content}
