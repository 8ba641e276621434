"""How long does an editor wait for a keystroke in a long file: for the diagnostics, and for a completion?

    python bench/editor.py [--rounds N] [--lines N] [--check] [--peer NAME=COMMAND …]

`harnpy lsp` on a Harn program, beside servers of Python on a Python program with as many lines: the same
client, the same edits. Peers are those that are installed (`pip install basedpyright jedi-language-server`)
or that `--peer` names. Also: from the start of a server to its answer to `initialize`, against
`python -c pass`, and its memory with 200 files open.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from check import FUNCTION
from options import environment, parser

_PYTHON = """\
def total_{n}(orders: list[dict[str, float]], limit: float | None = None) -> float:
    total = 0.0
    for order in orders:
        total = total + order["price"] * order["count"]
    if limit is not None:
        if total > limit:
            return limit
    rest = total
    return rest


def label_{n}(status: str, name: str) -> str:
    if status == "open":
        shown = "[ ] " + name
    else:
        shown = "[x] " + name
    if name == "":
        shown = "none"
    print(total_{n}([{{"price": {n}.5, "count": 2}}]))
    return shown.strip()


"""
_PEERS = {
    "basedpyright": "basedpyright-langserver --stdio",
    "pyright": "pyright-langserver --stdio",
    "jedi-language-server": "jedi-language-server",
}
_TYPED = "    total_1"
#: Seconds after which an answer counts as none.
_PATIENCE = 60.0
_FILES = 200


class Server:
    """A server and its client, which answers what servers ask."""

    def __init__(self, command: list[str]) -> None:
        self.started = perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )
        self._number = 0
        self._bytes = b""
        self._published: dict[str, int | None] = {}

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def note(self, method: str, params: object) -> None:
        self.send({"method": method, "params": params})

    def ask(self, method: str, params: object) -> Any:
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        while True:
            message = self._read(_PATIENCE)
            if message is None:
                raise SystemExit(f"no answer to {method}")
            if "method" not in message and message.get("id") == self._number:
                return message.get("result")

    def initialize(self, root: Path) -> float:
        """Return the seconds from the start to the answer."""
        folder = {"uri": root.as_uri(), "name": root.name}
        capabilities = {"textDocument": {"publishDiagnostics": {"versionSupport": True}}}
        self.ask(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": root.as_uri(),
                "workspaceFolders": [folder],
                "capabilities": capabilities,
            },
        )
        seconds = perf_counter() - self.started
        self.note("initialized", {})
        return seconds

    def open(self, uri: str, language: str, text: str) -> None:
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.note("textDocument/didOpen", {"textDocument": document})

    def published(self, uri: str, version: int) -> bool:
        """Wait for the diagnostics of a version; return whether they came."""
        end = perf_counter() + _PATIENCE
        while (left := end - perf_counter()) > 0:
            if uri in self._published and self._published.pop(uri) in (version, None):
                return True
            if self._read(left) is None:
                break
        return False

    def memory(self) -> float:
        """Return the megabytes that the server and its children hold."""
        return sum(_resident(pid) for pid in _family(self._process.pid))

    def end(self) -> None:
        for pid in _family(self._process.pid)[1:]:
            os.kill(pid, 15)
        self._process.kill()
        self._process.communicate()

    def _read(self, seconds: float) -> dict[str, Any] | None:
        """Return the next message; None if none comes in time."""
        stream = self._process.stdout
        assert stream is not None
        while True:
            header, found, rest = self._bytes.partition(b"\r\n\r\n")
            if found:
                length = next(
                    int(line.split(b":")[1])
                    for line in header.split(b"\r\n")
                    if line.startswith(b"Content-Length")
                )
                if len(rest) >= length:
                    self._bytes = rest[length:]
                    message: dict[str, Any] = json.loads(rest[:length])
                    self._note(message)
                    return message
            if not select.select([stream], [], [], seconds)[0]:
                return None
            data = os.read(stream.fileno(), 1 << 20)
            if not data:
                return None
            self._bytes += data

    def _note(self, message: dict[str, Any]) -> None:
        if message.get("method") == "textDocument/publishDiagnostics":
            self._published[message["params"]["uri"]] = message["params"].get("version")
        elif "method" in message and "id" in message:
            items = (message.get("params") or {}).get("items", ())
            asked = message["method"] == "workspace/configuration"
            self.send({"id": message["id"], "result": [None for _ in items] if asked else None})


def _family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found


def _resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def keystrokes(server: Server, uri: str, text: str, line: int, keys: int) -> dict[str, list[float]]:
    """Type a line, and another one; return the milliseconds of each keystroke."""
    times: dict[str, list[float]] = {"diagnostics": [], "completion": []}
    version, column, typed = 1, 0, ""
    for key in range(keys):
        at = {"line": line, "character": column}
        if column == 0:
            # Another line of its own.
            new, typed = "\n", ""
        else:
            new = _TYPED[column - 1]
        version += 1
        where = {"start": at, "end": at} if new == "\n" else {"start": {**at, "character": column - 1}}
        where.setdefault("end", where["start"])
        change = {"range": where, "text": new}
        start = perf_counter()
        server.note(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]},
        )
        if server.published(uri, version):
            times["diagnostics"].append((perf_counter() - start) * 1000)
        if new != "\n":
            typed += new
            start = perf_counter()
            server.ask(
                "textDocument/completion",
                {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}},
            )
            times["completion"].append((perf_counter() - start) * 1000)
        column = column + 1 if column < len(_TYPED) else 0
        assert key < keys
    return times


def measured(
    command: list[str], language: str, function: str, lines: int, keys: int, files: int
) -> dict[str, Any]:
    """Return what one server needs."""
    count = max(2, lines // function.count("\n"))
    text = "".join(function.format(n=n) for n in range(count))
    # In the body of a function in the middle.
    line = function.count("\n") * (count // 2) + 1
    # An empty project: no server reads other files than those that are open.
    root = Path(tempfile.mkdtemp())
    suffix = {"harn": "harn", "python": "py"}[language]
    server = Server(command)
    try:
        found: dict[str, Any] = {"start": server.initialize(root) * 1000}
        uri = (root / f"long.{suffix}").as_uri()
        server.open(uri, language, text)
        server.published(uri, 1)
        found.update(keystrokes(server, uri, text, line, keys))
        found["memory, the long file"] = server.memory()
        server.note("textDocument/didClose", {"textDocument": {"uri": uri}})
    finally:
        server.end()
    server = Server(command)
    try:
        server.initialize(root)
        for number in range(files):
            server.open((root / f"f{number}.{suffix}").as_uri(), language, function.format(n=number) * 2)
        for number in range(files):
            server.published((root / f"f{number}.{suffix}").as_uri(), 1)
        found["memory"] = server.memory()
    finally:
        server.end()
        root.rmdir()
    return found


def at(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))] if times else float("nan")


def bare_start() -> float:
    start = perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True, env=environment())
    return (perf_counter() - start) * 1000


def main() -> int:
    options = parser(__doc__, rounds=1)
    options.add_argument("--lines", type=int, default=10_000)
    options.add_argument("--keys", type=int, default=60)
    options.add_argument("--files", type=int, default=_FILES)
    options.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    given = options.parse_args()
    sides: dict[str, tuple[list[str], str, str]] = {
        "harnpy lsp": ([sys.executable, "-m", "harnpy", "lsp"], "harn", FUNCTION)
    }
    peers = dict(peer.split("=", 1) for peer in given.peer) or _PEERS
    for name, command in peers.items():
        words = shlex.split(command)
        if shutil.which(words[0]) is None:
            print(f"{name}: left out, {words[0]} is not installed")
        else:
            sides[name] = words, "python", _PYTHON
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
    bare = []
    for _ in range(given.rounds):
        bare.append(bare_start())
        for name, (command, language, function) in sides.items():
            rounds[name].append(measured(command, language, function, given.lines, given.keys, given.files))
    rows: dict[str, dict[str, float]] = {}
    print(f"{'':24} {'diagnostics':>18} {'completion':>18} {'start':>8} {'memory':>8} {'200 files':>9}")
    for name, found in rounds.items():
        times = {kind: [ms for one in found for ms in one[kind]] for kind in ("diagnostics", "completion")}
        rows[name] = {kind: at(each, 0.95) for kind, each in times.items()}
        rows[name]["start"] = median(one["start"] for one in found) - median(bare)
        rows[name]["memory"] = median(one["memory"] for one in found)
        cells = [f"{at(each, 0.5):7.0f} {at(each, 0.95):7.0f} ms" for each in times.values()]
        long = median(one["memory, the long file"] for one in found)
        print(
            f"  {name:22} {cells[0]:>18} {cells[1]:>18} {rows[name]['start']:5.0f} ms"
            f" {long:5.0f} MB {rows[name]['memory']:6.0f} MB"
        )
    print("(p50 and p95; the start is what it takes more than `python -c pass`)")
    own = rows["harnpy lsp"]
    over = [
        name
        for name, limit in (("diagnostics", 100), ("completion", 100), ("start", 500), ("memory", 150))
        if own[name] > limit
    ]
    for name in over:
        print(f"{name}: over")
    return 1 if given.check and over else 0


if __name__ == "__main__":
    sys.exit(main())
