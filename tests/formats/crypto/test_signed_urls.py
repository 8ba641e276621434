"""Signed URLs: a second implementation from the specification's words, and every way to tamper."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harnpy.formats.crypto.signed_urls import Names, UrlError, signed_url, verification

USUAL = Names()
TEXTS = st.text(max_size=6)
CLAIMS = st.dictionaries(TEXTS.filter(lambda name: name not in USUAL), TEXTS, max_size=3)
BASES = st.sampled_from(
    [
        "/",
        "/files/a b",
        "/ä?x=1&x=2",
        "/f?sig=old&exp=1&kid=k&keep=+%2B",
        "https://example.com",
        "https://example.com:8443/a/b?q=%20",
        "http://[::1]:80/x",
    ]
)


def signed(base: str = "/f", secret: str = "s", at: int = 100, kid: str | None = None, **claims: str) -> str:
    return signed_url(base, claims, secret, at, USUAL, kid)


def verify(url: str, secrets: Any = "s", now: int = 100, skew: int = 0) -> dict[str, Any]:
    return verification(url, secrets, now, USUAL, skew)


@given(BASES, CLAIMS, st.text(min_size=1, max_size=5), st.integers(-(2**40), 2**40))
def test_the_specification_s_words(base: str, claims: dict[str, str], secret: str, at: int) -> None:
    parts = urlsplit(signed_url(base, claims, secret, at, USUAL, "k"))
    pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True)
    given = parse_qsl(urlsplit(base).query, keep_blank_values=True)
    content = [pair for pair in given if pair[0] not in USUAL]
    content += [*claims.items(), ("exp", str(at)), ("kid", "k")]
    encoded = sorted((quote(name, safe=""), quote(value, safe="")) for name, value in content)
    query = "&".join(f"{name}={value}" for name, value in encoded)
    origin = f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
    text = f"harn-signed-url-v1\n{origin}{parts.path}\n{query}"
    digest = hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()
    assert dict(pairs)["sig"] == base64.urlsafe_b64encode(digest).decode().rstrip("=")
    assert sorted(pair for pair in pairs if pair[0] != "sig") == sorted(content)


@given(BASES, CLAIMS, st.one_of(st.none(), st.text(min_size=1, max_size=4)))
@example("/", {"": ""}, None)
@example("/", {"\ud800": "a=b&c"}, "\udcff")
def test_what_is_signed_is_genuine_until_it_expires(
    base: str, claims: dict[str, str], kid: str | None
) -> None:
    url = signed_url(base, claims, "s", 100, USUAL, kid)
    found = verify(url, "s" if kid is None else {"x": "t", kid: "s"} if kid != "\udcff" else "s")
    assert (found["valid"], found["reason"], found["expires_at"]) == (True, "ok", 100)
    for name, value in claims.items():
        if "\ud800" not in name:
            assert found["claims"][name] == value
    late = verify(url, now=101)
    assert (late["valid"], late["reason"], late["signature_valid"], late["expired"]) == (
        False, "expired", True, True,
    )  # fmt: skip
    assert verify(url, now=103, skew=3)["valid"]


@given(st.floats(0, 1, exclude_max=True), st.sampled_from("Aa0/?&=%+._~é#"))
def test_a_changed_url_says_the_same_or_is_not_genuine(place: float, other: str) -> None:
    url = signed("https://example.com/files/a%20b?x=1", user="ann bob", role="r&d")
    at = int(place * len(url))
    changed = url[:at] + other + url[at + 1 :]
    try:
        found = verify(changed)
    except UrlError:
        return
    if found["signature_valid"]:
        assert found["claims"] == {"x": "1", "user": "ann bob", "role": "r&d"}
        assert found["expires_at"] == 100


@pytest.mark.parametrize(
    ("base", "place"),
    [
        ("/", "/"),
        ("/a b#part", "/a%20b"),
        ("/a%20b", "/a%20b"),
        ("/100%", "/100%"),
        ("/ä(1);v=2,3", "/%C3%A4(1);v=2,3"),
        ("HTTPS://Example.COM:443", "https://example.com/"),
        ("https://bücher.de/x", "https://xn--bcher-kva.de/x"),
        ("http://h:8080/", "http://h:8080/"),
        ("http://[::1]/x", "http://[::1]/x"),
        ("/a..b/...", "/a..b/..."),
    ],
)
def test_places_have_one_spelling(base: str, place: str) -> None:
    assert signed(base).partition("?")[0] == place


def test_order_and_escapes_do_not_count() -> None:
    path, _, query = signed("/f", name="a b", x="~").partition("?")
    pairs = query.split("&")
    assert verify(f"{path}?{'&'.join(reversed(pairs))}".replace("%20", "+").replace("~", "%7e"))["valid"]


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("x", "base must be an absolute URL with a host, or a path that starts with `/`"),
        ("", "base must be an absolute URL with a host, or a path that starts with `/`"),
        ("https:///x", "base must be an absolute URL with a host, or a path that starts with `/`"),
        ("mailto:a@b", "base must be an absolute URL with a host, or a path that starts with `/`"),
        ("//host/x", "base must be an absolute URL with a host, or a path that starts with `/`"),
        ("https://a:b@h/", "base must not hold a user name or password"),
        ("https://@h/", "base must not hold a user name or password"),
        ("https://h:x/", "base is not a valid URL"),
        ("https://h:99999/", "base is not a valid URL"),
        ("https://[::1/", "base is not a valid URL"),
        ("https://a..b/", "base is not a valid URL"),
        ("/a/../b", "base must not have `.` or `..` segments: clients resolve them before they ask"),
        ("/a/%2e%2E", "base must not have `.` or `..` segments: clients resolve them before they ask"),
    ],
)
def test_bases_that_cannot_be_signed(base: str, message: str) -> None:
    with pytest.raises(UrlError) as caught:
        signed(base)
    assert str(caught.value).startswith(message)


@given(st.text("ht:/p.[]@%?#&=a \\é\ud8000", max_size=14))
def test_any_text_is_verified_or_refused(url: str) -> None:
    try:
        assert not verify(url)["valid"]
    except UrlError as error:
        assert str(error).startswith("url ")  # noqa: PT017


def test_reserved_parameters() -> None:
    with pytest.raises(UrlError, match="claims cannot contain reserved parameter `exp`"):
        signed_url("/", {"exp": "1"}, "s", 1, USUAL, None)
    with pytest.raises(UrlError, match="claims cannot contain reserved parameter `s`"):
        signed_url("/", {"s": "1"}, "s", 1, Names("s", "e", "k"), None)
    with pytest.raises(UrlError, match="secret must not be empty"):
        signed("/", secret="")
    names = Names("my sig", "until", "key")
    url = signed_url("/?until=9", {"exp": "kept"}, "s", 5, names, "k1")
    found = verification(url, {"k1": "s"}, 5, names, 0)
    assert (found["valid"], found["kid"], found["claims"]) == (True, "k1", {"exp": "kept"})


NOTHING = {
    "valid": False, "reason": "", "signature_valid": False, "expired": False, "expires_at": None,
    "kid": None, "claims": {},
}  # fmt: skip


@pytest.mark.parametrize(
    ("url", "secrets", "expected"),
    [
        ("/f?exp=1&a=b", "s", {"reason": "missing_signature"}),
        ("/f?sig=x&sig=x&exp=1", "s", {"reason": "missing_signature"}),
        ("/f?sig=x&a=b&kid=k", "s", {"reason": "missing_expiry"}),
        ("/f?sig=x&exp=1&exp=1", "s", {"reason": "missing_expiry"}),
        ("/f?sig=x&exp=1.5", "s", {"reason": "invalid_expiry"}),
        ("/f?sig=x&exp=", "s", {"reason": "invalid_expiry"}),
        ("/f?sig=x&exp=9223372036854775808", "s", {"reason": "invalid_expiry"}),
        ("/f?sig=x&exp=1&kid=a&kid=a", "s", {"reason": "duplicate_kid", "expires_at": 1}),
        ("/f?sig=x&exp=1&b=c", {"k": "s"}, {"reason": "unknown_key", "expires_at": 1, "claims": {"b": "c"}}),
        ("/f?sig=x&exp=1&kid=a", {"k": "s"}, {"reason": "unknown_key", "expires_at": 1, "kid": "a"}),
        ("/f?sig=x&exp=1", "", {"reason": "unknown_key", "expires_at": 1}),
        ("/f?sig=x&exp=100", "s", {"reason": "bad_signature", "expires_at": 100}),
        (
            "/f?sig=x&exp=1&kid=k",
            {"k": "s"},
            {"reason": "bad_signature", "expires_at": 1, "kid": "k", "expired": True},
        ),
    ],
)  # fmt: skip
def test_reasons(url: str, secrets: Any, expected: dict[str, Any]) -> None:
    assert verify(url, secrets) == {**NOTHING, **expected}
