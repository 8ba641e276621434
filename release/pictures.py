"""Make the pictures of README.md, docs/pictures/: the page of a run, the portal and the REPL, light and dark.

    python release/pictures.py [run|portal|repl …]

Requires `chromium` and `tmux` (apt has both), and a checkout with `.[serve]` installed. All data is invented,
and the model is the mock. Make them anew before a release, and look at them before you commit them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from itertools import count, product
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text
from websockets.asyncio.client import connect

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
SCHEMES = ("light", "dark")
#: Bytes of a picture, so that the page loads quickly.
MOST = 150_000
#: The terminal's ground, its text and its colours, from black to white.
COLOURS = {
    "light": "ffffff 24292f 24292f a40e26 116329 7d4e00 0969da 8250df 1b7c83 57606a",
    "dark": "0d1117 e6edf3 484f58 ff7b72 3fb950 d29922 58a6ff bc8cff 39c5cf b1bac4",
}
HARNPY = [sys.executable, "-m", "harnpy"]


# A browser.


class Size(NamedTuple):
    """A picture's name, the page's size in CSS pixels, and pixels a CSS pixel."""

    name: str
    width: int
    height: int
    scale: int = 1


class Tab:
    """A page of a headless Chromium, driven by its DevTools protocol."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._ids = count(1)

    async def do(self, method: str, **parameters: Any) -> Any:
        id = next(self._ids)
        await self._socket.send(json.dumps({"id": id, "method": method, "params": parameters}))
        while (got := json.loads(await self._socket.recv())).get("id") != id:
            pass
        if "error" in got:
            raise RuntimeError(f"{method}: {got['error']}")
        return got["result"]

    async def show(self, url: str, size: Size, scheme: str = "light") -> None:
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.do("Emulation.setEmulatedMedia", features=media)
        await self.do(
            "Emulation.setDeviceMetricsOverride",
            width=size.width, height=size.height, deviceScaleFactor=size.scale, mobile=False,
        )  # fmt: skip
        await self.do("Page.navigate", url=url)
        while await self.value("document.readyState") != "complete":
            await asyncio.sleep(0.05)

    async def value(self, script: str) -> Any:
        return (await self.do("Runtime.evaluate", expression=script, awaitPromise=True))["result"].get(
            "value"
        )

    async def save(self, path: Path) -> None:
        shot = await self.do("Page.captureScreenshot", format="png", optimizeForSpeed=False)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def started(*command: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, **pipes, **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def line_of(process: subprocess.Popen[str], pattern: str) -> str:
    """Return what the pattern's group finds in the first line of output that has it."""
    assert process.stdout
    for line in process.stdout:
        if found := re.search(pattern, line):
            return found[1]
    raise RuntimeError(f"no line has {pattern}")


async def browse(work: Path, visit: Callable[[Tab], Any]) -> None:
    flags = ["--headless", "--no-sandbox", "--hide-scrollbars", "--remote-debugging-port=0"]
    with started("chromium", *flags, f"--user-data-dir={work / 'browser'}", "about:blank") as chromium:
        port = line_of(chromium, r"listening on ws://[^:]+:(\d+)/")
        with urlopen(f"http://127.0.0.1:{port}/json") as answer:
            address = next(each for each in json.load(answer) if each["type"] == "page")[
                "webSocketDebuggerUrl"
            ]
        async with connect(address, max_size=None) as socket:
            await visit(Tab(socket))


# What is shown.


def run(work: Path) -> None:
    """The page of a workflow's run: a check fails, a stage repairs what was wrong, the check passes."""
    environment = {**os.environ, "HARN_RUN_DIR": str(work / "runs")}
    example = ROOT / "examples" / "plan_act_verify.harn"
    subprocess.run([*HARNPY, "run", str(example)], cwd=work, env=environment, check=True, capture_output=True)
    (record,) = (work / "runs").glob("*.json")
    page = work / "run.html"
    words = ["runs", "inspect", str(record), "--html", str(page)]
    subprocess.run([*HARNPY, *words], cwd=work, check=True, capture_output=True)

    async def visit(tab: Tab) -> None:
        for size, scheme in product((Size("run", 1000, 1120), Size("run-narrow", 400, 720, 2)), SCHEMES):
            await tab.show(page.as_uri(), size, scheme)
            await tab.save(PICTURES / f"{size.name}-{scheme}.png")

    asyncio.run(browse(work, visit))


TALK = """
from harnpy import AgentDef, LoopFactory, runtime, tool
from harnpy.session import actions

@tool(read_only=True)
def parcel(number: int) -> dict:
    "Where a parcel is."
    return {"at": "Hamburg, depot 4", "due": "Monday", "late": True}

@tool
def refund(euros: int) -> str:
    "Pay an amount back."
    return "12 EUR are on their way"

loops = LoopFactory(tools=[parcel, refund])
with runtime("sqlite:desk.db", agents=loops) as desk:
    clerk = AgentDef("clerk", system_prompt="Help our customers.", model="mock", tools=("parcel", "refund"))
    for id, question, reply in [
        ("order-40", "Can I change the colour?", "Yes, until it is packed. Which one would you like?"),
        ("order-41", "Is the blue one in stock?", "Yes, **three** of them, and they ship today."),
    ]:
        desk.create(clerk, id=id)
        loops.mock.add({"text": reply})
        desk.send(id, question)
    chat = desk.create(clerk, id="order-42")
    loops.mock.add({"tool_calls": [{"name": "parcel", "arguments": {"number": 42}}]})
    loops.mock.add({"text": "It is in **Hamburg, depot 4**, and comes on Monday, three days late."})
    desk.send(chat.id, "Where is my parcel? It was due on Friday.")
    desk.execute(chat.id, actions.Fork("order-42-plan-b"))
    loops.mock.add({"tool_calls": [{"name": "refund", "arguments": {"euros": 12}}]})
    loops.mock.add({"text": "Done:\\n\\n- **12 EUR**, to the card you paid with\\n- within two days"})
    desk.send(chat.id, "Then I would like the postage back.")
"""


def portal(work: Path) -> None:
    """A conversation with calls of tools and a fork, as the portal shows it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", TALK], cwd=work, env=environment, check=True)
    serve = [*HARNPY, "serve", "--store", "sqlite:desk.db", "--bind", "127.0.0.1:0"]
    sizes = (Size("portal", 1280, 860), Size("portal-narrow", 400, 720, 2))
    with started(*serve, cwd=work, env=environment) as server:
        link = line_of(server, r"(http://\S+/signin\?code=\S+)")

        async def visit(tab: Tab) -> None:
            await tab.show(link, sizes[0])
            while "signin" in await tab.value("location.href"):
                await tab.value("document.forms[0]?.submit()")
                await asyncio.sleep(0.1)
            for size, scheme in product(sizes, SCHEMES):
                await tab.show(link.partition("/signin")[0] + "/sessions/order-42", size, scheme)
                await tab.value("document.querySelectorAll('main details').forEach(each => each.open = true)")
                await asyncio.sleep(0.5)  # its script goes to the last entry
                await tab.value("scrollTo(0, 0)")
                await asyncio.sleep(0.2)
                await tab.save(PICTURES / f"{size.name}-{scheme}.png")

        asyncio.run(browse(work, visit))


LINES = [
    'let chat = agent_session_open("support")',
    'agent_session_inject(chat, {role: "user", content: "Where is my parcel?"})',
    "let branch = agent_session_fork(chat)",
    'agent_session_inject(branch, {role: "user", content: "And my hat?"})',
    "[agent_session_length(chat), agent_session_length(branch)]",
    "[3, 1, 2].sort().map({ n -> n * n })",
    '{name: "Ada", orders: [40, 41, 42]}',
    "[1, 2].psuh(3)",
]


def repl(work: Path) -> None:
    """The REPL, typed into by tmux."""
    tmux = ["tmux", "-L", f"pictures-{os.getpid()}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "HOME": str(work)}
    size = ["-x", "92", "-y", "40"]
    subprocess.run(
        [*tmux, "new-session", "-d", *size, *HARNPY, "repl"], cwd=work, env=environment, check=True
    )

    def screen() -> str:
        shown = subprocess.run(
            [*tmux, "capture-pane", "-e", "-p"], capture_output=True, text=True, check=True
        )
        return shown.stdout

    def settled() -> str:
        """Return the screen once it has a prompt and no longer changes."""
        before = ""
        while (now := screen()) != before or "〉" not in now[now.rstrip().rfind("\n") + 1 :]:
            before = now
            time.sleep(0.3)
        return now

    try:
        settled()
        for line in LINES:
            subprocess.run([*tmux, "send-keys", "-l", line], check=True)
            subprocess.run([*tmux, "send-keys", "Enter"], check=True)
            shown = settled()
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    lines = shown.rstrip().splitlines()
    for scheme in SCHEMES:
        ground, ink, *colours = (tuple(bytes.fromhex(each)) for each in COLOURS[scheme].split())
        theme = TerminalTheme(ground, ink, colours)
        console = Console(
            record=True, width=92, file=StringIO(), force_terminal=True, color_system="truecolor"
        )
        text = Text.from_ansi("\n".join(lines))
        # A piece of its own, so that what follows stands in its column with every font's bracket.
        text.highlight_regex(r"(?m)^(harn|:::)\W", "not bold")
        console.print(text, end="")
        drawn = console.export_svg(title="harnpy repl", theme=theme, unique_id=f"repl-{scheme}")
        (PICTURES / f"repl-{scheme}.svg").write_text(drawn, encoding="utf-8")


KINDS = {"run": run, "portal": portal, "repl": repl}


def main() -> None:
    for tool in ("chromium", "tmux"):
        if shutil.which(tool) is None:
            raise SystemExit(f"{tool} is missing: apt-get install {tool}")
    PICTURES.mkdir(exist_ok=True)
    for name in sys.argv[1:] or KINDS:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
            KINDS[name](Path(work))
    for picture in sorted(PICTURES.iterdir()):
        size = picture.stat().st_size
        print(f"{picture.name}: {size / 1000:.0f} kB{', too large' if size > MOST else ''}")


if __name__ == "__main__":
    main()
