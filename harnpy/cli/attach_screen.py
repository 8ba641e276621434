"""`harnpy attach` at a terminal: the transcript, the answer being made, a line to type, a status.

What has been said scrolls as what any program prints, so the terminal's own scrolling and copying work.
Spec: 11 §3.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output import ColorDepth

from harnpy.cli.attachment import Attachment, Refused
from harnpy.cli.console import harmless, paint
from harnpy.client import ApiError
from harnpy.formats.visible import cells

if TYPE_CHECKING:
    from collections.abc import Coroutine

#: Rows of the screen that the answer being made leaves to others.
_OTHER_ROWS = 4
#: Seconds between two looks at whether the status is another one.
_REFRESH = 1.0


class Screen:
    """The terminal of an attachment, which is made with its `show`, `changed` and `width`."""

    def __init__(self) -> None:
        self._attachment: Attachment | None = None
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._buffer = Buffer(
            history=InMemoryHistory(),
            multiline=False,
            accept_handler=self._typed,
            on_text_changed=self._changed_text,
        )
        #: The request that was open when the line was begun; None before that.
        self._seen: str | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._app: Application[None] = Application(
            layout=self._layout(),
            key_bindings=self._keys(),
            erase_when_done=True,
            refresh_interval=_REFRESH,
            color_depth=ColorDepth.MONOCHROME if "NO_COLOR" in os.environ else None,
        )

    def show(self, text: str) -> None:
        """Add lines to the transcript."""
        self._lines.put_nowait(text)

    def changed(self) -> None:
        """Draw again what doesn't scroll."""
        self._app.invalidate()

    def width(self) -> int:
        """Return how many columns there are."""
        return self._app.output.get_size().columns

    async def run(self, attachment: Attachment) -> None:
        """Show an attachment that has begun, until it is over or the person leaves. Raises `ApiError`."""
        self._attachment = attachment
        self._start(self._print())
        running = asyncio.create_task(attachment.run())
        running.add_done_callback(lambda _: self._exit())
        try:
            await self._app.run_async(handle_sigint=False)
        finally:
            for task in (running, *self._tasks):
                task.cancel()
            ended = await asyncio.gather(running, *self._tasks, return_exceptions=True)
            while not self._lines.empty():
                print(self._lines.get_nowait())
        if isinstance(ended[0], Exception):
            raise ended[0]

    # What happens meanwhile.

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _print(self) -> None:
        """Print what is to be shown, above the rest."""
        while True:
            lines = [await self._lines.get()]
            while not self._lines.empty():
                lines.append(self._lines.get_nowait())
            async with in_terminal():
                print("\n".join(lines), flush=True)

    def _exit(self) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    def _changed_text(self, buffer: Buffer) -> None:
        if not buffer.text:
            self._seen = None
        elif self._seen is None and self._attachment is not None:
            request = self._attachment.open_request()
            self._seen = "" if request is None else request.id

    def _typed(self, buffer: Buffer) -> bool:
        seen, self._seen = self._seen, None
        self._start(self._enter(buffer.text, seen))
        return False

    async def _enter(self, text: str, seen: str | None) -> None:
        assert self._attachment is not None
        try:
            await self._attachment.enter(text, seen=seen)
        except (Refused, ApiError) as error:
            # What was typed is in the history. In the line it would stand before the command that comes next.
            hint = "" if text.startswith("/") else " (the up key brings back what you typed)"
            self.show(paint(f"! {harmless(str(error))}{hint}", "red", sys.stdout))

    # What it looks like.

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("c-c")
        def leave(event: KeyPressEvent) -> None:
            self._exit()

        @keys.add("c-d", filter=Condition(lambda: not self._buffer.text))
        def leave_by_end(event: KeyPressEvent) -> None:
            self._exit()

        return keys

    def _layout(self) -> Layout:
        answer = Window(FormattedTextControl(self._answer), dont_extend_height=True, wrap_lines=False)
        line = Window(
            BufferControl(self._buffer, input_processors=[BeforeInput(self._prompt)]),
            dont_extend_height=True,
            wrap_lines=True,
        )
        status = Window(FormattedTextControl(self._status), height=1, style="reverse")
        has_answer = Condition(lambda: self._attachment is not None and bool(self._attachment.answer))
        return Layout(HSplit([ConditionalContainer(answer, has_answer), line, status]), focused_element=line)

    def _answer(self) -> str:
        assert self._attachment is not None
        size = self._app.output.get_size()
        # As it will look in the transcript.
        said = "assistant: " + self._attachment.answer.replace("\n", "\n  ")
        return "\n".join(last_rows(said, size.columns, size.rows - _OTHER_ROWS))

    def _prompt(self) -> str:
        attachment = self._attachment
        if attachment is None:
            return ""
        if attachment.open_request("approval") is not None:
            return "approve? [y/n] "
        return "> " if attachment.in_control else "observing> "

    def _status(self) -> str:
        return "" if self._attachment is None else self._attachment.status(self.width()).ljust(self.width())


def last_rows(text: str, width: int, most: int) -> list[str]:
    """Return the last rows that a text takes on a screen of that width, harmless."""
    rows: list[str] = []
    end = len(text)
    # From its end: with each piece of a long answer, the lines that can't be seen are left alone.
    while end >= 0 and len(rows) < most:
        begin = text.rfind("\n", 0, end) + 1
        rows = [*_rows(harmless(text[begin:end]), width), *rows]
        end = begin - 1
    return rows[-max(most, 1) :]


def _rows(line: str, width: int) -> list[str]:
    if line.isascii():
        return [line[at : at + width] for at in range(0, len(line), width)] or [""]
    rows, row, used = [], "", 0
    for letter in line:
        size = cells(letter)
        if used + size > width:
            rows.append(row)
            row, used = "", 0
        row, used = row + letter, used + size
    return [*rows, row]
