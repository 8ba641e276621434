"""A session as a page for people: a Markdown document, or an HTML file that loads nothing. Spec: 10 §C17.

Both show the branch that the session is on, from its beginning: what was said, what a compaction left, and
what happened beside it. Nothing that was said can end the element that it stands in.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats import markup
from harnpy.formats.media import TEXTS, left_out
from harnpy.formats.tool_messages import results_of
from harnpy.session import events as kinds
from harnpy.session.cuts import Cut
from harnpy.session.errors import TransferError
from harnpy.session.events import MICROS, stamp
from harnpy.session.messages import is_feedback
from harnpy.session.prompt import SYSTEM
from harnpy.session.registers import METADATA
from harnpy.session.transfer import admission
from harnpy.session.transfer.admission import CUTS, HISTORY, MEMO, STATUSES, Loss, counted
from harnpy.session.transfer.blocks import blocks_of, file_of, image_url
from harnpy.session.transfer.listed import THOUGHTS, summary_of
from harnpy.session.view import replay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it.token import Token

    from harnpy.formats.markup import Markup
    from harnpy.session.events import Event
    from harnpy.session.log import Session

    Json = dict[str, Any]

MARKDOWN, HTML = "markdown", "html"
#: What a model thought, whoever keeps it.
_REASONING = ("reasoning", "reasoning_content")
#: How a block that isn't shown may be called.
_NAMES = ("name", "title", "path", "asset_id")
#: Images that a page shows: their data is in it.
_SHOWN = re.compile(r"data:image/[\w.+-]+;base64,[A-Za-z0-9+/=\s]+")


class Part(NamedTuple):
    """A piece of a turn: its ``text``, below a ``title`` if it is folded; the ``image`` that it is."""

    text: str
    title: str = ""
    language: str = ""
    image: str = ""


class Turn(NamedTuple):
    """What somebody said, or what happened; ``notes`` are the facts of it."""

    who: str
    parts: list[Part]
    notes: list[str]


def refuse(*_: Any) -> Any:
    """Raise `TransferError`: nobody reads a page back."""
    raise TransferError("this is a page for people, from which no session is made: export it as jsonl")


def lost(session: Session) -> list[Loss]:
    """Return what of a session its page doesn't show."""
    registers = (SYSTEM, "task", *(f"{METADATA}{key}" for key in session.metadata))
    return admission.lost(session, (CUTS, HISTORY, MEMO, STATUSES), registers, _SHOWN_EVENTS)


def lost_of_markdown(session: Session) -> list[Loss]:
    """Return what of a session its document doesn't show: images, too, whose data it has no place for."""
    images = sum(bool(part.image) for turn in _turns(session) for part in turn.parts)
    return lost(session) + ([Loss(session.id, "images", counted(images, "image"))] if images else [])


_SHOWN_EVENTS = (
    kinds.CONTEXT_ADDED,
    kinds.EXTERNAL_INPUT,
    kinds.STEP_COMPLETED,
    kinds.TURN_STARTED,
    kinds.TURN_COMPLETED,
    kinds.BRANCH_SUMMARY,
)


# What a page shows.


def _turns(session: Session) -> list[Turn]:
    """Return what was said and what happened on the session's branch."""
    events = session.events()
    replay(events)  # cuts know what they leave of the window before
    branch = {event.seq for event in session.events(branch=True)}
    events = [event for event in events if event.seq in branch]
    messages = [event.body for event in events if event.type == kinds.MESSAGE_ADDED]
    answered = {id for message in messages for id in results_of(message) or ()}
    names: dict[str, str] = {}
    found: list[Turn] = []
    said: set[str] = set()
    step: list[str] = []
    for event in events:
        if event.type == kinds.MESSAGE_ADDED:
            said.add(_key(event.body))
            found.append(_spoken(event.body, event, names))
            if event.body["role"] == "assistant":
                found[-1].notes.extend(step)
                step = []
        elif isinstance(event.body, Cut):
            found.append(_cut(event, said, names))
        elif event.type == kinds.TOOL_COMPLETED and event.data["id"] not in answered:
            result = {"role": "tool", "tool_call_id": event.data["id"], "content": event.data.get("output")}
            found.append(_spoken(result, event, {**names, event.data["id"]: event.data["tool"]}))
        elif event.type == kinds.STEP_COMPLETED:  # the message that it made comes behind it
            step = _usage(event.data.get("usage")) + _cost(event)
        elif (told := _told(event)) is not None:
            found.append(told)
    return found


def _key(message: Json) -> str:
    return json.dumps(message, sort_keys=True)


def _spoken(message: Json, event: Event, names: dict[str, str]) -> Turn:
    origin = message.get("origin")
    notes = [_time(event), str(origin["model"]) if isinstance(origin, dict) and origin.get("model") else ""]
    notes += _usage(event.metadata.get("usage")) + _cost(event)
    return said_by(message, names)._replace(notes=notes)


