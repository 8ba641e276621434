"""URLs and queries, also signed URLs with claims and an expiry. Spec: 04 §16.3 "signed_url", §17."""

from __future__ import annotations

from harnpy.builtins.language.arguments import expected, option, options
from harnpy.faults import paced
from harnpy.formats import urls
from harnpy.formats.crypto import signed_urls
from harnpy.vm.declare import builtin
from harnpy.vm.errors import RuntimeFault, Thrown
from harnpy.vm.values import display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm


@builtin("url_parse(s: string) -> dict", family="web")
def url_parse(vm: Vm, s: str) -> dict[str, Value]:
    """Return the parts of an absolute URL in canonical form; missing parts are nil.

    `{scheme, host, port, path, query, fragment, username, password}`; the scheme's own port is nil, and
    what is encoded as `%XX` stays so.

    Example:
        let url = url_parse("HTTPS://Example.com:443/a/../b?q=1")
        [url.host, url.port, url.path, url.query]  // ["example.com", nil, "/b", "q=1"]
    """
    try:
        return dict(urls.parse(s)._asdict())
    except urls.UrlError as error:
        raise Thrown(f"url_parse: {error}") from None


@builtin("url_build(parts: dict) -> string", family="web")
def url_build(vm: Vm, parts: Value) -> str:
    """Return the canonical URL of `parts`, a dict like that of `url_parse`. Only `scheme` is required.

    Example:
        url_build({scheme: "https", host: "example.com", path: "/a b", query: "q=1"})  // "https://example.com/a%20b?q=1"
    """
    if not isinstance(parts, dict):
        raise Thrown("url_build: expected a dict of url parts")
    try:
        return urls.build(_url(parts))
    except urls.UrlError as error:
        raise Thrown(f"url_build: {error}") from None


def _url(parts: dict[str, Value]) -> urls.Url:
    unknown = next((key for key in parts if key not in urls.Url._fields), None)
    if unknown is not None:
        raise urls.UrlError(f"unknown part `{unknown}` ({expected(unknown, urls.Url._fields)})")
    for name, value in parts.items():
        kind = int if name == "port" else str
        if value is not None and type(value) is not kind:
            right = "an int" if kind is int else "a string"
            raise urls.UrlError(f"'{name}' must be {right}, got {type_name(value)}")
    if not parts.get("scheme"):
        raise urls.UrlError("'scheme' is required")
    given: dict[str, Value] = {name: parts.get(name) for name in urls.Url._fields}
    if given["path"] is None:
        given["path"] = "/"
    return urls.Url(**given)


@builtin("query_parse(s: string) -> list", family="web")
def query_parse(vm: Vm, s: str) -> list[Value]:
    """Read a query or form body as dicts `{key, value}`, in order; keys may repeat.

    Example: query_parse("?q=a+b&lang=en")  // [{key: "q", value: "a b"}, {key: "lang", value: "en"}]
    """
    return [{"key": key, "value": value} for key, value in paced(urls.read_query(s))]


@builtin("query_stringify(pairs: list) -> string", family="web")
def query_stringify(vm: Vm, pairs: Value) -> str:
    """Return the query of `pairs`, dicts `{key, value}`; all but `A-Za-z0-9*-._` is encoded, a space as `+`.

    Example: query_stringify([{key: "q", value: "a b"}, {key: "n", value: 3}])  // "q=a+b&n=3"
    """
    if type(pairs) is not list:
        raise Thrown("query_stringify: expected a list of {key, value} dicts")
    for pair in paced(pairs):
        if not isinstance(pair, dict) or "key" not in pair or "value" not in pair:
            raise Thrown("query_stringify: each item must be a {key, value} dict")
    return urls.written_query((display(pair["key"]), display(pair["value"])) for pair in paced(pairs))


#: Each function also knows what only the other one uses, so that both take the same dict.
_OPTIONS = ("signature_param", "expires_param", "kid_param", "kid", "skew_seconds")


@builtin(
    "signed_url(base: any, claims: dict, secret: any, expires_at: any, opts?: dict) -> string",
    family="crypto",
)
def signed_url(vm: Vm, base: Value, claims: Value, secret: Value, expires_at: Value, opts: Value) -> str:
    """Return `base` with the claims, the expiry (Unix seconds) and a signature as parameters.

    `base`: an absolute URL, or a path from `/`. `opts`: `kid`, the name of the key; `signature_param`
    ("sig"), `expires_param` ("exp") and `kid_param` ("kid"), what the parameters are called.

    Example: signed_url("/file", {user: "7"}, "secret", 1700000000).split("&")[0]  // "/file?exp=1700000000"
    """
    name = "signed_url"
    _expect(name, "base", base, str, "a string")
    _expect(name, "claims", claims, dict, "a dict")
    _expect(name, "secret", secret, str, "a string")
    _expect(name, "expires_at", expires_at, int, "an int")
    given = options(name, opts, _OPTIONS)
    texts = {key: display(value) for key, value in claims.items()}
    kid = _text(name, given, "kid", None)
    return signed_urls.signed_url(base, texts, secret, expires_at, _names(name, given), kid)


@builtin("verify_signed_url(url: any, secret_or_keys: any, now: any, opts?: dict) -> dict", family="crypto")
def verify_signed_url(vm: Vm, url: Value, secret_or_keys: Value, now: Value, opts: Value) -> dict[str, Value]:
    """Check whether a signed URL is genuine and still valid at `now` (Unix seconds).

    `{valid, reason, signature_valid, expired, expires_at, kid, claims}`. `secret_or_keys`: the secret, or
    a dict from kid to secret. `opts`: `skew_seconds` (0) of patience after the expiry, and the parameters'
    names as in `signed_url`.

    Example:
        let url = signed_url("/file", {user: "7"}, "secret", 2000)
        let checked = verify_signed_url(url, "secret", 2001)
        [checked.signature_valid, checked.expired, checked.valid]  // [true, true, false]
    """
    name = "verify_signed_url"
    _expect(name, "url", url, str, "a string")
    _expect(name, "secret_or_keys", secret_or_keys, (str, dict), "a string or dict")
    _expect(name, "now", now, int, "an int")
    if type(secret_or_keys) is dict:
        for kid, secret in secret_or_keys.items():
            _expect(name, f"the secret of `{kid}`", secret, str, "a string")
    given = options(name, opts, _OPTIONS)
    skew = option(name, given, "skew_seconds", int, 0)
    if skew < 0:
        raise RuntimeFault(f"{name}: option `skew_seconds` must not be negative, got {skew}")
    return signed_urls.verification(url, secret_or_keys, now, _names(name, given), skew)


def _names(name: str, given: dict[str, Value]) -> signed_urls.Names:
    usual = signed_urls.Names()
    names = signed_urls.Names(
        _text(name, given, "signature_param", usual.signature),
        _text(name, given, "expires_param", usual.expires),
        _text(name, given, "kid_param", usual.kid),
    )
    if len({*names}) < len(names):
        raise RuntimeFault(f"{name}: signature_param, expires_param, and kid_param must be distinct")
    return names


def _text(name: str, given: dict[str, Value], key: str, default: str | None) -> Value:
    value = option(name, given, key, str, default)
    if value == "":
        raise RuntimeFault(f"{name}: option `{key}` must not be empty")
    return value


def _expect(name: str, what: str, value: Value, kinds: type | tuple[type, ...], words: str) -> None:
    if type(value) not in (kinds if isinstance(kinds, tuple) else (kinds,)):
        raise RuntimeFault(f"{name}: {what} must be {words}, got {type_name(value)}")
