"""Probes of a provider, sent to a server of our own (07 §1.14)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from harnpy import Vm
from tests.worlds import OwnWorld

KEY = "sk-very-secret"


class Server(ThreadingHTTPServer):
    """Answers every request with ``status``, after ``release`` was set; keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 200
        self.release = threading.Event()
        self.release.set()
        self.asked: list[tuple[str, str, dict[str, str], str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((self.command, self.path, headers, body))
        self.server.release.wait(10)
        try:
            self.send_response(self.server.status)
            self.end_headers()
        except OSError:
            return  # the client gave up waiting, as one test wants

    do_POST = do_GET  # noqa: N815

    def log_message(self, *args: Any) -> None:
        """Nothing: the tests look at what was asked."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.release.set()
        server.shutdown()
        thread.join()


class ServerHost(OwnWorld):
    """Where `acme` and ollama are the test's server."""

    def __init__(self, url: str, **env: str) -> None:
        super().__init__(stdout=self._take)
        self.text = ""
        self._env = {"HARN_PROVIDERS_CONFIG": "/c", "OLLAMA_HOST": url, **env}
        self._config = f'[providers.acme]\nbase_url = "{url}/v1"\nauth_envs = ["ACME"]\n'

    def _take(self, text: str) -> None:
        self.text += text

    def get(self, name: str) -> str | None:
        return self._env.get(name)

    def read_text(self, path: str) -> str:
        if path != "/c":
            raise FileNotFoundError(path)
        return self._config


def report(url: str, call: str, **env: str) -> dict[str, Any]:
    host = ServerHost(url, **env)
    Vm(host).run_source(f"println(json_stringify({call}))")
    assert KEY not in host.text
    found: dict[str, Any] = json.loads(host.text)
    return found


def test_a_provider_that_answers_is_valid(server: Server) -> None:
    found = report(server.url, 'llm_healthcheck("acme")', ACME=KEY)
    assert (found["provider"], found["valid"], found["status"]) == ("acme", True, "ok")
    assert found["metadata"] == {"url": f"{server.url}/v1/models", "http_status": 200}
    [(method, path, headers, _)] = server.asked
    assert (method, path, headers["authorization"]) == ("GET", "/v1/models", f"Bearer {KEY}")


def test_a_key_may_be_handed_in(server: Server) -> None:
    assert report(server.url, f'llm_healthcheck({{provider: "acme", api_key: "{KEY}"}})')["valid"]
    assert server.asked[0][2]["authorization"] == f"Bearer {KEY}"


def test_without_a_key_nothing_is_sent(server: Server) -> None:
    found = report(server.url, 'llm_healthcheck("acme")')
    assert (found["valid"], found["metadata"]) == (False, {"reason": "missing_api_key"})
    assert found["message"].startswith("Missing API key: set ACME environment variable")
    assert server.asked == []


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (401, "auth_failed", "acme rejected the API key (HTTP 401)"),
        (403, "auth_failed", "acme rejected the API key (HTTP 403)"),
        (500, "http_error", "acme answered HTTP 500"),
        (302, "http_error", "acme answered HTTP 302"),
    ],
)
def test_a_provider_that_refuses(server: Server, status: int, reason: str, message: str) -> None:
    server.status = status
    found = report(server.url, 'llm_healthcheck("acme")', ACME=KEY)
    assert (found["valid"], found["message"]) == (False, message)
    assert (found["metadata"]["reason"], found["metadata"]["http_status"]) == (reason, status)


def test_a_provider_that_is_silent(server: Server) -> None:
    server.release.clear()
    found = report(server.url, 'llm_healthcheck("acme", {timeout: 0.05})', ACME=KEY)
    assert (found["valid"], found["metadata"]["reason"]) == (False, "timeout")
    assert found["message"] == "acme did not answer within 0.05s"


def test_a_provider_that_is_not_there() -> None:
    with Server() as server:
        url = server.url
    found = report(url, 'llm_healthcheck("acme")', ACME=KEY)
    assert (found["valid"], found["metadata"]["reason"]) == (False, "unreachable")
    assert found["message"] == "acme can't be reached: ConnectError"


def test_ollama_loads_the_model_that_it_is_warmed_with(server: Server) -> None:
    assert report(server.url, 'llm_healthcheck("ollama", {warm: true, model: "m"})')["valid"]
    [(method, path, headers, body)] = server.asked
    assert (method, path, json.loads(body)["model"]) == ("POST", "/api/generate", "m")
    assert "authorization" not in headers


def test_ollama_cold_is_asked_for_its_models(server: Server) -> None:
    assert report(server.url, 'llm_healthcheck("ollama")')["valid"]
    assert server.asked[0][:2] == ("GET", "/api/tags")


def test_without_a_name_it_is_the_provider_that_calls_would_take(server: Server) -> None:
    assert report(server.url, "llm_healthcheck()")["provider"] == "ollama"
    assert report(server.url, "llm_healthcheck()", HARN_LLM_PROVIDER="acme")["provider"] == "acme"


def test_other_tasks_run_while_a_probe_waits(server: Server) -> None:
    server.release.clear()
    host = ServerHost(server.url)

    def print_and_answer(text: str) -> None:
        host.text += text
        server.release.set()

    host.write_out = print_and_answer
    Vm(host).run_source("""
        let probe = spawn { llm_healthcheck("ollama", {timeout: 300}).valid }
        let other = spawn { println("meanwhile") }
        await(other)
        println(await(probe))
    """)
    assert host.text == "meanwhile\ntrue\n"
