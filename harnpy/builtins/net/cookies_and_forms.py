"""Cookies, signed values and stateless sessions in them, and multipart forms: what browsers send.

Spec: 04 §16.4, §16.5.
"""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.arguments import data_of, expected, options
from harnpy.faults import paced
from harnpy.formats.crypto.encodings import utf8_fault
from harnpy.formats.json import to_json
from harnpy.net import multipart
from harnpy.net.cookies import (
    DELETION,
    SESSION_COOKIE,
    Attributes,
    CookieError,
    applied,
    cookie_header,
    read_cookies,
    session_payload,
    session_token,
    set_cookie,
    signed_value,
    verified_value,
)
from harnpy.net.multipart import FormError, Limits, Part, encoded_form, read_form
from harnpy.vm.declare import ABSENT, require
from harnpy.vm.declare import builtin as declare
from harnpy.vm.values import display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.net.cookies import Verdict
    from harnpy.net.multipart import Field
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# What the builtins for cookies take: headers in three shapes, options in their spellings. Spec: 04 §16.4.


_KINDS: dict[str, tuple[type, str]] = {
    "path": (str, "a string"),
    "domain": (str, "a string"),
    "max_age": (int, "an int"),
    "expires": (str, "a string"),
    "http_only": (bool, "a bool"),
    "secure": (bool, "a bool"),
    "same_site": (str, "a string"),
}
_SPELLINGS = {
    "Path": "path",
    "Domain": "domain",
    "Max-Age": "max_age",
    "maxAge": "max_age",
    "Expires": "expires",
    "HttpOnly": "http_only",
    "httponly": "http_only",
    "Secure": "secure",
    "SameSite": "same_site",
    "sameSite": "same_site",
}


def require_cookie_arguments(name: str, *arguments: Value) -> None:
    """Raise CookieError when one of the ``arguments`` was not written."""
    if ABSENT in arguments:
        raise CookieError(f"{name} requires {len(arguments)} argument{'s' if len(arguments) > 1 else ''}")


def cookie_text(what: str, value: Value) -> str:
    if type(value) is not str:
        raise CookieError(f"{what} must be a string, got {type_name(value)}")
    return value


def cookie_value(value: Value) -> str:
    """Return a string itself, a number or a bool as it is displayed."""
    if type(value) in (int, float, bool):
        return display(value)
    return cookie_text("value", value)


def from_outside(what: str, value: Value) -> str:
    """Return a text that a request may lack: nil is an empty one."""
    return "" if value is None else cookie_text(what, value)


def header_values(headers: Value, name: str) -> list[str]:
    """Return the values of the header ``name`` (lowercase): itself, a list, or a dict of headers."""
    if type(headers) is not dict:
        return _values(headers)
    return [value for key, given in headers.items() if key.lower() == name for value in _values(given)]


def _values(given: Value) -> list[str]:
    if given is None:
        return []
    if type(given) is str:
        return [given]
    if type(given) is not list:
        raise CookieError(f"cookie headers must be a string, list, dict, or nil; got {type_name(given)}")
    other = next((entry for entry in given if type(entry) is not str), "")
    if type(other) is not str:
        raise CookieError(f"cookie header list entries must be strings, got {type_name(other)}")
    return given


def attributes(name: str, given: Value, usual: Attributes) -> Attributes:
    """Return the options of a cookie, what isn't given as it is in ``usual``. Raises CookieError."""
    if given is None or given is ABSENT:
        return usual
    if type(given) is not dict:
        raise CookieError(f"{name}: options must be a dict, got {type_name(given)}")
    found: dict[str, Value] = {}
    for key, value in given.items():
        option = _SPELLINGS.get(key, key)
        if option not in _KINDS:
            raise CookieError(f"{name}: unknown option `{key}` ({expected(key, list(_KINDS))})")
        if value is None:
            continue
        if option in found:
            raise CookieError(f"{name}: option {option} is there twice, once as `{key}`")
        kind, words = _KINDS[option]
        if type(value) is not kind:
            raise CookieError(f"option {option} must be {words}, got {type_name(value)}")
        found[option] = value
    return usual._replace(**found)


# Cookies, and signed values in them. Spec: 04 §16.4.


builtin = partial(declare, family="web", counted=True)


