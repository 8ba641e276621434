"""URLs with claims, an expiry and a signature. Spec: 04 §16.3 "signed_url"."""

from __future__ import annotations

from harnpy.builtins.language.codecs.arguments import option, options
from harnpy.crypto import signed_urls
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values.objects import display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: Each function also knows what only the other one uses, so that both take the same dict.
_OPTIONS = ("signature_param", "expires_param", "kid_param", "kid", "skew_seconds")


@builtin(
    "signed_url(base: any, claims: dict, secret: any, expires_at: any, opts?: dict) -> string",
    family="crypto",
)
def signed_url(vm: Vm, base: Value, claims: Value, secret: Value, expires_at: Value, opts: Value) -> str:
    """`base` with the claims, the expiry (Unix seconds) and a signature as parameters.

    `base`: an absolute URL, or a path from `/`. `opts`: `kid`, the name of the key; `signature_param`
    ("sig"), `expires_param` ("exp") and `kid_param` ("kid"), what the parameters are called.

    Example:
        signed_url("/file", {user: "7"}, "secret", 1700000000).split("&")[0]  // "/file?exp=1700000000"
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
    """Whether a signed URL is genuine and still holds at `now` (Unix seconds).

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
