"""The frame of every page of the portal, its building blocks, and the files that pages load.

Pages have no script and no style inside them: the server's policy forbids both.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

from starlette.responses import HTMLResponse, Response

from harnpy.formats import markup
from harnpy.formats.markup import Markup, element, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request

    from harnpy.formats.markup import Child
    from harnpy.serve.service import Caller

# Files: a script, a style and a picture, under an address that says what is in them.


_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FOREVER = "public, max-age=31536000, immutable"


class Assets(NamedTuple):
    """The files by their names; ``version`` names them all."""

    files: dict[str, bytes]
    version: str


@cache
def assets() -> Assets:
    """Return the files that pages load; the style is that of the reports with the portal's behind it."""
    found = {
        file.name: file.read_bytes()
        for file in sorted(files(__package__).joinpath("static").iterdir(), key=lambda file: file.name)
        if file.name.endswith(tuple(_TYPES))
    }
    found["portal.css"] = markup.stylesheet().encode() + found["portal.css"]
    digest = sha256(b"".join(name.encode() + content for name, content in found.items()))
    return Assets(found, digest.hexdigest()[:16])


def asset(name: str) -> str:
    """Return the address of a file."""
    return f"/static/{assets().version}/{name}"


async def static(request: Request) -> Response:
    """Return a file. One of another version is there no more: whoever asks for it has an old page."""
    known, name = assets(), request.path_params["name"]
    if name not in known.files or request.path_params["version"] != known.version:
        return Response("no such file", 404, media_type="text/plain")
    kind = _TYPES[name[name.rindex(".") :]]
    return Response(known.files[name], headers={"Cache-Control": _FOREVER}, media_type=kind)


# Pages.


#: The keys, by what `static/portal.js` does for each.
KEYS = (
    ("j", "next entry"),
    ("k", "previous entry"),
    ("u", "unfold or fold the entry"),
    ("c", "take control; in control, type"),
    ("/", "search"),
    ("?", "these keys"),
    ("Esc", "leave a field or this list"),
)
_PLACES = (("Sessions", "/"), ("Runs", "/runs"))


def page(
    title: str,
    *content: Child,
    caller: Caller | None,
    here: str = "",
    query: str = "",
    layout: str = "",
    status: int = 200,
) -> HTMLResponse:
    """Return a page; ``here`` is the place in the navigation that it belongs to."""
    head = [
        element("link", rel="icon", href=asset("icon.svg"), type="image/svg+xml"),
        element("link", rel="stylesheet", href=asset("portal.css")),
        element("script", src=asset("portal.js"), type="module"),
    ]
    body = [
        element("a", "Skip to the content", href="#main", class_="skip"),
        _bar(caller, here, query),
        element("main", *content, id="main", tabindex="-1"),
        _help(),
    ]
    document = markup.document(f"{title} · harnpy", head, body, class_=f"portal {layout}".strip())
    return HTMLResponse(document, status, {"Cache-Control": "no-store"})


def _bar(caller: Caller | None, here: str, query: str) -> Markup:
    brand = element("a", "harnpy", href="/", class_="brand")
    if caller is None:
        return element("header", brand, class_="bar")
    ways = [
        element("a", name, href=href, aria_current="page" if name == here else None) for name, href in _PLACES
    ]
    search = element(
        "form",
        element("label", "Search what was said", for_="search", class_="unseen"),
        element(
            "input", id="search", name="q", type="search", value=query or None,
            placeholder="Search", autocomplete="off", required=True, aria_keyshortcuts="/",
        ),
        action="/search",
        role="search",
    )  # fmt: skip
    out = element("form", element("button", "Sign out"), method="post", action="/signout")
    who = element("details", element("summary", caller.principal), out, class_="me")
    keys = element("button", "?", id="keys", type="button", aria_label="Keys", hidden=True)
    return element("header", brand, element("nav", ways, aria_label="Main"), search, who, keys, class_="bar")