@builtin("cookie_parse(headers: any) -> dict")
def cookie_parse(vm: Vm, headers: Value = ABSENT) -> dict[str, Value]:
    """Return the cookies of a request: `{cookies, pairs, duplicates, invalid}`.

    `headers`: the value of a `Cookie` header, a list of such values, a request's headers, or nil. `cookies`
    has the first value of each name, `duplicates` all values of names that are there more than once, `pairs`
    every `{name, value}` in order, `invalid` a `{segment, reason}` for anything else.

    Example: cookie_parse({Cookie: "theme=dark; sid=7; junk"}).cookies  // {sid: "7", theme: "dark"}
    """
    require_cookie_arguments("cookie_parse", headers)
    found = read_cookies(header_values(headers, "cookie"))
    return {
        "cookies": found.values(),
        "pairs": [pair._asdict() for pair in found.pairs],
        "duplicates": found.duplicates(),
        "invalid": [each._asdict() for each in found.invalid],
    }


@builtin("cookie_serialize(name: string, value: string, opts?: dict) -> string")
def cookie_serialize(vm: Vm, name: Value = ABSENT, value: Value = ABSENT, opts: Value = ABSENT) -> str:
    """Return the value of a `Set-Cookie` header.

    `opts`: `path`, `domain`, `max_age` (seconds), `expires` (an HTTP date), `http_only`, `secure`,
    `same_site` (Lax, Strict, None), also spelled like the attributes. None is set unless it is given.

    Example:
        cookie_serialize("theme", "dark", {path: "/", max_age: 3600})  // "theme=dark; Path=/; Max-Age=3600"
    """
    require_cookie_arguments("cookie_serialize", name, value)
    given = attributes("cookie_serialize", opts, Attributes())
    return set_cookie(cookie_text("name", name), cookie_value(value), given)


@builtin("cookie_delete(name: string, opts?: dict) -> string")
def cookie_delete(vm: Vm, name: Value = ABSENT, opts: Value = ABSENT) -> str:
    """Return a `Set-Cookie` header value that makes a browser delete a cookie.

    `opts` as for `cookie_serialize`; `path` and `domain` must be those with which the cookie was set.

    Example: cookie_delete("sid").split("; ").slice(0, 3)  // ["sid=", "Path=/", "Max-Age=0"]
    """
    require_cookie_arguments("cookie_delete", name)
    return set_cookie(cookie_text("name", name), "", attributes("cookie_delete", opts, DELETION))


@builtin("cookie_sign(value: string, secret: string) -> string")
def cookie_sign(vm: Vm, value: Value = ABSENT, secret: Value = ABSENT) -> str:
    """Return `value.signature`: everybody can read the value, but nobody can change it without the secret.

    Example: cookie_verify(cookie_sign("ada", "secret"), "secret").value  // "ada"
    """
    require_cookie_arguments("cookie_sign", value, secret)
    return signed_value(cookie_value(value), cookie_text("secret", secret))


@builtin("cookie_verify(signed: string, secret: string) -> dict")
def cookie_verify(vm: Vm, signed: Value = ABSENT, secret: Value = ABSENT) -> dict[str, Value]:
    """Return the value of a signed cookie: `{ok, value, error}`.

    `error` is nil, `malformed` (also of nil, for a cookie that isn't there) or `invalid_signature`; `value`
    is nil unless `ok`.

    Example: cookie_verify("ada.forged", "secret")  // {error: "invalid_signature", ok: false, value: nil}
    """
    require_cookie_arguments("cookie_verify", signed, secret)
    value, error = verified_value(from_outside("signed", signed), cookie_text("secret", secret))
    return {"ok": error is None, "value": value, "error": error}


@builtin("cookie_round_trip(request_cookie: any, set_cookie?: any) -> dict")
def cookie_round_trip(vm: Vm, request_cookie: Value = ABSENT, set_cookie: Value = ABSENT) -> dict[str, Value]:
    """Return what a browser sends after a response: `{cookie_header, cookies}`.

    `request_cookie`: what it sent before, as for `cookie_parse`. `set_cookie`: the value of a `Set-Cookie`
    header, a list of such values, or the answer's headers. A cookie that has expired is removed. With one
    argument, that is the `set_cookie`.

    Example: cookie_round_trip("a=1; b=2", ["b=; Max-Age=0", "c=3; Path=/"]).cookie_header  // "a=1; c=3"
    """
    require_cookie_arguments("cookie_round_trip", request_cookie)
    if set_cookie is ABSENT:
        request_cookie, set_cookie = None, request_cookie
    before = read_cookies(header_values(request_cookie, "cookie")).values()
    cookies = applied(before, header_values(set_cookie, "set-cookie"), vm.clock.now())
    return {"cookie_header": cookie_header(cookies), "cookies": cookies}


# Sessions of web services that live in a signed cookie. Spec: 04 §16.4 "session_sign".


