"""What was said in a session, as HTML: entries with their texts, thoughts, tool calls and images.

Nothing that a model, a tool or a person said can be more than text: Markdown is read without HTML, links lead
to the web or to mail, and pictures have their data in the page.
"""

from __future__ import annotations

from collections import deque
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from harnpy.formats import markup
from harnpy.formats.markup import Markup, element, joined
from harnpy.serve.portal.shell import address, time
from harnpy.session import events as kinds
from harnpy.session.transfer.pages import said_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token
    from markdown_it.utils import OptionsDict

    from harnpy.client import types as t
    from harnpy.session.transfer.pages import Part

#: How many entries a page has.
PAGE = 200
#: How much of a text is shown, and how much of what is folded stands beside its title, in characters.
_MOST, _BEGIN = 20_000, 80
#: The form that the buttons of all entries belong to.
ACTS = "acts"


class Reader(NamedTuple):
    """Who reads a session: what is theirs to do with its entries, and the tools by the ids of their calls."""

    session: str
    may_write: bool
    names: dict[str, str]
    #: What stands before the numbers of entries in their ids.
    prefix: str = "e"


def entries(shown: Iterable[t.Entry], reader: Reader) -> Markup:
    """Return entries as items of a list of the class ``talk``."""
    return joined([_entry(entry, reader) for entry in shown])


#: What a step leaves in the log beside the message that it makes, which comes behind.
STEP_TYPES = (kinds.STEP_COMPLETED, kinds.TRANSCRIPT_EVENT)
_THOUGHT = "private_reasoning"


def is_of_step(event: t.Event) -> bool:
    """Return whether it says what a step has cost, used or thought."""
    return event.type == kinds.STEP_COMPLETED or event.data.get("kind") == _THOUGHT


def with_steps(said: Sequence[t.Entry], steps: Iterable[t.Event]) -> list[t.Entry]:
    """Return entries, those of assistants with what the steps before them have cost, used and thought.

    ``steps`` are events of `STEP_TYPES`, in order.
    """
    left = deque(steps)
    found: list[t.Entry] = []
    for entry in said:
        before: list[t.Event] = []
        while left and left[0].seq < entry.seq:
            before.append(left.popleft())
        found.append(_with(entry, before) if entry.role == "assistant" else entry)
    return found


def _with(entry: t.Entry, steps: Sequence[t.Event]) -> t.Entry:
    done = [step for step in steps if step.type == kinds.STEP_COMPLETED]
    thoughts = [str(step.data.get("text") or "") for step in steps if step.data.get("kind") == _THOUGHT]
    usage = done[-1].data.get("usage") if done else None
    return replace(
        entry,
        cost=entry.cost or (done[-1].cost if done else None),
        reasoning=entry.reasoning or "\n\n".join(filter(None, thoughts)) or None,
        metadata={"usage": usage, **(entry.metadata or {})},
    )


def learn(seen: Iterable[t.Entry], names: dict[str, str]) -> None:
    """Learn the names of the tools that entries call."""
    for entry in seen:
        said_by(_message(entry), names)


def _message(entry: t.Entry) -> dict[str, Any]:
    parts = {
        "role": entry.role,
        "content": entry.content,
        "name": entry.name,
        "tool_calls": entry.tool_calls,
        "tool_call_id": entry.tool_call_id,
        "reasoning": entry.reasoning,
    }
    return {key: value for key, value in parts.items() if value is not None}


def _entry(entry: t.Entry, reader: Reader) -> Markup:
    turn = said_by(_message(entry), reader.names)
    role = turn.who.partition(" ")[0].lower()
    kind = role if role in ("user", "assistant", "tool") else "system"
    id = f"{reader.prefix}{entry.seq}"
    shown: list[Markup] = []
    # What a tool returned may be several pieces; two calls of one tool are two all the same.
    for title, parts in groupby(turn.parts, lambda part: part.title):
        if title.startswith("Result"):
            shown.append(_folded(title, list(parts), entry, reader))
        else:
            shown += [
                _folded(title, [part], entry, reader) if title else _part(part, entry, reader, kind)
                for part in parts
            ]
    head = [
        element("h3", turn.who, class_="role"),
        element("a", time(entry.time, is_short=True) or f"#{entry.seq}", href=f"#{id}", class_="when"),
        [element("span", note, class_="note") for note in _notes(entry) if note],
    ]
    return element(
        "li",
        element("div", head, class_="line"),
        element("div", shown or element("p", "(nothing)", class_="note"), class_="said"),
        _acts(entry, reader) if reader.may_write else None,
        class_=f"turn {kind}",
        id=id,
        tabindex="-1",
    )


