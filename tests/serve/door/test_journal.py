"""What a server says of its requests: lines and numbers, without contents. Spec: 11 §1.2."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from harnpy.serve.metrics import Metrics
from harnpy.serve.server import Output, Server
from harnpy.serve.service import Caller, Refused
from harnpy.serve.site import Site
from tests.serve.door.asking import HOST, Asked
from tests.serve.door.test_door import KEY, KEYED, in_loop

SECRET = "what-was-said"


class Quiet:
    """A service as far as the server knows it: nothing runs."""

    is_draining = False

    def check(self, caller: Caller, scope: str) -> None:
        if not caller.scopes & {scope, "all"}:
            raise Refused(403, "forbidden", f"this needs the scope `{scope}`")

    async def drain(self, grace: float) -> int:
        self.is_draining = True
        return 0


class Served:
    """A server with some routes, and what it says."""

    def __init__(self, format: str | None, site: Site = KEYED) -> None:
        self.said: list[str] = []
        self.lines: list[str] = []
        self.metrics = Metrics()
        self.asked = Asked(site=site)
        output = Output(self.said.append, self.lines.append, format)
        routes = [
            Route("/v1/sessions/{id}", show, methods=["GET"]),
            Route("/v1/broken/{id}", broken),
            Route("/v1/stream", stream),
            Route("/static/{version}/{name}", file),
        ]
        self.service = Quiet()
        self.server = Server(self.service, routes, site, self.asked.sessions, output, self.metrics)

    async def ask(self, method: str, target: str, **headers: str) -> Any:
        return await self.asked.ask(method, target, http=self.server.app, **headers)


async def show(request: Any) -> PlainTextResponse:
    return PlainTextResponse("0123456789")


async def file(request: Any) -> PlainTextResponse:
    return PlainTextResponse("a file")


async def broken(request: Any) -> PlainTextResponse:
    raise ValueError(SECRET)


async def stream(request: Any) -> StreamingResponse:
    async def events() -> Any:
        yield "data: 1\n\n"
        await asyncio.get_running_loop().create_future()

    return StreamingResponse(events(), media_type="text/event-stream")


@in_loop
async def test_a_line_a_request_without_what_was_said() -> None:
    served = Served("json")
    token = served.asked.token("ada", scopes=["read"])
    assert (await served.ask("GET", f"/v1/sessions/{SECRET}?q={SECRET}", x_api_key=KEY)).status == 200
    await served.ask("GET", f"/v1/sessions/{SECRET}", authorization=f"Bearer {token}", user_agent=SECRET)
    await served.ask("GET", f"/signin?code={SECRET}")
    await served.ask(SECRET, f"/{SECRET}", x_api_key=KEY)
    await served.ask("POST", f"/v1/sessions/{SECRET}", x_api_key=KEY)
    failed = await served.ask("GET", f"/v1/broken/{SECRET}", x_api_key=KEY)
    assert (failed.status, failed.code) == (500, "internal")
    lines = [json.loads(line) for line in served.lines]
    names = ("method", "route", "status", "bytes", "principal")
    assert [tuple(map(line.get, names)) for line in lines] == [
        ("GET", "/v1/sessions/{id}", 200, 10, "api-key"),
        ("GET", "/v1/sessions/{id}", 200, 10, "ada"),
        ("GET", "/signin", 303, 0, None),
        ("OTHER", "unknown", 404, lines[3]["bytes"], "api-key"),
        ("POST", "/v1/sessions/{id}", 405, lines[4]["bytes"], "api-key"),
        ("GET", "/v1/broken/{id}", 500, lines[5]["bytes"], "api-key"),
    ]  # fmt: skip
    assert set(lines[0]) == {"time", "method", "route", "status", "ms", "bytes", "principal"}
    assert len(served.said) == 1
    assert served.said[0].startswith(f"error: http /v1/broken/{{id}}: ValueError at {__file__}:")
    everything = "".join((*served.lines, *served.said, served.metrics.text()))
    assert not any(secret in everything for secret in (SECRET, KEY, token))


@pytest.mark.parametrize("format", ["text", None])
def test_lines_as_text_and_none(format: str | None) -> None:
    async def main() -> None:
        served = Served(format)
        await served.ask("GET", "/healthz")
        assert [line.split()[1:4] for line in served.lines] == (
            [["GET", "/healthz", "200"]] if format else []
        )

    asyncio.run(main())


@in_loop
async def test_numbers() -> None:
    served = Served(None)
    watching = asyncio.create_task(served.ask("GET", "/v1/stream", x_api_key=KEY))
    await asyncio.sleep(0.01)
    for _ in range(2):
        await served.ask("GET", "/v1/sessions/a", x_api_key=KEY)
    served.metrics.observe("request_seconds", 0.3, 'a"b')
    reply = await served.ask("GET", "/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = reply.body.decode().splitlines()
    for line in (
        "# TYPE harnpy_requests_total counter",
        'harnpy_requests_total{method="GET",route="/v1/sessions/{id}",status="200"} 2',
        'harnpy_request_seconds_bucket{route="a\\"b",le="0.25"} 0',
        'harnpy_request_seconds_bucket{route="a\\"b",le="0.5"} 1',
        'harnpy_request_seconds_bucket{route="a\\"b",le="+Inf"} 1',
        'harnpy_request_seconds_sum{route="a\\"b"} 0.3',
        "harnpy_watchers 1",
        "harnpy_dropped_total 0",
        "harnpy_cost_usd_total 0",
    ):
        assert line in lines
    served.server.door.close()
    assert (await watching).body == b"data: 1\n\n"
    assert "harnpy_watchers 0" in served.metrics.text()
    # By another name it may be anybody who asks.
    named = Served(None, KEYED._replace(hosts=("box.example",)))
    for scope, status in (("write", 403), ("admin", 200)):
        token = named.asked.token("ada", scopes=[scope])
        reply = await named.ask("GET", "/metrics", host="box.example", authorization=f"Bearer {token}")
        assert reply.status == status


@in_loop
async def test_paths_that_arent_there() -> None:
    served = Served(None)
    for target in (
        "/static/../v1/sessions/a",
        "/static/..%2fv1",
        "//v1/sessions/a",
        "/v1/sessions/a/",
        "/v1\\me",
    ):
        reply = await served.ask("GET", target)
        assert (reply.status, reply.code) == (401, "unauthorized")
        reply = await served.ask("GET", target, x_api_key=KEY)
        assert (reply.status, reply.code) == (404, "not_found")
    refused = await served.ask("DELETE", "/v1/sessions/a", x_api_key=KEY)
    assert (refused.code, sorted(refused.headers["allow"].split(", "))) == (
        "method_not_allowed",
        ["GET", "HEAD"],
    )


@in_loop
async def test_a_server_that_drains_says_so() -> None:
    served = Served(None)
    assert (await served.ask("GET", "/healthz")).body == b'{"status":"ok"}'
    served.service.is_draining = True
    reply = await served.ask("GET", "/healthz", host=HOST)
    assert (reply.status, reply.body) == (503, b'{"status":"draining"}')