@builtin("session_sign(payload: any, secret: string) -> string")
def session_sign(vm: Vm, payload: Value = ABSENT, secret: Value = ABSENT) -> str:
    """Return a signed token with the payload as JSON: everybody can read it, nobody can change it unnoticed.

    It doesn't expire by itself: put a time into the payload if it must.

    Example: session_verify(session_sign({user: "ada"}, "secret"), "secret").payload  // {user: "ada"}
    """
    require_cookie_arguments("session_sign", payload, secret)
    return _token(vm, payload, secret)


@builtin("session_verify(token: string, secret: string) -> dict")
def session_verify(vm: Vm, token: Value = ABSENT, secret: Value = ABSENT) -> dict[str, Value]:
    """Return the payload of a session's token: `{ok, payload, error}`.

    `error` is nil, `malformed` (also of nil), `invalid_signature` or `malformed_payload`; `payload` is nil
    unless `ok`.

    Example: session_verify("v1.e30.forged", "secret").error  // "invalid_signature"
    """
    require_cookie_arguments("session_verify", token, secret)
    return _result(session_payload(from_outside("token", token), cookie_text("secret", secret)))


@builtin("session_cookie(name: string, payload: any, secret: string, opts?: dict) -> string")
def session_cookie(
    vm: Vm, name: Value = ABSENT, payload: Value = ABSENT, secret: Value = ABSENT, opts: Value = ABSENT
) -> str:
    """Return the value of a `Set-Cookie` header with a session's token.

    `opts` as for `cookie_serialize`, beginning with `Path=/; HttpOnly; Secure; SameSite=Lax`. Browsers drop
    cookies of more than 4096 bytes.

    Example:
        let header = session_cookie("sid", {user: "ada"}, "secret")
        header.split("; ").slice(1)  // ["Path=/", "HttpOnly", "Secure", "SameSite=Lax"]
    """
    require_cookie_arguments("session_cookie", name, payload, secret)
    given = attributes("session_cookie", opts, SESSION_COOKIE)
    return set_cookie(cookie_text("name", name), _token(vm, payload, secret), given)


@builtin("session_from_cookies(headers: any, name: string, secret: string) -> dict")
def session_from_cookies(
    vm: Vm, headers: Value = ABSENT, name: Value = ABSENT, secret: Value = ABSENT
) -> dict[str, Value]:
    """Return the payload of the session in a request's cookies: `{ok, payload, error}`.

    `headers` as for `cookie_parse`; `error` as of `session_verify`, or `missing_cookie`.

    Example:
        let request = {cookie: session_cookie("sid", {user: "ada"}, "secret").split(";")[0]}
        session_from_cookies(request, "sid", "secret").payload  // {user: "ada"}
    """
    require_cookie_arguments("session_from_cookies", headers, name, secret)
    token = read_cookies(header_values(headers, "cookie")).values().get(cookie_text("name", name))
    checked = cookie_text("secret", secret)
    if token is None:
        return {"ok": False, "payload": None, "error": "missing_cookie"}
    return _result(session_payload(token, checked))


def _token(vm: Vm, payload: Value, secret: Value) -> str:
    return session_token(to_json(payload), cookie_text("secret", secret))


def _result(verdict: Verdict) -> dict[str, Value]:
    return {"ok": verdict.error is None, "payload": verdict.content, "error": verdict.error}


# Forms with files. Spec: 04 §16.5.


_KEYS = ("name", "content", "value", "filename", "content_type", "headers")


@builtin("multipart_form_data(fields: list, opts?: dict) -> dict")
def multipart_form_data(vm: Vm, fields: Value = ABSENT, opts: Value = ABSENT) -> dict[str, Value]:
    """Return the body of a form with files: `{content_type, boundary, body: bytes}`.

    `fields`: `{name, content, filename?, content_type?, headers?}` dicts; `content` (or `value`) is bytes or
    a string. `opts.boundary`: what separates the fields; else one is made from them, always the same.

    Example:
        let form = multipart_form_data([{name: "a", value: "1"}], {boundary: "b"})
        form.content_type  // "multipart/form-data; boundary=b"
    """
    require("multipart_form_data: requires 1 argument", fields)
    boundary = options("multipart_form_data", opts, ("boundary",)).get("boundary")
    parts = _parts(fields)
    if boundary is None:
        boundary = multipart.chosen_boundary(map(display, fields), [part.content for part in parts])
    body = encoded_form(parts, _text("boundary", boundary))
    vm.sizes.check_bytes(len(body))
    return {"content_type": multipart.form_content_type(boundary), "boundary": boundary, "body": body}


