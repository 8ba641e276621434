"""The pages of sessions: all of them as trees, one with its transcript, two side by side, what a search found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.formats import markup
from harnpy.formats.markup import Markup, element, joined
from harnpy.serve.portal.shell import address, button, crumbs, field, may, page, time
from harnpy.serve.portal.transcript import ACTS, Reader, entries
from harnpy.world.ids import RealIds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from starlette.responses import HTMLResponse

    from harnpy.client import types as t
    from harnpy.formats.markup import Child
    from harnpy.serve.service import Caller, Service

#: How many entries a page has, and how many events are first looked through for them.
PAGE, _SPAN = 200, 400


def title_of(info: t.Info) -> str:
    """Return what a session is called: its label, the title that it was given, else its id."""
    named = info.metadata.get("title")
    return info.label or (named if isinstance(named, str) and named.strip() else info.id)


def state_of(info: t.Info) -> Markup:
    return markup.pill("running" if info.execution == "running" else info.status)

# All sessions.


_STATUSES = ("active", "paused", "completed", "failed")
#: How many steps to the right a tree goes.
_DEEPEST = 8


async def sessions_page(service: Service, caller: Caller, query: Mapping[str, str]) -> HTMLResponse:
    status, agent, after = query.get("status"), query.get("agent"), query.get("after")
    found = await service.sessions(caller, status=status, agent=agent, limit=100, after=after)
    more = address(status=status, agent=agent, after=found.next) if found.next else None
    ways = [
        element("a", name, href=address(status=each, agent=agent), aria_current="true" if each == status else None)
        for name, each in (("All", None), *((each.capitalize(), each) for each in _STATUSES))
    ]  # fmt: skip
    return page(
        "Sessions",
        element("div", element("h1", "Sessions"), element("nav", ways, aria_label="By status", class_="ways"), class_="title"),
        await _new_session(service, caller) if may(caller, "write") else None,
        tree(found.sessions, await _controllers(service, caller, found.sessions)) if found.sessions else element("p", "There is no session here.", class_="empty"),
        element("p", element("a", "More", href=more), class_="more") if more else None,
        caller=caller,
        here="Sessions",
        layout="wide-page",
    )  # fmt: skip


async def _new_session(service: Service, caller: Caller) -> Markup:
    agents = (await service.agents(caller)).agents
    choice = element(
        "p",
        element("label", "Agent", for_="agent"),
        element(
            "select",
            [element("option", agent.name, value=agent.name) for agent in agents],
            id="agent",
            name="agent",
        ),
        class_="field",
    )
    form = element(
        "form",
        choice if agents else None,
        field("label", "Label", autocomplete="off", placeholder="what it is about"),
        element("button", "Begin", class_="first"),
        method="post",
        action="/sessions",
        class_="inline",
    )
    return element("details", element("summary", "New session"), form, class_="new")


#: Seconds since a session's last change in which somebody may be attached: who is attached says so all the
#: time. And how many sessions are asked for it.
_LATELY, _ASKED = 120, 20


async def _controllers(service: Service, caller: Caller, listed: Sequence[t.Info]) -> dict[str, str]:
    """Return who is attached to the sessions that have changed lately, as a text."""
    newest = max((at for info in listed if (at := markup.moment(info.updated_at)) is not None), default=0.0)
    lately = [info for info in listed if (markup.moment(info.updated_at) or 0.0) > newest - 1000 * _LATELY]
    found: dict[str, str] = {}
    for info in lately[:_ASKED]:
        clients = await service.clients(caller, info.id)
        there = [client.client_id for client in clients.clients if not client.stale]
        others = len(there) - (clients.controller in there)
        who = [clients.controller] if clients.controller in there else []
        found[info.id] = ", ".join([*filter(None, who), *([f"{others} watching"] if others else [])])
    return found


def tree(listed: Sequence[t.Info], attached: Mapping[str, str]) -> Markup:
    """Show sessions with their forks indented below them, in the order that they have."""
    known = {info.id for info in listed}
    below: dict[str | None, list[t.Info]] = {}
    for info in listed:
        below.setdefault(info.parent if info.parent in known else None, []).append(info)
    heads = [element("span", name, class_=kind) for name, kind in (("Session", ""), *_FIGURES)]
    head = element("div", heads, class_="row heads", aria_hidden="true")
    return element("div", head, _branches(below, attached, None, 0), class_="tree")


_FIGURES = (("Attached", "who"), ("Cost", "number"), ("Changed", "when"))


def _branches(
    below: Mapping[str | None, list[t.Info]], attached: Mapping[str, str], parent: str | None, depth: int
) -> Markup:
    """The sessions below a parent; those below the deepest follow it, instead of going further right."""
    items: list[Markup] = []
    waiting = below.get(parent, ())[::-1]
    while waiting:
        info = waiting.pop()
        deeper = depth < _DEEPEST and info.id in below
        if depth >= _DEEPEST:
            waiting += below.get(info.id, ())[::-1]
        items.append(element("li", _row(info, attached.get(info.id)), _branches(below, attached, info.id, depth + 1) if deeper else None))
    return element("ul", items, class_="bare")


def _row(info: t.Info, attached: str | None) -> Markup:
    name = element(
        "span",
        element("a", title_of(info), href=address("sessions", info.id)),
        state_of(info),
        markup.tag(info.agent) if info.agent else None,
        element("small", f"forked at {info.fork_seq}") if info.parent else None,
        class_="name",
    )  # fmt: skip
    figures = [attached, markup.money(info.cost), time(info.updated_at)]
    cells = [
        element("span", value, class_=kind)
        for (_, kind), value in zip(_FIGURES, figures, strict=True)
    ]
    return element("div", name, cells, class_="row")


# One session.


async def stretch(service: Service, caller: Caller, id: str, before: int) -> tuple[list[t.Entry], bool]:
    """Return the last entries before the event of that number, and whether there may be earlier ones."""
    found: list[t.Entry] = []
    span = _SPAN
    while before > 1 and len(found) < PAGE:
        begin = max(0, before - 1 - span)
        found = [*await _between(service, caller, id, begin, before), *found]
        before, span = begin + 1, span * 2
    return found[-PAGE:], before > 1 or len(found) > PAGE


async def _between(service: Service, caller: Caller, id: str, after: int, before: int) -> list[t.Entry]:
    found: list[t.Entry] = []
    at: int | None = after
    while at is not None and at < before - 1:
        history = await service.history(caller, id, after=at, limit=PAGE)
        found += [entry for entry in history.entries if entry.seq < before]
        at = history.next
    return found


def new_client() -> str:
    """Return a name for a page that may take control."""
    return f"web-{RealIds().new()[-6:]}"


async def session_page(service: Service, caller: Caller, id: str, query: Mapping[str, str]) -> HTMLResponse:
    session = await service.session(caller, id)
    before = _number(query.get("before"))
    client = query.get("client") or new_client()
    shown, earlier = await stretch(service, caller, id, before or session.seq + 1)
    reader = Reader(id, may(caller, "write"), {})
    live = None if before else address("sessions", id, "live", after=session.seq, client=client)
    talk = element("ol", entries(shown, reader), class_="talk", id="entries")
    regions = regions_of(session, caller, client)
    return page(
        title_of(session),
        crumbs(("Sessions", "/"), *((title_of(info), address("sessions", info.id)) for info in session.lineage)),
        element("div", element("h1", title_of(session)), regions["state"], class_="title"),
        regions["facts"],
        element("form", element("input", type="hidden", name="client", value=client), method="post", id=ACTS),
        element(
            "div",
            element("aside", regions["people"], regions["branches"], _about(session), aria_label="About the session"),
            element(
                "section",
                element("h2", "Transcript", class_="unseen"),
                _earlier(id, shown, earlier),
                element("div", talk, role="log", aria_label="Transcript", aria_live="polite"),
                None if before else _draft(),
                _later(id) if before else _dock(regions),
                class_="conversation",
                data_live=live,
            ),
            class_="split",
        ),
        caller=caller,
        here="Sessions",
        layout="session",
    )  # fmt: skip


def _number(given: str | None) -> int | None:
    return int(given) if given and given.isascii() and given.isdigit() and len(given) < 16 else None


def _earlier(id: str, shown: Sequence[t.Entry], are_there: bool) -> Markup:
    href = address("sessions", id, before=shown[0].seq if shown else 1)
    link = element("a", "Earlier entries", href=href, rel="prev")
    return element("p", link, class_="more", id="earlier", hidden=not are_there)


def _draft() -> Markup:
    """The place of the answer that is being made. It is read aloud once it is an entry."""
    who = element("div", element("span", "Assistant", class_="role"), class_="line")
    said = element("div", element("div", class_="plain"), class_="said")
    return element("div", who, said, id="draft", class_="turn assistant", aria_hidden="true", hidden=True)


def _later(id: str) -> Markup:
    return element("p", element("a", "To the newest entries", href=address("sessions", id)), class_="more")


def _dock(regions: Mapping[str, Markup]) -> Markup:
    return element(
        "div",
        element("button", "New entries ↓", id="newer", type="button", hidden=True),
        regions["requests"],
        element("p", id="trouble", role="alert"),
        regions["control"],
        regions["running"],
        class_="dock",
    )


# What of a session's page changes while somebody looks at it, but for what is said: regions by their ids.


def regions_of(session: t.Session, caller: Caller, client: str) -> dict[str, Markup]:
    """Return the regions for a page that is called ``client`` where it takes control."""
    made: dict[str, tuple[str, Child]] = {
        "state": ("span", state_of(session)),
        "facts": ("div", _facts(session)),
        "requests": ("div", _requests(session.requests, may(caller, "approve"))),
        "control": ("div", _control(session, client) if may(caller, "write") else _watching(session)),
        "running": ("div", _running(session) if may(caller, "write") else None),
        "people": ("section", _people(session, client)),
        "branches": ("section", _family(session)),
    }
    return {
        id: element(name, inside, id=id, aria_live="polite" if id == "requests" else None)
        for id, (name, inside) in made.items()
    }


def _facts(session: t.Session) -> Markup:
    return markup.facts(
        [
            ("Cost", markup.money(session.cost)),
            ("Messages", markup.count(session.messages)),
            ("Agent", session.agent),
            ("Changed", time(session.updated_at)),
        ]
    )


def request_card(request: t.Request, may_answer: bool) -> Markup:
    """Show what waits for a person, with a form for the reply."""
    action = address("requests", request.id)
    is_approval = request.kind == "approval"
    said: list[Child] = [
        element("h3", "Approval wanted" if is_approval else "Question"),
        element("p", request.prompt, class_="plain"),
        element("p", markup.mono(request.tool), class_="note") if request.tool else None,
        markup.code(request.args) if request.args else None,
    ]
    id = f"answer-{request.id}"
    if not may_answer:
        said.append(element("p", "Your token may not answer it.", class_="note"))
    elif is_approval:
        reason = element("input", id=id, name="reason", placeholder="Reason, if you like", autocomplete="off")
        said.append(
            element(
                "form",
                element("label", "Reason", for_=id, class_="unseen"),
                reason,
                element("button", "Approve", name="decision", value="allow", class_="first"),
                element("button", "Refuse", name="decision", value="deny", class_="danger"),
                method="post",
                action=action,
                class_="inline live",
            )
        )
    else:
        said.append(
            element(
                "form",
                element("label", "Answer", for_=id, class_="unseen"),
                element("input", id=id, name="answer", required=True, placeholder="Your answer", autocomplete="off"),
                element("button", "Answer", class_="first"),
                method="post",
                action=action,
                class_="inline live",
            )
        )  # fmt: skip
    return element("article", said, class_="card slim request")


def _requests(waiting: Iterable[t.Request], may_answer: bool) -> Markup:
    return joined([request_card(request, may_answer) for request in waiting])


def controller_of(session: t.Session) -> str | None:
    """Return who is in control, unless it wasn't heard of for too long."""
    stale = {client.client_id for client in session.clients if client.stale}
    return None if session.controller in stale else session.controller


