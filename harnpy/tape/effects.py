"""What is on a tape, effect by effect, and call by call of a model. Spec: 13 §1, §6."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from harnpy.durable.journal import ENV, MODEL, OUTPUT, PIECE
from harnpy.durable.values import Unreadable, decode
from harnpy.llm.reply import Reply
from harnpy.tape.description import described, kind_of, task_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.tape.tapes import Tape
    from harnpy.workflow.engines.contract import Json, Step


class Effect(Struct, frozen=True):
    """An effect: its number and that of the model's call that it is (both from 1), and what it is in words.

    ``index`` is the place of its record among the tape's steps, ``size`` the bytes of what it came to, ``at``
    the seconds from the program's begin, where they are known.
    """

    number: int
    call: int | None
    task: str
    kind: str
    what: str
    key: str
    index: int
    asked: Any
    size: int
    at: float | None
    error: str | None


class Call(Struct, frozen=True):
    """A call of a model. ``number`` is that of `harnpy branch --at`, ``effect`` that of the call's effect.

    ``ordinal`` is its place among the calls of its task, from 1; ``reply`` what the model said, ``tools`` the
    names and arguments of the tools that it called. ``cost`` is in USD, None where the price is unknown.
    """

    number: int
    effect: int
    task: str
    ordinal: int
    model: str
    asked: Any
    reply: str = ""
    tools: list[tuple[str, Any]] = []
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    error: str | None = None

    @property
    def said(self) -> str:
        """What came of it, in a line: the first one of the reply, else the tools that were called."""
        if self.error is not None:
            return self.error.strip().partition("\n")[0]
        if self.reply.strip():
            return self.reply.strip().partition("\n")[0]
        return ", ".join(f"calls {name}" for name, _ in self.tools)


def effects_of(tape: Tape) -> list[Effect]:
    """Return the effects that the program asked for, in order: neither facts nor what it has printed."""
    found: list[Effect] = []
    calls = 0
    for index, step in enumerate(tape.steps):
        kind = kind_of(step.key)
        if kind in (ENV, OUTPUT):
            continue
        calls += kind == MODEL
        output: Any = step.output
        came = output.get("error") if "error" in output else output.get("ok")
        found.append(
            Effect(
                number=len(found) + 1,
                call=calls if kind == MODEL else None,
                task=task_of(step.key),
                kind=kind,
                what=described((step.key, output.get("asked"))),
                key=step.key,
                index=index,
                asked=output.get("asked"),
                size=0 if came is None else len(msgspec.json.encode(came)),
                at=output.get("at"),
                error=output["error"].get("message", "") if "error" in output else None,
            )
        )
    return found


def calls_of(tape: Tape) -> list[Call]:
    """Return the calls of models, in the order in which they are numbered."""
    return [*_calls(tape)]


class _Open:
    """A call whose reply comes in pieces."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.text: list[str] = []


def _calls(tape: Tape) -> Iterator[Call]:
    found: list[Call] = []
    opened: dict[str, _Open] = {}
    times: dict[str, float] = {}
    ordinals: dict[str, int] = {}
    begun: list[float] = []
    for effect in effects_of(tape):
        task = effect.task
        step = tape.steps[effect.index]
        if effect.kind == MODEL:
            asked = effect.asked if isinstance(effect.asked, dict) else {}
            ordinals[task] = ordinals.get(task, 0) + 1
            found.append(
                Call(
                    number=len(found) + 1,
                    effect=effect.number,
                    task=task,
                    ordinal=ordinals[task],
                    model=str(asked.get("model", "")),
                    asked=asked,
                )
            )
            begun.append(_begin(times, task))
            opened[task] = _Open(len(found) - 1)
        if effect.at is not None:
            times[task] = effect.at
        call = opened.get(task)
        if call is not None and effect.kind in (MODEL, PIECE):
            seconds = max(times.get(task, 0.0) - begun[call.place], 0.0)
            found[call.place], is_over = _with(found[call.place], call, step, effect.error, seconds)
            if is_over:
                del opened[task]
    yield from found


def _begin(times: dict[str, float], task: str) -> float:
    """Return when a task may have asked for what it asks next: at its last effect, else at one of the task
    that started it."""
    parts = task.split(":")
    above = (":".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((times[each] for each in above if each in times), 0.0)


def _with(call: Call, opened: _Open, step: Step, error: str | None, seconds: float) -> tuple[Call, bool]:
    """Return the call with what has come of it by now, and whether that is all of it."""
    if error is not None:
        changed = msgspec.structs.replace(
            call, error=error, reply="".join(opened.text), seconds=round(seconds, 6)
        )
        return changed, True
    came = came_to(step)
    is_over = True
    if isinstance(came, str):  # a piece that is watched; the reply comes behind the last one
        opened.text.append(came)
        is_over = False
    elif isinstance(came, tuple) and len(came) == 2:  # a piece of a stream, or its end
        piece, known = came
        if isinstance(piece, str):
            opened.text.append(piece)
        is_over, came = piece is None, known
    if isinstance(came, Reply):
        return _replied(call, came, "".join(opened.text), seconds), is_over
    return msgspec.structs.replace(call, reply="".join(opened.text), seconds=round(seconds, 6)), is_over


def _replied(call: Call, reply: Reply, text: str, seconds: float) -> Call:
    return msgspec.structs.replace(
        call,
        reply=reply.text or text,
        tools=[(str(each.get("name")), each.get("arguments")) for each in reply.tool_calls],
        input_tokens=reply.prompt_tokens,
        output_tokens=reply.output_tokens,
        cost=reply.cost,
        seconds=round(seconds, 6),
    )


def came_to(step: Step) -> Any:
    """Return what an effect came to, as the program saw it; as it is written where this version can't read
    it, and None for an error."""
    output: Json = step.output
    if not isinstance(output, dict) or "ok" not in output:
        return None
    try:
        return decode(output["ok"])
    except Unreadable:
        return output["ok"]


def seconds_of(tape: Tape) -> float:
    """Return the seconds that the program saw pass: those before a branch count, too."""
    times = [
        step.output["at"] for step in tape.steps if isinstance(step.output, dict) and "at" in step.output
    ]
    return round(max(times) if times else tape.end.seconds if tape.end is not None else 0.0, 6)
