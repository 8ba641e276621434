"""What a Vm and runtimes without one may reach, whoever says it: 04 §21.4."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import harnpy
from harnpy import AgentDef, LoopFactory, Vm
from harnpy.eventlog.errors import LogIoError
from harnpy.eventlog.topics import StoreEventLog
from harnpy.llm.errors import CallBlocked
from harnpy.session import SessionRuntime
from tests.llm.test_real_calls import WireHost, environment
from tests.llm.wire import ANTHROPIC, OPENAI, Say, Wire
from tests.worlds import OwnWorld

ASK = """
let options = {provider: "acme", model: "m-1", llm_retries: 2}
let asked = try { llm_call("hi", nil, options) } catch (e) { e }
"""


class Site(ThreadingHTTPServer):
    """`/to?URL` redirects there, `/endless` breaks off; all else is answered, and the connection is kept."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.paths: list[str] = []
        self.connections = 0

    def url(self, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.server_port}"


class Page(BaseHTTPRequestHandler):
    server: Site
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.paths.append(self.path)
        path, _, to = self.path.partition("?")
        self.send_response(307 if path == "/to" else 200)
        self.send_header("Content-Length", "99" if path == "/endless" else "2")
        if path == "/to":
            self.send_header("Location", to)
        self.end_headers()
        self.wfile.write(b"ok")

    do_POST = do_GET  # noqa: N815

    def log_message(self, *args: Any) -> None:
        """Nothing: the tests look at what was asked."""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield site
        site.shutdown()
        thread.join()


class Host(OwnWorld):
    def __init__(self, **env: str) -> None:
        super().__init__(stderr=self._take)
        self.err = ""
        self._env = env

    def _take(self, text: str) -> None:
        self.err += text

    def get(self, name: str) -> str | None:
        return self._env.get(name)


def run(source: str, **env: str) -> Any:
    return Vm(Host(**env)).run_source(source)


def get(url: str) -> str:
    """A program that returns the body, else the reason."""
    return f'return try {{ http_get("{url}").body }} catch (e) {{ type_of(e) == "dict" ? e.reason : e }}'


def test_the_environment_s_policy_holds(site: Site) -> None:
    assert run(get(site.url()), HARN_EGRESS_ALLOW="127.0.0.1, 10.0.0.0/8") == "ok"
    assert run(get(site.url()), HARN_EGRESS_ALLOW="a.test") == "no allow rule matched"
    assert (
        run(get(site.url("localhost")), HARN_EGRESS_DENY="127.0.0.0/8;::1")
        == "matched deny rule `127.0.0.0/8`"
    )
    assert run(get(site.url()), HARN_EGRESS_DEFAULT="deny") == "no allow rule matched"
    assert run(get(site.url()), HARN_EGRESS_DENY="*").startswith("HARN_EGRESS_*: invalid wildcard rule `*`")
    assert len(site.paths) == 1


def test_who_set_a_policy_is_not_overruled(site: Site) -> None:
    replace = 'return try { egress_policy({default: "allow"}) } catch (e) { e }'
    found = run(replace, HARN_EGRESS_DENY="a.test")
    assert found == "egress_policy: policy already configured from environment"
    vm = Vm(Host(HARN_EGRESS_ALLOW="127.0.0.1"), egress={"deny": ["127.0.0.1"]})
    for _ in range(2):
        assert vm.run_source(replace) == "egress_policy: policy already configured from embedder"
        assert vm.run_source(get(site.url())) == "matched deny rule `127.0.0.1`"
    assert site.connections == 0


def test_a_policy_of_a_program_ends_with_it(site: Site) -> None:
    vm = Vm(Host())
    vm.run_source('egress_policy({default: "deny"})')
    assert vm.run_source(get(site.url())) == "ok"


@pytest.mark.parametrize("config", [{"allow": "a"}, {"alow": []}, {"deny": ["*"]}, {"default": "x"}])
def test_an_embedder_s_policy_is_read_at_once(config: Any) -> None:
    with pytest.raises(ValueError, match="egress: "):
        Vm(egress=config)
    with pytest.raises(ValueError, match="egress: "):
        harnpy.isolated(egress=config)


