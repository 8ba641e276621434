"""The pages of many sessions: all of them as trees, two side by side, what a search found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.formats import markup
from harnpy.formats.markup import Markup, element, joined
from harnpy.serve.portal.shell import address, crumbs, field, page, tabs, time
from harnpy.serve.portal.transcript import PAGE, Reader, entries, learn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.responses import HTMLResponse

    from harnpy.client import types as t
    from harnpy.serve.service import Caller, Service


def title_of(info: t.Info) -> str:
    """Return what a session is called: its label, the title that it was given, else its id."""
    named = info.metadata.get("title")
    return info.label or (named if isinstance(named, str) and named.strip() else info.id)


def state_of(info: t.Info) -> Markup:
    return markup.pill("running" if info.execution == "running" else info.status)


def link_to(info: t.Info) -> Markup:
    return element("a", title_of(info), href=address("sessions", info.id))


# All sessions.


_STATUSES = ("active", "paused", "completed", "failed")
#: How many steps to the right a tree goes.
_DEEPEST = 8
#: Seconds before the newest change within which somebody may be attached, as who is attached says so all the
#: time; and how many sessions are asked for it.
_LATELY, _ASKED = 120, 20


async def sessions_page(service: Service, caller: Caller, query: Mapping[str, str]) -> HTMLResponse:
    status, agent, after = query.get("status"), query.get("agent"), query.get("after")
    found = await service.sessions(caller, status=status, agent=agent, limit=100, after=after)
    listed = found.sessions
    empty = element("p", "There is no session here.", class_="empty")
    return page(
        "Sessions",
        tabs("Sessions", status, _STATUSES, lambda each: address(status=each, agent=agent)),
        await _waiting(service, caller, listed),
        await _new_session(service, caller) if caller.may("write") else None,
        tree(listed, await _attached(service, caller, listed)) if listed else empty,
        _more(address(status=status, agent=agent, after=found.next)) if found.next else None,
        caller=caller,
        here="Sessions",
    )


def _more(href: str) -> Markup:
    return element("p", element("a", "More", href=href), class_="more")


async def _waiting(service: Service, caller: Caller, listed: Sequence[t.Info]) -> Markup | None:
    """Show what waits for a person, with links to where it can be answered."""
    waiting = (await service.requests(caller)).requests
    if not waiting:
        return None
    titles = {info.id: title_of(info) for info in listed}
    items = []
    for request in waiting:
        at = request.session or ""
        kind, id = ("sessions", at) if at else ("runs", request.run or "")
        link = element("a", titles.get(at, id), href=address(kind, id)) if id else None
        items.append(joined(link, ": " if link else None, request.prompt))
    head = element("strong", f"{markup.plural(len(waiting), 'request')} for you")
    return markup.callout(markup.WAITING, head, markup.listed(items))


async def _new_session(service: Service, caller: Caller) -> Markup:
    agents = (await service.agents(caller)).agents
    options = [element("option", agent.name, value=agent.name) for agent in agents]
    choice = element(
        "p",
        element("label", "Agent", for_="agent"),
        element("select", options, id="agent", name="agent"),
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


async def _attached(service: Service, caller: Caller, listed: Sequence[t.Info]) -> dict[str, str]:
    """Return who is attached to the sessions that have changed lately, as texts."""
    changed = {info.id: markup.moment(info.updated_at) or 0.0 for info in listed}
    begin = max(changed.values(), default=0.0) - 1000 * _LATELY
    found: dict[str, str] = {}
    for id in [id for id, at in changed.items() if at >= begin][:_ASKED]:
        known = await service.clients(caller, id)
        there = {client.client_id: client for client in known.clients if not client.stale}
        controller = there.get(known.controller or "")
        watching = len(there) - (controller is not None)
        names = [controller.principal or controller.client_id] if controller is not None else []
        names += [f"{watching} watching"] if watching else []
        found[id] = ", ".join(filter(None, names))
    return found


_FIGURES = (("Attached", "who"), ("Cost", "number"), ("Changed", "when"))


def tree(listed: Sequence[t.Info], attached: Mapping[str, str]) -> Markup:
    """Show sessions with their forks indented below them, in the order that they have."""
    known = {info.id for info in listed}
    below: dict[str | None, list[t.Info]] = {}
    for info in listed:
        below.setdefault(info.parent if info.parent in known else None, []).append(info)
    heads = [element("span", name, class_=kind) for name, kind in (("Session", None), *_FIGURES)]
    head = element("div", heads, class_="row heads", aria_hidden="true")
    return element("div", head, _branches(below, attached, None, 0), class_="tree")


def _branches(
    below: Mapping[str | None, list[t.Info]], attached: Mapping[str, str], parent: str | None, depth: int
) -> Markup:
    """The sessions below a parent; those below the deepest follow it, instead of going further right."""
    items: list[Markup] = []
    waiting = [*reversed(below.get(parent, ()))]
    while waiting:
        info = waiting.pop()
        inner = None
        if depth >= _DEEPEST:
            waiting += reversed(below.get(info.id, ()))
        elif info.id in below:
            inner = _branches(below, attached, info.id, depth + 1)
        items.append(element("li", _row(info, attached.get(info.id)), inner))
    return element("ul", items, class_="bare")


def _row(info: t.Info, attached: str | None) -> Markup:
    name = element(
        "span",
        link_to(info),
        state_of(info),
        markup.tag(info.agent) if info.agent else None,
        element("small", f"forked at {info.fork_seq}") if info.parent else None,
        class_="name",
    )
    figures = (attached, markup.money(info.cost), time(info.updated_at))
    cells = [element("span", value, class_=kind) for (_, kind), value in zip(_FIGURES, figures, strict=True)]
    return element("div", name, cells, class_="row")


# Two sessions.


async def compare_page(service: Service, caller: Caller, id: str, other: str) -> HTMLResponse:
    left, right = await service.session(caller, id), await service.session(caller, other)
    found = await service.compare(caller, id, other, limit=PAGE)
    before = await service.history(caller, id, after=max(0, found.common_seq - PAGE), limit=PAGE)
    names: dict[str, str] = {}
    learn((entry for entry in before.entries if entry.seq <= found.common_seq), names)
    where = (
        f"Both have the first {markup.plural(found.common_seq, 'event')}."
        if found.common_seq
        else "They have nothing in common."
    )
    return page(
        f"{title_of(left)} and {title_of(right)}",
        crumbs(("Sessions", "/")),
        element("h1", "Side by side"),
        element("p", where, class_="note"),
        element(
            "div", _side(left, found.left, found.left_next, names, "left-"),
            _side(right, found.right, found.right_next, names, "right-"),
            class_="sides",
        ),
        caller=caller,
        here="Sessions",
    )  # fmt: skip


def _side(
    info: t.Info, said: Sequence[t.Entry], next: int | None, names: Mapping[str, str], prefix: str
) -> Markup:
    many = markup.plural(len(said), "message") if next is None else f"more than {len(said)} messages"
    figures = markup.apart(many, markup.money(info.cost))
    shown = entries(said, Reader(info.id, False, {**names}, prefix))
    left = f"The first {len(said)} are shown." if next is not None else None
    return element(
        "section",
        element("h2", link_to(info), " ", state_of(info), element("span", figures, class_="note")),
        element("ol", shown, class_="talk") if said else element("p", "Nothing behind that.", class_="empty"),
        element("p", left, class_="note") if left else None,
    )


# A search.


async def search_page(service: Service, caller: Caller, query: Mapping[str, str]) -> HTMLResponse:
    sought = query.get("q", "").strip()
    hits = (await service.search(caller, sought)).hits if sought else []
    known = (await service.sessions(caller)).sessions if hits else []
    titles = {info.id: title_of(info) for info in known}
    nothing = "Nothing was said like that." if sought else "Type what you look for into the field at the top."
    return page(
        f"Search: {sought}" if sought else "Search",
        element("h1", joined("What was said about ", element("q", sought)) if sought else "Search"),
        element("p", markup.plural(len(hits), "hit"), class_="note") if hits else None,
        element(
            "ol",
            [_hit(hit, titles.get(hit.session, hit.session), sought) for hit in hits],
            class_="bare hits",
        )
        if hits
        else element("p", nothing, class_="empty"),
        caller=caller,
        query=sought,
    )


def _hit(hit: t.Hit, title: str, sought: str) -> Markup:
    where = address("sessions", hit.session, before=hit.seq + 1)
    head = element(
        "p",
        element("a", title, href=f"{where}#e{hit.seq}"),
        element("span", f"{hit.type.replace('_', ' ')} {hit.seq}", class_="note"),
    )
    return element("li", head, element("p", _marked(hit.text, sought), class_="plain"))


_AROUND = 240


def _marked(said: str, sought: str) -> Markup:
    """Show the words around the first place where a text has what was sought."""
    lower = said.lower()
    at = lower.find(sought.lower()) if len(lower) == len(said) else -1
    if at < 0:
        return joined(said[: 2 * _AROUND], "…" if len(said) > 2 * _AROUND else None)
    begin, end = max(0, at - _AROUND), at + len(sought)
    return joined(
        "…" if begin else None,
        said[begin:at],
        element("mark", said[at:end]),
        said[end : end + _AROUND],
        "…" if len(said) > end + _AROUND else None,
    )
