"""The page of one session: its transcript, who is attached, what waits for a person, and a place to type.

What changes while somebody looks at it, but for the transcript, is in regions: `harnpy.serve.portal.live`
sends those that have changed.
"""

from __future__ import annotations

from asyncio import to_thread
from typing import TYPE_CHECKING

from harnpy.formats import markup
from harnpy.formats.markup import Markup, element, joined
from harnpy.serve.portal.sessions import link_to, state_of, title_of
from harnpy.serve.portal.shell import address, button, crumbs, field, page, time
from harnpy.serve.portal.transcript import ACTS, PAGE, STEP_TYPES, Reader, entries, with_steps
from harnpy.serve.rights import OWN
from harnpy.world.ids import RealIds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.responses import HTMLResponse

    from harnpy.client import types as t
    from harnpy.formats.markup import Child
    from harnpy.serve.service import Caller, Service

#: How many events are first looked through for the entries of a page.
_SPAN = 2 * PAGE
#: How far before an entry its step may be, and how many events are asked for at once.
_NEAR, _MOST = 20, 1000
#: What a session can be shared for from its page, by what the form says.
SHARES = {"read": "read", "write": "read, write", "approve": "read, approve", "write,approve": "all three"}


async def stretch(service: Service, caller: Caller, id: str, before: int) -> tuple[list[t.Entry], bool]:
    """Return the last entries before the event of that number, and whether there may be earlier ones."""
    found: list[t.Entry] = []
    span = _SPAN
    while before > 1 and len(found) < PAGE:
        begin = max(0, before - 1 - span)
        found = [*await _between(service, caller, id, begin, before), *found]
        before, span = begin + 1, span * 2
    return await _with_steps(service, caller, id, found[-PAGE:]), before > 1 or len(found) > PAGE


async def _with_steps(service: Service, caller: Caller, id: str, said: list[t.Entry]) -> list[t.Entry]:
    """Return entries with what the steps that made them have left in the log."""
    steps: list[t.Event] = []
    at: int | None = max(0, said[0].seq - _NEAR) if said else None
    while at is not None and at < said[-1].seq:
        page = await service.events(caller, id, after=at, limit=_MOST, types=list(STEP_TYPES))
        steps += page.events
        at = page.next
    return with_steps(said, steps)


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
    reader = Reader(id, OWN in session.may, {})
    # In a thread: a page of long answers takes a while, and nobody's events wait for it.
    talk = element("ol", await to_thread(entries, shown, reader), class_="talk", id="entries")
    regions = regions_of(session, (await service.window(caller, id)).tokens, caller, client)
    conversation = element(
        "section",
        element("h2", "Transcript", class_="unseen"),
        _earlier(id, shown, earlier),
        element("div", talk, role="log", aria_label="Transcript", aria_live="polite"),
        _later(id) if before else joined(_draft(), _dock(regions)),
        class_="conversation",
        data_live=None if before else address("sessions", id, "live", after=session.seq, client=client),
    )
    above = [(title_of(info), address("sessions", info.id)) for info in session.lineage]
    about = (regions["people"], regions["shares"], regions["branches"], _about(session))
    own = element("input", type="hidden", name="client", value=client)
    return page(
        title_of(session),
        crumbs(("Sessions", "/"), *above),
        element("div", element("h1", title_of(session)), regions["state"], class_="title"),
        regions["facts"],
        element("form", own, method="post", id=ACTS),
        element("div", element("aside", about, aria_label="About the session"), conversation, class_="split"),
        caller=caller,
        here="Sessions",
        layout="session",
    )


def _number(given: str | None) -> int | None:
    return int(given) if given and given.isascii() and given.isdigit() and len(given) < 16 else None


def _earlier(id: str, shown: Sequence[t.Entry], are_there: bool) -> Markup:
    href = address("sessions", id, before=shown[0].seq if shown else 1)
    link = element("a", "Earlier entries", href=href, rel="prev")
    return element("p", link, class_="more", id="earlier", hidden=not are_there)


def _later(id: str) -> Markup:
    return element("p", element("a", "To the newest entries", href=address("sessions", id)), class_="more")


def _draft() -> Markup:
    """The place of the answer that is being made. It is read aloud once it is an entry."""
    who = element("div", element("span", "Assistant", class_="role"), class_="line")
    said = element("div", element("div", class_="plain"), class_="said")
    return element("div", who, said, id="draft", class_="turn assistant", aria_hidden="true", hidden=True)