def _watching(session: t.Session) -> Markup:
    who = controller_of(session)
    return element("p", f"{who} is in control." if who else "Nobody is in control.", class_="note")


def _control(session: t.Session, client: str) -> Child:
    who = controller_of(session)
    mine = who == client
    take = "Take control" if who is None else "Take over"
    told = (
        joined(element("b", "You"), f" are in control, as {client}.")
        if mine
        else joined(element("b", who), " is in control.") if who else "Nobody is in control."
    )  # fmt: skip
    verb = ("release", "Release control") if mine else ("control", take)
    line = element(
        "div",
        element("p", told, class_="note"),
        element(
            "form",
            element("input", type="hidden", name="client", value=client),
            element("button", verb[1], id=f"{verb[0]}-button", aria_keyshortcuts=None if mine else "c"),
            method="post",
            action=address("sessions", session.id, verb[0]),
            class_="live",
        ),
        class_="line",
    )
    return joined(line, None if who and not mine else _composer(session, client if mine else ""), _beat(mine, session, client))


def _beat(mine: bool, session: t.Session, client: str) -> Markup | None:
    """A sign for the script that this page's client has to be kept alive."""
    if not mine:
        return None
    return element("data", value=client, id="beat", data_to=address("v1", "sessions", session.id, "heartbeat"))


