"""How rules are written, and what they hold for: 04 §21.4."""

from __future__ import annotations

import pickle

import pytest

from harnpy.world.egress import Egress, EgressBlocked, Forbidden, environment_egress, redacted_url
from harnpy.world.egress_rules import PolicyError, read_policy, read_rule

NOTHING = "no allow rule matched"


def reason(url: str, **policy: object) -> str | None:
    """Why a URL is blocked, None when it isn't."""
    rules = {"allow": None, "deny": None, "default": None, "source": "stdlib", **policy}
    try:
        Egress(read_policy(**rules)).admit("http_request", url)  # type: ignore[arg-type]
    except EgressBlocked as blocked:
        return blocked.reason
    return None


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://127.1/", "http://0x7f.1/", "http://0x7f000001/", "http://2130706433/",
        "http://0177.0.0.1/", "http://127.0.0.1./", "http://127。0。0。1/", "http://１２７.0.0.1/",
        "http://%31%32%37.0.0.1/", "http://user:p@127.0.0.1:80/", "http:\\\\127.0.0.1\\@good.test/",
        "http://good.test@127.0.0.1/", "http://good.test:80@127.0.0.1/", "http:/127.0.0.1",
        "ht\ttp://127.0.\n0.1/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
        "http://[0:0:0:0:0:FFFF:7F00:0001]/", "http://[::7f00:1]/", "http://[64:ff9b::7f00:1]/",
        "http://[64:ff9b:1::7f00:1]/", "http://[64:ff9b:1:7f00:0:100::]/", "http://[2002:7f00:1::]/",
        "http://[64:ff9b:1:7f:0:1::]/", "http://[64:ff9b:1:0:7f:0:100::]/", "http://[::ffff:0:127.0.0.1]/",
        "http://[2001:0:1:2:3:4:80ff:fffe]/", "http://[fe80::5efe:127.0.0.1]/", "http://0/", "http://0.0.0.0/",
        "http://[::ffff:0:0]/",
    ],
)  # fmt: skip
def test_an_address_is_denied_in_every_spelling_and_wherever_it_leads(url: str) -> None:
    assert reason(url, deny=["127.0.0.1"]) == "matched deny rule `127.0.0.1`"
    assert reason(url, deny=["127.0.0.0/8:80"]) == "matched deny rule `127.0.0.0/8:80`"
    assert reason(url, deny=["127.0.0.0/8:81"]) is None


@pytest.mark.parametrize(
    ("rule", "yes", "no"),
    [
        ("a.test", "http://a.test/ https://A.TEST./ http://a.test:99/ http://%61.test/", "http://b.a.test/ http://aa.test/"),
        ("A.test.", "http://a.test/ ws://a.test/", "http://a.test.b/"),
        ("a.test:443", "https://a.test/ wss://a.test/ http://a.test:443/", "http://a.test/ https://a.test:80/"),
        ("*.a.test", "http://b.a.test/ http://c.b.a.test/", "http://a.test/ http://xa.test/ http://a.test.b/"),
        ("*.a.test:8080", "http://b.a.test:8080/", "http://b.a.test/"),
        ("bücher.test", "http://xn--bcher-kva.test/ http://BÜCHER.test/ http://bu\u0308cher.test/", "http://bucher.test/"),
        ("https://a.test/v1?q", "https://a.test/other https://a.test:443/", "http://a.test/ https://a.test:444/"),
        ("https://*.a.test", "https://b.a.test/", "https://a.test/ http://b.a.test/"),
        ("10.0.0.0/8", "http://10.1.2.3/ http://0xa.1/ http://[::ffff:10.0.0.1]/", "http://11.0.0.1/ http://name.test/"),
        ("10.9.9.9/8", "http://10.1.2.3/", "http://11.0.0.1/"),
        ("0x7f.1", "http://127.0.0.1/", "http://127.0.0.2/"),
        ("2001:db8::/32", "http://[2001:db8:1::1]/", "http://[2001:db9::1]/ http://1.2.3.4/"),
        ("[2001:db8::]/32:80", "http://[2001:db8:1::1]/", "http://[2001:db8:1::1]:81/"),
        ("[2001:db8::/32]:80", "http://[2001:db8:1::1]/", "http://[2001:db8:1::1]:81/"),
        ("2001:DB8:0::1", "http://[2001:db8::1]/", "http://[2001:db8::2]/"),
        ("[2001:db8::1]:80", "http://[2001:db8::1]/", "https://[2001:db8::1]/"),
        ("::ffff:10.0.0.0/104", "http://10.1.2.3/ http://[::ffff:10.1.2.3]/", "http://11.1.2.3/"),
        ("::ffff:10.0.0.1", "http://10.0.0.1/", "http://10.0.0.2/"),
    ],
)  # fmt: skip
def test_what_a_rule_holds_for(rule: str, yes: str, no: str) -> None:
    for url in yes.split():
        assert reason(url, allow=[rule]) is None, url
        assert reason(url, deny=[rule]) == f"matched deny rule `{rule}`", url
    for url in no.split():
        assert reason(url, allow=[rule]) == NOTHING, url
        assert reason(url, deny=[rule]) is None, url


