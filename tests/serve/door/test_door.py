"""Who may come in, and what is kept out. Spec: 11 §1.2."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from harnpy.net.admission import Bounds
from harnpy.serve import door
from harnpy.serve.door import LONGEST_BODY
from harnpy.serve.site import Site
from tests.serve.door.asking import HOST, ORIGIN, Asked, arriving, request

KEY = "a-key-of-the-deployment"
LOCAL = Site("127.0.0.1", 4721)
KEYED = LOCAL._replace(keys=("another", KEY))


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    def run(**fixtures: Any) -> None:
        asyncio.run(test(**fixtures))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@in_loop
async def test_callers() -> None:
    asked = Asked(site=KEYED)
    token = asked.token("ada")
    for headers, said in [
        ({"authorization": f"Bearer {token}"}, b"ada 0"),
        ({"authorization": f"bearer  {KEY}"}, b"api-key 0"),
        ({"x_api_key": KEY}, b"api-key 0"),
        ({"cookie": f"x=1; harnpy_4721={token}"}, b"ada 0"),
    ]:
        assert (await asked.ask("GET", "/v1/me", **headers)).body == said
    for headers in [
        {},
        {"authorization": "Bearer hs_" + "x" * 43},
        {"authorization": f"Basic {KEY}"},
        {"x_api_key": KEY[:-1]},
        {"x_api_key": "k\u00e9y"},
        {"cookie": f"harnpy_4722={token}"},
        # The header counts, even where the cookie would do.
        {"authorization": "Bearer no", "cookie": f"harnpy_4721={token}"},
    ]:
        reply = await asked.ask("GET", "/v1/me", **headers)
        assert (reply.status, reply.code, reply.headers["www-authenticate"]) == (
            401,
            "unauthorized",
            "Bearer",
        )
        assert token.encode() not in reply.body
    asked.sessions.expire(token)
    assert (await asked.ask("POST", "/v1/me", authorization=f"Bearer {token}")).status == 401


@in_loop
async def test_a_page_leads_to_the_form() -> None:
    reply = await Asked().ask("GET", "/sessions/a", accept="text/html,*/*")
    assert (reply.status, reply.headers["location"]) == (303, "/signin")


@in_loop
async def test_scopes_and_limits() -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["harnpy.caller"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    asked = Asked(app, KEYED)
    for attributes in ({}, {"scopes": ["read", "approve", "root"]}, {"scopes": "all"}, {"cost_per_day": 0.5}):
        await asked.ask("GET", "/", authorization=f"Bearer {asked.token('ada', **attributes)}")
    await asked.ask("GET", "/", x_api_key=KEY)
    assert [set(caller.scopes) for caller in seen] == [
        {"write"},
        {"read", "approve"},
        set(),
        {"write"},
        {"all"},
    ]
    assert [caller.limits.cost_per_day for caller in seen] == [None, None, None, 0.5, None]


@in_loop
async def test_what_goes_without_a_caller() -> None:
    asked = Asked()
    for path, status in [
        ("/healthz", 200), ("/signin", 200), ("/static/1/portal.css", 200), ("/metrics", 200),
        ("/static/../v1/me", 401), ("/openapi.json", 401), ("/healthz/", 401), ("/static", 401),
    ]:  # fmt: skip
        assert (await asked.ask("GET", path)).status == status
    exposed = Asked(site=Site("0.0.0.0", 4721, hosts=("box.example",)))
    assert (await exposed.ask("GET", "/metrics")).status == 401
    # A proxy in front of it calls it by another name.
    assert (
        await Asked(site=LOCAL._replace(hosts=("box.example",))).ask("GET", "/metrics", host="box.example")
    ).status == 401


@in_loop
async def test_hosts() -> None:
    asked = Asked(site=KEYED._replace(hosts=("Box.Example",)))
    for host in (HOST, "localhost", "LOCALHOST:1", "[::1]:4721", "box.example:443"):
        assert (await asked.ask("GET", "/healthz", host=host)).status == 200
    for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost.", "127.0.0.1@evil.example"):
        reply = await asked.ask("GET", "/healthz", host=host)
        assert (reply.status, reply.code) == (421, "unknown_host")
    twice = request("GET", "/healthz", {"host": HOST})
    twice["headers"].append((b"host", b"evil.example"))
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await asked.door(twice, arriving(()), send)
    assert sent[0]["status"] == 400


@in_loop
async def test_a_cookie_changes_something_for_our_own_pages_only() -> None:
    asked = Asked(site=KEYED._replace(hosts=("box.example",)))
    cookie = f"harnpy_4721={asked.token('ada')}"

    async def status(host: str = HOST, **headers: str) -> int:
        reply = await asked.ask("POST", "/v1/sessions", b"{}", host=host, **headers)
        assert reply.status == 200 or reply.code == "foreign_origin"
        return reply.status

    assert await status(cookie=cookie, origin=ORIGIN) == 200
    assert await status("box.example", cookie=cookie, origin="https://box.example") == 200
    assert await status("box.example:443", cookie=cookie, origin="https://box.example") == 200
    for origin in (
        "http://evil.example", "null", "", "http://127.0.0.1:3000", "http://127.0.0.1", "ftp://127.0.0.1:4721",
        "http://localhost:4721", f"{ORIGIN}.evil.example",
    ):  # fmt: skip
        assert await status(cookie=cookie, origin=origin) == 403
    assert await status(cookie=cookie) == 403
    # Whoever knows a token is no page that makes a browser send its cookies.
    assert await status(x_api_key=KEY, origin="http://evil.example") == 200
    # No plain page speaks for a server with TLS.
    asked = Asked(site=LOCAL._replace(certificate="x", key="x"))
    cookie = f"harnpy_4721={asked.token('ada')}"
    assert await status(cookie=cookie, origin=ORIGIN) == 403
    assert await status(cookie=cookie, origin=f"https://{HOST}") == 200


@in_loop
async def test_every_response_has_the_policies() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"cache-control", b"public"), (b"content-type", b"text/css")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body"})

    asked = Asked(app)
    for reply in (
        await asked.ask("GET", "/static/x"),
        await asked.ask("GET", "/v1/me"),
        await asked.ask("GET", "/", host="evil"),
        await asked.ask("GET", "/signin?code=x"),
    ):
        policy = dict(
            part.strip().partition(" ")[::2] for part in reply.headers["content-security-policy"].split(";")
        )
        assert (policy["default-src"], policy["frame-ancestors"], policy["base-uri"]) == ("'none'",) * 3
        assert "unsafe" not in reply.headers["content-security-policy"]
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "same-origin"
        assert reply.headers["cross-origin-opener-policy"] == "same-origin"
    assert (await asked.ask("GET", "/static/x")).headers["cache-control"] == "public"
    assert (await asked.ask("GET", "/v1/me")).headers["cache-control"] == "no-store"


@in_loop
async def test_requests_a_minute() -> None:
    now = [100.0]
    asked = Asked(clock=lambda: now[0])
    slow, other = asked.token("ada", requests_per_minute=2), asked.token("ada", requests_per_minute=0)

    async def ask(token: str = slow) -> Any:
        return await asked.ask("GET", "/", authorization=f"Bearer {token}")

    assert [(await ask()).status, (await ask()).status] == [200, 200]
    now[0] += 20.5
    refused = await ask()
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "rate_limited", "40")
    now[0] += 39.5
    assert (await ask()).status == 200
    assert (await ask(other)).status == 429
    assert (await ask(asked.token("eve"))).status == 200


@in_loop
async def test_bodies() -> None:
    asked = Asked(site=KEYED)
    piece = b"x" * (LONGEST_BODY // 4)
    reply = await asked.ask("POST", "/v1/x", *[piece] * 4, x_api_key=KEY)
    assert reply.body == b"api-key %d" % LONGEST_BODY
    for method, path in (("POST", "/v1/x"), ("GET", "/v1/x"), ("POST", "/healthz")):
        reply = await asked.ask(method, path, *[piece] * 4, b"x", x_api_key=KEY, transfer_encoding="chunked")
        assert (reply.status, reply.code, reply.headers["connection"]) == (413, "too_large", "close")
    # By its length alone, whoever sends it: nothing of it goes further.
    reply = await asked.ask("POST", "/v1/x", b"", content_length=str(LONGEST_BODY + 1))
    assert (reply.status, reply.code) == (413, "too_large")


@in_loop
async def test_a_waiting_send_keeps_nobody_out() -> None:
    over = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"].endswith("/send"):
            await over.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    asked = Asked(app, KEYED, bounds=Bounds(slots=1, slots_per_caller=1))
    sends = [asyncio.create_task(asked.ask("POST", "/v1/sessions/a/send", x_api_key=KEY)) for _ in range(3)]
    assert (await asked.ask("GET", "/v1/me", x_api_key=KEY)).status == 200
    over.set()
    assert {(await each).status for each in sends} == {200}


@in_loop
async def test_more_requests_than_are_handled_at_once() -> None:
    over = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await over.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    bounds = Bounds(slots=1, slots_per_caller=1, waiting=1, waiting_per_caller=1)
    asked = Asked(app, KEYED, bounds=bounds)
    first, second = (asyncio.create_task(asked.ask("GET", "/", x_api_key=KEY)) for _ in range(2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    refused = await asked.ask("GET", "/", x_api_key=KEY)
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "rate_limited", "1")
    over.set()
    assert ((await first).status, (await second).status) == (200, 200)


@in_loop
async def test_mistakes_are_told_without_what_was_said() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("a secret")

    failed: list[Exception] = []
    asked = Asked(app, on_error=lambda scope, error: failed.append(error))
    reply = await asked.ask("GET", "/healthz")
    assert (reply.status, reply.code, len(failed)) == (500, "internal", 1)
    assert b"secret" not in reply.body


# Web sockets.


async def socket(asked: Asked, *messages: Any, **headers: str) -> list[Any]:
    """What the server sends to a web socket that stays open until the server closes."""
    sent: list[Any] = []
    coming = [{"type": "websocket.connect"}, *messages]

    async def receive() -> Any:
        if coming:
            return coming.pop(0)
        return await asyncio.get_running_loop().create_future()

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "websocket.accept" and not messages:
            asked.door.close()

    scope = {
        **request("GET", "/v1/sessions/a/control", {"host": HOST, **headers}),
        "type": "websocket",
        "scheme": "ws",
    }
    del scope["method"]
    await asked.door({**scope, "extensions": {"websocket.http.response": {}}}, receive, send)
    return sent


@in_loop
async def test_web_sockets() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "websocket.connect"
        await send({"type": "websocket.accept", "headers": []})
        assert await receive() == {"type": "websocket.disconnect", "code": 1012}

    def asked() -> Asked:
        return Asked(app, KEYED)

    for headers in ({"x_api_key": KEY}, {"x_api_key": KEY, "origin": ORIGIN}):
        sent = await socket(asked(), **headers)
        assert [message["type"] for message in sent] == ["websocket.accept", "websocket.close"]
        assert sent[1]["code"] == 1012
    for headers, status in [
        ({}, 401),
        ({"x_api_key": KEY, "origin": "http://evil.example"}, 403),
        ({"x_api_key": KEY, "host": "evil.example"}, 421),
    ]:
        sent = await socket(asked(), **headers)
        assert (sent[0]["type"], sent[0]["status"]) == ("websocket.http.response.start", status)
    cookies = asked()
    cookie = f"harnpy_4721={cookies.token('ada')}"
    assert (await socket(cookies, cookie=cookie))[0]["status"] == 403
    assert (await socket(cookies, cookie=cookie, origin=ORIGIN))[0]["type"] == "websocket.accept"


@in_loop
async def test_messages_of_a_web_socket_count() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept", "headers": []})
        seen.append(await receive())
        seen.append(await receive())

    seen: list[Any] = []
    asked = Asked(app)
    token = asked.token("ada", requests_per_minute=2)
    text = {"type": "websocket.receive", "text": "{}"}
    sent = await socket(asked, text, text, authorization=f"Bearer {token}")
    assert seen == [text, {"type": "websocket.disconnect", "code": 4429}]
    assert sent[-1] == {"type": "websocket.close", "code": 4429}


# Readers.


@in_loop
async def test_streams_end_when_the_server_closes() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"1", "more_body": True})
        begun.set()
        while (await receive())["type"] != "http.disconnect":
            pass

    begun = asyncio.Event()
    asked = Asked(app, KEYED)
    watching = asyncio.create_task(asked.ask("GET", "/v1/sessions/a/events", x_api_key=KEY))
    await begun.wait()
    asked.door.close()
    assert (await watching).body == b"1"


async def watched(scope: Any, receive: Any, send: Any) -> None:
    """A stream, or a web socket, that ends when its reader is gone."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept", "headers": []})
    else:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"1", "more_body": True})
    while not (await receive())["type"].endswith("disconnect"):
        pass