def _dock(regions: Mapping[str, Markup]) -> Markup:
    return element(
        "div",
        element("button", "New entries ↓", id="newer", type="button", hidden=True),
        regions["requests"],
        element("p", id="trouble", role="alert"),
        regions["running"],
        regions["control"],
        class_="dock",
    )


def _about(session: t.Session) -> Markup:
    others = {key: value for key, value in session.metadata.items() if key != "title"}
    facts = [
        ("Session", markup.mono(session.id)),
        ("Owner", session.owner),
        ("Begun", time(session.created_at)),
    ]
    return element(
        "section",
        element("h2", "About"),
        element("div", markup.facts(facts), class_="small"),
        markup.folded("Metadata", markup.value(others)) if others else None,
    )


# Regions.


def regions_of(session: t.Session, tokens: int, caller: Caller, client: str) -> dict[str, Markup]:
    """Return the regions by their ids, for a page that is called ``client`` where it takes control."""
    may_write = "write" in session.may
    # Forms of a page in control lead back to a page in control.
    own = client if session.controller == client else None
    requests = [request_card(request, "approve" in session.may, own) for request in session.requests]
    made: dict[str, tuple[str, Child]] = {
        "state": ("span", doing(session) if session.running or session.requests else state_of(session)),
        "facts": ("div", _facts(session, tokens)),
        "requests": ("div", requests),
        "control": ("div", _control(session, caller.principal, client)),
        "running": ("div", _running(session, own) if may_write else None),
        "people": ("section", _people(session, client)),
        "shares": ("section", _shares(session)),
        "branches": ("section", _branches(session)),
    }
    return {
        id: element(name, inside, id=id, aria_live="polite" if id == "requests" else None)
        for id, (name, inside) in made.items()
    }


def doing(session: t.Session) -> Markup:
    """Show what a running turn does, in the words of `harnpy attach`."""
    waiting = session.waiting
    return markup.pill("running") if waiting is None else markup.pill(waiting, markup.WAITING)


def _facts(session: t.Session, tokens: int) -> Markup:
    figures = [
        ("Cost", markup.money(session.cost)),
        ("Messages", markup.count(session.messages)),
        ("Tokens", markup.count(tokens)),
        ("Agent", session.agent),
        ("Changed", time(session.updated_at)),
    ]
    return markup.facts(figures)


def request_card(request: t.Request, may_answer: bool, client: str | None = None) -> Markup:
    """Show what waits for a person, with a form for the reply."""
    is_approval = request.kind == "approval"
    id = f"answer-{request.id}"
    name, label = ("reason", "Reason") if is_approval else ("answer", "Answer")
    reply = [
        element("input", type="hidden", name="client", value=client) if client else None,
        element("label", label, for_=id, class_="unseen"),
        element(
            "input", id=id, name=name, required=not is_approval, autocomplete="off",
            placeholder="Reason, if you like" if is_approval else "Your answer",
        ),
        [
            element("button", "Approve", name="decision", value="allow", class_="first"),
            element("button", "Deny", name="decision", value="deny", class_="danger"),
        ]
        if is_approval
        else element("button", "Answer", class_="first"),
    ]  # fmt: skip
    action = address("requests", request.id)
    tool = joined(" ", markup.mono(request.tool)) if request.tool else None
    return element(
        "article",
        element("h3", "Approval wanted" if is_approval else "Question", tool),
        element("p", request.prompt, class_="plain"),
        markup.code(request.args) if request.args else None,
        element("form", reply, method="post", action=action, class_="inline live")
        if may_answer
        else element("p", "Your token may not answer it.", class_="note"),
        class_="card slim request",
    )