def _composer(session: t.Session, client: str) -> Markup:
    return element(
        "form",
        element("input", type="hidden", name="client", value=client) if client else None,
        element("input", type="hidden", name="key", value=f"{new_client()}-{session.seq}"),
        element("label", "Prompt", for_="prompt", class_="unseen"),
        element(
            "textarea", id="prompt", name="prompt", rows="2", required=True,
            placeholder="Say something. Ctrl+Enter sends.",
        ),
        element("button", "Send", class_="first"),
        method="post",
        action=address("sessions", session.id, "send"),
        class_="live composer",
    )  # fmt: skip


def _running(session: t.Session) -> Markup | None:
    if session.running is None:
        return None
    stop = button("Cancel", address("sessions", session.id, "cancel"), kind="danger")
    return element("div", element("p", markup.pill("running"), class_="note"), stop, class_="line")


def _people(session: t.Session, client: str) -> Markup:
    items = [
        element(
            "li",
            element("span", each.client_id, element("small", " you") if each.client_id == client else None),
            markup.tag("in control") if each.client_id == session.controller else markup.tag(each.mode),
            element("small", "silent since ", time(each.last_seen_at)) if each.stale else None,
        )
        for each in session.clients
    ]
    shown = element("ul", items, class_="bare people") if items else element("p", "Nobody.", class_="note")
    return joined(element("h2", "Attached"), shown)


