"""How a browser signs in and out. Spec: 11 §1.2."""

from __future__ import annotations

from tests.serve.door.asking import HOST, ORIGIN, Asked, Reply, request
from tests.serve.door.test_door import KEY, KEYED, in_loop


def cookie_in(reply: Reply) -> str:
    """The cookie that a browser keeps, after a look at its attributes."""
    pair, *attributes = reply.headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"} <= {*attributes}
    assert (reply.status, reply.headers["location"], reply.body) == (303, "/", b"")
    return pair


@in_loop
async def test_a_link_signs_one_browser_in() -> None:
    asked = Asked()
    link, other = asked.door.sign_in.new_link(), asked.door.sign_in.new_link()
    reply = await asked.ask("GET", link)
    cookie = cookie_in(reply)
    assert (await asked.ask("GET", "/v1/me", cookie=cookie)).body == b"local 0"
    session = asked.sessions.get(cookie.partition("=")[2])
    assert session is not None
    assert (session.attributes["scopes"], (session.expires_at - session.created_at).seconds) == (
        ["all"],
        43_200,
    )
    for used in (link, link[:-1], "/signin?code=", "/signin?code=%00"):
        again = await asked.ask("GET", used)
        assert (again.status, again.headers["location"]) == (303, "/signin?refused=1")
        assert "set-cookie" not in again.headers
    # Nothing that is sent says the code, and the log has neither it nor the cookie's value.
    code, kept = link.partition("=")[2], repr(asked.log.read_range("orchestrator.sessions"))
    assert code not in repr(reply)
    assert not any(secret in kept for secret in (code, cookie.partition("=")[2]))
    cookie_in(await asked.ask("GET", other))
    # Over TLS the cookie goes over TLS only.
    scope = request("GET", asked.door.sign_in.new_link(), {}) | {"scheme": "https"}
    assert b"; Secure; " in dict((await asked.door.sign_in.by_link(scope))[1])[b"set-cookie"]


@in_loop
async def test_a_form_takes_tokens_and_keys() -> None:
    asked = Asked(site=KEYED._replace(hosts=("box.example",)))
    token = asked.token("ada", scopes=["read"])
    reply = await asked.ask("POST", "/signin", b"token=", token.encode(), origin=ORIGIN)
    assert cookie_in(reply) == f"harnpy_4721={token}"
    assert "Secure" not in reply.headers["set-cookie"]
    reply = await asked.ask(
        "POST", "/signin", b"token=%s" % KEY.encode(), host="box.example", origin="https://box.example"
    )
    cookie = cookie_in(reply)
    assert "Secure" in reply.headers["set-cookie"]
    assert KEY not in cookie
    assert (await asked.ask("GET", "/", cookie=cookie)).body == b"api-key 0"
    for wrong in (b"token=no", b"", b"token=", b"\xff", b"other=" + token.encode()):
        reply = await asked.ask("POST", "/signin", wrong, origin=ORIGIN)
        assert (reply.status, reply.headers["location"]) == (303, "/signin?refused=1")
        assert "set-cookie" not in reply.headers
    for headers in ({}, {"origin": "http://evil.example"}):
        reply = await asked.ask("POST", "/signin", b"token=%s" % KEY.encode(), **headers)
        assert (reply.status, reply.code) == (403, "foreign_origin")
    assert (await asked.ask("POST", "/signin", b"token=" + b"x" * 20_000, origin=ORIGIN)).status == 413

    # Without the key, what a browser has signed in with by it doesn't hold.
    later = Asked(site=KEYED._replace(keys=("another",)), log=asked.log)
    assert (await later.ask("GET", "/", cookie=cookie)).status == 401
    assert (await later.ask("GET", "/", cookie=f"harnpy_4721={token}")).status == 200


@in_loop
async def test_signing_out() -> None:
    asked = Asked()
    token = asked.token("ada")
    cookie = cookie_in(await asked.ask("GET", asked.door.sign_in.new_link()))
    assert (await asked.ask("POST", "/signout", cookie=cookie)).status == 403
    for held in (cookie, f"harnpy_4721={token}"):
        reply = await asked.ask("POST", "/signout", cookie=held, origin=ORIGIN, host=HOST)
        assert (reply.status, reply.headers["location"]) == (303, "/signin")
        assert reply.headers["set-cookie"].startswith("harnpy_4721=; Path=/; Max-Age=0")
    assert (await asked.ask("GET", "/", cookie=cookie)).status == 401
    # A token was given out for more than this browser.
    assert (await asked.ask("GET", "/", authorization=f"Bearer {token}")).status == 200
    assert (await asked.ask("GET", "/signout", cookie=cookie)).status == 401
