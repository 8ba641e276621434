"""Cookies, and signed values in them. Spec: 04 §16.4."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.net.cookie_arguments import (
    attributes,
    cookie_value,
    from_outside,
    header_values,
    require,
    text,
)
from harnpy.net.cookies.applying import applied, cookie_header
from harnpy.net.cookies.reading import read
from harnpy.net.cookies.signing import signed, verified
from harnpy.net.cookies.writing import DELETION, Attributes, written
from harnpy.vm.declare.builtin import ABSENT
from harnpy.vm.declare.builtin import builtin as declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="web", counted=True)


@builtin("cookie_parse(headers: any) -> dict")
def cookie_parse(vm: Vm, headers: Value = ABSENT) -> dict[str, Value]:
    """The cookies of a request: `{cookies, pairs, duplicates, invalid}`.

    `headers`: the value of a `Cookie` header, a list of such values, a request's headers, or nil. `cookies`
    has the first value of each name, `duplicates` all values of names that are there more than once, `pairs`
    every `{name, value}` in order, `invalid` a `{segment, reason}` for what is no cookie.

    Example:
        cookie_parse({Cookie: "theme=dark; sid=7; junk"}).cookies  // {sid: "7", theme: "dark"}
    """
    require("cookie_parse", headers)
    found = read(header_values(headers, "cookie"))
    return {
        "cookies": found.values(),
        "pairs": [pair._asdict() for pair in found.pairs],
        "duplicates": found.duplicates(),
        "invalid": [each._asdict() for each in found.invalid],
    }


@builtin("cookie_serialize(name: string, value: string, opts?: dict) -> string")
def cookie_serialize(vm: Vm, name: Value = ABSENT, value: Value = ABSENT, opts: Value = ABSENT) -> str:
    """The value of a `Set-Cookie` header.

    `opts`: `path`, `domain`, `max_age` (seconds), `expires` (an HTTP date), `http_only`, `secure`,
    `same_site` (Lax, Strict, None), also spelled like the attributes. None is set unless it is given.

    Example:
        cookie_serialize("theme", "dark", {path: "/", max_age: 3600})  // "theme=dark; Path=/; Max-Age=3600"
    """
    require("cookie_serialize", name, value)
    given = attributes("cookie_serialize", opts, Attributes())
    return written(text("name", name), cookie_value(value), given)


@builtin("cookie_delete(name: string, opts?: dict) -> string")
def cookie_delete(vm: Vm, name: Value = ABSENT, opts: Value = ABSENT) -> str:
    """The value of a `Set-Cookie` header that has a browser drop a cookie.

    `opts` as for `cookie_serialize`; `path` and `domain` must be those that the cookie was set with.

    Example:
        cookie_delete("sid").split("; ").slice(0, 3)  // ["sid=", "Path=/", "Max-Age=0"]
    """
    require("cookie_delete", name)
    return written(text("name", name), "", attributes("cookie_delete", opts, DELETION))


@builtin("cookie_sign(value: string, secret: string) -> string")
def cookie_sign(vm: Vm, value: Value = ABSENT, secret: Value = ABSENT) -> str:
    """`value.signature`: a value that everybody can read and nobody can change without the secret.

    Example:
        cookie_verify(cookie_sign("ada", "secret"), "secret").value  // "ada"
    """
    require("cookie_sign", value, secret)
    return signed(cookie_value(value), text("secret", secret))


@builtin("cookie_verify(signed: string, secret: string) -> dict")
def cookie_verify(vm: Vm, signed: Value = ABSENT, secret: Value = ABSENT) -> dict[str, Value]:
    """The value in a signed one: `{ok, value, error}`.

    `error` is nil, `malformed` (also of nil, for a cookie that isn't there) or `invalid_signature`; `value`
    is nil unless `ok`.

    Example:
        cookie_verify("ada.forged", "secret")  // {error: "invalid_signature", ok: false, value: nil}
    """
    require("cookie_verify", signed, secret)
    value, error = verified(from_outside("signed", signed), text("secret", secret))
    return {"ok": error is None, "value": value, "error": error}


@builtin("cookie_round_trip(request_cookie: any, set_cookie?: any) -> dict")
def cookie_round_trip(vm: Vm, request_cookie: Value = ABSENT, set_cookie: Value = ABSENT) -> dict[str, Value]:
    """What a browser sends after an answer: `{cookie_header, cookies}`.

    `request_cookie`: what it sent before, as for `cookie_parse`. `set_cookie`: the value of a `Set-Cookie`
    header, a list of such values, or the answer's headers. A cookie that has expired is removed. With one
    argument, that is the `set_cookie`.

    Example:
        cookie_round_trip("a=1; b=2", ["b=; Max-Age=0", "c=3; Path=/"]).cookie_header  // "a=1; c=3"
    """
    require("cookie_round_trip", request_cookie)
    if set_cookie is ABSENT:
        request_cookie, set_cookie = None, request_cookie
    before = read(header_values(request_cookie, "cookie")).values()
    cookies = applied(before, header_values(set_cookie, "set-cookie"), vm.clock.now())
    return {"cookie_header": cookie_header(cookies), "cookies": cookies}