def _family(session: t.Session) -> Markup | None:
    """Show where a session comes from and what was forked from it, each to be compared with it."""
    own = element("li", element("b", title_of(session)), element("small", " this one"))
    above = [_relative(session, info) for info in session.lineage]
    below = [_relative(session, info) for info in session.children]
    if not above and not below:
        return None
    inner = element("ul", [own, *([element("li", element("ul", below))] if below else [])])
    for line in reversed(above):
        inner = element("ul", line, element("li", inner))
    return joined(element("h2", "Branches"), element("div", inner, class_="family"))


def _relative(session: t.Session, info: t.Info) -> Markup:
    return element(
        "li",
        element("a", title_of(info), href=address("sessions", info.id)),
        " ",
        element(
            "a", "compare", href=address("sessions", session.id, "compare", info.id), class_="way",
            aria_label=f"Compare with {title_of(info)}",
        ),
    )  # fmt: skip


def _about(session: t.Session) -> Markup:
    others = {key: value for key, value in session.metadata.items() if key != "title"}
    facts = [
        ("Session", markup.mono(session.id)),
        ("Owner", session.owner),
        ("Begun", time(session.created_at)),
        ("Events", markup.count(session.seq)),
    ]
    shown = element("div", markup.facts(facts), class_="small")
    return element(
        "section",
        element("h2", "About"),
        shown,
        markup.folded("Metadata", markup.value(others)) if others else None,
    )