def said_by(message: Json, names: dict[str, str]) -> Turn:
    """Return what a message of any shape says; ``names`` are those of the tools by the ids of their calls, so
    far.
    """
    blocks, name = blocks_of(message), message.get("name")
    is_result = bool(blocks) and all(block.get("type") == "tool_result" for block in blocks)
    said = "runtime" if is_feedback(message) else str(message["role"]).replace("_", " ")
    role = "tool" if is_result else said
    who = f"{role} ({name})" if isinstance(name, str) and name else role
    return Turn(who.capitalize(), list(_parts(message, names)), [])


def _cut(event: Event, said: set[str], names: dict[str, str]) -> Turn:
    """Return what a compaction, a reset or a new history left of the window that wasn't said before."""
    window, is_compaction = event.body.window, event.type == kinds.COMPACTION_TRIGGERED
    parts = [Part(window.summary, "Summary")] if window.summary else []
    for message in [*(entry.body for entry in window.history()), *window.messages()]:
        is_summary = window.summary and message.get("content") == window.summary
        if _key(message) not in said and not is_summary:
            said.add(_key(message))
            role = str(message["role"]).capitalize()
            parts += [part._replace(title=part.title or role) for part in _parts(message, names)]
    left = f"{counted(len(window), 'message')} left" if len(window) else "nothing left"
    what = "Compaction" if is_compaction else "History"
    return Turn(what, parts, [_time(event), str(event.body.reason), left])


def _told(event: Event) -> Turn | None:
    """Return what happened beside what was said; None for what nobody has to know."""
    data, notes = event.data, [_time(event)]
    if event.type == kinds.CONTEXT_ADDED:
        return Turn("Context", [Part(str(data["content"]), str(data.get("kind") or "context"))], notes)
    if event.type == kinds.BRANCH_SUMMARY:
        return Turn("Summary of another branch", [Part(str(data.get("summary")))], notes)
    if event.type == kinds.STATUS_CHANGED:
        return Turn("Status", [], [*notes, f"{data['from']} → {data['to']}", str(data.get("reason") or "")])
    if event.type == kinds.EXTERNAL_INPUT:
        said = [Part(str(data[key])) for key in ("prompt", "input") if data.get(key) is not None]
        return Turn("Question", said, [*notes, str(data.get("status") or "")])
    if event.type == kinds.TURN_COMPLETED and data.get("error"):
        return Turn("Turn failed", [Part(str(data["error"]))], notes)
    return None


def _usage(usage: Any) -> list[str]:
    """Return the numbers of tokens."""
    given = usage.items() if isinstance(usage, dict) else ()
    told = [f"{key.replace('_', ' ')} {n}" for key, n in given if type(n) is int and n]
    return [", ".join(told)] if told else []


def _cost(event: Event) -> list[str]:
    return [markup.money(event.cost)] if event.cost else []


def _time(event: Event) -> str:
    return stamp(round(event.moment * MICROS))[:19].replace("T", " ")


def _parts(message: Json, names: dict[str, str]) -> Iterator[Part]:
    """Yield what a message of any shape says; ``names`` of the tools by the ids of calls, so far."""
    for key in _REASONING:
        if isinstance(message.get(key), str) and message[key]:
            yield Part(message[key], "Thinking")
    for block in blocks_of(message):
        yield from _part(block, names)


def _part(block: Json, names: dict[str, str]) -> Iterator[Part]:
    kind, file = block.get("type"), file_of(block)
    if kind in TEXTS:
        if block.get("text"):
            yield Part(str(block["text"]))
    elif kind in THOUGHTS:
        yield Part(summary_of(block) or "(encrypted)", "Thinking")
    elif kind == "tool_use":
        name = str(block.get("name"))
        names[str(block.get("id"))] = name
        yield Part(_written(block.get("input")), f"Call {name}", "json")
    elif kind == "tool_result":
        failed = ", failed" if block.get("is_error") else ""
        id = str(block.get("tool_use_id") or "")
        title = f"Result of {names.get(id) or id or 'a call'}{failed}"
        content = block.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": _written(content)}]
        shown = [each._replace(title=title) for part in parts for each in _part(part, names)]
        yield from shown or [Part("", title)]
    elif kind == "image":
        url = image_url(block)
        named = next((str(block[key]) for key in _NAMES if block.get(key)), None)
        where = named if url.startswith("data:") else url or named
        words = left_out("image", block.get("media_type"), block.get("base64"), where)
        yield Part(words, image=url if _SHOWN.fullmatch(url) else "")
    elif file is not None:
        yield Part(left_out(str(kind), *file), str(kind).capitalize())
    else:
        yield Part(_written(block), str(kind), "json")


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, indent=2, ensure_ascii=False)


class _Page(NamedTuple):
    """A session's page: its title, its facts, what stands before the conversation, and that."""

    title: str
    facts: list[tuple[str, str]]
    before: list[Part]
    turns: list[Turn]


