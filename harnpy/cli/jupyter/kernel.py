"""The kernel: what Jupyter asks, answered by one `Shell`. Spec: 12 §5.

A cell runs inside ipykernel's own asyncio loop, in its main thread: while the cell waits, the loop goes on,
and while it computes, the loop has its turns. An interrupt cancels the run; the session lives on.
"""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ipykernel.iostream import OutStream
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel
from jupyter_core.application import base_aliases

from harnpy.cli.console import coloured_error, error_text
from harnpy.cli.jupyter.answers import Answers
from harnpy.cli.jupyter.cells import shown_richly
from harnpy.cli.repl import Shell, is_unfinished, shell_vm
from harnpy.cli.terminal_person import Attended
from harnpy.version import __version__
from harnpy.vm.errors import Cancelled, ExitRequest
from harnpy.vm.run.aio import run_inside
from harnpy.world import World
from harnpy.world.host import People
from harnpy.world.streams import RealStreams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy import Vm
    from harnpy.vm.values import Value

    Reply = dict[str, Any]
    Ask = Callable[[str], str | None]

_RESET = ":reset"


class HarnKernel(Kernel):
    """One notebook's session."""

    implementation = "harnpy"
    implementation_version = __version__
    banner = f"Harn v{__version__}, the agent harness language. :help shows the commands of a cell."
    language_info = {  # noqa: RUF012  (a trait of ipykernel's)
        "name": "harn",
        "version": __version__,
        "mimetype": "text/x-harn",
        "file_extension": ".harn",
        "pygments_lexer": "harn",
        # CodeMirror has no mode for Harn. Swift's knows let, var, struct, enum, nil and `//`, and takes each
        # token by itself; a mode that parses colours nothing behind what it doesn't know.
        "codemirror_mode": "swift",
    }

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._vm: Vm | None = None
        self._shell: Shell | None = None
        self._answers = Answers()
        #: Whether a person is being asked: an interrupt ends the question there and then.
        self._asking = False

    @property
    def kernel_info(self) -> Reply:
        # No subshells: a cell of a second thread would run in the same Vm at the same time. The debugger of
        # ipykernel is Python's.
        return {**super().kernel_info, "supported_features": []}

    def set_parent(self, ident: Any, parent: Reply, channel: str = "shell") -> None:
        """Note the request that is being served: what is printed from now on is shown below its cell."""
        super().set_parent(ident, parent, channel)
        if channel == "shell":
            for stream in (sys.stdout, sys.stderr):
                if isinstance(stream, OutStream):
                    stream.set_parent(parent)

    async def do_execute(
        self,
        code: str,
        silent: bool,
        store_history: bool = True,
        user_expressions: Reply | None = None,
        allow_stdin: bool = False,
        **about_the_cell: Any,
    ) -> Reply:
        """Run a cell and send what it shows."""
        payload: list[Reply] = []
        self._allow_stdin = allow_stdin
        try:
            with self._interruptible():
                value = await self._run(code, payload)
        except ExitRequest:
            payload.append({"source": "ask_exit", "keepkernel": False})
        except (Cancelled, KeyboardInterrupt):
            return self._failed("Interrupted", "interrupted", ["\x1b[31merror\x1b[0m: interrupted"])
        except Exception as error:
            return self._failed(
                type(error).__name__, error_text(error), coloured_error(error).rstrip("\n").split("\n")
            )
        else:
            if value is not None and not silent:
                self._show(value)
        return {
            "status": "ok",
            "execution_count": self.execution_count,
            "payload": payload,
            "user_expressions": {},
        }

    async def _run(self, code: str, payload: list[Reply]) -> Value:
        """Return the value of a cell's last expression; nil if it has none."""
        if code.strip() == _RESET:
            self._shell, self._answers = None, Answers()
            return None
        shell = self._shell = self._shell or await self._begun()
        if code.lstrip().startswith(":"):
            await run_inside(shell.session.vm.tasks, lambda: shell.feed(code))
            if shell.done:
                payload.append({"source": "ask_exit", "keepkernel": False})
                shell.done = False
            return None
        value = await shell.session.run_async(code, f"cell {self.execution_count}")
        self._answers.ran.append(code)
        return value

    async def _begun(self) -> Shell:
        world = World(streams=_Streams(self._ask))
        world.people = People(
            Attended(World(streams=_Dialogue(self._ask), environment=world.environment)).ask
        )
        vm = self._vm = shell_vm(world)
        return Shell(await run_inside(vm.tasks, vm.repl))

    def _show(self, value: Value) -> None:
        name = f"_{self.execution_count}"
        if self._shell is not None:
            self._shell.session.bind(name, value)
        data = shown_richly(value, name)
        self._send("execute_result", {"data": data, "metadata": {}, "execution_count": self.execution_count})

    def _failed(self, name: str, message: str, traceback: Sequence[str]) -> Reply:
        content = {"ename": name, "evalue": message, "traceback": list(traceback)}
        self._send("error", content)
        return {"status": "error", "execution_count": self.execution_count, **content}

    def _send(self, kind: str, content: Reply) -> None:
        # What the cell has printed comes before.
        sys.stdout.flush()
        sys.stderr.flush()
        self.send_response(self.iopub_socket, kind, content)

    # Interrupts, and questions to the person.

    def pre_handler_hook(self) -> None:
        """Leave SIGINT ignored: as ipykernel has it, one beside a cell would cost the reply."""

    def post_handler_hook(self) -> None:
        """See `pre_handler_hook`."""

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let SIGINT end the cell that the block runs."""
        before = signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _interrupt(self, number: int, frame: object) -> None:
        if self._asking or self._vm is None:
            raise KeyboardInterrupt
        # An exception here would as likely end the loop as the cell.
        self._vm.cancel()

    def _ask(self, prompt: str) -> str | None:
        """Return what the person writes behind a prompt; None where nobody can be asked."""
        if not self._allow_stdin:
            return None
        self._asking = True
        try:
            return str(self.raw_input(prompt))
        except EOFError:
            return None
        finally:
            self._asking = False

    # What is asked of a cell that doesn't run yet.

    async def do_is_complete(self, code: str) -> Reply:
        """Return whether a console may run an input."""
        if is_unfinished(code):
            return {"status": "incomplete", "indent": ""}
        return {"status": "complete"}

    async def do_complete(self, code: str, cursor_pos: int | None) -> Reply:
        """Return what may stand at the cursor."""
        cursor = len(code) if cursor_pos is None else cursor_pos
        start, matches = self._answers.matches(self._shell, code, cursor)
        kinds = [{"start": start, "end": cursor, "text": match.text, "type": match.kind} for match in matches]
        return {
            "status": "ok",
            "matches": [match.text for match in matches],
            "cursor_start": start,
            "cursor_end": cursor,
            "metadata": {"_jupyter_types_experimental": kinds},
        }

    async def do_inspect(
        self, code: str, cursor_pos: int | None, detail_level: int = 0, omit_sections: Sequence[str] = ()
    ) -> Reply:
        """Return what is known of the name at the cursor."""
        found = self._answers.markdown(self._shell, code, len(code) if cursor_pos is None else cursor_pos)
        data = {} if found is None else {"text/markdown": found, "text/plain": found}
        return {"status": "ok", "found": found is not None, "data": data, "metadata": {}}


class _Streams(RealStreams):
    """The notebook's streams: ipykernel shows what is printed, and a line of input is asked of the person."""

    def __init__(self, ask: Ask) -> None:
        super().__init__()
        self._ask = ask

    def read_line(self, within: float | None = None) -> str | None:
        return self._ask("")

    def read_all(self, within: float | None = None) -> str:
        return self._ask("") or ""

    def isatty(self, stream: str) -> bool:
        return False


class _Dialogue(_Streams):
    """The same for questions: what is said before a line is asked for is its prompt."""

    def __init__(self, ask: Ask) -> None:
        super().__init__(ask)
        self._said = ""
        self.write_err = self._say

    def _say(self, text: str) -> None:
        self._said += text

    def read_line(self, within: float | None = None) -> str | None:
        said, self._said = self._said, ""
        return self._ask(said)


class _Application(IPKernelApp):
    """ipykernel's application with our kernel; it reads no configuration of IPython's."""

    name = "harnpy-kernel"
    kernel_class = HarnKernel
    aliases = {**base_aliases, "f": "IPKernelApp.connection_file"}  # noqa: RUF012  (a trait of ipykernel's)


def serve(connection_file: str) -> None:
    """Serve the notebook that has written a connection file, until it ends."""
    application = _Application.instance(connection_file=connection_file)
    application.initialize([])
    application.start()