@builtin("multipart_parse(body: any, content_type: string, limits?: dict) -> dict")
def multipart_parse(
    vm: Vm, body: Value = ABSENT, content_type: Value = ABSENT, limits: Value = ABSENT
) -> dict[str, Value]:
    """Return the fields of a form: `{boundary, fields, field_count, total_bytes}`.

    A field is `{name, filename, content_type, headers, bytes, text}`; `text` is nil when the bytes are no
    UTF-8. `content_type`: the request's header. `limits`: `max_total_bytes` (8388608), `max_field_bytes`
    (8388608), `max_fields` (128). `total_bytes` is the body's length.

    Example:
        let form = multipart_form_data([{name: "a", value: "1"}])
        multipart_parse(form.body, form.content_type).fields[0].text  // "1"
    """
    require("multipart_parse: requires 2 arguments", body, content_type)
    if type(body) not in (bytes, str):
        raise FormError(f"body must be bytes or string, got {type_name(body)}")
    if type(content_type) is not str:
        raise FormError(f"expected multipart/form-data content type, got {display(content_type)}")
    data = data_of(body)
    form = read_form(data, content_type, _limits(limits))
    return {
        "boundary": form.boundary,
        "fields": [_field(field) for field in form.fields],
        "field_count": len(form.fields),
        "total_bytes": len(data),
    }


@builtin("multipart_field_bytes(field: dict) -> bytes")
def multipart_field_bytes(vm: Vm, field: Value = ABSENT) -> bytes:
    """Return the content of a field of `multipart_parse`.

    Example:
        let form = multipart_form_data([{name: "a", value: "1"}])
        bytes_to_hex(multipart_field_bytes(multipart_parse(form.body, form.content_type).fields[0]))  // "31"
    """
    require("multipart_field_bytes: requires 1 argument", field)
    return _content(field)


@builtin("multipart_field_text(field: dict) -> string")
def multipart_field_text(vm: Vm, field: Value = ABSENT) -> str:
    """Return the content of a field of `multipart_parse` as text; invalid UTF-8 is an error.

    Example:
        let form = multipart_form_data([{name: "a", value: "ä"}])
        multipart_field_text(multipart_parse(form.body, form.content_type).fields[0])  // "ä"
    """
    require("multipart_field_text: requires 1 argument", field)
    try:
        return _content(field).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormError(f"the field is no text: {utf8_fault(error)}") from None


def _parts(fields: Value) -> list[Part]:
    if type(fields) is not list:
        raise FormError(f"fields must be a list, got {type_name(fields)}")
    return [_part(number, field) for number, field in enumerate(paced(fields))]


def _part(number: int, field: Value) -> Part:
    if type(field) is not dict:
        raise FormError(f"field {number} must be a dict, got {type_name(field)}")
    for key in field:
        if key not in _KEYS:
            raise FormError(f"field {number} has an unknown key `{key}` ({expected(key, _KEYS)})")
    content = field.get("value") if field.get("content") is None else field["content"]
    name, filename, kind = field.get("name"), field.get("filename"), field.get("content_type")
    if name is None:
        raise FormError("field is missing name")
    if content is None:
        raise FormError("field is missing content")
    if type(content) not in (bytes, str):
        raise FormError(f"content must be bytes or string, got {type_name(content)}")
    return Part(
        _text("name", name),
        data_of(content),
        None if filename is None else _text("filename", filename),
        None if kind is None else _text("content_type", kind),
        _headers(field.get("headers")),
    )


def _headers(given: Value) -> dict[str, str]:
    if given is None:
        return {}
    if type(given) is not dict:
        raise FormError(f"headers must be a dict, got {type_name(given)}")
    return {name: display(value) for name, value in paced([*given.items()]) if value is not None}


def _limits(given: Value) -> Limits:
    found = options("multipart_parse", given, Limits._fields)
    for name, value in found.items():
        if type(value) is not int:
            raise FormError(f"{name} must be an int, got {type_name(value)}")
        if value < 0:
            raise FormError(f"{name} must be non-negative, got {value}")
    return Limits(**found)


def _field(field: Field) -> dict[str, Value]:
    return {
        "name": field.name,
        "filename": field.filename,
        "content_type": field.content_type,
        "headers": field.headers,
        "bytes": field.content,
        "text": _text_or_nil(field.content),
    }


def _text_or_nil(content: bytes) -> str | None:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _content(field: Value) -> bytes:
    if type(field) is not dict:
        raise FormError(f"expected a field of multipart_parse, got {type_name(field)}")
    content = field.get("bytes")
    if type(content) is not bytes:
        raise FormError(f"expected a field with bytes, as of multipart_parse, got {type_name(content)}")
    return content


def _text(what: str, value: Value) -> str:
    if type(value) is not str:
        raise FormError(f"{what} must be a string, got {type_name(value)}")
    return value