def test_a_redirect_to_what_is_blocked_fails_the_request(site: Site) -> None:
    source = f"""
        egress_policy({{allow: ["127.0.0.1"], deny: ["localhost"]}})
        return try {{ http_get("{site.url()}/to?{site.url("localhost")}/secret") }} catch (e) {{ e }}
    """
    found = run(source)
    assert (found["type"], found["category"], found["host"]) == (
        "EgressBlocked",
        "egress_blocked",
        "localhost",
    )
    assert found["url"] == f"{site.url('localhost')}/secret"
    assert [path[:4] for path in site.paths] == ["/to?"]


def test_connections_from_before_a_policy_are_not_used_again(site: Site) -> None:
    url = site.url()
    twice = f'http_get("{url}")\nhttp_get("{url}")\n'
    run(twice)
    assert site.connections == 1
    run(f'{twice}egress_policy({{allow: ["127.0.0.1"]}})\n{twice}')
    assert site.connections == 3
    denied = run(f'http_get("{url}")\negress_policy({{deny: ["127.0.0.1"]}})\n{get(url)}')
    assert denied == "matched deny rule `127.0.0.1`"
    assert len(site.paths) == 7


def test_who_reads_from_a_connection_that_is_cut_is_told_why(site: Site) -> None:
    found = run(f"""
        let open = http_stream_open("{site.url()}/endless")
        egress_policy({{deny: ["127.0.0.1"]}})
        let why = try {{ while http_stream_read(open) != nil {{ }} }} catch (e) {{ e }}
        return [why, error_category(why)]
    """)
    assert found == [
        "http: request failed: the connection to 127.0.0.1 was cut by the egress policy",
        "generic",
    ]


def test_a_proxy_must_be_allowed_as_well_as_the_target(site: Site) -> None:
    def through(allow: list[str]) -> Any:
        return run(f"""
            egress_policy({{allow: {json.dumps(allow)}}})
            let options = {{proxy: "{site.url()}"}}
            return try {{ http_get("http://a.test/x", options).body }} catch (e) {{ [e.host, e.url] }}
        """)

    assert through(["a.test"]) == ["127.0.0.1", "http://a.test/x"]
    assert through(["127.0.0.1"]) == ["a.test", "http://a.test/x"]
    assert site.connections == 0
    assert through(["127.0.0.1", "a.test"]) == "ok"
    assert site.paths == ["http://a.test/x"]


@pytest.mark.parametrize("protocol", [OPENAI, ANTHROPIC])
def test_a_call_of_a_forbidden_model_fails_at_once(protocol: str, tmp_path: Path) -> None:
    with Wire(protocol, Say("never")) as wire:
        host = WireHost({**environment(wire, tmp_path), "HARN_EGRESS_DENY": "127.0.0.1"})
        error = Vm(host).run_source(f"{ASK}return asked")
        named = [error[key] for key in ("category", "kind", "reason", "type", "surface", "host", "port")]
        blocked = ["egress_blocked", "terminal", "egress_blocked", "EgressBlocked"]
        assert named == [*blocked, "llm_call", "127.0.0.1", wire.port]
        why = f"{error['url']} (matched deny rule `127.0.0.1`)"
        place = f"127.0.0.1:{wire.port}"
        assert error["message"] == f"acme: EgressBlocked: llm_call blocked {place} for {why}"
        assert wire.connections == 0


def test_a_name_that_resolves_to_what_is_denied_is_no_way_to_a_model(tmp_path: Path) -> None:
    with Wire(OPENAI, Say("never")) as wire:
        env = environment(wire, tmp_path)
        config = Path(env["HARN_PROVIDERS_CONFIG"])
        config.write_text(config.read_text().replace("127.0.0.1", "localhost"))
        host = WireHost({**env, "HARN_EGRESS_DENY": "127.0.0.0/8,::1"})
        assert Vm(host).run_source(f"{ASK}return asked.host") == "localhost"
        assert wire.connections == 0


def test_a_redirect_of_a_model_service_is_asked_for_too(site: Site, tmp_path: Path) -> None:
    config = tmp_path / "providers.toml"
    entry = f'[providers.acme]\nbase_url = "{site.url()}"\nauth_style = "none"\n'
    config.write_text(f'{entry}chat_endpoint = "/to?http://10.0.0.1/steal"\n')
    found = run(f"{ASK}return asked", HARN_PROVIDERS_CONFIG=str(config), HARN_EGRESS_DENY="10.0.0.0/8")
    assert (found["category"], found["host"]) == ("egress_blocked", "10.0.0.1")
    assert len(site.paths) == 1


