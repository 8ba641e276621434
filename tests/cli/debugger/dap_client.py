"""A client of the Debug Adapter Protocol, for tests: it waits for messages, never for time."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.support import PATIENCE, ROOT, Popen

Message = dict[str, Any]


class Refused(Exception):
    """The adapter refused a request; the message is its own."""


class Client:
    """`harnpy dap` in a process of its own, in the directory ``cwd``."""

    def __init__(self, popen: Popen, cwd: Path, env: dict[str, str]) -> None:
        self.cwd = cwd
        self.process = popen(
            [sys.executable, "-m", "harnpy", "dap"],
            cwd=cwd,
            env=env | {"PYTHONPATH": str(ROOT), "HOME": str(cwd)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.output = ""
        """What the program has written to stdout, as far as messages have been looked at."""
        self._received: queue.Queue[Message | None] = queue.Queue()
        self._events: list[Message] = []
        self._sent = 0
        threading.Thread(target=self._receive, daemon=True).start()

    # --- messages ---------------------------------------------------------------------------------

    def request(self, command: str, **arguments: Any) -> Message:
        """Send a request; return the body of its response. Raises Refused."""
        number = self.send(command, **arguments)
        while True:
            message = self._next()
            if message["type"] == "response":
                assert message["request_seq"] == number
                assert message["command"] == command
                if not message["success"]:
                    raise Refused(message["message"])
                return message.get("body", {})
            self._events.append(message)

    def send(self, command: str, **arguments: Any) -> int:
        """Send a request and don't wait for its response; return its number."""
        self._sent += 1
        request = {"seq": self._sent, "type": "request", "command": command, "arguments": arguments}
        data = json.dumps(request).encode()
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        self.process.stdin.flush()
        return self._sent

    def wait_for(self, event: str) -> Message:
        """The body of the next event of that name; output before it is kept in ``output``."""
        while True:
            message = self._events.pop(0) if self._events else self._next()
            assert message["type"] == "event", message
            if message["event"] == event:
                return message.get("body", {})
            assert message["event"] != "terminated", f"the program has ended, and no {event!r} came"
            if message["event"] == "output":
                self._keep(message["body"])

    def wait_for_output(self, text: str) -> None:
        """Return when the program has written a text."""
        while text not in self.output:
            self._keep(self.wait_for("output"))

    def end(self) -> int:
        """Wait for the process's end; return its exit status."""
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream
            stream.close()

    def _keep(self, body: Message) -> None:
        if body["category"] == "stdout":
            self.output += body["output"]

    def _next(self) -> Message:
        message = self._received.get(timeout=PATIENCE)
        assert message is not None, "the adapter has ended"
        return message

    def _receive(self) -> None:
        stream = self.process.stdout
        assert stream
        while header := stream.readline():
            assert header.startswith(b"Content-Length: ")
            assert stream.readline() == b"\r\n"
            self._received.put(json.loads(stream.read(int(header.split()[1]))))
        self._received.put(None)

    # --- what every session does ------------------------------------------------------------------

    def start(self, program: str, *lines: int | tuple[int, str], **launch: Any) -> list[Message]:
        """Launch a program with breakpoints at its lines; return the breakpoints."""
        failures = launch.pop("failures", [])
        self.request("initialize", adapterID="harnpy")
        self.request("launch", program=program, **launch)
        self.wait_for("initialized")
        found = self.breakpoints(program, *lines)
        self.request("setExceptionBreakpoints", filters=failures)
        self.request("configurationDone")
        return found

    def breakpoints(self, file: str, *lines: int | tuple[int, str]) -> list[Message]:
        """Set the breakpoints of a file, some with a condition."""
        wanted = [
            {"line": line} if isinstance(line, int) else {"line": line[0], "condition": line[1]}
            for line in lines
        ]
        source = {"path": str(self.cwd / file)}
        return self.request("setBreakpoints", source=source, breakpoints=wanted)["breakpoints"]

    def stopped(self) -> tuple[str, int]:
        """Wait for a stop: its reason, and the line of the innermost call."""
        body = self.wait_for("stopped")
        self.thread = body["threadId"]
        return body["reason"], self.stack()[0]["line"]

    def step(self, command: str) -> tuple[str, int]:
        """Go on in the thread that stopped last, and wait for the next stop."""
        self.request(command, threadId=self.thread)
        return self.stopped()

    def stack(self, thread: int | None = None) -> list[Message]:
        return self.request("stackTrace", threadId=thread or self.thread)["stackFrames"]

    def scopes(self, frame: Message) -> dict[str, int]:
        scopes = self.request("scopes", frameId=frame["id"])["scopes"]
        return {scope["name"]: scope["variablesReference"] for scope in scopes}

    def variables(self, reference: int) -> dict[str, Message]:
        found = self.request("variables", variablesReference=reference)["variables"]
        return {variable["name"]: variable for variable in found}

    def values(self, reference: int) -> dict[str, str]:
        return {name: variable["value"] for name, variable in self.variables(reference).items()}

    def ends(self) -> int:
        """Wait for the program's end; return its exit status."""
        status = self.wait_for("exited")["exitCode"]
        self.wait_for("terminated")
        self.request("disconnect")
        assert self.end() == 0
        return status