@in_loop
async def test_open_streams_are_bounded() -> None:
    asked = Asked(watched, KEYED, bounds=Bounds(lasting=3, lasting_per_caller=1))
    ada, bob = ({"authorization": f"Bearer {asked.token(name)}"} for name in ("ada", "bob"))
    key, events = {"x_api_key": KEY}, {"accept": "text/event-stream"}
    opened = [
        asyncio.create_task(asked.ask("GET", "/v1/sessions/a/events", **each, **events))
        for each in (ada, key, key)  # a whole application may stand behind a key
    ]
    await until(lambda: asked.door._lasting._in_all == 3)
    for who, status in ((ada, 429), (bob, 503)):
        for method, path, headers in (
            ("GET", "/v1/sessions/a/events", events),
            ("GET", "/sessions/a/live", {}),
            ("POST", "/v1/sessions/a/send", {}),
        ):
            reply = await asked.ask(method, path, **who, **headers)
            assert (reply.status, reply.headers["retry-after"]) == (status, "1"), path
        assert (await socket(asked, **who))[0]["status"] == status
    asked.door.close()
    assert [(await each).body for each in opened] == [b"1"] * 3
    assert not asked.door._lasting.callers


def test_what_is_open_ends_with_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_AGAIN", 0.01)

    @in_loop
    async def test() -> None:
        asked = Asked(watched, KEYED)
        token, other = asked.token("ada"), asked.token("bob")
        headers = {"authorization": f"Bearer {token}"}
        stream, stays = (
            asyncio.create_task(asked.ask("GET", "/sessions/a/live", authorization=f"Bearer {each}"))
            for each in (token, other)
        )
        control = asyncio.create_task(socket(asked, {"type": "websocket.receive", "text": "hi"}, **headers))
        await until(lambda: asked.door._lasting._in_all == 3)
        asked.sessions.expire(token)
        assert (await stream).body == b"1"
        assert (await control)[-1] == {"type": "websocket.close", "code": 4401}
        assert not stays.done()
        stays.cancel()

    test()