@pytest.mark.parametrize("whose", ["environment", "embedder"])
def test_agents_without_a_vm_obey_a_policy(whose: str, tmp_path: Path) -> None:
    environments = {"HARN_EGRESS_ALLOW": "a.test"} if whose == "environment" else {}
    embedders = {"allow": ["a.test"]} if whose == "embedder" else None
    with Wire(OPENAI, Say("never")) as wire:
        host = WireHost({**environment(wire, tmp_path), **environments})
        with SessionRuntime("memory:", agents=LoopFactory(host=host, egress=embedders)) as runtime:
            runtime.create(AgentDef("a", model="acme/m-1"), id="s")
            with pytest.raises(CallBlocked, match="no allow rule matched"):
                runtime.send("s", "hi")
        assert wire.connections == 0


def test_what_cannot_be_written_down_is_blocked_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any) -> int:
        raise LogIoError("the disk is full")

    monkeypatch.setattr(StoreEventLog, "append", full)
    host = Host(HARN_EGRESS_DEFAULT="deny")
    assert Vm(host).run_source(get("http://a.test/")) == "no allow rule matched"
    assert host.err.startswith("warning: egress: EgressBlocked: http_request blocked a.test:80")
    assert "the disk is full" in host.err


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("postgresql://u:pw@10.0.0.1:5432/db", "[10.0.0.1]:5432 matched deny rule `10.0.0.0/8`"),
        ("postgres://localhost/db", "[localhost]:5432 matched deny rule `127.0.0.0/8`"),
        ("postgresql://8.8.8.8,0xa.1:99/db", "[10.0.0.1]:99 matched deny rule `10.0.0.0/8`"),
        ("postgresql://8.8.8.8:1,10.0.0.1:2/db", "[10.0.0.1]:2 matched deny rule `10.0.0.0/8`"),
        ("postgresql:///db?host=10.1", "[10.0.0.1]:5432 matched deny rule `10.0.0.0/8`"),
        ("postgresql://a.test/db?hostaddr=10.0.0.1", "[10.0.0.1]:5432 matched deny rule `10.0.0.0/8`"),
        ("postgresql://db.test/db?hostaddr=8.8.8.8", "[db.test]:5432 matched deny rule `db.test`"),
        ("postgresql://10.0.0.1/db?timeout=1&ambient=0", "[10.0.0.1]:5432 matched deny rule `10.0.0.0/8`"),
        ("postgresql:///db", "[]:0 the URL names no host and port that can be read"),
        ("postgresql://a.test/db?service=x", "[]:0 the URL names no host and port that can be read"),
        ("postgresql://a.test:x/db", "[]:0 the URL names no host and port that can be read"),
    ],
)
def test_a_database_of_a_store_must_be_allowed(url: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(host: str, port: int, **options: Any) -> list[Any]:
        return [(0, 0, 0, "", ({"localhost": "127.0.0.1"}.get(host, "8.8.8.8"), port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    asked = 'return try { CALL } catch (e) { "[${e.host}]:${e.port} ${e.reason}" }'
    vm = Vm(Host(), egress={"deny": ["10.0.0.0/8", "127.0.0.0/8", "db.test"]})
    for call in (f'agent_session_open("a", {{store: "{url}"}})', f'session_create({{store: "{url}"}})'):
        assert vm.run_source(f'import "std/session"\n{asked.replace("CALL", call)}') == why


def test_the_url_of_a_database_is_shown_without_its_passwords() -> None:
    url = "postgresql://u:pw1@10.0.0.1/db?password=pw2&sslpassword=pw3"
    call = f'import "std/session"\nreturn try {{ session_create({{store: "{url}"}}) }} catch (e) {{ e.url }}'
    shown = Vm(Host(), egress={"default": "deny"}).run_source(call)
    assert shown == "postgresql://10.0.0.1/db?password=%5Bredacted%5D&sslpassword=%5Bredacted%5D"
