"""URLs and queries. Spec: 04 §17."""

from __future__ import annotations

from harnpy.builtins.language.codecs.arguments import expected
from harnpy.text import urls
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import Thrown
from harnpy.vm.values.objects import display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("url_parse(s: string) -> dict", family="web")
def url_parse(vm: Vm, s: str) -> dict[str, Value]:
    """The parts of an absolute URL, as it is canonically written; what it lacks is nil.

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
    """The canonical URL of `parts`, a dict such as `url_parse` returns. Only `scheme` is required.

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
    """The pairs of a query or form body as dicts `{key, value}`, in order; a key may come more than once.

    Example:
        query_parse("?q=a+b&lang=en")  // [{key: "q", value: "a b"}, {key: "lang", value: "en"}]
    """
    return [{"key": key, "value": value} for key, value in vm.paced(urls.read_query(s))]


@builtin("query_stringify(pairs: list) -> string", family="web")
def query_stringify(vm: Vm, pairs: Value) -> str:
    """The query of `pairs`, dicts `{key, value}`; all but `A-Za-z0-9*-._` is encoded, a space as `+`.

    Example:
        query_stringify([{key: "q", value: "a b"}, {key: "n", value: 3}])  // "q=a+b&n=3"
    """
    if type(pairs) is not list:
        raise Thrown("query_stringify: expected a list of {key, value} dicts")
    for pair in vm.paced(pairs):
        if not isinstance(pair, dict) or "key" not in pair or "value" not in pair:
            raise Thrown("query_stringify: each item must be a {key, value} dict")
    return urls.written_query((display(pair["key"]), display(pair["value"])) for pair in vm.paced(pairs))