def _notes(entry: t.Entry) -> list[str]:
    live = (entry.metadata or {}).get("live_session")
    client = live.get("client_id") if isinstance(live, dict) else None
    return [
        f"by {client}" if isinstance(client, str) else "",
        ", ".join(_tokens((entry.metadata or {}).get("usage"))),
        markup.money(entry.cost) if entry.cost else "",
    ]


def _tokens(usage: Any) -> Iterator[str]:
    known = usage if isinstance(usage, dict) else {}
    for name, word in (("input_tokens", "in"), ("output_tokens", "out")):
        if type(known.get(name)) is int and known[name]:
            yield f"{markup.count(known[name])} {word}"


def _acts(entry: t.Entry, reader: Reader) -> Markup:
    """The buttons of an entry, which belong to one form for all."""
    shown = [
        element(
            "button", label, form=ACTS, formaction=address("sessions", reader.session, verb), name="at",
            value=str(entry.seq), aria_label=f"{label} here, at {entry.seq}", title=hint,
        )
        for verb, label, hint in (
            ("fork", "Fork", "Go on from here in a session of its own"),
            ("rewind", "Rewind", "Go on from here; what came behind stays in the log"),
        )
    ]  # fmt: skip
    return element("div", shown, class_="acts")


def _part(part: Part, entry: t.Entry, reader: Reader, kind: str) -> Markup:
    """Return a piece of what was said: what an assistant says is Markdown, all else is as it was typed."""
    if part.image:
        return element("img", src=part.image, alt=part.text)
    text = part.text[:_MOST]
    if len(part.text) > _MOST:
        return joined(_plain(text), _more(len(part.text), entry, reader))
    if kind == "code":
        return markup.code(text)
    return markdown(text) if kind == "assistant" else _plain(text)


def _folded(title: str, parts: Sequence[Part], entry: t.Entry, reader: Reader) -> Markup:
    """Return what is folded: a thought, a call of a tool, its result. With a picture it is open."""
    what, _, name = title.partition(" ")
    is_tool = what in ("Call", "Result")
    kind = "plain" if title == "Thinking" else "code"
    begin = " ".join(parts[0].text[: 2 * _BEGIN].split())[:_BEGIN]
    summary = element(
        "summary",
        element("span", what if is_tool else title, class_="what"),
        markup.mono(name.removeprefix("of ")) if is_tool else None,
        element("span", begin, class_="begin"),
    )
    inside = [_part(part, entry, reader, kind) for part in parts]
    return element(
        "details",
        summary,
        element("div", inside, class_="inside"),
        class_="tool" if is_tool else "thinking",
        open=any(part.image for part in parts),
    )


def _plain(text: str) -> Markup:
    return element("div", text, class_="plain")


def _more(length: int, entry: t.Entry, reader: Reader) -> Markup:
    event = address("v1", "sessions", reader.session, "events", after=entry.seq - 1, limit=1)
    link = element("a", f"all {markup.count(length)} characters", href=event)
    return element("p", f"The first {markup.count(_MOST)} are shown: ", link, class_="note")


# Markdown.


def markdown(said: str) -> Markup:
    """Return a text of Markdown: no HTML of its own, no pictures, no heading of this page."""
    return element("div", Markup(_parser().render(markup.writable(said))), class_="markdown")


#: What links may lead to.
_WAYS = ("https://", "http://", "mailto:")


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    parser.validateLink = _leads_out  # type: ignore[method-assign]
    parser.core.ruler.push("plain", _made_plain)
    parser.add_render_rule("link_open", _link)
    parser.add_render_rule("table_open", _wide)
    parser.add_render_rule("table_close", _wide_end)
    return parser


def _leads_out(url: str) -> bool:
    return url.lower().startswith(_WAYS)


def _made_plain(state: StateCore) -> None:
    """Make paragraphs of headings, as the page's outline is the page's, and classes of styles."""
    for token in state.tokens:
        if token.type == "heading_open":
            token.attrSet("class", "heading")
        if token.type in ("heading_open", "heading_close"):
            token.tag = "p"
        style = token.attrs.pop("style", None)
        if style == "text-align:right":
            token.attrSet("class", "number")


def _link(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: dict[str, Any]
) -> str:
    tokens[at].attrSet("rel", "noopener noreferrer")
    tokens[at].attrSet("target", "_blank")
    return renderer.renderToken(tokens, at, options, env)


def _wide(*_: Any) -> str:
    return '<div class="wide" tabindex="0" role="group" aria-label="Table"><table>'


def _wide_end(*_: Any) -> str:
    return "</table></div>"
