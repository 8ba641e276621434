"""`harnpy serve` as a process: it drains, and leaves what doesn't end to the next one. Spec: 11 §1.6."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from tests.support import ROOT, Command, Popen, wait_until

KEY = "k" * 32
AGENT = """
tool hold() -> string { return exec("cat", "bell").stdout }
pub fn agent() {
  llm_mock({text: "", tool_calls: [{id: "c1", name: "hold", arguments: {}}]})
  llm_mock({text: "done"})
  return {name: "bot", model: "mock", options: {tool_format: "native"}}
}
"""


class Process:
    """A server in a directory, and requests to it."""

    def __init__(self, popen: Popen, directory: Path, *options: str, key: str = KEY) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HARN")}
        self.process = popen(
            [
                *(sys.executable, "-m", "harnpy", "serve", "bot.harn"),
                *("--store", "sqlite:s.db", "--bind", "127.0.0.1:0", *options),
            ],
            cwd=directory,
            env={**inherited, "PYTHONPATH": str(ROOT), "HARN_SERVE_API_KEY": key},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr
        self.began = self.process.stderr.readline()
        self.port = int(self.began.rpartition(":")[2].strip("/\n"))

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        text = None if body is None else json.dumps(body)
        named = {"x-api-key": KEY, "content-type": "application/json", **headers}
        connection.request(method, path, text, named)
        reply = connection.getresponse()
        found = reply.read()
        connection.close()
        return reply.status, json.loads(found) if found else None

    @contextmanager
    def stream(self, path: str) -> Iterator[http.client.HTTPResponse]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request("GET", path, headers={"x-api-key": KEY, "accept": "text/event-stream"})
            yield connection.getresponse()

    def end(self) -> tuple[str, int]:
        self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=60)[1], self.process.returncode


def test_a_turn_is_left_to_the_next_server_and_ends_while_that_drains(popen: Popen, tmp_path: Path) -> None:
    (tmp_path / "bot.harn").write_text(AGENT)
    os.mkfifo(tmp_path / "bell")
    first = Process(popen, tmp_path, "--grace", "0")
    assert first.began.startswith("[harn] serve: sqlite:s.db at http://127.0.0.1:")
    assert first.ask("POST", "/v1/sessions", {"id": "a"})[0] == 201
    turn = "/v1/sessions/a/turns/k1"
    assert first.ask("POST", "/v1/sessions/a/send", {"prompt": "go"}, **{"idempotency-key": "k1"})[0] == 202
    os.close(os.open(tmp_path / "bell", os.O_RDWR))
    wait_until(lambda: "tool_started" in str(first.ask("GET", "/v1/sessions/a/events")))
    assert first.end() == ("[harn] serve: 1 turn or run left to the next server\n", 0)

    second = Process(popen, tmp_path, "--grace", "60", "--log-format", "json")
    assert second.ask("GET", turn)[1]["status"] == "running"
    with second.stream("/v1/sessions/a/events?after=0") as watching:
        # Opens once the tool, called again, reads: the turn goes on here.
        with (
            (tmp_path / "bell").open("w") as bell,
            connect(
                f"ws://127.0.0.1:{second.port}/v1/sessions/a/control?client=c",
                additional_headers={"x-api-key": KEY},
            ) as control,
        ):
            second.process.send_signal(signal.SIGTERM)
            wait_until(lambda: second.ask("GET", "/healthz")[0] == 503)
            status, refused = second.ask("POST", "/v1/sessions/a/send", {"prompt": "more"})
            assert (status, refused["error"]["code"]) == (503, "draining")
            bell.write("ding")
            bell.close()
            told: list[Any] = []
            with pytest.raises(ConnectionClosedError) as closed:
                told.extend(iter(lambda: control.recv(60), None))
        assert closed.value.rcvd
        assert closed.value.rcvd.code == 1012
        assert "turn_completed" in str(told)
        # It has ended, and isn't cut off: the last chunk is there.
        seen = watching.read().decode()
    assert seen.count("event: event\n") == seen.count("\nid: ")
    assert '"type":"turn_completed"' in seen
    log, said = second.process.communicate(timeout=60)
    assert (said, second.process.returncode) == ("", 0)
    lines = [json.loads(line) for line in log.splitlines()]
    assert {line["route"] for line in lines} >= {"/v1/sessions/{id}/turns/{key}", "/v1/sessions/{id}/control"}
    assert not any(word in log for word in ("ding", "more", KEY, "k1", "after=0"))


def test_what_tokens_may_do_is_decided_at_the_door(popen: Popen, tmp_path: Path, harnpy: Command) -> None:
    (tmp_path / "bot.harn").write_text(AGENT)
    made = [
        harnpy("tokens", "--store", "sqlite:s.db", "create", "ada", *options.split()).stdout.strip()
        for options in ("--scope read", "--cost-per-day 0", "--requests-per-minute 2")
    ]
    server = Process(popen, tmp_path)
    reading, poor, slow = ({"x-api-key": token} for token in made)
    create, send = ("POST", "/v1/sessions", {"id": "a"}), ("POST", "/v1/sessions/a/send", {"prompt": "go"})
    assert (server.ask("GET", "/v1/me", **reading)[0], server.ask(*create, **reading)[0]) == (200, 403)
    assert (server.ask(*create, **poor)[0], server.ask(*send, **poor)[0]) == (201, 402)
    assert [server.ask("GET", "/v1/me", **slow)[0] for _ in range(3)] == [200, 200, 429]
    me = server.ask("GET", "/v1/me", **poor)[1]
    assert me == {
        "principal": "ada", "scopes": ["write"], "limits": {"requests_per_minute": None, "cost_per_day": 0.0},
    }  # fmt: skip
    url = f"http://127.0.0.1:{server.port}"
    piped = harnpy("attach", url, "a", "--client", "c", "--control", stdin="hi\n", HARN_TOKEN=made[0])
    assert "(you observe: this needs the scope `write`)\n" in piped.stdout
    assert piped.stderr == "error: you observe: you may read this session and not send to it\n"
    for path in (
        "/static/1/..%2f..%2fshell.py",
        "/static/../v1/me",
        "/..%2f..%2fetc/passwd",
        "/v1/sessions/..%2f..",
    ):
        assert server.ask("GET", path, **poor)[0] == 404
    assert server.end() == ("", 0)


def test_without_keys_a_link_is_printed_and_a_second_signal_is_quick(popen: Popen, tmp_path: Path) -> None:
    (tmp_path / "bot.harn").write_text(AGENT)
    os.mkfifo(tmp_path / "bell")
    server = Process(popen, tmp_path, "--grace", "600", key="")
    assert server.process.stderr
    link = server.process.stderr.readline()
    place = f"[harn] serve: sign in at http://127.0.0.1:{server.port}"
    assert link.startswith(f"{place}/signin?code=")
    path = link.removeprefix(place).strip()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", path)
    reply = connection.getresponse()
    reply.read()
    cookie = (reply.getheader("set-cookie") or "").partition(";")[0]
    signed = {"cookie": cookie, "origin": f"http://127.0.0.1:{server.port}"}
    connection.request("GET", "/", headers={**signed, "accept": "text/html"})
    assert connection.getresponse().read().startswith(b"<!doctype html>")
    for path_, body in (("/v1/sessions", {"id": "a"}), ("/v1/sessions/a/send", {"prompt": "go"})):
        connection.request("POST", path_, json.dumps(body), {**signed, "content-type": "application/json"})
        assert connection.getresponse().read()
    connection.close()
    with (tmp_path / "bell").open("w"):
        server.process.send_signal(signal.SIGINT)
        wait_until(lambda: server.ask("GET", "/healthz")[0] == 503)
        server.process.send_signal(signal.SIGINT)
        assert server.process.communicate(timeout=60)[1].endswith("1 turn or run left to the next server\n")
    assert server.process.returncode == 0


RUN = """
pub fn refuse(call) { return {deny: "no"} }
pipeline default() {
  waitpoint_create("gate")
  llm_mock({tool_calls: [{name: "write", arguments: {}}]})
  let tools = tool_define(tool_registry(), "write", "", {parameters: {}, handler: { args -> "ok" }})
  return agent_loop("go", nil, {provider: "mock", tools: tools, max_iterations: 1}).tools.rejected
}
"""
HOOK = '[[hooks]]\nevent = "PreToolUse"\nhandler = "job::refuse"\n'


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_runs_have_the_hooks_of_their_project(
    store: str, popen: Popen, tmp_path: Path, harnpy: Command, request: pytest.FixtureRequest
) -> None:
    url = "sqlite:s.db"
    if store == "postgres":
        url = request.getfixturevalue("postgres").replace("postgres:@", "postgres:pa55word@")
        assert "pa55word" in url
    for name, text in {"bot.harn": AGENT, "job.harn": RUN, "harn.toml": HOOK}.items():
        (tmp_path / name).write_text(text)
    made = harnpy("tokens", "--store", url, "create", "ada", "--cost-per-day", "0")
    poor = {"x-api-key": made.stdout.strip()}

    def ended(server: Process, id: str) -> Any:
        wait_until(lambda: server.ask("GET", f"/v1/runs/{id}")[1]["status"] not in ("running", "queued"))
        return server.ask("GET", f"/v1/runs/{id}")[1]

    server = Process(popen, tmp_path, "job.harn", "--trust", "--store", url)
    assert "pa55word" not in server.began
    assert server.ask("POST", "/v1/runs", {"agent": "job"}, **poor)[0] == 402
    assert server.ask("POST", "/v1/runs", {"agent": "job", "id": "r"})[0] == 201
    run = ended(server, "r")
    assert (run["status"], run["output"]) == ("completed", ["write"]), run
    assert [each["id"] for each in server.ask("GET", "/v1/waitpoints")[1]["waitpoints"]] == ["gate"]
    assert server.end() == ("", 0)


def test_a_run_whose_project_nobody_trusts_any_more_is_left(popen: Popen, tmp_path: Path) -> None:
    (tmp_path / "bot.harn").write_text(AGENT)
    (tmp_path / "job.harn").write_text(RUN)
    server = Process(popen, tmp_path, "job.harn")
    (tmp_path / "harn.toml").write_text(HOOK)
    assert server.ask("POST", "/v1/runs", {"agent": "job", "id": "r"})[0] == 201
    wait_until(lambda: server.ask("GET", "/v1/runs/r")[1]["status"] == "delayed")
    said, status = server.end()
    assert said.startswith("'job.harn' is left to other workers: hooks takes effect only once")
    assert status == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--store", "kafka:x"], "error: no store is called `kafka:x`"),
        (["nobody"], "error: no agent 'nobody': it is neither a Harn file nor a table [agents.nobody]"),
        (["--bind", "192.0.2.1:1"], "error: cannot listen at 192.0.2.1:1: "),
        (["--cert", "bot.harn"], "error: --cert and --key are given together or not at all"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_one_line(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from harnpy.cli.app import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "bot.harn").write_text(AGENT)
    assert main(["serve", *arguments]) in (1, 2)
    assert capsys.readouterr().err.startswith(said)
