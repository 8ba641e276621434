"""How long does a web service that calls an agent take for 200 requests at once, beside the model?

    python bench/server.py [--rounds N] [--check]

A Harn program listens and runs `agent_loop` for each request, with a model that takes 50 ms a call; it runs
in a process of its own. 200 connections each send some requests, one after the other. A row is the median of
the rounds, as a multiple of the time that the model takes; beside it an application in Python that only waits
as long, on the same server (uvicorn). The clients take some of the machine's time in both. The processor time
of a request is what a machine with nothing else to do needs beside the model.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

from options import parser

#: Requests at once, each connection's requests in a row, and the seconds of a model call.
CLIENTS, IN_A_ROW, LATENCY = 200, 2, 0.05
#: Calls of the model in a request; the last row must take at most so many times the time of the model.
TURNS, MUST = (1, 5), 1.5

ANSWER = "Fine, thank you."
REQUEST = b"POST /ask HTTP/1.1\r\nhost: x\r\ncontent-length: 16\r\n\r\nHow are you now?"

HARN = '''
import asyncio
from harnpy import Vm
from harnpy.llm.reply import Reply

class Slow:
    async def complete(self, request):
        await asyncio.sleep(LATENCY)
        return Reply(ANSWER, request.model, "slow", request.model, 10, 5)

vm = Vm()
vm.provide("slow", Slow())
vm.run_source("""
let server = http_server()
let options = {provider: "slow", model: "m", persistent: true, max_iterations: TURNS}
http_server_route(server, "POST", "/ask", { request ->
  let result = agent_loop(request.body, nil, options)
  assert_eq(result.llm.iterations, TURNS)
  result.visible_text
})
println(http_server_listen(server).port)
http_server_serve(server)
""")
'''

PYTHON = """
import asyncio, socket, uvicorn

async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    for _ in range(TURNS):
        await asyncio.sleep(LATENCY)
    body = ANSWER.encode()
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
config = uvicorn.Config(app, http="h11", loop="asyncio", lifespan="off", log_config=None, server_header=False)
uvicorn.Server(config).run([listener])
"""


async def rounds(port: int, count: int) -> list[float]:
    """The seconds that each round takes."""
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CLIENTS)]
    times = []
    for _ in range(count):
        begin = perf_counter()
        await asyncio.gather(*(talk(*connection) for connection in connections))
        times.append(perf_counter() - begin)
    for _, writer in connections:
        writer.close()
    return times


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    for _ in range(IN_A_ROW):
        writer.write(REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        answer = await reader.readexactly(len(ANSWER))
        if not head.startswith(b"HTTP/1.1 200 ") or answer != ANSWER.encode():
            raise AssertionError(f"the request went wrong: {head!r} {answer!r}")


def measured(program: str, turns: int, count: int) -> tuple[float, float]:
    """The median round of a server, as a multiple of the model's time; processor seconds of a request."""
    constants = {"TURNS": str(turns), "LATENCY": str(LATENCY), "ANSWER": repr(ANSWER)}
    for name, value in constants.items():
        program = program.replace(name, value)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            port = int(process.stdout.readline())
            asyncio.run(rounds(port, 1))  # imports what the others have
            before = processor_time(process.pid)
            times = asyncio.run(rounds(port, count))
            used = processor_time(process.pid) - before
        finally:
            process.kill()
    return median(times) / (LATENCY * turns * IN_A_ROW), used / (count * CLIENTS * IN_A_ROW)


def processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    options = parser(__doc__, rounds=5).parse_args()
    ratio = 0.0
    for turns in TURNS:
        print(f"{CLIENTS} requests at once, {turns} call(s) of a model that takes {LATENCY * 1000:.0f} ms:")
        for name, program in {"Python that only waits": PYTHON, "Harn with agent_loop": HARN}.items():
            ratio, used = measured(program, turns, options.rounds)
            print(f"  {name:<24} × {ratio:.2f} ideal, {used * 1e6:,.0f} µs of processor time a request")
    if options.check and ratio > MUST:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