def _control(session: t.Session, principal: str, client: str) -> Child:
    """Show who is in control, and where to type unless that is somebody else."""
    found = next((each for each in session.clients if each.client_id == session.controller), None)
    controller = None if found is None or found.stale else found
    mine = controller is not None and controller.client_id == client
    who = None if controller is None else controller.client_id
    told = element(
        "p",
        joined(element("b", "You"), f" are in control, as {client}.")
        if mine
        else "Nobody is in control."
        if controller is None
        else joined(element("b", "You"), f" are in control elsewhere, as {controller.client_id}.")
        if controller.principal == principal
        else joined(_named(controller), " is in control."),
        class_="note",
    )
    if "write" not in session.may:
        return told
    verb, label = ("release", "Release") if mine else ("control", "Take over" if who else "Take control")
    form = element(
        "form",
        element("input", type="hidden", name="client", value=client),
        element("button", label, id=f"{verb}-button", aria_keyshortcuts=None if mine else "c"),
        method="post",
        action=address("sessions", session.id, verb),
        class_="live",
    )
    # A sign for the script: this page's client has to be kept alive.
    beat = address("v1", "sessions", session.id, "heartbeat") if mine else None
    return joined(
        element("div", told, form, class_="line"),
        _composer(session, client, is_client=mine) if mine or who is None else None,
        element("data", value=client, id="beat", data_to=beat) if mine else None,
    )


def _composer(session: t.Session, page: str, *, is_client: bool) -> Markup:
    """Return a form with a key of its page's own: another page's prompt is another turn."""
    return element(
        "form",
        element("input", type="hidden", name="client", value=page) if is_client else None,
        element("input", type="hidden", name="key", value=f"{page}-{session.seq}"),
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


def _running(session: t.Session, client: str | None) -> Markup | None:
    if session.running is None:
        return None
    action, fields = address("sessions", session.id, "cancel"), {"client": client} if client else {}
    stop = button("Cancel", action, kind="danger", hint="End the turn", **fields)
    return element("div", element("p", doing(session)), stop, class_="line")


def _named(client: t.Client) -> Markup:
    """Show whose a client is, with its id where the pointer rests; its id where nobody knows."""
    return element("b", client.principal or client.client_id, title=client.client_id)


def _people(session: t.Session, client: str) -> Markup:
    items = [
        element(
            "li",
            element(
                "span",
                each.principal or each.client_id,
                element("small", f" {each.client_id}") if each.principal else None,
                element("small", " you") if each.client_id == client else None,
                title=each.client_id,
            ),
            markup.tag("in control" if each.client_id == session.controller else each.mode),
            element("small", "silent since ", time(each.last_seen_at)) if each.stale else None,
        )
        for each in session.clients
    ]
    shown = element("ul", items, class_="bare people") if items else element("p", "Nobody.", class_="note")
    return joined(element("h2", "Attached"), shown)


def _shares(session: t.Session) -> Markup | None:
    """Show with whom a session is shared, and to its owner a form that shares it."""
    may_share = OWN in session.may
    if not session.shares and not may_share:
        return None
    action = address("sessions", session.id, "unshare")
    items = [
        element(
            "li",
            element("span", who),
            markup.tag(", ".join(scopes)),
            button("Take back", action, hint=f"Share it with {who} no more", principal=who)
            if may_share
            else None,
        )
        for who, scopes in session.shares.items()
    ]
    return joined(
        element("h2", "Shared with"),
        element("ul", items, class_="bare people") if items else element("p", "Nobody.", class_="note"),
        _share_form(session) if may_share else None,
    )


def _share_form(session: t.Session) -> Markup:
    scopes = [element("option", label, value=value) for value, label in SHARES.items()]
    form = element(
        "form",
        field("principal", "Principal", required=True, autocomplete="off"),
        element(
            "p",
            element("label", "For", for_="scopes"),
            element("select", scopes, id="scopes", name="scopes"),
            class_="field",
        ),
        element("button", "Share", class_="first"),
        method="post",
        action=address("sessions", session.id, "share"),
    )
    return element("details", element("summary", "Share"), form)


def _branches(session: t.Session) -> Markup | None:
    """Show where a session comes from and what was forked from it, each to be compared with it."""
    if not session.lineage and not session.children:
        return None
    own = element("li", element("b", title_of(session)), element("small", " this one"))
    below = [_relative(session, info) for info in session.children]
    inner = element("ul", own, element("li", element("ul", below)) if below else None)
    for info in reversed(session.lineage):
        inner = element("ul", _relative(session, info), element("li", inner))
    return joined(element("h2", "Branches"), element("div", inner, class_="family"))


def _relative(session: t.Session, info: t.Info) -> Markup:
    href = address("sessions", session.id, "compare", info.id)
    label = f"Compare with {title_of(info)}"
    return element(
        "li", link_to(info), " ", element("a", "compare", href=href, class_="way", aria_label=label)
    )