def test_an_address_is_allowed_as_what_it_is_and_not_as_where_a_tunnel_may_lead() -> None:
    for url in ("http://[2002:7f00:1::]/", "http://[64:ff9b::7f00:1]/", "http://0/"):
        assert reason(url, allow=["127.0.0.1"]) == NOTHING
    assert reason("http://[::ffff:127.0.0.1]/", allow=["127.0.0.1"]) is None
    assert reason("http://[::ffff:127.0.0.1]/", allow=["::/0"]) == NOTHING
    assert reason("http://[::ffff:127.0.0.1]/", deny=["::/0"]) is not None


def test_deny_beats_allow_beats_default() -> None:
    both = {"allow": ["*.a.test"], "deny": ["b.a.test"]}
    assert reason("http://b.a.test/", **both) == "matched deny rule `b.a.test`"
    assert reason("http://c.a.test/", **both, default="Deny") is None
    assert reason("http://d.test/", **both) == reason("http://d.test/", **both, default=" DENY ") == NOTHING
    assert reason("http://d.test/", **both, default="allow") is None
    assert reason("http://d.test/", allow=[]) == NOTHING
    assert reason("http://d.test/", deny=[]) is None


@pytest.mark.parametrize(
    "url", ["http://[fe80::1%25eth0]/", "http://%00/", "http://a b/", "http://./", "file:///etc", "x", "foo://a.test/"]
)  # fmt: skip
def test_what_names_no_place_is_blocked_as_soon_as_there_is_a_policy(url: str) -> None:
    assert reason(url, deny=["a"]) == "the URL names no host and port that can be read"
    Egress().admit("http_request", url)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("", "empty egress rule"), (" ", "empty egress rule"),
        ("*", "invalid wildcard rule `*`"), ("*.", "invalid wildcard rule `*.`"),
        ("a*.test", "invalid wildcard rule `a*.test`"), ("*.*.test", "invalid wildcard rule `*.*.test`"),
        ("*..test", "invalid wildcard rule `*..test`"), ("*.0.0.1", "invalid wildcard rule `*.0.0.1`"),
        ("*.a.test/8", "invalid wildcard rule `*.a.test/8`"),
        ("10.0.0.0/33", "invalid CIDR rule `10.0.0.0/33`: '10.0.0.0/33' does not appear to be"),
        ("10.0.0.0/0.0.0.9", "invalid CIDR rule `10.0.0.0/0.0.0.9`: '0.0.0.9' is no length of a prefix"),
        ("a.test/v1", "invalid CIDR rule `a.test/v1`: 'v1' is no length of a prefix"),
        ("a.test:http", "invalid port in `a.test:http`: 'http' is no number from 0 to 65535"),
        ("a.test:65536", "invalid port in `a.test:65536`: '65536' is no number from 0 to 65535"),
        ("a.test:", "invalid port in `a.test:`: '' is no number from 0 to 65535"),
        ("[::1]:x", "invalid port in `[::1]:x`: 'x' is no number from 0 to 65535"),
        (":80", "invalid host in `:80`: ''"), ("a b", "invalid host in `a b`: 'a b'"),
        ("u@a.test", "invalid host in `u@a.test`: 'u@a.test'"), ("::1::", "invalid host in `::1::`: '::1::'"),
        ("fe80::1%eth0/64", "invalid host in `fe80::1%eth0/64`: "),
        ("[fe80::1%eth0]", "invalid host in `[fe80::1%eth0]`: "),
        ("foo://a.test", "invalid URL rule `foo://a.test`: a host and a port can't be read from it"),
        ("https://", "invalid URL rule `https://`: a host and a port can't be read from it"),
    ],
)  # fmt: skip
def test_what_is_no_rule(rule: str, message: str) -> None:
    with pytest.raises(PolicyError) as error:
        read_rule(rule)
    assert str(error.value).startswith(message)