@in_loop
async def test_the_token_of_a_message_is_looked_up() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept", "headers": []})
        asked.sessions.expire(token)
        assert await receive() == {"type": "websocket.disconnect", "code": 4401}

    asked = Asked(app)
    token = asked.token("ada")
    text = {"type": "websocket.receive", "text": "{}"}
    sent = await socket(asked, text, authorization=f"Bearer {token}")
    assert sent[-1] == {"type": "websocket.close", "code": 4401}


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():
            await asyncio.sleep(0.001)


@in_loop
async def test_a_reader_that_reads_nothing_is_let_go_of() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"1", "more_body": True})

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.get_running_loop().create_future()

    dropped: list[int] = []
    asked = Asked(app, KEYED, bounds=Bounds(seconds=0.01), on_drop=lambda: dropped.append(1))
    await asked.door(request("GET", "/", {"host": HOST, "x-api-key": KEY}), arriving(()), send)
    assert dropped == [1]


def test_keys_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, by the one function that takes as long for every difference."""
    from harnpy.eventlog import http

    compared: list[tuple[bytes, bytes]] = []

    def equal(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return a == b

    monkeypatch.setattr(http, "equal_in_constant_time", equal)

    async def main() -> None:
        asked = Asked(site=KEYED)
        await asked.ask("GET", "/", x_api_key="another")
        await asked.ask("GET", "/", x_api_key="no")

    asyncio.run(main())
    assert compared == [(key.encode(), given) for given in (b"another", b"no") for key in KEYED.keys]
