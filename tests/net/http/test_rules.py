"""What is decided without a network: patterns, pauses, proxies, URLs."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.formats.globs import glob_matches
from harnpy.net.errors import HttpError
from harnpy.net.http_options import Given
from harnpy.net.http_replies import Reply
from harnpy.net.http_request import Retries, basic_auth, read_settings, read_target

FEW = st.text(alphabet="ab*", max_size=8)


@given(FEW, st.text(alphabet="ab", max_size=10))
def test_a_pattern_matches_as_its_regular_expression_does(pattern: str, text: str) -> None:
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL)
    assert glob_matches(pattern, text) == (expected is not None)


def test_a_pattern_takes_time_in_proportion() -> None:
    assert not glob_matches("*a" * 200 + "b", "a" * 100_000)


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True), st.floats(0, 1e6))
def test_a_pause_is_within_a_quarter_of_its_length_and_a_minute(
    attempt: int, chance: float, backoff: float
) -> None:
    base = min(backoff * 2.0 ** min(attempt, 64), 60)
    assert 0.75 * base <= Retries(backoff=backoff).pause(attempt, chance) <= min(1.25 * base, 60)


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose own time isn't UTC."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("status", "header", "seconds"),
    [
        (503, "7", 7), (429, "0.5", 0.5), (503, "-3", 0), (503, "86400", 60), (503, None, None),
        (503, "Thu, 01 Jan 1970 00:01:10 GMT", 10), (503, "Thu, 01 Jan 1970 00:00:00 GMT", 0),
        (503, "Fri, 31 Dec 9999 23:59:59 GMT", 60), (503, "soon", None), (503, "nan", None),
        (503, "inf", None), (503, "", None), (500, "7", None),
        (503, "Thu, 01 Jan 1970 00:01:10 -0000", 10), (503, "Thu, 01 Jan 1970 00:01:10", 10),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("tokyo")
def test_what_a_response_asks_to_wait(status: int, header: str | None, seconds: float | None) -> None:
    assert Retries().asked_for(status, header, 60.0) == seconds
    assert Retries(respects=False).asked_for(status, header, 60.0) is None


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("http://H.Test", "http://h.test/"),
        ("HTTPS://h.test:443/a/../b?q#f", "https://h.test/b?q"),
        ("http://h.test\\@evil.test/", "http://h.test/@evil.test/"),
        ("http://u:p@0x7f.1/", "http://127.0.0.1/"),
        ("http://h.t\test/", "http://h.test/"),
        ("http://bücher.test/ä", "http://xn--bcher-kva.test/%C3%A4"),
    ],
)
def test_a_url_is_sent_as_a_browser_reads_it(url: str, canonical: str) -> None:
    assert read_target(url, {}).canonical == canonical


@pytest.mark.parametrize(
    "url", ["ftp://u:hidden@h.test/", "//h.test/?api_key=hidden", "http://h:x/?token=hidden"]
)
def test_a_url_that_is_refused_is_named_without_its_secrets(url: str) -> None:
    with pytest.raises(HttpError, match=r"h(\.test|:x)") as refused:
        read_target(url, {})
    assert "hidden" not in str(refused.value)


def test_user_and_password_of_a_url_are_credentials() -> None:
    assert read_target("http://a%40b:p%3A@h.test/", {}).authorization == basic_auth("a@b", "p:")
    assert read_target("http://h.test/", {}).authorization is None


def test_a_proxy_may_have_its_credentials_in_its_url() -> None:
    options = {"proxy": {"url": "u:p%40@proxy.test:3128", "no_proxy": " *.A.test, .b.test,,*"}}
    settings = read_settings(Given("http_get", options), str)
    assert (settings.proxy, settings.proxy_auth) == ("http://proxy.test:3128/", ("u", "p@"))
    assert settings.no_proxy == ("a.test", "b.test", "*")


@pytest.mark.parametrize(
    ("charset", "body", "text"),
    [
        (None, b"\xef\xbb\xbfa\xff", "a\ufffd"), ("ISO-8859-1", b"\xe4", "ä"),
        ("utf-16", b"\xff\xfea\0", "a"), ("windows-1252", b"\x80", "€"),
        ("hex", b"61", "61"), ("no-such", b"a", "a"), ("a\0b", b"a", "a"),
    ],
)  # fmt: skip
def test_a_body_is_read_in_its_encoding(charset: str | None, body: bytes, text: str) -> None:
    assert Reply(200, {}, body, charset).text() == text


def test_a_program_with_mocks_loads_no_client() -> None:
    program = """
    http_mock("*", "*", {body: "x"})
    http_get("http://a.test/")
    http_stream_read(http_stream_open("http://a.test/", {session: http_session()}))
    """
    heavy = ("httpx2", "httpcore2", "anyio")
    text = (
        f"import sys; from harnpy import Vm; Vm().run_source({program!r}); "
        f"print(*(name for name in {heavy} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
