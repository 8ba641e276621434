"""`harnpy run --attended`: the person at the terminal answers the program's requests. Spec: 07 §14.6.

Prompts go to stderr, because stdout is the program's. After an invalid answer the prompt is repeated. The end
of input denies an approval, and cancels another request. What a person approves "always" is what was shown,
unless they choose the wider approval of a tool.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any

from harnpy.agent.people import ESCALATION, QUESTION, HumanCancelled
from harnpy.builtins.language.types import parsed_float, parsed_int
from harnpy.formats.dicts import Dict
from harnpy.formats.json import compact_json
from harnpy.formats.schema_checks import SchemaValues, check
from harnpy.formats.schemas import canonical
from harnpy.world import World
from harnpy.world.streams import RealStreams

_YES_NO = {"y": True, "yes": True, "n": False, "no": False}
#: Answers that hold for the rest of the run: for what is the same in all that was shown, for a whole tool.
_ALWAYS, _TOOL = ("a", "always"), ("t", "tool")
#: What is shown of an approval's request, besides the action.
_SHOWN = ("detail", "args", "principal", "capabilities_requested")
#: How long an Enter may follow a key that it isn't needed for.
_ENTER_SECONDS = 0.25
#: Variables of the environment that say who is at the terminal; the first one that is set counts.
_NAMES = ("HARN_REVIEWER", "USER", "LOGNAME")
#: What the prompt says of such an answer's key.
_EXACTLY, _ARGUMENTS, _WHOLE = "[a]lways exactly this", "[a]lways with these arguments", "[t]his tool always"
_END, _ENTERS = b"\x04", (b"\n", b"\r")
_BOOLS = {"true": True, "false": False, **_YES_NO}


def reviewer_of(world: World) -> str | None:
    """Return who is at the terminal: as the environment has it, else whose account it is."""
    named = next(filter(None, map(world.environment.get, _NAMES)), None)
    return named or world.machine.user_name() or None


class Attended:
    """The person at the terminal."""

    def __init__(self, world: World) -> None:
        assert isinstance(world.streams, RealStreams)
        self._streams = world.streams
        #: Who is at the terminal.
        self._me = reviewer_of(world)
        #: The name that the person gave where the system's couldn't decide.
        self._given: str | None = None
        self._turn: asyncio.Lock | None = None
        #: What the person approves whenever it comes again: requests as they are shown, and whole tools.
        self._approved: set[str] = set()

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
        for key in _SHOWN:
            if payload.get(key):
                self._say(f"  {key}: {_shown(payload[key])}")
        if needed > 1:
            self._say(f"  {len(approved_by)} of {needed} approvals")
        free = [name for name in allowed if name not in approved_by]
        covers = _covered(request) if needed == 1 else {}
        if not self._approved.isdisjoint(covers.values()):
            self._say("  approved, as before")
            return {"approved": True, "reviewer": await self._reviewer(free, approved_by)}
        try:
            word = await self._choice("approve? ", covers)
            reviewer = await self._reviewer(free, approved_by)
            if _YES_NO.get(word, True):
                self._approved |= {covers[word]} if word in covers else set()
                return {"approved": True, "reviewer": reviewer}
            return {"approved": False, "reviewer": reviewer, "reason": await self._reason()}
        except HumanCancelled as end:
            self._say(f"  denied: {end}")
            return {"approved": False, "reviewer": self._me, "reason": str(end)}

    async def _escalation(self, payload: Dict) -> Dict:
        self._say(f"? For {payload['role']}: {payload['reason']}")
        if not _YES_NO[await self._choice("accept? ")]:
            raise HumanCancelled("escalation was declined")
        return {"accepted": True, "reviewer": await self._reviewer([], [])}

    # --- the questions they are made of -----------------------------------------------------------

    async def _choice(self, asked: str, covers: Mapping[str, str] = MappingProxyType({})) -> str:
        """Return yes, no, or what else may be answered; on a terminal one key says it."""
        offered = [_ARGUMENTS, _WHOLE] if "t" in covers else [_EXACTLY] if covers else []
        words = ["[y]es", "[n]o", *offered]
        keys = ["y", "n", *"at"[: len(offered)]]
        while True:
            word = (await self._key(f"{asked}{' '.join(words)}: ")).lower()
            if word in _YES_NO or word in covers:
                return word
            self._say(f"  please answer {', '.join(keys[:-1])} or {keys[-1]}")

    async def _reviewer(self, allowed: list[str], taken: list[str]) -> str:
        """Return who decides: one of ``allowed`` if there is such a list, and none of ``taken``."""
        name, among = self._me, f" ({', '.join(allowed)})" if allowed else ""
        if self._given is not None and not _may(name, allowed, taken):
            name = self._given
        while not _may(name, allowed, taken):
            if among and name and name != self._me:
                self._say(f"  {name} can't decide here")
            name = await self._line(f"reviewer{among}: ")
            if not name:
                self._say("  a name is needed")
            self._given = name or None
        assert name is not None
        return name

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

    async def _key(self, hint: str) -> str:
        """Return the key that was pressed on a terminal, without the end of a line; elsewhere a line."""
        if not self._streams.isatty("stdin"):
            return await self._line(hint)
        file = sys.stdin.fileno()
        with single_keys(file):
            self._streams.write_err(hint)
            sys.stderr.flush()
            ahead = self._streams.take_back()
            key = ahead[:1].encode()
            self._streams.put_back(ahead[1:])
            while key in (b"", *_ENTERS):  # one that came late belongs to the key before
                await _readable(file)
                key = os.read(file, 1)
                if not key:
                    break
            if key not in (b"", _END) and not ahead[1:]:
                await self._pass_over_enter(file)
        if key in (b"", _END):
            self._say("")
            raise HumanCancelled("end of input")
        self._say(str(key, errors="replace").strip())
        return str(key, errors="replace")

    async def _pass_over_enter(self, file: int) -> None:
        """Take the Enter that people type behind a key; anything else is left for what is read next."""
        with suppress(TimeoutError):
            await asyncio.wait_for(_readable(file), _ENTER_SECONDS)
            found = os.read(file, 1)
            if found not in _ENTERS:
                self._streams.put_back(found.decode("latin-1"))


@contextmanager
def single_keys(file: int) -> Iterator[None]:
    """Have a terminal deliver each key inside the block; Ctrl+C still interrupts."""
    import termios
    import tty

    before = termios.tcgetattr(file)
    tty.setcbreak(file, termios.TCSADRAIN)  # what was typed ahead counts
    try:
        yield
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


async def _readable(file: int) -> None:
    """Wait for input. A terminal delivers whole lines, so anything that can be read is a line."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(file, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(file)


def _covered(request: Dict) -> dict[str, str]:
    """Return what an answer for the rest of the run covers, by its word: this as it is shown, a tool."""
    payload = request["payload"]
    if not payload.get("action"):
        return {}
    same = compact_json([payload["action"], *map(payload.get, _SHOWN)])
    tool = request.get("tool")
    offered = [(_ALWAYS, same)] if tool is None else [(_ALWAYS, same), (_TOOL, f"tool {tool}")]
    return {word: what for words, what in offered for word in words}


def _may(name: str | None, allowed: list[str], taken: list[str]) -> bool:
    return bool(name) and name not in taken and (not allowed or name in allowed)


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
