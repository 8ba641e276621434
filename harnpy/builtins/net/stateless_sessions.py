"""Sessions of web services that live in a signed cookie. Spec: 04 §16.4 "session_sign"."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.net.cookie_arguments import attributes, from_outside, header_values, require, text
from harnpy.net.cookies.reading import read
from harnpy.net.cookies.signing import session_payload, session_token
from harnpy.net.cookies.writing import SESSION, written
from harnpy.text.json.writer import to_json
from harnpy.vm.declare.builtin import ABSENT
from harnpy.vm.declare.builtin import builtin as declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.net.cookies.signing import Verdict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="web", counted=True)


@builtin("session_sign(payload: any, secret: string) -> string")
def session_sign(vm: Vm, payload: Value = ABSENT, secret: Value = ABSENT) -> str:
    """A token with the payload as JSON, signed: everybody can read it, nobody can change it unnoticed.

    Nothing in it expires: put a time into the payload where it must.

    Example:
        session_verify(session_sign({user: "ada"}, "secret"), "secret").payload  // {user: "ada"}
    """
    require("session_sign", payload, secret)
    return _token(vm, payload, secret)


@builtin("session_verify(token: string, secret: string) -> dict")
def session_verify(vm: Vm, token: Value = ABSENT, secret: Value = ABSENT) -> dict[str, Value]:
    """The payload of a session's token: `{ok, payload, error}`.

    `error` is nil, `malformed` (also of nil), `invalid_signature` or `malformed_payload`; `payload` is nil
    unless `ok`.

    Example:
        session_verify("v1.e30.forged", "secret").error  // "invalid_signature"
    """
    require("session_verify", token, secret)
    return _result(session_payload(from_outside("token", token), text("secret", secret)))


@builtin("session_cookie(name: string, payload: any, secret: string, opts?: dict) -> string")
def session_cookie(
    vm: Vm, name: Value = ABSENT, payload: Value = ABSENT, secret: Value = ABSENT, opts: Value = ABSENT
) -> str:
    """The value of a `Set-Cookie` header with a session's token.

    `opts` as for `cookie_serialize`, beginning with `Path=/; HttpOnly; Secure; SameSite=Lax`. Browsers drop
    cookies of more than 4096 bytes.

    Example:
        let header = session_cookie("sid", {user: "ada"}, "secret")
        header.split("; ").slice(1)  // ["Path=/", "HttpOnly", "Secure", "SameSite=Lax"]
    """
    require("session_cookie", name, payload, secret)
    given = attributes("session_cookie", opts, SESSION)
    return written(text("name", name), _token(vm, payload, secret), given)


@builtin("session_from_cookies(headers: any, name: string, secret: string) -> dict")
def session_from_cookies(
    vm: Vm, headers: Value = ABSENT, name: Value = ABSENT, secret: Value = ABSENT
) -> dict[str, Value]:
    """The payload of the session in a request's cookies: `{ok, payload, error}`.

    `headers` as for `cookie_parse`; `error` as of `session_verify`, or `missing_cookie`.

    Example:
        let request = {cookie: session_cookie("sid", {user: "ada"}, "secret").split(";")[0]}
        session_from_cookies(request, "sid", "secret").payload  // {user: "ada"}
    """
    require("session_from_cookies", headers, name, secret)
    token = read(header_values(headers, "cookie")).values().get(text("name", name))
    checked = text("secret", secret)
    if token is None:
        return {"ok": False, "payload": None, "error": "missing_cookie"}
    return _result(session_payload(token, checked))


def _token(vm: Vm, payload: Value, secret: Value) -> str:
    return session_token(to_json(payload, paced=vm.paced), text("secret", secret))


def _result(verdict: Verdict) -> dict[str, Value]:
    return {"ok": verdict.error is None, "payload": verdict.content, "error": verdict.error}
