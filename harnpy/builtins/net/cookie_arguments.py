"""What the builtins for cookies take: headers in three shapes, options in their spellings. Spec: 04 §16.4."""

from __future__ import annotations

from harnpy.builtins.language.codecs.arguments import expected
from harnpy.net.cookies.rules import CookieError
from harnpy.net.cookies.writing import Attributes
from harnpy.vm.declare.builtin import ABSENT
from harnpy.vm.values.objects import display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value

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


def require(name: str, *arguments: Value) -> None:
    """Raise CookieError when one of the ``arguments`` was not written."""
    if ABSENT in arguments:
        raise CookieError(f"{name} requires {len(arguments)} argument{'s' if len(arguments) > 1 else ''}")


def text(what: str, value: Value) -> str:
    if type(value) is not str:
        raise CookieError(f"{what} must be a string, got {type_name(value)}")
    return value


def cookie_value(value: Value) -> str:
    """Return a string itself, a number or a bool as it is displayed."""
    if type(value) in (int, float, bool):
        return display(value)
    return text("value", value)


def from_outside(what: str, value: Value) -> str:
    """Return a text that a request may lack: nil is an empty one."""
    return "" if value is None else text(what, value)


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