def test_the_environment_s_policy() -> None:
    variables = {"HARN_EGRESS_ALLOW": "a.test, *.b.test;\n10.0.0.0/8\n", "HARN_EGRESS_DENY": ""}
    policy = environment_egress(variables.get).policy
    assert policy is not None
    assert (policy.source, policy.default) == ("environment", "deny")
    assert policy.allow.texts == ["a.test", "*.b.test", "10.0.0.0/8"]
    assert environment_egress({"HARN_EGRESS_DEFAULT": ""}.get).policy is None
    only = environment_egress({"HARN_EGRESS_DEFAULT": "deny"}.get).policy
    assert only is not None
    assert only.refusal("a.test", 80) == NOTHING


def test_a_policy_of_the_environment_that_cannot_be_read_lets_nothing_pass() -> None:
    egress = environment_egress({"HARN_EGRESS_DENY": "10.0.0.0/99", "HARN_EGRESS_ALLOW": "a.test"}.get)
    with pytest.raises(EgressBlocked) as blocked:
        egress.admit("http_request", "http://a.test/")
    assert blocked.value.reason.startswith("HARN_EGRESS_*: invalid CIDR rule `10.0.0.0/99`: ")
    with pytest.raises(Forbidden):
        egress.admit_address("a.test", 80, "1.2.3.4")


def test_a_policy_comes_into_force_once() -> None:
    egress, policy = Egress(), read_policy(None, ["a"], None, "stdlib")
    egress.configure(policy)
    with pytest.raises(PolicyError, match="policy already configured from stdlib"):
        egress.configure(policy)


def test_blocked_requests_are_reported_without_their_secrets() -> None:
    seen: list[EgressBlocked] = []
    egress = Egress(read_policy([], None, None, "stdlib"), seen.append)
    with pytest.raises(EgressBlocked) as raised:
        egress.admit("http_download", "https://ann:pw@a.test/x?q=1&api_key=k&refresh_token=t#f")
    assert seen == [raised.value]
    blocked = pickle.loads(pickle.dumps(raised.value))
    assert blocked.as_dict() == raised.value.as_dict() == blocked.caught_from("http_get")
    url = "https://a.test/x?q=1&api_key=%5Bredacted%5D&refresh_token=%5Bredacted%5D"
    assert (
        str(blocked) == f"EgressBlocked: http_download blocked a.test:443 for {url} (no allow rule matched)"
    )


def test_another_reading_of_the_host_is_no_way_around() -> None:
    egress = Egress(read_policy(["good.test"], None, None, "stdlib"))
    egress.admit("http_request", "http://good.test/", "GOOD.test.")
    with pytest.raises(EgressBlocked):
        egress.admit("http_request", "http://good.test/", "evil.test")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://u@v:p@a/", "http://a/"),
        ("http://a/@b?c=@d", "http://a/@b?c=@d"),
        ("http://a/?API_KEY=1&my_secret=2&x=3&token", "http://a/?API_KEY=%5Bredacted%5D&my_secret=%5Bredacted%5D&x=3&token"),
        ("http://a/?%74oken=1&secretary=2&password=", "http://a/?%74oken=%5Bredacted%5D&secretary=2&password=%5Bredacted%5D"),
    ],
)  # fmt: skip
def test_redacted_urls(url: str, shown: str) -> None:
    assert redacted_url(url) == shown
