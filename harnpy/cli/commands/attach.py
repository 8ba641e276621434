"""`harnpy attach`: a session of a server at a terminal, or for a pipe. Spec: 11 §3."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
import threading
from typing import TYPE_CHECKING

import click

from harnpy.cli import FAILED, INTERRUPTED, OK
from harnpy.cli.console import complain, harmless, say

if TYPE_CHECKING:
    from harnpy.cli.attachment import Attachment
    from harnpy.client import AsyncClient

#: The variable with the token, unless `--token-env` names another.
_TOKEN = "HARN_TOKEN"
_UNAUTHORIZED = 401
#: Seconds that what a turn has written may take to come, once the turn has ended.
_LATE = 5.0


@click.command("attach", short_help="Watch and control a session on a server.")
@click.argument("url", metavar="URL[,URL…]")
@click.argument("session")
@click.option(
    "--client", "name", metavar="NAME", help="This client's name (default: your user name and a number)."
)
@click.option("--control", is_flag=True, help="Take control, if nobody has it: what you type is sent.")
@click.option(
    "--token-env",
    "variable",
    metavar="NAME",
    help=f"The environment variable that holds the token (default {_TOKEN}).",
)
def command(url: str, session: str, name: str | None, control: bool, variable: str | None) -> int:
    """Show SESSION of the server at URL as it grows, and send what you type while you are in control.

    Separate the URLs of several servers on one store with commas: if one is gone, another is used.

    `/help` lists the commands; Ctrl+C leaves. If stdout is not a terminal, messages are printed as plain
    lines, and the lines of stdin are sent until it ends.
    """
    from harnpy.client import ApiError

    token = os.environ.get(variable or _TOKEN)
    if token is None and variable is not None:
        complain(f"error: there is no variable {variable} in the environment, which --token-env names")
        return FAILED
    name = name or f"{os.environ.get('USER') or 'terminal'}-{secrets.token_hex(2)}"
    try:
        return asyncio.run(_attached(url, token, session, name, control))
    except (ApiError, ValueError) as error:
        problem = harmless(str(error))
        if isinstance(error, ApiError) and error.status == _UNAUTHORIZED:
            problem = (
                f"the server wants a token that it knows, in the environment variable {variable or _TOKEN}"
            )
        complain(f"error: {problem}")
        return FAILED


async def _attached(url: str, token: str | None, session: str, name: str, control: bool) -> int:
    from harnpy.client import AsyncClient

    signals = _Signals()
    async with AsyncClient(url.split(","), token, patience=float("inf")) as client:
        work = asyncio.create_task(_work(client, session, name, control))
        signals.stop(work)
        try:
            return await work
        except asyncio.CancelledError:
            if signals.came is None:
                raise
            return OK if signals.came == signal.SIGINT else INTERRUPTED


class _Signals:
    """Signals that end the work, which then detaches."""

    def __init__(self) -> None:
        self.came: int | None = None

    def stop(self, work: asyncio.Task[int]) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, number, work)

    def _stop(self, number: int, work: asyncio.Task[int]) -> None:
        self.came = number
        work.cancel()


async def _work(client: AsyncClient, session: str, name: str, control: bool) -> int:
    from harnpy.cli.attachment import Attachment

    if sys.stdin.isatty() and sys.stdout.isatty():
        from harnpy.cli.attach_screen import Screen

        screen = Screen()
        attachment = Attachment(client, session, name, screen.show, screen.changed, screen.width)
        await attachment.begin(control)
        try:
            await screen.run(attachment)
        finally:
            await attachment.leave()
        return OK
    attachment = Attachment(client, session, name, _say)
    await attachment.begin(control)
    try:
        return await _piped(attachment)
    finally:
        await attachment.leave()


# Without a terminal.


def _say(text: str) -> None:
    say(text)
    sys.stdout.flush()


async def _piped(attachment: Attachment) -> int:
    """Print what is said; send the lines of stdin, one after the other, and leave when all have ended.

    Without a line, watch until the session is over.
    """
    watching = asyncio.create_task(attachment.run())
    sending = asyncio.create_task(_send_lines(attachment))
    try:
        await asyncio.wait((watching, sending), return_when=asyncio.FIRST_COMPLETED)
        if not watching.done() and (refused := sending.result()) is not None:
            return FAILED if refused else OK
        await watching
        return OK
    finally:
        watching.cancel()
        sending.cancel()
        await asyncio.gather(watching, sending, return_exceptions=True)


async def _send_lines(attachment: Attachment) -> int | None:
    """Return how many lines were refused; None when there were no lines."""
    refused = count = 0

    async def enter(line: str) -> None:
        nonlocal refused
        from harnpy.cli.attachment import Refused
        from harnpy.client import ApiError

        try:
            await attachment.enter(line, wait=True)
        except (Refused, ApiError) as error:
            refused += 1
            complain(f"error: {harmless(str(error))}")

    async def enter_others() -> None:
        while (line := await others.get()) is not None:
            await enter(line)

    others: asyncio.Queue[str | None] = asyncio.Queue()
    lines = _lines_of_stdin()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(enter_others())
        while (line := await lines.get()) is not None:
            if line.strip():
                count += 1
                await (enter(line) if attachment.is_urgent(line) else others.put(line))
        others.put_nowait(None)
    if not count:
        return None
    await attachment.catch_up(_LATE)
    return refused


def _lines_of_stdin() -> asyncio.Queue[str | None]:
    """Return the lines as they come, and None at the end, read in a thread that nobody waits for."""
    lines: asyncio.Queue[str | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        for line in iter(sys.stdin.readline, ""):
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, daemon=True).start()
    return lines