def _help() -> Markup:
    rows = [element("div", element("dt", element("kbd", key)), element("dd", what)) for key, what in KEYS]
    close = element("form", element("button", "Close"), method="dialog")
    return element(
        "dialog", element("h2", "Keys"), element("dl", rows, class_="keys"), close, id="help",
        aria_label="Keys",
    )  # fmt: skip


def problem(status: int, message: str, caller: Caller | None) -> HTMLResponse:
    """Return the page of a request that isn't carried out."""
    back = element("p", element("a", "To the sessions", href="/")) if caller else None
    head = element("h1", _PROBLEMS.get(status, "That didn't work"))
    return page("Problem", head, element("p", message, role="alert"), back, caller=caller, status=status)


_PROBLEMS = {
    401: "Not signed in",
    402: "Over budget",
    403: "Not allowed",
    404: "Not there",
    409: "Not now",
    422: "Something is missing",
    429: "Too many requests",
    503: "The server is closing",
}


# Building blocks.


def address(*parts: str, **query: str | int | None) -> str:
    """Return the address of a page, every part encoded; parameters that are None are left out."""
    given = {key: value for key, value in query.items() if value is not None}
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    return f"{path}?{urlencode(given)}" if given else path


def button(
    label: str, action: str, *, kind: str = "", hint: str | None = None, **fields: str | int
) -> Markup:
    """Return a button that posts ``fields``, a form of its own."""
    hidden = [element("input", type="hidden", name=name, value=str(value)) for name, value in fields.items()]
    pressed = element("button", label, class_=kind or None, title=hint)
    return element("form", hidden, pressed, method="post", action=action)


def field(name: str, label: str, **attributes: str | bool | None) -> Markup:
    """Return a line to type in, with its label."""
    id = attributes.pop("id", None) or f"field-{name}"
    shown = element("input", id=id, name=name, **attributes)
    return element("p", element("label", label, for_=id), shown, class_="field")


def time(stamp: str | None, *, is_short: bool = False) -> Markup | None:
    """Show a time to the minute, in UTC, without its year if ``is_short``; scripts show it in the reader's
    zone.
    """
    if not stamp:
        return None
    shown = markup.clock(stamp)
    return element("time", shown[5 if is_short else 0 : 16], datetime=stamp, title=shown)


def tabs(title: str, chosen: str | None, all: Sequence[str], way: Callable[[str | None], str]) -> Markup:
    """Show the title of a list, with links to its parts: ``way`` returns where one is."""
    ways = [
        element("a", name.capitalize(), href=way(each), aria_current="true" if each == chosen else None)
        for name, each in (("all", None), *((each, each) for each in all))
    ]
    nav = element("nav", ways, aria_label="By status", class_="ways")
    return element("div", element("h1", title), nav, class_="title")


def crumbs(*ways: tuple[str, str]) -> Markup:
    """Show where a page belongs to."""
    links = [joined(element("a", name, href=href), " › ") for name, href in ways]
    return element("nav", links, aria_label="Where you are", class_="crumbs")


SIGN_IN_PATH = "/signin"


async def sign_in(request: Request) -> Response:
    """Return the form for a token; who reads it is the server's door."""
    refused = "refused" in request.query_params
    form = element(
        "form",
        field("token", "Token or key", type="password", autocomplete="current-password", required=True,
              autofocus=True),
        element("button", "Sign in", class_="first"),
        method="post",
        action=SIGN_IN_PATH,
        class_="panel",
    )  # fmt: skip
    hint = "A server on your own machine prints a link when it begins: it signs this browser in, once."
    return page(
        "Sign in",
        element("h1", "Sign in"),
        markup.callout(markup.BAD, element("p", "That token isn't known here.", role="alert"))
        if refused
        else None,
        form,
        element("p", hint, class_="note"),
        caller=None,
        layout="narrow",
    )
