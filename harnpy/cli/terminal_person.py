"""`harnpy run --attended`: the person at the terminal answers the program's requests. Spec: 07 §14.6.

Prompts go to stderr, because stdout is the program's. After an invalid answer the prompt is repeated; the end
of input cancels the request.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from harnpy.agent.people import ESCALATION, QUESTION, HumanCancelled
from harnpy.builtins.language.types import parsed_float, parsed_int
from harnpy.formats.dicts import Dict
from harnpy.formats.schema_checks import SchemaValues, check
from harnpy.formats.schemas import canonical
from harnpy.world import World

_YES_NO = {"y": True, "yes": True, "n": False, "no": False}
_BOOLS = {"true": True, "false": False, **_YES_NO}


class Attended:
    """The person at the terminal."""

    def __init__(self, world: World) -> None:
        self._streams = world.streams
        self._environment = world.environment
        self._turn: asyncio.Lock | None = None

    async def ask(self, request: Dict) -> Dict:
        """The person's response to a request; one request at a time."""
        if self._turn is None:
            self._turn = asyncio.Lock()
        async with self._turn:
            if request["kind"] == QUESTION:
                return {"answer": await self._question(request["payload"])}
            if request["kind"] == ESCALATION:
                return await self._escalation(request["payload"])
            return await self._approval(request)

    # --- the kinds --------------------------------------------------------------------------------

    async def _question(self, payload: Dict) -> Any:
        default, schema = payload.get("default"), payload.get("schema")
        self._say(f"? {payload['prompt']}")
        if isinstance(schema, dict) and isinstance(schema.get("enum"), list):
            self._say("  options: " + ", ".join(map(_shown, schema["enum"])))
        hint = "> " if default is None else f"[{_shown(default)}] > "
        while True:
            text = await self._line(hint)
            if not text and default is not None:
                return default
            try:
                return _by_schema(text, schema) if schema is not None else _like(text, default)
            except ValueError as problem:
                self._say(f"  {problem}")

    async def _approval(self, request: Dict) -> Dict:
        payload, approved_by = request["payload"], request["approved_by"]
        allowed = payload.get("approvers") or payload.get("reviewers") or []
        needed = payload.get("n") or payload.get("quorum")
        self._say(f"? Approve: {payload.get('action') or 'an action'}")
        for key in ("detail", "args", "principal", "capabilities_requested"):
            if payload.get(key):
                self._say(f"  {key}: {_shown(payload[key])}")
        if needed > 1:
            self._say(f"  {len(approved_by)} of {needed} approvals")
        approved = await self._yes_or_no("approve? [y/n] ")
        reviewer = await self._reviewer([name for name in allowed if name not in approved_by], approved_by)
        return {"approved": approved, "reviewer": reviewer, "reason": await self._reason()}

    async def _escalation(self, payload: Dict) -> Dict:
        self._say(f"? For {payload['role']}: {payload['reason']}")
        if not await self._yes_or_no("accept? [y/n] "):
            raise HumanCancelled("escalation was declined")
        return {"accepted": True, "reviewer": await self._reviewer([], []), "reason": await self._reason()}

    # --- the questions they are made of -----------------------------------------------------------

    async def _yes_or_no(self, hint: str) -> bool:
        while True:
            word = (await self._line(hint)).lower()
            if word in _YES_NO:
                return _YES_NO[word]
            self._say("  please answer y or n")

    async def _reviewer(self, allowed: list[str], taken: list[str]) -> str:
        """Ask who decides: one of ``allowed`` if there is such a list, and none of ``taken``."""
        me = None if allowed else self._environment.get("USER")
        among = f" ({', '.join(allowed)})" if allowed else f" [{me}]" if me else ""
        while True:
            name = await self._line(f"reviewer{among}: ") or me
            if name and name not in taken and (not allowed or name in allowed):
                return name
            self._say(f"  {name} can't decide here" if name else "  a name is needed")

    async def _reason(self) -> str | None:
        return await self._line("reason (optional): ") or None

    # --- the terminal -----------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        self._streams.write_err(text + "\n")

    async def _line(self, hint: str) -> str:
        """A line without surrounding white space; other tasks run while the person types."""
        self._streams.write_err(hint)
        sys.stderr.flush()
        if self._streams.isatty("stdin"):
            await _readable(sys.stdin.fileno())
        line = self._streams.read_line()
        if line is None:
            self._say("")
            raise HumanCancelled("end of input")
        return line.strip()


async def _readable(file: int) -> None:
    """Wait for input. A terminal delivers whole lines, so anything that can be read is a line."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(file, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(file)


def _by_schema(text: str, schema: Dict) -> Any:
    """The text or its JSON value, whichever fits the schema. Raises ValueError."""
    problems: list[str] = []
    for value in _readings(text):
        value, problems = check(value, canonical(schema), SchemaValues(), defaults=True)
        if not problems:
            return value
    raise ValueError("; ".join(problems))


def _readings(text: str) -> list[Any]:
    try:
        return [text, json.loads(text)]
    except ValueError:
        return [text]


def _like(text: str, default: Any) -> Any:
    """The text as a value of the default's type. Raises ValueError."""
    if isinstance(default, bool):
        value: Any = _BOOLS.get(text.lower())
        wanted = "true or false"
    elif isinstance(default, int):
        value, wanted = parsed_int(text), "a whole number"
    elif isinstance(default, float):
        value, wanted = parsed_float(text), "a number"
    else:
        return text
    if value is None:
        raise ValueError(f"please answer {wanted}")
    return value


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