def _page(session: Session) -> _Page:
    info, metadata = session.info, session.metadata
    title = given if isinstance(given := metadata.get("title"), str) and given.strip() else ""
    facts = {
        "Session": session.id if title else "",
        "Status": info.status,
        "Agent": info.agent_label or info.agent_name,
        "From": metadata.get("source"),
        "Forked from": info.parent_id,
        "Begun": _time(session.event(1)),
        "Cost": markup.money(session.total_cost) if session.total_cost else "",
    }
    others = {key: value for key, value in metadata.items() if key not in ("title", "source")}
    before = [
        Part(_written(value), name, "" if isinstance(value, str) else "json")
        for name, value in (
            ("System prompt", session.get(SYSTEM)),
            ("Task", session.task),
            ("Memo", session.memo),
            ("Metadata", others),
        )
        if value
    ]
    return _Page(
        title or session.id,
        [(key, str(each)) for key, each in facts.items() if each],
        before,
        _turns(session),
    )


# HTML.


def html_of(session: Session) -> str:
    """Return a session as an HTML page."""
    page = _page(session)
    header = [
        markup.element("div", markup.element("h1", page.title), class_="title"),
        markup.facts(page.facts),
        markup.element("div", [_html(part) for part in page.before], class_="more-of-it"),
    ]
    talk = markup.element("ol", [_turn(turn) for turn in page.turns], class_="talk")
    return markup.page(page.title, "Session", header, [("", talk)], foot="Made by harnpy.", more_style=_STYLE)


#: How much of what is folded stands beside its title, in characters.
_BEGIN = 60
_STYLE = "main { margin-top: 2rem; } .said img { max-width: 100%; border-radius: 6px; }"


def html_of_message(message: Json) -> Markup:
    """Return what a message of any shape says, as an item of a list of the class ``talk``."""
    return _turn(said_by(message, {}))


def _turn(turn: Turn) -> Markup:
    role = turn.who.partition(" ")[0].lower()
    kind = role if role in ("user", "assistant", "tool") else "system"
    said = [_html(part) for part in turn.parts]
    notes = markup.element(
        "p", " · ".join(filter(None, turn.notes)) or ("" if said else "(nothing)"), class_="note"
    )
    inside = markup.element("div", said, notes, class_="said")
    return markup.element(
        "li", markup.element("span", turn.who, class_="role"), inside, class_=f"turn {kind}"
    )


def _html(part: Part) -> Markup:
    if part.image:
        shown = markup.element("img", src=part.image, alt=part.text)
    else:
        shown = markup.code(part.text) if part.language or part.title else markup.prose(part.text)
    begin = " ".join(part.text[: 2 * _BEGIN].split())[:_BEGIN]
    return markup.folded(part.title, shown, note=None if part.image else begin) if part.title else shown


# Markdown. What was said is quoted, line by line: its headings, lists and fences end with the quote.


def markdown_of(session: Session) -> str:
    """Return a session as a Markdown document."""
    page = _page(session)
    document = [f"# {_inline(page.title)}", ""]
    document += [f"- {name}: {_inline(value)}" for name, value in page.facts]
    quoted: set[int] = set()
    for part in page.before:
        document += ["", *_folded(part)]
    for turn in page.turns:
        document += ["", f"## {_inline(turn.who)}", "", f"*{_inline(' · '.join(filter(None, turn.notes)))}*"]
        for part in turn.parts:
            made = _folded(part) if part.title else [f"> {line}" for line in _LINE_ENDS.split(part.text)]
            document += ["", *made]
            quoted |= set() if part.title else set(range(len(document) - len(made), len(document)))
    _disarm(document, quoted)
    return ("\n".join(document) + "\n").encode("utf-8", "replace").decode()


#: Characters that mean something within a line of Markdown.
_MARKS = re.compile(r"[\\`*_\[\]<>&~|]")
_LINE_ENDS = re.compile(r"\r\n|\r|\n")


def _inline(text: str) -> str:
    """Return a text as one line of plain words."""
    return _MARKS.sub(lambda mark: f"\\{mark[0]}", " ".join(_LINE_ENDS.split(text)))


def _folded(part: Part) -> list[str]:
    """Return the lines of a part that opens; its text is code, in a fence that is longer than any in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", part.text)), default=0))
    title = markup.text(" ".join(_LINE_ENDS.split(part.title)))
    body = [f"{fence}{part.language}", *_LINE_ENDS.split(part.text), fence]
    return ["<details>", f"<summary>{title}</summary>", "", *body, "", "</details>"]


#: What begins HTML, or an image, and how it is written as a text.
_ARMED = re.compile(r"<(?=[A-Za-z/!?])|!(?=\[)")
_AS_TEXT = {"<": "&lt;", "!": "&#33;"}


def _disarm(document: list[str], quoted: set[int]) -> None:
    """Make texts of the HTML and the images in quoted lines, and of addresses that other texts could use."""
    from markdown_it import MarkdownIt

    while True:
        found: Json = {}
        tokens = MarkdownIt("commonmark").parse("\n".join(document), found)
        armed = {line for token in tokens if token.map and _is_armed(token) for line in range(*token.map)}
        if not armed & quoted and not found.get("references"):
            return
        for line in armed & quoted:
            document[line] = _ARMED.sub(lambda mark: _AS_TEXT[mark[0]], document[line])
        for line in quoted if found.get("references") else ():
            document[line] = document[line].replace("]:", "]&#58;")


def _is_armed(token: Token) -> bool:
    children = token.children or ()
    return token.type == "html_block" or any(each.type in ("html_inline", "image") for each in children)
