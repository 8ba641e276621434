"""What the forms of pages do: each posts to an address of its own and is sent on to the page that shows it.

Whether a form may be trusted (the request's origin, its size) is looked at by the server's door.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.responses import RedirectResponse

from harnpy.client import types as t
from harnpy.serve.portal.sessions import title_of
from harnpy.serve.portal.shell import address
from harnpy.serve.refusals import Refused
from harnpy.serve.rights import GIVES
from harnpy.serve.shown import SAID
from harnpy.session.events import TURN_COMPLETED, TURN_STARTED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from harnpy.serve.service import Caller, Service

    #: Does what a form says to a session or a run, and returns the page that shows it.
    Verb = Callable[[Service, Caller, str, "Form"], Awaitable[str]]

_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 40


class Form(dict[str, str]):
    """The fields of a form by their names."""

    def need(self, name: str) -> str:
        """Return a field that has to be filled in."""
        if not self.get(name, "").strip():
            raise Refused(422, "invalid", f"The field `{name}` is empty: fill it in.")
        return self[name]


async def form_of(request: Request) -> Form:
    """Return what a form was filled in with. Raises `Refused`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise Refused(415, "unsupported", f"A form is sent as {_FORM}, not as {kind or 'nothing'}.")
    try:
        fields = parse_qsl(
            (await request.body()).decode(),
            keep_blank_values=True,
            max_num_fields=_MOST_FIELDS,
            errors="strict",
        )
    except ValueError:  # bytes that are no UTF-8 among them
        raise Refused(400, "bad_request", "This is no form of the portal: send one again.") from None
    return Form(fields)


async def begin(service: Service, caller: Caller, form: Form) -> Response:
    """Create a session."""
    body = t.CreateSession(agent=form.get("agent") or None, label=form.get("label", "").strip() or None)
    return see(_page((await service.create(caller, body)).id))


async def answer(service: Service, caller: Caller, id: str, form: Form) -> Response:
    """Answer a request, and go to where it was asked."""
    decision = form.get("decision")
    if decision is None:
        body = t.Answer(answer=form.need("answer"))
    elif decision == "allow":
        body = t.Answer(decision="allow", reason=form.get("reason", ""))
    else:
        body = t.Answer(decision="deny", reason=form.get("reason", ""))
    request = await service.answer(caller, id, body)
    if request.session is not None:
        return see(_page(request.session, form.get("client") or None))
    return see(address("runs", request.run) if request.run else "/")


def see(where: str) -> Response:
    """Send a browser on to a page, so that loading that again does nothing again."""
    return RedirectResponse(where, 303)


def _page(id: str, client: str | None = None) -> str:
    return address("sessions", id, client=client)


# Sessions.


async def _control(service: Service, caller: Caller, id: str, form: Form) -> str:
    client = form.need("client")
    await service.takeover(caller, id, client)
    return _page(id, client)


async def _release(service: Service, caller: Caller, id: str, form: Form) -> str:
    await service.detach(caller, id, form.need("client"))
    return _page(id)


async def _send(service: Service, caller: Caller, id: str, form: Form) -> str:
    client = form.get("client") or None
    body = t.Send(prompt=form.need("prompt"), client=client)
    await service.send(caller, id, body, form.get("key") or None)
    return _page(id, client)


async def _cancel(service: Service, caller: Caller, id: str, form: Form) -> str:
    await service.cancel(caller, id)
    return _page(id, form.get("client") or None)


async def _fork(service: Service, caller: Caller, id: str, form: Form) -> str:
    at = await _end(service, caller, id, _event(form))
    title = title_of(await service.session(caller, id)).partition(_FROM)[0]
    return _page((await service.fork(caller, id, t.Fork(at=at, label=f"{title}{_FROM}{at}"))).id)


async def _rewind(service: Service, caller: Caller, id: str, form: Form) -> str:
    await service.rewind(caller, id, t.Rewind(to=await _end(service, caller, id, _event(form))))
    return _page(id, form.get("client") or None)


async def _share(service: Service, caller: Caller, id: str, form: Form) -> str:
    scopes = form.need("scopes").split(",")
    if not {*scopes} <= GIVES.keys():
        raise Refused(422, "invalid", f"`scopes` are {', '.join(GIVES)}, with commas between them.")
    await service.share(caller, id, form.need("principal").strip(), scopes)
    return _page(id, form.get("client") or None)


async def _unshare(service: Service, caller: Caller, id: str, form: Form) -> str:
    await service.unshare(caller, id, form.need("principal"))
    return _page(id, form.get("client") or None)


async def _close(service: Service, caller: Caller, id: str, form: Form) -> str:
    await service.close_session(caller, id)
    return _page(id)


#: What stands between a session's title and the number of the event that a fork goes on from.
_FROM = ", from "
#: Events behind an answer that are looked through for the end of its turn.
_NEAR = 20


async def _end(service: Service, caller: Caller, id: str, at: int) -> int:
    """Return the end of the turn whose last message is at that event, else the event: a turn that is cut off
    before its end would be one that goes on."""
    for event in (await service.events(caller, id, after=at, limit=_NEAR)).events:
        if event.type == TURN_COMPLETED:
            return event.seq
        if event.type in SAID or event.type == TURN_STARTED:
            break
    return at


def _event(form: Form) -> int:
    given = form.need("at")
    if not (given.isascii() and given.isdigit() and len(given) < 16):
        raise Refused(422, "invalid", "`at` is the number of an event.")
    return int(given)


SESSION_VERBS: dict[str, Verb] = {
    "control": _control,
    "release": _release,
    "send": _send,
    "cancel": _cancel,
    "fork": _fork,
    "rewind": _rewind,
    "share": _share,
    "unshare": _unshare,
    "close": _close,
}


# Runs.


async def _steer(service: Service, caller: Caller, id: str, form: Form) -> str:
    await service.steer(caller, id, t.Steer(message=form.need("message")))
    return address("runs", id)


async def _cancel_run(service: Service, caller: Caller, id: str, form: Form) -> str:
    await service.cancel_run(caller, id)
    return address("runs", id)


async def _resume(service: Service, caller: Caller, id: str, form: Form) -> str:
    await service.resume(caller, id)
    return address("runs", id)


RUN_VERBS: dict[str, Verb] = {"steer": _steer, "cancel": _cancel_run, "resume": _resume}