# Two sessions, and what a search found.


async def compare_page(service: Service, caller: Caller, id: str, other: str) -> HTMLResponse:
    left, right = await service.session(caller, id), await service.session(caller, other)
    found = await service.compare(caller, id, other)
    where = f"Both have the first {markup.plural(found.common_seq, 'event')}." if found.common_seq else "They have nothing in common."
    sides = [
        _side(info, shown, prefix)
        for info, shown, prefix in ((left, found.left, "left-"), (right, found.right, "right-"))
    ]
    return page(
        f"{title_of(left)} and {title_of(right)}",
        crumbs(("Sessions", "/"), *((title_of(info), address("sessions", info.id)) for info in (left, right))),
        element("h1", "Side by side"),
        element("p", where, class_="note"),
        element("div", sides, class_="sides"),
        caller=caller,
        here="Sessions",
        layout="wide-page",
    )


def _side(info: t.Info, shown: Sequence[t.Entry], prefix: str) -> Markup:
    talk = element("ol", entries(shown, Reader(info.id, False, {}, prefix)), class_="talk")
    return element(
        "section",
        element(
            "h2", element("a", title_of(info), href=address("sessions", info.id)), " ", state_of(info),
            element("span", markup.apart(markup.plural(len(shown), "message"), markup.money(info.cost)), class_="note"),
        ),
        talk if shown else element("p", "Nothing behind that.", class_="empty"),
    )  # fmt: skip


async def search_page(service: Service, caller: Caller, query: Mapping[str, str]) -> HTMLResponse:
    sought = query.get("q", "").strip()
    hits = (await service.search(caller, sought)).hits if sought else []
    items = [
        element(
            "li",
            element(
                "p",
                element("a", hit.session, href=address("sessions", hit.session, before=hit.seq + 1) + f"#e{hit.seq}"),
                element("span", f"{hit.type.replace('_', ' ')} {hit.seq}", class_="note"),
            ),
            element("p", _marked(hit.text, sought), class_="plain"),
        )
        for hit in hits
    ]  # fmt: skip
    nothing = "Nothing was said like that." if sought else "Type what you look for into the field at the top."
    return page(
        f"Search: {sought}" if sought else "Search",
        element("h1", joined("What was said about ", element("q", sought)) if sought else "Search"),
        element("p", markup.plural(len(hits), "hit"), class_="note") if hits else None,
        element("ol", items, class_="bare hits") if items else element("p", nothing, class_="empty"),
        caller=caller,
        query=sought,
    )


_AROUND = 240


def _marked(said: str, sought: str) -> Markup:
    """Show the words around the first place where a text has what was sought."""
    at = said.lower().find(sought.lower())
    if at < 0 or len(said.lower()) != len(said):
        return joined(said[: 2 * _AROUND], "…" if len(said) > 2 * _AROUND else None)
    begin, end = max(0, at - _AROUND), at + len(sought)
    return joined(
        "…" if begin else None,
        said[begin:at],
        element("mark", said[at:end]),
        said[end : end + _AROUND],
        "…" if len(said) > end + _AROUND else None,
    )
